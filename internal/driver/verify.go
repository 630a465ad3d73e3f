package driver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"text/tabwriter"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
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
	Mode      string       `json:"mode,omitempty"` // how a library's program ran, and why
	Reason    string       `json:"reason,omitempty"`
	Reference string       `json:"reference"`
	Samples   int          `json:"samples"`
	Outputs   []OutputDiff `json:"outputs"`
	OK        bool         `json:"ok"`
	Repeats   int          `json:"repeats,omitempty"`
	Differing int          `json:"repeats_differing"` // runs whose result has other bits than the first
	Bisected  bool         `json:"bisected,omitempty"`
	FirstBad  *NodeDiff    `json:"first_difference,omitempty"` // nil although bisected: no node differs by itself
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

// Verify compares an engine with the evaluator or with expected outputs. When they differ by more than
// the tolerance there is a result, and the error is a *CheckError.
func Verify(ui *UI, o VerifyOptions) (r *VerifyResult, err error) {
	defer ui.guard(&err)
	s, err := openSubject(ui, o.SubjectOptions)
	if err != nil {
		return nil, err
	}
	r, err = o.verify(ui, s)
	if closed := s.close(); err == nil && closed != nil {
		err = closingError(closed, o.Sanitize)
	}
	if err == nil && !r.OK {
		err = &CheckError{fmt.Sprintf("%s differs from %s by more than the tolerance", r.Engine, r.Reference)}
	}
	return r, err
}

// closingError is how a library's process ended after it had answered everything. ThreadSanitizer
// reports what it found that way.
func closingError(err error, sanitized bool) error {
	var crash *runner.Crash
	if sanitized && errors.As(err, &crash) {
		return &CheckError{"ThreadSanitizer found data races: " + crash.Error()}
	}
	return err
}

func (o *VerifyOptions) verify(ui *UI, s *subject) (*VerifyResult, error) {
	if err := o.reference(ui, s); err != nil {
		return nil, err
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
	r.Mode, r.Reason = s.mode()
	done("%s on %s", count(r.Samples, "sample"), s.how())
	if o.Repeat > 0 {
		if err := r.repeat(ui, s, samples.at(0), o.Repeat); err != nil {
			return nil, err
		}
	}
	if !r.OK && o.Bisect {
		r.Bisected = true
		r.FirstBad, err = bisect(ui, o.SubjectOptions, samples.at(0).in, o.Limit)
	}
	return r, err
}

// reference loads --model for a library directory.
func (o *VerifyOptions) reference(ui *UI, s *subject) error {
	if s.model != nil {
		if o.Model != "" {
			return usage("bad-flag", "--model is the reference of a library directory; %s is a model itself", o.Path)
		}
		return nil
	}
	if o.Model == "" {
		if o.Bisect {
			return usage("bad-flag", "--bisect on a library directory needs --model MODEL")
		}
		return nil
	}
	o.ModelOptions.Path = o.Model // from here on for bisect too
	ref, err := load(ui, o.ModelOptions, true)
	if err != nil {
		return err
	}
	s.model = ref.Graph
	return samePorts(o.Model, s)
}

// samePorts checks that the reference has the library's inputs and outputs.
func samePorts(file string, s *subject) error {
	var l diag.List
	for _, side := range []struct {
		what string
		lib  []port
		ref  []port
	}{{"input", s.inputs, graphPorts(s.model.Inputs)}, {"output", s.outputs, graphPorts(s.model.Outputs)}} {
		for _, p := range side.lib {
			m := findPort(side.ref, p.name)
			if m == nil || m.dtype != p.dtype || !ir.Dims(m.dims...).Equal(ir.Dims(p.dims...)) {
				l.Add(&diag.Diagnostic{
					ID: "other-model", File: file, Port: side.what + " " + p.name,
					Message: fmt.Sprintf("the library has %v%s, the model has %s", p.dtype, p.shape(), portList(side.ref)),
					Help:    "give the model, --dim and --shape that the library was compiled from",
				})
			}
		}
	}
	return l.Err()
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
	if r.Differing, err = l.lib.Repeat(raw, n, ui.Progress("repeating")); err != nil {
		return err
	}
	r.Repeats = n
	r.Mode, r.Reason = s.mode() // a device may have refused the rProgram meanwhile
	r.OK = r.OK && r.Differing == 0
	done("%d of %d runs differ in some bit", r.Differing, n)
	return nil
}

// compare runs all samples through the engine and keeps the worst difference of each output.
func compare(ui *UI, s *subject, samples *sampleSet, limit float64) (*VerifyResult, error) {
	r := &VerifyResult{Schema: "rammerc/verify/v1", Engine: s.engine.describe(), Reference: "expected outputs", OK: true}
	worst := map[string]*OutputDiff{}
	progress := ui.Progress("comparing")
	for i := range samples.n {
		x := samples.at(i)
		got, err := s.engine.run(x.in)
		if err != nil {
			return nil, err
		}
		want := x.want
		if want == nil {
			r.Reference = EngineEval
			if want, err = eval.RunWith(s.model, x.in, eval.Options{}); err != nil {
				return nil, evalError(err, "")
			}
		}
		for _, p := range s.outputs {
			if w := want[p.name]; w != nil {
				worsen(worst, p, keepRows(got[p.name], x.keep), keepRows(w, x.keep), limit)
			}
		}
		r.Samples++
		progress(i+1, samples.n)
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

// limitFor is the tolerance table's limit, or the relative L2 error that --limit names.
func limitFor(d ir.DType, l2 float64) tolerance.Limit {
	if l2 > 0 {
		return tolerance.Limit{L2: l2}
	}
	return tolerance.LimitFor(d)
}

func worsen(worst map[string]*OutputDiff, p port, got, want *ir.Tensor, limit float64) {
	d := tolerance.Compare(p.name, got, want)
	l := limitFor(p.dtype, limit)
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
	w.MaxRel, w.MaxULP, w.RelL2 = larger(w.MaxRel, d.MaxRel), larger(w.MaxULP, d.MaxULP), larger(w.RelL2, d.RelL2)
}

// larger is max, finite: JSON has no infinities.
func larger(a, b float64) float64 { return min(max(a, b), math.MaxFloat64) }

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
	fmt.Fprintf(w, "%s against %s, %s\n", r.Engine, r.Reference, count(r.Samples, "sample"))
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
	switch {
	case r.FirstBad != nil:
		fmt.Fprintf(w, "first difference: %s\n", r.FirstBad)
	case r.Bisected:
		fmt.Fprintln(w, "no node differs by more than the tolerance by itself: small differences add up")
	}
}

// verifyBuilt is compile --verify: what was emitted into dir against ir/eval on the model as imported.
// Sources for a GPU that is not at hand are run on the emulator.
func (c *compilation) verifyBuilt(ui *UI, dir string, r *Compiled) (string, error) {
	m, err := load(&UI{}, c.opt.ModelOptions, true)
	if err != nil {
		return "", err
	}
	lib, remove, err := c.runnable(ui, dir, r)
	defer remove()
	if err != nil {
		return "", err
	}
	e, err := openLibrary(lib, (&SubjectOptions{CompileOptions: c.opt}).runnerOptions())
	if err != nil {
		return "", err
	}
	s := &subject{engine: e, model: m.Graph, inputs: graphPorts(m.Graph.Inputs), outputs: graphPorts(m.Graph.Outputs), cleanup: func() {}}
	defer s.close()
	done := ui.Stage("compare")
	o := VerifyOptions{RandomSeed: 1, RandomMax: 2, Samples: 2}
	res, err := compare(ui, s, o.random(s), 0)
	if err != nil {
		return "", err
	}
	worst := 0.0
	for _, o := range res.Outputs {
		worst = max(worst, o.RelL2)
	}
	done("%s engine against the evaluator, %d samples, rel L2 ≤ %.1e", res.Engine, res.Samples, worst)
	if !res.OK {
		return "", &CheckError{"the library differs from the evaluator by more than the tolerance; run 'rammerc verify --bisect'"}
	}
	return res.Engine, nil
}

// runnable is the built library where this machine can run it, else the same sources built for the
// emulator in a temporary folder.
func (c *compilation) runnable(ui *UI, dir string, r *Compiled) (lib string, remove func(), err error) {
	if c.spec.Arch == TargetEmu || r.Library != "" && toolchain.LocalArch(context.Background()) == c.spec.Arch {
		return r.Library, func() {}, nil
	}
	tmp, remove, err := ui.tempDir("", "rammerc-")
	if err == nil {
		err = os.CopyFS(tmp, os.DirFS(dir))
	}
	if err != nil {
		return "", remove, err
	}
	emulated := &Compiled{Name: r.Name}
	err = c.buildEmulated(ui, tmp, emulated, nil)
	return emulated.Library, remove, err
}
