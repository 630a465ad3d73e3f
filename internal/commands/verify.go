package commands

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/ir"
)

// VerifyOptions are the flags of `rammerc verify`.
type VerifyOptions struct {
	SubjectOptions
	Model      string   // reference model of a library directory
	Inputs     []string // NAME=FILE; a file with more samples than the input's first dim makes a series
	Expect     []string // NAME=FILE: expected outputs, of random inputs if there are no others; else ir/eval computes them
	Data       string   // folder with test_data_set_* folders, or one of them
	RandomSeed uint64
	RandomMax  int64
	Samples    int     // random samples when no data is given
	Limit      float64 // relative L2 limit in place of the table's
	Bisect     bool
	Extract    string // with Bisect: folder for the part of the model that differs
	Repeat     int    // run the first sample this many times and compare bits
}

// VerifyResult is what `rammerc verify` reports.
type VerifyResult struct {
	Schema    string              `json:"schema"`
	Engine    string              `json:"engine"`
	Mode      string              `json:"mode,omitempty"` // how a library's program ran, and why
	Reason    string              `json:"reason,omitempty"`
	Reference string              `json:"reference"`
	Samples   int                 `json:"samples"`
	Outputs   []engine.OutputDiff `json:"outputs"`
	OK        bool                `json:"ok"`
	Repeats   int                 `json:"repeats,omitempty"`
	Differing int                 `json:"repeats_differing"` // runs whose result has other bits than the first
	// Overflow is set where outputs differ and a value of the first sample does not fit the type that it is stored in.
	Overflow *Overflow `json:"overflow,omitempty"`
	Bisected bool      `json:"bisected,omitempty"`
	FirstBad *NodeDiff `json:"first_difference,omitempty"` // nil although bisected: no node differs by itself
}

// Verify compares an engine with the evaluator or with expected outputs. When they differ by more than the tolerance,
// it returns a result as well as an error, which is a *driver.CheckError.
func Verify(job *driver.Job, o VerifyOptions) (r *VerifyResult, err error) {
	defer job.Guard(&err)
	if o.Extract != "" {
		o.Bisect = true
	}
	var samples *engine.Samples
	o.dimsOfModel = o.Model != ""
	o.ready = func(s *subject) (err error) {
		if err = o.reference(job, s); err == nil {
			samples, err = o.samples(s)
		}
		return err
	}
	s, err := openSubject(job, o.SubjectOptions)
	if err != nil {
		return nil, err
	}
	r, err = o.verify(job, s, samples)
	if closed := s.close(); err == nil && closed != nil {
		err = closingError(closed, o.Sanitize)
	}
	if err == nil && !r.OK {
		err = &driver.CheckError{Message: r.failure()}
	}
	return r, err
}

// failure says that the outputs differ, and why if that is known.
func (r *VerifyResult) failure() string {
	text := fmt.Sprintf("%s differs from %s by more than the tolerance", r.Engine, r.Reference)
	if r.Overflow != nil {
		text += fmt.Sprintf(": values overflow to infinity (%s)", r.Overflow)
	}
	return text
}

// closingError is the error of a library's process that ended badly after it had answered everything. ThreadSanitizer
// ends a process so when it has found data races, which is a failed check.
func closingError(err error, sanitized bool) error {
	var crash *runner.Crash
	if sanitized && errors.As(err, &crash) {
		return &driver.CheckError{Message: "ThreadSanitizer found data races: " + crash.Error()}
	}
	return err
}

func (o *VerifyOptions) verify(job *driver.Job, s *subject, samples *engine.Samples) (*VerifyResult, error) {
	done := job.Stage("compare")
	limit := o.Limit
	if limit == 0 {
		limit = s.errorBudget
	}
	comparer := engine.Comparer{
		Engine: s.engine, Outputs: s.outputs, Model: s.model, Limit: limit, Precision: s.precision,
		Progress: job.Progress("comparing"), Memory: engine.Memory{States: s.states(), Inputs: s.inputs},
		Search: s.search,
	}
	if s.search != nil {
		s.search.Slack = engine.LimitFor(ir.Float32, s.precision, limit).L2
	}
	c, err := comparer.Compare(samples)
	if err != nil {
		return nil, err
	}
	r := &VerifyResult{
		Schema: "rammerc/verify/v1", Engine: s.engine.Name(), Reference: c.Reference, Samples: c.Samples,
		Outputs: c.Outputs,
		OK:      c.OK,
	}
	r.Mode, r.Reason = s.mode()
	done("%s on %s", progress.Count(r.Samples, "sample"), s.how())
	if o.Repeat > 0 {
		if err := r.repeat(job, s, samples.At(0), o.Repeat); err != nil {
			return nil, err
		}
	}
	if !r.OK && s.model != nil && s.search == nil {
		r.Overflow = findOverflow(s.model, samples.At(0).In, s.precision)
	}
	if !r.OK && o.Bisect {
		r.Bisected = true
		var part *suspect
		r.FirstBad, part, err = bisect(job, o.SubjectOptions, samples.At(0).In, o.Limit)
		if part != nil && o.Extract != "" {
			err = part.extract(o.Extract, o)
			r.FirstBad.Extracted = o.Extract
		}
	}
	return r, err
}

// samples collects inferences from --data, from --input, or at random.
func (o *VerifyOptions) samples(s *subject) (*engine.Samples, error) {
	samples, err := o.collect(s)
	if err == nil {
		err = checkSamples(samples.N)
	}
	if err == nil && !samples.Expected && s.model == nil {
		err = diag.New("missing-reference", "nothing to compare with: give --model MODEL, --expect NAME=FILE or --data DIR")
	}
	return samples, err
}

// maxSamples is how many inferences one command compares. Each takes a run of the evaluator.
const maxSamples = 1 << 20

// checkSamples refuses numbers of inferences that no command comes to the end of.
func checkSamples(n int) error {
	if n < 1 || n > maxSamples {
		return diag.New("bad-flag", "%d samples: want 1 to %d", n, maxSamples)
	}
	return nil
}

func (o *VerifyOptions) collect(s *subject) (*engine.Samples, error) {
	switch {
	case o.Data != "" && len(o.Inputs)+len(o.Expect) > 0:
		return nil, diag.New("bad-flag", "--data says inputs and outputs; --input and --expect do not go with it")
	case o.Data != "":
		return engine.DataSets(o.Data, s.inputs, s.outputs)
	case len(o.Inputs) > 0:
		return engine.Series(s.inputs, s.outputs, o.Inputs, o.Expect, nil)
	case len(o.Expect) > 0:
		drawn := engine.RandomInputs(s.inputs, o.RandomSeed, max(o.RandomMax, 1))
		return engine.Series(s.inputs, s.outputs, nil, o.Expect, drawn)
	}
	return engine.RandomSequence(s.inputs, s.ranges(), o.Samples, o.RandomSeed, max(o.RandomMax, 1)), nil
}

// reference loads --model for a library directory.
func (o *VerifyOptions) reference(job *driver.Job, s *subject) error {
	if s.model != nil {
		if o.Model != "" {
			return diag.New("bad-flag", "--model is the reference of a library directory; %s is a model itself", o.Path)
		}
		return nil
	}
	if o.Model == "" {
		if o.Bisect {
			return diag.New("bad-flag", "--bisect on a library directory needs --model MODEL")
		}
		return nil
	}
	o.ModelOptions.Path = o.Model // from here on for bisect too
	if s.general() {
		o.ModelOptions.Dims = nil // the library takes all of their range
	}
	ref, err := driver.Load(job, o.ModelOptions, !s.general())
	if err != nil {
		return err
	}
	s.model = ref.Graph
	engine.WithDomains(s.inputs, s.model)
	if err := driver.Reference(s.model, s.weights); err != nil {
		return err
	}
	if s.generates() && o.Bisect {
		return diag.New("bad-flag", "--bisect: compile the decoder with --state, which is one step, to compare its nodes")
	}
	if s.generates() {
		s.search = &engine.Search{Graph: s.model, File: o.Model, Generation: *s.ranges().Generate}
		engine.WithPrompts(s.inputs, s.model)
		return s.search.Check()
	}
	return samePorts(o.Model, s)
}

// samePorts refuses a reference whose inputs or outputs are not those of the library.
func samePorts(file string, s *subject) error {
	var l diag.List
	for _, side := range []struct {
		what string
		lib  []engine.Port
		ref  []engine.Port
	}{{"input", s.inputs, engine.GraphPorts(s.model.Inputs)},
		{"output", s.outputs, engine.GraphPorts(s.model.Outputs)}} {
		for _, p := range side.lib {
			m := engine.FindPort(side.ref, p.Name)
			if m == nil || !m.Fits(p) {
				l.Add(&diag.Diagnostic{
					ID: "other-model", File: file, Port: side.what + " " + p.Name,
					Message: fmt.Sprintf("the library has %v%s, the model has %s", p.DType, p.Shape(),
						engine.PortList(side.ref)),
					Help: "give the model, --dim and --shape that the library was compiled from",
				})
			}
		}
	}
	return l.Err()
}

// repeat runs one sample n times more and counts the results that have other bits than the first. Any makes the check
// fail.
func (r *VerifyResult) repeat(job *driver.Job, s *subject, x engine.Sample, n int) error {
	l, ok := s.engine.(*engine.Library)
	if !ok {
		return diag.New("bad-flag", "--repeat needs the engine emu or gpu")
	}
	for _, x := range s.states() {
		if x.Grows == "" {
			return diag.New("bad-flag", "--repeat: the state %s changes from run to run", x.Input)
		}
		if err := l.ResetStates(); err != nil {
			return err
		}
	}
	raw, err := l.Raw(x.In)
	if err != nil {
		return err
	}
	done := job.Stage("repeat")
	if r.Differing, err = l.Repeat(raw, n, job.Progress("repeating")); err != nil {
		return err
	}
	r.Repeats = n
	r.Mode, r.Reason = s.mode() // a device may have refused the rProgram meanwhile
	r.OK = r.OK && r.Differing == 0
	done("%d of %d runs differ in some bit", r.Differing, n)
	return nil
}

// Text prints the differences as a table.
func (r *VerifyResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s against %s, %s\n", r.Engine, r.Reference, progress.Count(r.Samples, "sample"))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "OUTPUT\tDTYPE\tMAX ABS\tMAX REL\tMAX ULP\tREL L2\tWOULD PASS\tSAME CLASS\tRESULT")
	for _, o := range r.Outputs {
		result, classes := "ok", "–"
		if !o.OK {
			result = "DIFFERS"
		}
		if o.Sway > 0 {
			result += fmt.Sprintf("; the model itself moves by %.2g when it is rounded otherwise", o.Sway)
		}
		if o.Problem != "" {
			result = o.Problem
		}
		if o.Classes != nil {
			classes = fmt.Sprintf("%d of %d", o.Classes.Same, o.Classes.Rows)
		}
		fmt.Fprintf(t, "%s\t%s\t%.3g\t%.3g\t%.4g\t%.3g\t%s\t%s\t%s\n",
			diag.Printable(o.Name), o.DType, o.MaxAbs, o.MaxRel, o.MaxULP, o.RelL2, o.Passing, classes, result)
	}
	t.Flush()
	if r.Repeats > 0 {
		fmt.Fprintf(w, "%d of %d repeated runs differ in some bit\n", r.Differing, r.Repeats)
	}
	if r.Overflow != nil {
		fmt.Fprintf(w, "overflow: %s\n", r.Overflow)
	}
	switch {
	case r.FirstBad != nil:
		fmt.Fprintf(w, "first difference: %s\n", r.FirstBad)
	case r.Bisected:
		fmt.Fprintln(w, "no node differs by more than the tolerance by itself: small differences add up")
	}
}
