// Package report makes one web page of a library directory: its graph of rOperators, its schedule along time as it was
// planned and as it was measured, the memory of its tensors, its kernels, and what everything was expected to take.
package report

import (
	_ "embed"
	"encoding/json"
	"io"
	"math"
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/trace"
)

//go:embed page.html
var page string

// Measured is a traced inference of the library.
type Measured struct {
	Timeline *trace.Timeline
	Report   *trace.Report
}

// Page is what the page's script reads, and what `rammerc report --json` prints without the steps. Times are
// microseconds, but those of steps nanoseconds.
type Page struct {
	Schema    string      `json:"schema"`
	Name      string      `json:"name"`
	Model     string      `json:"model"`
	Device    string      `json:"device"`
	Precision string      `json:"precision"`
	Predicted float64     `json:"predicted_us"`
	Weights   int64       `json:"weights_bytes"`
	Arena     int64       `json:"arena_bytes"`
	RTasks    int         `json:"rtasks"`
	VEUs      int         `json:"veus"`
	Segments  []Segment   `json:"segments"`
	Ops       []Op        `json:"roperators"`
	Buffers   []Buffer    `json:"buffers"`
	Kernels   []Kernel    `json:"kernels"`
	Measured  *RunSummary `json:"measured,omitempty"`
	// NotMeasured says why there is no measurement.
	NotMeasured string `json:"not_measured,omitempty"`

	Planned Steps  `json:"-"`
	Ran     *Steps `json:"-"`
}

// RunSummary says what ran the traced inference, and how long that took.
type RunSummary struct {
	Engine string  `json:"engine"`
	Device string  `json:"device"`
	Span   float64 `json:"span_us"`
}

// Segment is a part of the program that is launched in one way.
type Segment struct {
	Kind  string  `json:"kind"`
	VEUs  int     `json:"veus"`
	Steps int     `json:"steps"`
	Begin float64 `json:"begin_us"`
	End   float64 `json:"end_us"`
}

// Op is an rOperator. Predicted and Measured are sums over its rTasks.
type Op struct {
	Name       string   `json:"name"`
	Kind       string   `json:"kind"`
	Nodes      []string `json:"nodes"`
	Kernel     string   `json:"rkernel"`
	Instance   string   `json:"instance"`
	RTasks     int      `json:"rtasks"`
	Threads    int      `json:"threads"`
	Shared     int      `json:"shared_bytes"`
	Arithmetic string   `json:"arithmetic"`
	Stored     string   `json:"stored"`
	Source     string   `json:"predicted_by"`
	Predicted  float64  `json:"predicted_us"`
	Measured   float64  `json:"measured_us"`
	Inputs     []int    `json:"inputs"` // the rOperators whose results it reads
}

// Buffer is a tensor, and when it lives by the plan.
type Buffer struct {
	trace.Buffer
	Begin float64 `json:"begin_us"`
	End   float64 `json:"end_us"`
	// Writer is the first rOperator that writes it, -1 for inputs.
	Writer int `json:"writer"`
}

// Kernel is a CUDA kernel and the number of rOperators whose instances it has.
type Kernel struct {
	trace.Kernel
	Ops int `json:"roperators"`
}

// Steps are the steps of an inference, as one array for each property, which is shorter than an object for each step.
type Steps struct {
	VEU   []int `json:"veu"`
	Op    []int `json:"op"`
	RTask []int `json:"rtask"`
	Start []int `json:"start"`
	End   []int `json:"end"`
}

func (s *Steps) add(veu, op, rtask int, start, end float64) {
	s.VEU, s.Op, s.RTask = append(s.VEU, veu), append(s.Op, op), append(s.RTask, rtask)
	s.Start, s.End = append(s.Start, int(math.Round(start))), append(s.End, int(math.Round(end)))
}

// Make makes the page of a plan, whose device has these costs. m is nil if nothing was measured.
func Make(plan *trace.Plan, cost device.Cost, m *Measured) *Page {
	bars := predict(plan, cost)
	p := &Page{
		Schema: "rammerc/report/v1", Name: plan.Name, Model: plan.Model, Device: plan.Device, Precision: plan.Precision,
		Predicted: plan.PredictedUS, Weights: plan.WeightsBytes, Arena: plan.ArenaBytes, Segments: []Segment{},
		Ops: []Op{}, Buffers: []Buffer{}, Kernels: []Kernel{}, RTasks: len(bars),
	}
	p.addSegments(plan, bars)
	p.addOps(plan)
	for i, s := range lives(plan, bars) {
		p.Buffers = append(p.Buffers, Buffer{plan.Buffers[i], s.Begin / 1000, s.End / 1000, writer(plan, i)})
	}
	for _, k := range plan.Kernels {
		row := Kernel{Kernel: k}
		for _, o := range plan.Ops {
			for _, name := range k.Instances {
				if o.Instance == name {
					row.Ops++
				}
			}
		}
		p.Kernels = append(p.Kernels, row)
	}
	for _, b := range bars {
		p.Planned.add(b.VEU, b.Op, b.RTask, b.Start, b.End)
	}
	if m != nil {
		p.addMeasured(m)
	}
	return p
}

func writer(plan *trace.Plan, buffer int) int {
	return slices.IndexFunc(plan.Ops, func(o trace.Op) bool { return slices.Contains(o.Writes, buffer) })
}

func (p *Page) addSegments(plan *trace.Plan, bars []Bar) {
	spans := make([]span, len(plan.Segments))
	for _, b := range bars {
		spans[b.Segment].include(b)
	}
	for i, s := range plan.Segments {
		steps := 0
		for _, list := range s.Steps {
			steps += len(list)
		}
		p.VEUs = max(p.VEUs, len(s.Steps))
		p.Segments = append(p.Segments, Segment{s.Kind, len(s.Steps), steps, spans[i].Begin / 1000, spans[i].End / 1000})
	}
}

// addOps lists the rOperators, each with those that have written what it reads: of several writers of a buffer that is
// used again, all that come before it.
func (p *Page) addOps(plan *trace.Plan) {
	writers := map[int][]int{}
	for i, o := range plan.Ops {
		row := Op{
			Name: o.Name, Kind: o.Kind, Nodes: o.Nodes, Kernel: o.Kernel, Instance: o.Instance, RTasks: o.RTasks,
			Threads: o.Threads, Shared: o.Shared, Arithmetic: o.Arithmetic, Stored: o.Stored, Source: o.Source,
			Predicted: o.Predicted * float64(o.RTasks) / 1000, Inputs: []int{},
		}
		for _, b := range o.Reads {
			row.Inputs = append(row.Inputs, writers[b]...)
		}
		for _, b := range o.Writes {
			writers[b] = append(writers[b], i)
		}
		p.Ops = append(p.Ops, row)
	}
}

func (p *Page) addMeasured(m *Measured) {
	p.Measured = &RunSummary{m.Report.Engine, m.Report.Device, m.Report.Span}
	p.Ran = &Steps{}
	for i := range m.Timeline.Runs {
		r := &m.Timeline.Runs[i]
		p.Ran.add(r.VEU, r.Op, r.RTask, r.Started, r.Computed)
		p.Ops[r.Op].Measured += r.Compute() / 1000
	}
}

// Write writes the page. It loads nothing else, so it can be mailed and opened without a network.
func (p *Page) Write(w io.Writer) error {
	data, err := json.Marshal(struct {
		*Page
		Planned Steps  `json:"planned"`
		Ran     *Steps `json:"ran"`
	}{p, p.Planned, p.Ran}) // escapes what could end the script element
	if err != nil {
		return err
	}
	return trace.WritePage(w, page, p.Name, data)
}
