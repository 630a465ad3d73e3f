package commands

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/internal/report"
)

// ReportOptions are the flags of `rammerc report`.
type ReportOptions struct {
	ProfileOptions
	Out      string // file of the page
	NotTimed bool   // show what was planned, and measure nothing
}

// ReportResult is what `rammerc report` prints.
type ReportResult struct {
	*report.Page
	File string `json:"file"`
}

// Report writes a page about a library directory. It measures an inference if the library's sources and the compiler for
// them are at hand; if not, the page says why there is only what was planned.
func Report(job *driver.Job, o ReportOptions) (r *ReportResult, err error) {
	defer job.Guard(&err)
	plan, err := readPlan(o.Path)
	if err != nil {
		return nil, err
	}
	o.HTML = o.Out
	if err := o.checkFiles(); err != nil {
		return nil, err
	}
	o.HTML = ""
	var cost device.Cost
	if spec, err := device.Find(plan.Device); err == nil { // that of a file may be out of reach
		cost = spec.Cost
	}
	var m *report.Measured
	why := "it was not asked for"
	if !o.NotTimed {
		p, t, err := runTraced(job, o.ProfileOptions)
		if err != nil {
			why = oneLine(err)
			job.Printf("  only what was planned is shown: %s\n", why)
		} else {
			m = &report.Measured{Timeline: t, Report: p.Report}
			plan = t.Plan // of the program that has run, which may be a special one
		}
	}
	page := report.Make(plan, cost, m)
	if m == nil {
		page.NotMeasured = why
	}
	if err := writeTo(o.Out, page.Write); err != nil {
		return nil, &diag.Diagnostic{ID: "cannot-write", File: o.Out, Message: diag.Reason(err).Error()}
	}
	return &ReportResult{page, filepath.Clean(o.Out)}, nil
}

// oneLine is the first diagnostic of an error, or all of it if it has none.
func oneLine(err error) string {
	if list := diag.All(err); len(list) > 0 {
		return list[0].Error()
	}
	return diag.Printable(err.Error())
}

// Text says what the page shows, and prints its path on a line of its own.
func (r *ReportResult) Text(w io.Writer) {
	fmt.Fprintf(w, "%s for %s: %s, %s in %s; %.1f µs predicted", r.Name, r.Device, progress.Count(len(r.Ops), "rOperator"),
		progress.Count(r.RTasks, "rTask"), progress.Count(len(r.Segments), "segment"), r.Predicted)
	if r.Measured != nil {
		fmt.Fprintf(w, ", %.1f µs measured on %s with tracing", r.Measured.Span, r.Measured.Device)
	}
	fmt.Fprintf(w, "\n%s\n", r.File)
}
