package driver

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"text/tabwriter"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
)

// VerifyOptions are the flags of `rammerc verify`.
type VerifyOptions struct {
	SubjectOptions
	Model      string   // reference model of a library directory
	Inputs     []string // NAME=FILE; a file with more samples than the input's first dim makes a series
	Expect     []string // NAME=FILE: expected outputs; else ir/eval computes them
	Data       string   // folder with test_data_set_* folders, or one of them
	RandomSeed uint64
	RandomMax  int64
	Samples    int     // random samples when no data is given
	Limit      float64 // relative L2 limit in place of the table's
	Bisect     bool
	Repeat     int // run the first sample this many times and compare bits
}

// VerifyResult is what `rammerc verify` reports.
type VerifyResult struct {
	Schema    string       `json:"schema"`
	Engine    string       `json:"engine"`
	Reference string       `json:"reference"`
	Samples   int          `json:"samples"`
	Outputs   []OutputDiff `json:"outputs"`
	OK        bool         `json:"ok"`
	Repeats   int          `json:"repeats,omitempty"`
	Differing int          `json:"repeats_differing"` // runs whose result has other bits than the first
	FirstBad  *NodeDiff    `json:"first_difference,omitempty"`
}

// OutputDiff is the largest difference of an output over all samples.
type OutputDiff struct {
	tolerance.Difference
	Limit   tolerance.Limit `json:"limit"`
	OK      bool            `json:"ok"`
	Passing string          `json:"passing"`           // the tolerance that would pass
	Classes *Classes        `json:"classes,omitempty"` // of outputs [N, classes]
}

// Classes counts rows whose largest element is in the same place.
type Classes struct {
	Same int `json:"same"`
	Rows int `json:"rows"`
}

// Verify compares an engine with the evaluator or with expected outputs. The error is a *CheckError
// when they differ by more than the tolerance.
func Verify(ui *UI, o VerifyOptions) (*VerifyResult, error) {
	s, err := openSubject(ui, o.SubjectOptions)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if s.model == nil && o.Model != "" {
		m := o.ModelOptions
		m.Path = o.Model
		ref, err := load(ui, m, true)
		if err != nil {
			return nil, err
		}
		s.model = ref.Graph
	}
	samples, err := o.samples(s)
	if err != nil {
		return nil, err
	}
	done := ui.Stage("compare")
	r, err := compare(ui, s, samples, o.Limit)
	if err != nil {
		return nil, err
	}
	done("%d samples", r.Samples)
	if o.Repeat > 0 {
		if err := r.repeat(ui, s, samples[0], o.Repeat); err != nil {
			return nil, err
		}
	}
	if !r.OK && o.Bisect && s.model != nil {
		if r.FirstBad, err = bisect(ui, o.SubjectOptions, samples[0].in); err != nil {
			return nil, err
		}
	}
	if !r.OK {
		return r, &CheckError{fmt.Sprintf("%s differs from %s by more than the tolerance", r.Engine, r.Reference)}
	}
	return r, nil
}

// repeat runs one sample n times more; a result with other bits is a failure.
func (r *VerifyResult) repeat(ui *UI, s *subject, x sample, n int) error {
	l, ok := s.engine.(*library)
	if !ok {
		return usage("bad-flag", "--repeat needs the engine emu or gpu")
	}
	raw, err := l.raw(x.in)
	if err != nil {
		return err
	}
	done := ui.Stage("repeat")
	if r.Differing, err = l.lib.Repeat(raw, n); err != nil {
		return err
	}
	r.Repeats = n
	r.OK = r.OK && r.Differing == 0
	done("%d of %d runs differ in some bit", r.Differing, n)
	return nil
}

// sample is an inference with what should come out; want is nil when ir/eval is to say. keep, when
// not 0, is how many rows along the first axis count: the rest pads the last batch of a series.
type sample struct {
	in, want map[string]*ir.Tensor
	keep     int64
}

// samples collects inferences from --data, from --input, or at random.
func (o *VerifyOptions) samples(s *subject) ([]sample, error) {
	var out []sample
	var err error
	switch {
	case o.Data != "":
		out, err = dataSets(o.Data, s)
	case len(o.Inputs) > 0:
		out, err = series(s, o.Inputs, o.Expect)
	default:
		for i := range max(o.Samples, 1) {
			out = append(out, sample{in: randomInputs(s.inputs, o.RandomSeed+uint64(i), max(o.RandomMax, 1))})
		}
	}
	if err != nil {
		return nil, err
	}
	for _, x := range out {
		if x.want == nil && s.model == nil {
			return nil, usage("missing-reference", "nothing to compare with: give --model MODEL, --expect NAME=FILE or --data DIR")
		}
	}
	return out, nil
}

// dataSets reads ONNX test data: input_0.pb … and output_0.pb … in test_data_set_* folders.
func dataSets(dir string, s *subject) ([]sample, error) {
	sets, _ := filepath.Glob(filepath.Join(dir, "test_data_set_*"))
	if len(sets) == 0 {
		sets = []string{dir}
	}
	sort.Strings(sets)
	var out []sample
	for _, set := range sets {
		x := sample{in: map[string]*ir.Tensor{}, want: map[string]*ir.Tensor{}}
		for _, side := range []struct {
			prefix string
			ports  []port
			dst    map[string]*ir.Tensor
		}{{"input", s.inputs, x.in}, {"output", s.outputs, x.want}} {
			for i, p := range side.ports {
				file := filepath.Join(set, fmt.Sprintf("%s_%d.pb", side.prefix, i))
				data, err := os.ReadFile(file)
				if err != nil {
					return nil, &diag.Diagnostic{ID: "cannot-read", File: file, Port: side.prefix + " " + p.name, Message: "cannot be read"}
				}
				_, t, err := onnx.ReadTensorPB(data)
				if err == nil {
					err = fits(&p, t)
				}
				if err != nil {
					return nil, &diag.Diagnostic{ID: "bad-input", File: file, Port: side.prefix + " " + p.name, Message: err.Error()}
				}
				side.dst[p.name] = t
			}
		}
		out = append(out, x)
	}
	return out, nil
}

// series cuts files with many samples along the first axis into inferences.
func series(s *subject, inputs, expect []string) ([]sample, error) {
	in, n, err := readSeries(s.inputs, inputs, "input")
	if err != nil {
		return nil, err
	}
	want, m, err := readSeries(s.outputs, expect, "output")
	if err != nil {
		return nil, err
	}
	if len(expect) > 0 && m != n {
		return nil, usage("bad-input", "--input has %d samples, --expect %d", n, m)
	}
	batch := int64(1)
	if len(s.inputs) > 0 && len(s.inputs[0].dims) > 0 {
		batch = s.inputs[0].dims[0]
	}
	var out []sample
	for at := int64(0); at < n; at += batch {
		x := sample{in: cutRows(in, s.inputs, at), keep: min(batch, n-at)}
		if len(expect) > 0 {
			x.want = cutRows(want, s.outputs, at)
		}
		if n == batch {
			x.keep = 0
		}
		out = append(out, x)
	}
	return out, nil
}

// readSeries reads NAME=FILE flags; every file has the port's shape but for its first dim, n in all.
func readSeries(ports []port, specs []string, what string) (map[string]*ir.Tensor, int64, error) {
	if len(specs) == 0 {
		return nil, 0, nil
	}
	out := map[string]*ir.Tensor{}
	n := int64(-1)
	var l diag.List
	for _, spec := range specs {
		name, file, _ := cutFirst(spec)
		p := findPort(ports, name)
		if p == nil {
			l.Add(&diag.Diagnostic{ID: "unknown-" + what, Message: fmt.Sprintf("there is no %s %q", what, name), Help: what + "s are " + portList(ports)})
			continue
		}
		t, err := tensorio.Read(file, name)
		switch {
		case err != nil:
		case t.DType != p.dtype || len(t.Dims) != len(p.dims) || len(t.Dims) > 0 && !ir.Dims(t.Dims[1:]...).Equal(ir.Dims(p.dims[1:]...)):
			err = fmt.Errorf("is %v%v, want %v%v or more samples along the first axis", t.DType, ir.Dims(t.Dims...), p.dtype, ir.Dims(p.dims...))
		case len(t.Dims) > 0 && n >= 0 && t.Dims[0] != n:
			err = fmt.Errorf("has %d samples, another file %d", t.Dims[0], n)
		case len(t.Dims) > 0:
			n = t.Dims[0]
		}
		if err != nil {
			l.Add(&diag.Diagnostic{ID: "bad-input", File: file, Port: what + " " + name, Message: err.Error()})
			continue
		}
		out[name] = t
	}
	for _, p := range ports {
		if what == "input" && out[p.name] == nil && l.Errors() == 0 {
			l.Add(&diag.Diagnostic{ID: "missing-input", Port: "input " + p.name, Message: "has no value", Help: "give --input " + p.name + "=FILE"})
		}
	}
	return out, max(n, 1), l.Err()
}

// cutRows takes each port's rows from at on; where the file ends, its last row repeats.
func cutRows(all map[string]*ir.Tensor, ports []port, at int64) map[string]*ir.Tensor {
	out := map[string]*ir.Tensor{}
	for _, p := range ports {
		t := all[p.name]
		if t == nil {
			continue
		}
		if len(p.dims) == 0 {
			out[p.name] = t
			continue
		}
		raw := t.LittleEndian()
		row := len(raw) / int(max(t.Dims[0], 1))
		var cut []byte
		for i := at; i < at+p.dims[0]; i++ {
			k := int(min(i, t.Dims[0]-1))
			cut = append(cut, raw[k*row:(k+1)*row]...)
		}
		piece, err := ir.TensorFromBytes(p.dtype, p.dims, cut)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		out[p.name] = piece
	}
	return out
}

func cutFirst(spec string) (name, file string, ok bool) {
	for i := range spec {
		if spec[i] == '=' {
			return spec[:i], spec[i+1:], true
		}
	}
	return spec, "", false
}

// compare runs all samples through the engine and keeps the worst difference of each output.
func compare(ui *UI, s *subject, samples []sample, limit float64) (*VerifyResult, error) {
	r := &VerifyResult{Schema: "rammerc/verify/v1", Engine: s.engine.describe(), Reference: "expected outputs", OK: true}
	worst := map[string]*OutputDiff{}
	progress := ui.Progress("comparing")
	for i, x := range samples {
		got, err := s.engine.run(x.in)
		if err != nil {
			return nil, err
		}
		want := x.want
		if want == nil {
			r.Reference = EngineEval
			if want, err = eval.RunWith(s.model, x.in, eval.Options{}); err != nil {
				return nil, err
			}
		}
		for _, p := range s.outputs {
			if w := want[p.name]; w != nil {
				worsen(worst, p, keepRows(got[p.name], x.keep), keepRows(w, x.keep), limit)
			}
		}
		r.Samples++
		progress(i+1, len(samples))
	}
	for _, p := range s.outputs {
		if d := worst[p.name]; d != nil {
			d.Passing = d.Difference.Passing()
			r.OK = r.OK && d.OK
			r.Outputs = append(r.Outputs, *d)
		}
	}
	return r, nil
}

func keepRows(t *ir.Tensor, keep int64) *ir.Tensor {
	if keep == 0 || t == nil || len(t.Dims) == 0 || keep >= t.Dims[0] {
		return t
	}
	raw := t.LittleEndian()
	dims := append([]int64{keep}, t.Dims[1:]...)
	cut, err := ir.TensorFromBytes(t.DType, dims, raw[:int64(len(raw))/t.Dims[0]*keep])
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return cut
}

func worsen(worst map[string]*OutputDiff, p port, got, want *ir.Tensor, limit float64) {
	d := tolerance.Compare(p.name, got, want)
	l := tolerance.LimitFor(p.dtype)
	if limit > 0 {
		l = tolerance.Limit{L2: limit}
	}
	w := worst[p.name]
	if w == nil {
		w = &OutputDiff{Difference: d, Limit: l, OK: true}
		worst[p.name] = w
		if len(want.Dims) == 2 && want.Dims[1] > 1 {
			w.Classes = &Classes{}
		}
	}
	w.OK = w.OK && d.Within(l)
	if w.Classes != nil && d.Problem == "" {
		same, rows := sameClass(got, want)
		w.Classes.Same += same
		w.Classes.Rows += rows
	}
	w.Special += d.Special
	if d.Problem != "" {
		w.Problem = d.Problem
	}
	if d.MaxAbs > w.MaxAbs {
		w.MaxAbs, w.At = d.MaxAbs, d.At
	}
	w.MaxRel, w.MaxULP, w.RelL2 = max(w.MaxRel, d.MaxRel), max(w.MaxULP, d.MaxULP), max(w.RelL2, d.RelL2)
}

func sameClass(got, want *ir.Tensor) (same, rows int) {
	classes := want.Dims[1]
	for r := int64(0); r < want.Dims[0]; r++ {
		if argMax(got, r*classes, classes) == argMax(want, r*classes, classes) {
			same++
		}
		rows++
	}
	return same, rows
}

func argMax(t *ir.Tensor, from, n int64) int64 {
	best := int64(0)
	for i := int64(1); i < n; i++ {
		if tolerance.At(t, from+i) > tolerance.At(t, from+best) {
			best = i
		}
	}
	return best
}

// Text prints the differences as a table.
func (r *VerifyResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s against %s, %d samples\n", r.Engine, r.Reference, r.Samples)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "OUTPUT\tDTYPE\tMAX ABS\tMAX REL\tMAX ULP\tREL L2\tWOULD PASS\tSAME CLASS\tRESULT")
	for _, o := range r.Outputs {
		result, classes := "ok", "–"
		if !o.OK {
			result = "DIFFERS"
		}
		if o.Problem != "" {
			result = o.Problem
		}
		if o.Classes != nil {
			classes = fmt.Sprintf("%d of %d", o.Classes.Same, o.Classes.Rows)
		}
		fmt.Fprintf(t, "%s\t%s\t%.3g\t%.3g\t%.4g\t%.3g\t%s\t%s\t%s\n", o.Name, o.DType, o.MaxAbs, o.MaxRel, o.MaxULP, o.RelL2, o.Passing, classes, result)
	}
	t.Flush()
	if r.Repeats > 0 {
		fmt.Fprintf(w, "%d of %d repeated runs differ in some bit\n", r.Differing, r.Repeats)
	}
	if r.FirstBad != nil {
		fmt.Fprintf(w, "first difference: %s\n", r.FirstBad)
	}
}

// verifyBuilt is compile --verify: the library in dir against ir/eval on the model as imported.
func (c *compilation) verifyBuilt(ui *UI, r *Compiled) (string, error) {
	m, err := load(&UI{}, c.opt.ModelOptions, true)
	if err != nil {
		return "", err
	}
	e, err := openLibrary(r.Library, (&SubjectOptions{CompileOptions: c.opt}).runnerOptions())
	if err != nil {
		return "", err
	}
	s := &subject{engine: e, model: m.Graph, inputs: graphPorts(m.Graph.Inputs), outputs: graphPorts(m.Graph.Outputs), cleanup: func() {}}
	defer s.close()
	done := ui.Stage("compare")
	res, err := compare(ui, s, []sample{{in: randomInputs(s.inputs, 1, 2)}, {in: randomInputs(s.inputs, 2, 2)}}, 0)
	if err != nil {
		return "", err
	}
	worst := 0.0
	for _, o := range res.Outputs {
		worst = max(worst, o.RelL2)
	}
	done("%s engine against the evaluator, 2 samples, rel L2 ≤ %.1e", res.Engine, worst)
	if !res.OK {
		return "", &CheckError{"the library differs from the evaluator by more than the tolerance; run 'rammerc verify --bisect'"}
	}
	return res.Engine, nil
}
