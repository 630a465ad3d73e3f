package commands

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/internal/trace"
	"github.com/rammerc/rammerc/profiler/timing"
)

// ProfileOptions are the flags of `rammerc profile`.
type ProfileOptions struct {
	RunOptions
	WarmUp   int
	Top      int    // rows of the text form's tables; 0 shows all
	Perfetto string // file for the trace-event form
	HTML     string // file for the page
}

// Profile is what `rammerc profile` reports.
type Profile struct {
	*trace.Report
	Files []string `json:"files,omitempty"`
	top   int
}

// RunProfile runs a traced build of a model or a library and says where the time went.
func RunProfile(job *driver.Job, o ProfileOptions) (p *Profile, err error) {
	defer job.Guard(&err)
	p, t, err := runTraced(job, o)
	if err == nil {
		p.Files, err = o.writeFiles(t, p.Report)
	}
	return p, err
}

// runTraced runs a traced build of a model or a library.
func runTraced(job *driver.Job, o ProfileOptions) (p *Profile, t *trace.Timeline, err error) {
	if o.WarmUp < 0 || o.Top < 0 {
		return nil, nil, diag.New("bad-flag", "--warm-up %d --top %d: want no negative number", o.WarmUp, o.Top)
	}
	if o.Engine == engine.Eval {
		return nil, nil, diag.New("bad-flag", "--engine eval runs no program that could be traced")
	}
	if err := o.checkFiles(); err != nil {
		return nil, nil, err
	}
	o.Random, o.Trace = true, true
	s, err := openTraced(job, o.SubjectOptions)
	if err != nil {
		return nil, nil, err
	}
	defer s.finish(&err)
	if t, err = o.trace(job, s); err != nil {
		return nil, nil, err
	}
	p = &Profile{Report: t.Report(), top: o.Top}
	l := s.engine.(*engine.Library)
	p.Engine, p.Device, p.WarmUp = l.Name(), l.Launch.Device, o.WarmUp
	return p, t, nil
}

// trace runs the subject and joins what it recorded with its plan.
func (o *ProfileOptions) trace(job *driver.Job, s *subject) (*trace.Timeline, error) {
	if len(o.Inputs) == 0 {
		s.largestDims() // of those that --dim leaves open
	}
	in, err := o.inputs(s.inputs)
	if err != nil {
		return nil, err
	}
	l := s.engine.(*engine.Library)
	bytes, err := l.Raw(in)
	if err != nil {
		return nil, err
	}
	if l.Name() != engine.Emu {
		defer timing.Alone(job.Waiting)()
	}
	done := job.Stage("trace")
	end := job.Waiting("running")
	data, err := l.Trace(bytes, o.WarmUp)
	end()
	if err != nil {
		return nil, err
	}
	raw, err := trace.Decode(data)
	if err != nil {
		return nil, err
	}
	plan, err := s.readPlan()
	if err != nil {
		return nil, err
	}
	t, err := trace.Join(raw, plan)
	if err != nil {
		return nil, err
	}
	done("%s, %s after %d to warm up", progress.Count(len(t.Runs), "rTask"),
		progress.Count(len(t.Launches), "launch"), o.WarmUp)
	if t.Dropped+t.DroppedChunks > 0 {
		job.Warn([]*diag.Diagnostic{{
			Severity: diag.Warning, ID: "trace-full", File: o.Path,
			Message: fmt.Sprintf("the trace holds %d of %d steps and %d of %d chunks of weights: the sums lack the others",
				len(t.Runs), len(t.Runs)+t.Dropped, len(t.Chunks), len(t.Chunks)+t.DroppedChunks),
		}})
	}
	return t, nil
}

// checkFiles finds out before the work whether the files of the results can be written.
func (o *ProfileOptions) checkFiles() error {
	var l diag.List
	for _, path := range []string{o.Perfetto, o.HTML} {
		if path == "" {
			continue
		}
		info, err := os.Stat(filepath.Dir(path))
		if err == nil && !info.IsDir() {
			err = errors.New("its folder is a file")
		}
		if info, ferr := os.Stat(path); err == nil && ferr == nil && info.IsDir() {
			err = errors.New("is a folder, a file is wanted")
		}
		if err != nil {
			l.Add(&diag.Diagnostic{ID: "cannot-write", File: path, Message: diag.Reason(err).Error()})
		}
	}
	return l.Err()
}

// writeFiles writes the timeline in the forms that --perfetto and --html ask for.
func (o *ProfileOptions) writeFiles(t *trace.Timeline, r *trace.Report) ([]string, error) {
	var files []string
	for _, f := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{o.Perfetto, t.WritePerfetto},
		{o.HTML, func(w io.Writer) error { return t.WriteHTML(w, r) }},
	} {
		if f.path == "" {
			continue
		}
		if err := writeTo(f.path, f.write); err != nil {
			return nil, &diag.Diagnostic{ID: "cannot-write", File: f.path, Message: diag.Reason(err).Error()}
		}
		files = append(files, f.path)
	}
	return files, nil
}

func writeTo(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// Text prints the tables, longest first.
func (p *Profile) Text(w io.Writer) {
	fmt.Fprintf(w, "%s on %s (%s)\n", p.Name, p.Device, p.Engine)
	fmt.Fprintf(w, "%.1f µs from the first launch to the end of the last: %s, %s on %s of %s\n", p.Span,
		progress.Count(p.Launched, "launch"), progress.Count(p.RTasks, "rTask"), progress.Count(p.VEUs, "vEU"),
		progress.Count(p.SMs, "SM"))
	s := p.Shares
	fmt.Fprintf(w, "vEUs compute %s (of it %s waiting for streamed weights), load %s, wait %s, import %s, "+
		"are idle %s of the time\n",
		percent(s.Compute), percent(s.Stall), percent(s.Load), percent(s.Wait), percent(s.Import), percent(s.Idle))
	if c := p.Weights; c != nil {
		fmt.Fprintf(w, "streamed weights: %s, %.1f MB in all, each on its way for %.2f µs from %.2f µs before it is wanted; "+
			"%s are there then\n",
			progress.Count(c.Copies, "chunk"), float64(c.Bytes)/1e6, c.Copy, c.Ahead, percent(c.There))
	}
	fmt.Fprintf(w, "critical path: %s; %.1f µs compute, %.1f µs waits, %.1f µs between steps of a vEU, %.1f µs launches\n\n",
		progress.Count(p.Path.Length, "rTask"), p.Path.Compute, p.Path.Wait, p.Path.Order, p.Path.Launch)
	p.opTable(w)
	fmt.Fprintln(w)
	p.veuTable(w)
	for _, f := range p.Files {
		fmt.Fprintln(w, f)
	}
}

func (p *Profile) opTable(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "COMPUTE\tMEAN\tMAX\tLOAD\tWAIT\tIMPORT\tSTALL\tRTASKS\tCRITICAL\tPREDICTED\tRATIO\tBY\tMULTIPLIES\t"+
		"  ROPERATOR (ONNX NODES), TIMES IN µs")
	for _, o := range p.Ops[:p.shown(len(p.Ops))] {
		ratio, predicted, by := "–", "–", "–"
		if o.Predicted > 0 {
			ratio, predicted, by = fmt.Sprintf("%.2f", o.Ratio), fmt.Sprintf("%.1f", o.Predicted), o.Source
		}
		fmt.Fprintf(t, "%.1f\t%.2f\t%.2f\t%.1f\t%.1f\t%.1f\t%.1f\t%d\t%s\t%s\t%s\t%s\t%s\t  %s\n",
			o.Compute, o.Mean, o.Max, o.Load, o.Wait, o.Import, o.Stall, o.RTasks, percent(o.Share), predicted, ratio,
			by, o.Arithmetic, diag.Printable(opLabel(o)))
	}
	t.Flush()
	p.more(w, len(p.Ops), "rOperator")
}

// opLabel names an rOperator with the ONNX nodes that it carries out.
func opLabel(o trace.OpTime) string {
	const most = 3
	nodes := strings.Join(o.Nodes[:min(most, len(o.Nodes))], ", ")
	if more := len(o.Nodes) - most; more > 0 {
		nodes += fmt.Sprintf(" and %d more", more)
	}
	if nodes == "" {
		return o.Name
	}
	return fmt.Sprintf("%s (%s)", o.Name, nodes)
}

func (p *Profile) veuTable(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "VEU\tSM\tSTEPS\tCOMPUTE\tLOAD\tWAIT\tIMPORT\tSTALL\tUSED\t")
	for _, v := range p.PerVEU[:p.shown(len(p.PerVEU))] {
		fmt.Fprintf(t, "%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t\n",
			v.VEU, v.SM, v.Steps, v.Compute, v.Load, v.Wait, v.Import, v.Stall, percent(v.Utilisation))
	}
	t.Flush()
	p.more(w, len(p.PerVEU), "vEU")
}

// shown is how many of n rows the text form shows.
func (p *Profile) shown(n int) int {
	if p.top == 0 {
		return n
	}
	return min(n, p.top)
}

func (p *Profile) more(w io.Writer, n int, what string) {
	if left := n - p.shown(n); left > 0 {
		fmt.Fprintf(w, "and %s; --top 0 shows all\n", progress.Count(left, "more "+what))
	}
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
