package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/internal/trace"
)

// LibraryInspection is what `rammerc inspect` shows of a library directory, or of a plan in text form.
type LibraryInspection struct {
	Schema   string           `json:"schema"`
	Plan     string           `json:"plan,omitempty"` // file of a plan in text form
	Name     string           `json:"name"`
	Model    string           `json:"model"`
	Version  string           `json:"rammerc"`
	Device   string           `json:"device"`
	Arch     string           `json:"arch"`
	ROps     int              `json:"roperators"`
	RTasks   int              `json:"rtasks"`
	Weights  int64            `json:"weights_bytes"`
	Arena    int64            `json:"arena_bytes"`
	Segments []SegmentSummary `json:"segments"`
	Kernels  []codegen.Kernel `json:"kernels"`
	Tried    []codegen.Try    `json:"tried,omitempty"` // plans that were timed before this one was chosen
	// Precision is the program's, PrecisionOf the rules for nodes that have another one, and Operators what came of
	// them.
	Precision   string   `json:"precision"`
	PrecisionOf []string `json:"precision_of,omitempty"`
	Dims        []string `json:"dims,omitempty"`   // those whose extents only a run knows, with their ranges
	States      []string `json:"states,omitempty"` // that the library keeps from run to run
	// Generate says how the library produces answers; then the states are those of its steps.
	Generate  *codegen.Generation `json:"generate,omitempty"`
	Operators []OpPrecision       `json:"operators"`
	// Specials are the special programs of a library whose dims have ranges, the smallest first.
	Specials []codegen.SpecialPlan `json:"specials,omitempty"`
	// Prompt is the program that takes the prompt of a library that generates.
	Prompt *codegen.SpecialPlan `json:"prompt,omitempty"`
	// Predicted is what a plan in text form takes by the cost model, in microseconds.
	Predicted float64 `json:"predicted_us,omitempty"`
}

// OpPrecision says what an rOperator computes in, and which ONNX nodes it stands for.
type OpPrecision struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Computed
	Nodes []string `json:"nodes"`
}

// Computed is the precision that an rOperator was given, what its rKernel multiplies, as plan.json names it, and the
// element type in which its result is stored.
type Computed struct {
	Precision  string `json:"precision"`
	Arithmetic string `json:"arithmetic"`
	Stored     string `json:"stored"`
}

// precisionLines count the rOperators by what they compute in, the most frequent first.
func precisionLines(ops []OpPrecision) []string {
	count := map[Computed]int{}
	var kinds []Computed
	for _, o := range ops {
		if count[o.Computed]++; count[o.Computed] == 1 {
			kinds = append(kinds, o.Computed)
		}
	}
	slices.SortStableFunc(kinds, func(a, b Computed) int { return count[b] - count[a] })
	var lines []string
	for _, k := range kinds {
		lines = append(lines, fmt.Sprintf("%s of %s: %s arithmetic, results stored as %s",
			progress.Count(count[k], "rOperator"), k.Precision, k.Arithmetic, k.Stored))
	}
	return lines
}

// SegmentSummary is what a segment of a plan is made of.
type SegmentSummary struct {
	Kind     string `json:"kind"`
	ROps     int    `json:"roperators"`
	RTasks   int    `json:"rtasks"`
	Launches int    `json:"launches"` // kernel launches of an inference
	Streams  int    `json:"streams"`
	// VEUs counts those that have rTasks. Where every launch is of one rOperator it is the count of the largest launch.
	VEUs int `json:"veus"`
	// Edges counts pairs of steps of which one waits for the other inside a launch, and pairs of launches of which one
	// waits for the other on another stream.
	Edges   int  `json:"edges"`
	Overlap bool `json:"overlaps"` // a launch may begin before the one before it has ended
}

// InspectLibrary reads what a library directory says of its plan.
func InspectLibrary(job *driver.Job, dir string) (r *LibraryInspection, err error) {
	defer job.Guard(&err)
	file, err := planFile(dir)
	if err != nil {
		return nil, err
	}
	data, err := limits.Read(file, limits.LargeText)
	if err != nil {
		return nil, &diag.Diagnostic{ID: "cannot-read", File: file, Message: diag.Reason(err).Error()}
	}
	if r, err = describePlan(data); err != nil {
		return nil, &diag.Diagnostic{ID: "bad-plan", File: file, Message: err.Error(), Help: "compile the model again"}
	}
	r.Schema = "rammerc/inspect-library/v1"
	return r, nil
}

// InspectPlan reads a plan's text form, as --dump writes it, and says what it is made of. The text refers to
// rOperators and buffers by name, so it needs the model and the device it was made for: o.Path and o.Plan.
func InspectPlan(job *driver.Job, o driver.CompileOptions) (r *LibraryInspection, err error) {
	defer job.Guard(&err)
	if o.Path == "" {
		d := diag.New("missing-model", "a plan says which rTasks run where, not what they compute")
		d.File, d.Help = o.Plan, "name the model it was made for with --model, and --target or --device if they were given"
		return nil, d
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c, err := driver.Plan(job, o)
	if err != nil {
		return nil, err
	}
	data, err := c.PlanJSON()
	if err != nil {
		return nil, err
	}
	if r, err = describePlan(data); err != nil {
		panic("BUG: the plan's JSON form cannot be read: " + err.Error())
	}
	r.Schema, r.Plan, r.Predicted = "rammerc/inspect-plan/v1", o.Plan, c.Summary().PredictedUS
	return r, nil
}

// specialText writes a line about a program beside the general one.
func specialText(w io.Writer, what string, x codegen.SpecialPlan) {
	fmt.Fprintf(w, "%s\t%s: %s, %s of activations, %s of tables (%s packed)", what, x.Dims,
		progress.Count(x.Launches, "launch"), progress.Bytes(x.Arena), progress.Bytes(x.Tables), progress.Bytes(x.Packed))
	if x.Predicted > 0 {
		fmt.Fprintf(w, ", %.1f µs predicted", x.Predicted)
	}
	fmt.Fprintln(w)
}

// describePlan reads the JSON form of a plan.
func describePlan(data []byte) (*LibraryInspection, error) {
	var head struct {
		Version  string                `json:"rammerc"`
		Dims     []string              `json:"dims"`
		States   []string              `json:"states"`
		Generate *codegen.Generation   `json:"generate"`
		Specials []codegen.SpecialPlan `json:"specials"`
		Prompt   *codegen.SpecialPlan  `json:"prompt"`
		Weights  int64                 `json:"weights_bytes"`
		Arena    int64                 `json:"arena_bytes"`
		Tried    []codegen.Try         `json:"tried"`
		Kernels  []codegen.Kernel      `json:"kernels"`
		Segments []struct {
			Serial bool `json:"serial"`
		} `json:"segments"`
	}
	p, err := trace.ReadPlan(data)
	if err == nil {
		err = json.Unmarshal(data, &head)
	}
	if err != nil {
		return nil, err
	}
	r := &LibraryInspection{
		Name: p.Name, Model: p.Model, Version: head.Version, Device: p.Device, Arch: p.Arch, ROps: len(p.Ops),
		Weights: head.Weights, Arena: head.Arena, Segments: []SegmentSummary{}, Tried: head.Tried,
		Kernels:   head.Kernels,
		Precision: p.Precision, PrecisionOf: p.PrecisionOf, Dims: head.Dims, States: head.States,
		Generate: head.Generate, Specials: head.Specials, Prompt: head.Prompt,
		Operators: []OpPrecision{},
	}
	for _, o := range p.Ops {
		r.Operators = append(r.Operators, OpPrecision{o.Name, o.Kind, Computed{o.Precision, o.Arithmetic, o.Stored},
			o.Nodes})
	}
	for i := range p.Segments {
		s := summariseSegment(&p.Segments[i], head.Segments[i].Serial)
		r.RTasks += s.RTasks
		r.Segments = append(r.Segments, s)
	}
	return r, nil
}

func summariseSegment(s *trace.Segment, serial bool) SegmentSummary {
	out := SegmentSummary{Kind: s.Kind, Launches: 1, Streams: 1, Overlap: !serial && s.Kind != "rprogram" &&
		s.Waves > 1}
	if s.Kind != "rprogram" {
		out.Launches = s.Waves
	}
	ops, blocks := map[int]bool{}, map[int]int{}
	for _, steps := range s.Steps {
		if len(steps) > 0 {
			out.VEUs++
		}
		for i, st := range steps {
			ops[st.Op] = true
			out.RTasks++
			out.Edges += len(st.Needs)
			if i == 0 || steps[i-1].Wave != st.Wave {
				blocks[st.Wave]++
			}
		}
	}
	if s.Kind == "graph" || s.Kind == "parallel" {
		out.VEUs = 0
		for _, n := range blocks {
			out.VEUs = max(out.VEUs, n)
		}
	}
	for _, n := range s.Nodes {
		out.Streams = max(out.Streams, n.Stream+1)
		out.Edges += len(n.After)
	}
	out.ROps = len(ops)
	return out
}

// Text prints the inspection for people.
func (r *LibraryInspection) Text(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if r.Plan != "" {
		fmt.Fprintf(t, "plan\t%s, of %s, %.1f µs predicted\n", diag.Printable(r.Plan), diag.Printable(r.Model),
			r.Predicted)
	} else {
		fmt.Fprintf(t, "library\t%s, made from %s by rammerc %s\n", diag.Printable(r.Name), diag.Printable(r.Model),
			diag.Printable(r.Version))
	}
	if len(r.Dims) > 0 {
		fmt.Fprintf(t, "dims\t%s, as a run has them\n", strings.Join(r.Dims, " "))
	}
	if r.Generate != nil {
		fmt.Fprintf(t, "generates\t%s\n", r.Generate)
	}
	for _, text := range r.States {
		fmt.Fprintf(t, "state\t%s\n", diag.Printable(text))
	}
	fmt.Fprintf(t, "planned for\t%s (%s)\n", r.Device, r.Arch)
	fmt.Fprintf(t, "program\t%s, %s; %s of weights, %s of activations\n", progress.Count(r.ROps, "rOperator"),
		progress.Count(r.RTasks, "rTask"), progress.Bytes(r.Weights), progress.Bytes(r.Arena))
	for _, rule := range r.PrecisionOf {
		fmt.Fprintf(t, "precision of\t%s\n", rule)
	}
	for _, line := range precisionLines(r.Operators) {
		fmt.Fprintf(t, "precision\t%s\n", line)
	}
	for i, s := range r.Segments {
		fmt.Fprintf(t, "segment %d\t%s\n", i, s)
	}
	for _, x := range r.Specials {
		specialText(t, "special program", x)
	}
	if r.Prompt != nil {
		specialText(t, "prompt program", *r.Prompt)
	}
	for _, k := range r.Kernels {
		fmt.Fprintf(t, "kernel\t%s: registers for %s of %d threads a multiprocessor, about %d each; %s\n", k.Name,
			progress.Count(k.Blocks, "block"), k.Threads, k.Registers,
			progress.Count(len(k.Instances), "rKernel instance"))
	}
	for _, x := range r.Tried {
		fmt.Fprintf(t, "tried\t%s\n", strings.TrimSpace(driver.DescribeTry(x)))
	}
	t.Flush()
}

// String is a line for people.
func (s SegmentSummary) String() string {
	text := fmt.Sprintf("%s: %s of %s, %s", s.Kind, progress.Count(s.RTasks, "rTask"),
		progress.Count(s.ROps, "rOperator"), progress.Count(s.Launches, "launch"))
	if s.Streams > 1 {
		text += fmt.Sprintf(" on %d streams", s.Streams)
	}
	text += fmt.Sprintf(", %s", progress.Count(s.VEUs, "vEU"))
	if s.Edges > 0 {
		text += fmt.Sprintf(", %s", progress.Count(s.Edges, "edge"))
	}
	if s.Overlap {
		text += ", launches may overlap"
	}
	return text
}
