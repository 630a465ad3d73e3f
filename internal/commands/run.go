package commands

import (
	"fmt"
	"io"
	"math"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
)

// RunOptions are the flags of `rammerc run`.
type RunOptions struct {
	SubjectOptions
	Inputs []string // NAME=FILE, or FILE.npz
	Random bool
	// RandomSeed draws the inputs that are not given; integers lie in [0, RandomMax).
	RandomSeed uint64
	RandomMax  int64
	Out        string // folder for NAME.npy of each output, or a file .npz for all
	SaveInputs string // the same for the inputs, so that others can run on them
}

// RunResult is what `rammerc run` reports.
type RunResult struct {
	Schema  string       `json:"schema"`
	Engine  string       `json:"engine"`
	Mode    string       `json:"mode,omitempty"` // how a library's program ran, and why
	Reason  string       `json:"reason,omitempty"`
	Program string       `json:"program,omitempty"` // which one of a library whose dims have ranges, by its extents
	Outputs []OutputInfo `json:"outputs"`
	Files   []string     `json:"files,omitempty"`
}

// OutputInfo summarises an output.
type OutputInfo struct {
	Name  string    `json:"name"`
	DType string    `json:"dtype"`
	Dims  []int64   `json:"dims"`
	Min   *float64  `json:"min,omitempty"` // of the finite elements
	Max   *float64  `json:"max,omitempty"`
	Mean  *float64  `json:"mean,omitempty"`
	NaNs  int64     `json:"nans"`
	Infs  int64     `json:"infinities"`
	Texts []string  `json:"texts,omitempty"` // the first strings
	First []float64 `json:"-"`
}

// Run carries out one inference.
func Run(job *driver.Job, o RunOptions) (r *RunResult, err error) {
	defer job.Guard(&err)
	var in engine.Tensors
	o.ready = func(s *subject) (err error) {
		if in, err = o.inputs(s.inputs); err == nil && o.SaveInputs != "" {
			_, err = engine.WriteTensors(o.SaveInputs, in)
		}
		return err
	}
	s, err := openSubject(job, o.SubjectOptions)
	if err != nil {
		return nil, err
	}
	defer s.finish(&err)
	done := job.Stage("run")
	out, err := s.engine.Run(in)
	if err != nil {
		return nil, err
	}
	r = &RunResult{Schema: "rammerc/run/v1", Engine: s.engine.Name()}
	r.Mode, r.Reason = s.mode()
	r.Program = s.program()
	done("%s", s.how())
	for _, p := range s.outputs {
		if p.Strings != nil {
			out[p.Name] = p.Texts(out[p.Name])
		}
		r.Outputs = append(r.Outputs, describeOutput(p.Name, out[p.Name]))
	}
	if o.Out != "" {
		r.Files, err = engine.WriteTensors(o.Out, out)
	}
	return r, err
}

// inputs reads the inputs that --input gives, and draws the others where --random is given.
func (o *RunOptions) inputs(ports []engine.Port) (engine.Tensors, error) {
	var drawn engine.Tensors
	if o.Random {
		drawn = engine.RandomInputs(ports, o.RandomSeed, max(o.RandomMax, 1))
	}
	return engine.ReadInputs(ports, o.Inputs, drawn)
}

func describeOutput(name string, t *ir.Tensor) OutputInfo {
	o := OutputInfo{Name: name, DType: t.DType.String(), Dims: t.Dims}
	if t.DType == ir.String {
		texts := ir.Slice[string](t)
		o.Texts = texts[:min(len(texts), 6)]
		return o
	}
	lo, hi, sum, n := math.Inf(1), math.Inf(-1), 0.0, 0
	for i := int64(0); i < t.Len(); i++ {
		x := tolerance.At(t, i)
		if i < 6 {
			o.First = append(o.First, x)
		}
		switch {
		case math.IsNaN(x):
			o.NaNs++
		case math.IsInf(x, 0):
			o.Infs++
		default:
			lo, hi, sum, n = min(lo, x), max(hi, x), sum+x, n+1
		}
	}
	if n > 0 {
		o.Min, o.Max = &lo, &hi
		if mean := sum / float64(n); !math.IsInf(mean, 0) { // JSON has no infinities
			o.Mean = &mean
		}
	}
	return o
}

// Text prints a summary of the outputs, or the files they went to.
func (r *RunResult) Text(w io.Writer) {
	if len(r.Files) > 0 {
		for _, f := range r.Files {
			fmt.Fprintln(w, f)
		}
		return
	}
	for _, o := range r.Outputs {
		fmt.Fprintf(w, "%s  %s%v", diag.Printable(o.Name), o.DType, ir.Dims(o.Dims...))
		if o.Min != nil {
			fmt.Fprintf(w, "  min %.6g  max %.6g", *o.Min, *o.Max)
		}
		if o.Mean != nil {
			fmt.Fprintf(w, "  mean %.6g", *o.Mean)
		}
		if o.NaNs+o.Infs > 0 {
			fmt.Fprintf(w, "  %d NaN, %d infinite", o.NaNs, o.Infs)
		}
		if fmt.Fprintln(w); o.DType == ir.String.String() {
			fmt.Fprintf(w, "  %q", o.Texts)
		} else {
			fmt.Fprintf(w, "  %.6g", o.First)
		}
		if first := len(o.First) + len(o.Texts); first > 0 && ir.Count(o.Dims) > int64(first) {
			fmt.Fprint(w, " …")
		}
		fmt.Fprintln(w)
	}
}
