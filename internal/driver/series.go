package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
)

// sample is an inference with what should come out; want is nil when ir/eval is to say. keep, when
// not 0, is how many rows along the first axis count: the rest pads the last batch of a series.
type sample struct {
	in, want map[string]*ir.Tensor
	keep     int64
}

// sampleSet is a sequence of inferences, each made when it is asked for.
type sampleSet struct {
	n        int
	expected bool // samples say what should come out
	at       func(i int) sample
}

// samples collects inferences from --data, from --input, or at random.
func (o *VerifyOptions) samples(s *subject) (*sampleSet, error) {
	set, err := o.collect(s)
	if err == nil && !set.expected && s.model == nil {
		err = usage("missing-reference", "nothing to compare with: give --model MODEL, --expect NAME=FILE or --data DIR")
	}
	return set, err
}

func (o *VerifyOptions) collect(s *subject) (*sampleSet, error) {
	switch {
	case o.Data != "" && len(o.Inputs)+len(o.Expect) > 0:
		return nil, usage("bad-flag", "--data says inputs and outputs; --input and --expect do not go with it")
	case o.Data != "":
		return dataSets(o.Data, s)
	case len(o.Inputs) > 0:
		return series(s, o.Inputs, o.Expect)
	case len(o.Expect) > 0:
		return nil, usage("bad-flag", "--expect needs --input: outputs belong to inputs")
	}
	return o.random(s), nil
}

func (o *VerifyOptions) random(s *subject) *sampleSet {
	return &sampleSet{n: max(o.Samples, 1), at: func(i int) sample {
		return sample{in: randomInputs(s.inputs, o.RandomSeed+uint64(i), max(o.RandomMax, 1))}
	}}
}

// dataSets reads ONNX test data: input_0.pb … and output_0.pb … in test_data_set_* folders.
func dataSets(dir string, s *subject) (*sampleSet, error) {
	sets, _ := filepath.Glob(filepath.Join(dir, "test_data_set_*"))
	if len(sets) == 0 {
		sets = []string{dir}
	}
	sort.Strings(sets)
	var all []sample
	var l diag.List
	for _, set := range sets {
		x := sample{in: map[string]*ir.Tensor{}, want: map[string]*ir.Tensor{}}
		readDataSet(&l, set, "input", s.inputs, x.in)
		readDataSet(&l, set, "output", s.outputs, x.want)
		all = append(all, x)
	}
	return &sampleSet{len(all), true, func(i int) sample { return all[i] }}, l.Err()
}

func readDataSet(l *diag.List, dir, what string, ports []port, to map[string]*ir.Tensor) {
	for i, p := range ports {
		file := filepath.Join(dir, fmt.Sprintf("%s_%d.pb", what, i))
		data, err := os.ReadFile(file)
		if err != nil {
			l.Add(&diag.Diagnostic{ID: "cannot-read", File: file, Port: what + " " + p.name, Message: bare(err).Error()})
			continue
		}
		_, t, err := onnx.ReadTensorPB(data)
		if err == nil {
			err = fits(&p, t)
		}
		if err != nil {
			l.Add(&diag.Diagnostic{ID: "bad-input", File: file, Port: what + " " + p.name, Message: err.Error()})
			continue
		}
		to[p.name] = t
	}
}

// column is a tensor that a flag names, for one port. When it has more rows along the first axis than
// the port it is cut into one piece an inference; otherwise every inference gets all of it.
type column struct {
	port
	whole *ir.Tensor // nil when it is cut
	raw   []byte
	rows  int64
}

// series cuts files with many samples along the first axis into inferences. All that are cut have as
// many samples.
func series(s *subject, inputs, expect []string) (*sampleSet, error) {
	var l diag.List
	in := readColumns(&l, s.inputs, inputs, "input")
	want := readColumns(&l, s.outputs, expect, "output")
	for _, p := range s.inputs {
		if l.Errors() == 0 && !hasColumn(in, p.name) {
			l.Add(&diag.Diagnostic{ID: "missing-input", Port: "input " + p.name, Message: "has no value", Help: "give --input " + p.name + "=FILE"})
		}
	}
	rows, batch := sameRows(&l, append(append([]*column{}, in...), want...))
	if err := l.Err(); err != nil {
		return nil, err
	}
	n := 1
	if rows > 0 {
		n = int((rows + batch - 1) / batch)
	}
	return &sampleSet{n, len(want) > 0, func(i int) sample {
		x := sample{in: cut(in, i)}
		if len(want) > 0 {
			x.want = cut(want, i)
		}
		if left := rows - int64(i)*batch; rows > 0 && left < batch {
			x.keep = left
		}
		return x
	}}, nil
}

func hasColumn(cs []*column, name string) bool {
	for _, c := range cs {
		if c.name == name {
			return true
		}
	}
	return false
}

// readColumns reads NAME=FILE flags.
func readColumns(l *diag.List, ports []port, specs []string, what string) []*column {
	var out []*column
	for _, spec := range specs {
		name, file, ok := strings.Cut(spec, "=")
		p := findPort(ports, name)
		switch {
		case !ok:
			l.Add(usage("bad-flag", "%q: want NAME=FILE", spec))
		case p == nil:
			l.Add(&diag.Diagnostic{ID: "unknown-" + what, Message: fmt.Sprintf("there is no %s %q", what, name), Help: what + "s are " + portList(ports)})
		case hasColumn(out, name):
			l.Add(usage("bad-flag", "%s %s is given twice", what, name))
		default:
			t, err := tensorio.Read(file, name)
			var c *column
			if err == nil {
				c, err = newColumn(*p, t)
			}
			if err != nil {
				l.Add(&diag.Diagnostic{ID: "bad-input", File: file, Port: what + " " + name, Message: bare(err).Error()})
				continue
			}
			out = append(out, c)
		}
	}
	return out
}

func newColumn(p port, t *ir.Tensor) (*column, error) {
	if fits(&p, t) == nil {
		return &column{port: p, whole: t}, nil
	}
	cuttable := len(p.dims) > 0 && p.dims[0] > 0 && len(t.Dims) == len(p.dims)
	if !cuttable || t.DType != p.dtype || t.Dims[0] == 0 || !ir.Dims(t.Dims[1:]...).Equal(ir.Dims(p.dims[1:]...)) {
		return nil, fmt.Errorf("is %v%v, want %v%s or more samples along the first axis", t.DType, ir.Dims(t.Dims...), p.dtype, p.shape())
	}
	return &column{port: p, raw: t.LittleEndian(), rows: t.Dims[0]}, nil
}

// sameRows returns how many samples the columns that are cut have, and how many make an inference;
// 0 when none is cut.
func sameRows(l *diag.List, cs []*column) (rows, batch int64) {
	var first *column
	for _, c := range cs {
		switch {
		case c.whole != nil:
		case first == nil:
			first, rows, batch = c, c.rows, c.dims[0]
		case c.rows != rows || c.dims[0] != batch:
			l.Add(usage("bad-input", "%s has %d samples for batches of %d, %s has %d for batches of %d",
				first.name, rows, batch, c.name, c.rows, c.dims[0]))
		}
	}
	return rows, batch
}

// cut takes each column's piece for inference i; where a file ends, its last row repeats.
func cut(cs []*column, i int) map[string]*ir.Tensor {
	out := map[string]*ir.Tensor{}
	for _, c := range cs {
		if c.whole != nil {
			out[c.name] = c.whole
			continue
		}
		row := int64(len(c.raw)) / c.rows
		var piece []byte
		for k := int64(i) * c.dims[0]; k < int64(i+1)*c.dims[0]; k++ {
			at := min(k, c.rows-1) * row
			piece = append(piece, c.raw[at:at+row]...)
		}
		out[c.name] = tensorOf(c.dtype, c.dims, piece)
	}
	return out
}

// keepRows leaves the first rows of t, all of them when keep is 0.
func keepRows(t *ir.Tensor, keep int64) *ir.Tensor {
	if keep == 0 || t == nil || len(t.Dims) == 0 || keep >= t.Dims[0] {
		return t
	}
	raw := t.LittleEndian()
	return tensorOf(t.DType, append([]int64{keep}, t.Dims[1:]...), raw[:int64(len(raw))/t.Dims[0]*keep])
}

func tensorOf(d ir.DType, dims []int64, raw []byte) *ir.Tensor {
	t, err := ir.TensorFromBytes(d, dims, raw)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return t
}
