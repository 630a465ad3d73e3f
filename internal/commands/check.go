package commands

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
)

// CheckReport is what `rammerc check` shows: everything that stands in the way of compiling.
type CheckReport struct {
	Schema string `json:"schema"`
	Model  string `json:"model"`
	Device string `json:"device"`
	// Rows has one entry for each kind of problem.
	// Found are the extents that only a run finds, with their bounds: "nonzero_0=0..60".
	Found []string   `json:"found,omitempty"`
	Rows  []CheckRow `json:"problems"`
	// Programs are those of a library whose dims have ranges: "general seq=1..512", "special seq=1..64".
	Programs []string           `json:"programs,omitempty"`
	States   []string           `json:"states,omitempty"`   // that the library would keep from run to run
	Generate string             `json:"generate,omitempty"` // how the library would produce answers
	Warnings []*diag.Diagnostic `json:"warnings,omitempty"`
}

// CheckRow is one kind of problem and the nodes that have it.
type CheckRow struct {
	ID     string   `json:"id"`
	Op     string   `json:"op,omitempty"`
	Domain string   `json:"domain,omitempty"`
	Opset  int      `json:"opset,omitempty"`
	DType  string   `json:"dtype,omitempty"`
	Reason string   `json:"reason"`
	Help   string   `json:"help,omitempty"`
	Count  int      `json:"count"`
	Nodes  []string `json:"nodes,omitempty"`
}

// Check goes through every stage that can refuse a model, up to the choice of rKernels for the device,
// and reports all that it finds. The error is for flags that make no sense.
func Check(job *driver.Job, o driver.CompileOptions) (r *CheckReport, err error) {
	defer job.Guard(&err)
	if err := o.Validate(); err != nil {
		return nil, err
	}
	spec, err := o.Spec(job)
	if err != nil {
		return nil, err
	}
	r = &CheckReport{Schema: "rammerc/check/v1", Model: o.Path, Device: spec.Name, Rows: []CheckRow{}}
	r.Found, err = refusal(job, o, spec, r)
	r.Warnings = job.Warnings
	found := diag.All(err)
	if err != nil && len(found) == 0 {
		return nil, err
	}
	r.group(found)
	if len(r.Found)+len(r.States) > 0 && slices.Equal(o.Typical, []string{driver.SampledSpecials}) {
		o.Typical = nil // such a model has no special programs
	}
	if r.Generate = o.GenerateText(); len(found) == 0 && r.Programs == nil {
		r.Programs = o.ProgramTexts()
	}
	return r, nil
}

// refusal runs the stages that can refuse a model. When a stage finds problems, the next one looks at the graph without
// the nodes that have them, so that the problems of several stages show at once. It returns the extents that only a run
// finds, and the states that the library would keep.
func refusal(job *driver.Job, o driver.CompileOptions, spec *device.Spec, r *CheckReport) (found []string,
	err error) {
	if o.HasRanges() || len(o.States) > 0 || o.Generate != "" {
		return general(job, o, spec, r)
	}
	var l diag.List
	m, err := driver.LoadPartly(job, o.ModelOptions)
	if m == nil || err != nil && len(diag.All(err)) == 0 {
		return nil, err
	}
	g := m.Graph
	if err != nil {
		l.Items = append(l.Items, diag.All(err)...)
		if g = readable(m, l.Items); g == nil {
			return nil, &l
		}
	}
	o.FindExtents()
	if err := driver.Optimise(job, g, nil, spec, o); err != nil {
		if slices.ContainsFunc(l.Items, func(d *diag.Diagnostic) bool { return d.ID == "unbound-dim" }) {
			return nil, &l // the extents that readable gave to these dims may be what does not fit
		}
		return nil, joinProblems(&l, driver.Explain(diag.InFile(err, o.Path), m))
	}
	if o.Finds() && l.Errors() == 0 {
		return general(job, o, spec, r)
	}
	if err := driver.ConstantShapes(g); err != nil {
		l.Items = append(l.Items, diag.All(driver.Explain(diag.InFile(err, o.Path), m))...)
		g = staticPart(g)
	}
	ops, err := driver.Lower(job, g, nil, spec, o)
	if err != nil || l.Errors() > 0 {
		return nil, joinProblems(&l, driver.Explain(err, m))
	}
	return nil, scheduled(job, o, spec, ops)
}

// general runs the stages for a model with extents that only a run knows, and returns those that it finds itself.
func general(job *driver.Job, o driver.CompileOptions, spec *device.Spec, report *CheckReport) (found []string,
	err error) {
	ops, err := driver.LowerGeneral(job, o, spec)
	if err != nil {
		return nil, err
	}
	for _, r := range ops.Ranges {
		if r.Counted {
			found = append(found, r.String())
		}
	}
	if o.HasRanges() && len(found) == len(ops.Ranges) {
		report.Programs = o.ApartTexts()
	}
	report.States = ops.StateTexts()
	return found, scheduled(job, o, spec, ops)
}

// scheduled runs the last stage that can refuse a model.
func scheduled(job *driver.Job, o driver.CompileOptions, spec *device.Spec, ops *roperator.Graph) (err error) {
	job.Stage("schedule")
	costs := model.New(spec, ops)
	if driver.IsPlanText(o.Plan) {
		_, err = driver.ReadPlan(o.Plan, ops, spec, costs)
		return err
	}
	_, err = schedule.Schedule(ops, spec, costs, schedule.Options{Plan: o.Plan, Policy: o.Policy})
	return err
}

// joinProblems adds the problems in err to those found so far and returns all. An error that is no list of problems,
// such as a disk that fails, is returned alone.
func joinProblems(l *diag.List, err error) error {
	found := diag.All(err)
	if err != nil && len(found) == 0 {
		return err
	}
	l.Items = append(l.Items, found...)
	return l.Err()
}

// group collects equal problems of several nodes in one row, in the order of first appearance.
func (r *CheckReport) group(found []*diag.Diagnostic) {
	index := map[checkKey]int{}
	for _, d := range found {
		if d.Severity == diag.Warning {
			r.Warnings = append(r.Warnings, d)
			continue
		}
		reason := d.Message
		if d.Port != "" {
			reason = d.Port + ": " + reason
		}
		k := checkKey{d.ID, d.Domain, d.Op, d.DType, reason}
		i, ok := index[k]
		if !ok {
			i = len(r.Rows)
			index[k] = i
			r.Rows = append(r.Rows, CheckRow{
				ID: d.ID, Op: d.Op, Domain: d.Domain, Opset: d.Opset, DType: d.DType, Reason: reason, Help: d.Help,
			})
		}
		r.Rows[i].Count++
		if d.Node != "" {
			r.Rows[i].Nodes = append(r.Rows[i].Nodes, d.Node)
		}
	}
}

// checkKey has what the problems of one row have in common.
type checkKey struct{ id, domain, op, dtype, reason string }

// Problems is the number of problems in all rows.
func (r *CheckReport) Problems() int {
	n := 0
	for _, row := range r.Rows {
		n += row.Count
	}
	return n
}

// Text prints the table.
func (r *CheckReport) Text(w io.Writer) {
	if len(r.Rows) == 0 {
		fmt.Fprintf(w, "%s: nothing stands in the way of compiling for %s\n", r.Model, r.Device)
		for _, f := range r.Found {
			fmt.Fprintf(w, "  the program finds %s\n", f)
		}
		if r.Generate != "" {
			fmt.Fprintf(w, "  a run produces a whole answer: %s\n", r.Generate)
		}
		for _, text := range r.States {
			fmt.Fprintf(w, "  it keeps the state %s\n", diag.Printable(text))
		}
		for _, p := range r.Programs {
			fmt.Fprintf(w, "  a %s\n", strings.Replace(p, " ", " program for ", 1))
		}
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "COUNT\tOPERATOR\tOPSET\tDTYPE\tREASON\tNODES")
	for _, row := range r.Rows {
		op, opset := row.Op, ""
		if row.Domain != "" {
			op = row.Domain + "." + op
		}
		if row.Opset > 0 {
			opset = fmt.Sprint(row.Opset)
		}
		reason := row.Reason
		if row.Help != "" {
			reason += "; " + row.Help
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\n",
			row.Count, diag.Printable(dash(op)), dash(opset), dash(row.DType), diag.Printable(reason),
			diag.Printable(dash(nodeList(row.Nodes))))
	}
	t.Flush()
	if n := r.Problems(); n == 1 {
		fmt.Fprintf(w, "1 problem stands in the way of compiling %s\n", r.Model)
	} else {
		fmt.Fprintf(w, "%d problems stand in the way of compiling %s\n", n, r.Model)
	}
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// nodeList names the first nodes and counts the others. The JSON form names all.
func nodeList(nodes []string) string {
	const most = 4
	if len(nodes) <= most {
		return strings.Join(nodes, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(nodes[:most], ", "), len(nodes)-most)
}
