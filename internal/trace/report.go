package trace

import "sort"

// Report says where the time of a traced inference went. Times are microseconds unless their names say otherwise.
type Report struct {
	Schema   string  `json:"schema"`
	Name     string  `json:"name"`
	Model    string  `json:"model"`
	Engine   string  `json:"engine"`
	Device   string  `json:"device"` // the device that ran it
	Planned  string  `json:"planned_for"`
	WarmUp   int     `json:"warm_up"`
	Span     float64 `json:"span_us"` // from the first launch's first instruction to the last launch's last instruction
	VEUs     int     `json:"veus"`
	SMs      int     `json:"sms"`
	RTasks   int     `json:"rtasks"`
	Launched int     `json:"launches"`
	Dropped  int     `json:"dropped_steps"` // steps for which the trace had no room
	Lost     int     `json:"dropped_chunks,omitempty"`

	Shares   Shares     `json:"shares"`
	Weights  *Weights   `json:"weights,omitempty"` // the streamed weights; nil if there are none
	Path     Path       `json:"critical_path"`
	Ops      []OpTime   `json:"roperators"` // those that took longest first
	PerVEU   []VEUTime  `json:"per_veu"`
	Launches []LaunchAt `json:"launch_list"`
}

// Shares are what parts of the time of all vEUs together went into. Stall is a part of Compute; the others add up to 1.
type Shares struct {
	Compute float64 `json:"compute"`
	Load    float64 `json:"load"`   // loading weights that stay on chip for several steps
	Wait    float64 `json:"wait"`   // waiting for steps of other vEUs
	Stall   float64 `json:"stall"`  // the part of compute in which it waited for streamed weights
	Import  float64 `json:"import"` // copying operands to the import area
	Idle    float64 `json:"idle"`   // outside of steps: before the first step of a launch, between steps, after the last one
}

// Weights are the copies of streamed weights.
type Weights struct {
	Copies int     `json:"copies"`
	Bytes  int64   `json:"bytes"`
	Copy   float64 `json:"copy_us"`  // mean time from a copy's start until it has landed
	Ahead  float64 `json:"ahead_us"` // mean time from a copy's start until the rTask wants it
	There  float64 `json:"there"`    // share of the copies that had landed when the rTask wanted them
}

// Path is the critical path: the chain of steps that determined when the inference ended, and what it spent its time
// on.
type Path struct {
	Compute float64    `json:"compute_us"`
	Wait    float64    `json:"wait_us"`   // between steps of different vEUs
	Order   float64    `json:"order_us"`  // between steps of one vEU
	Launch  float64    `json:"launch_us"` // between launches, and before the first step
	Length  int        `json:"length"`
	Steps   []PathStep `json:"steps"`
}

// PathStep is a step on the path.
type PathStep struct {
	Op      string  `json:"roperator"`
	RTask   int     `json:"rtask"`
	Segment int     `json:"segment"`
	VEU     int     `json:"veu"`
	Order   int     `json:"order"`
	By      string  `json:"by"`     // why it did not start earlier: start, launch, order or wait (see ByStart)
	Gap     float64 `json:"gap_us"` // since the previous step on the path was computed
	Start   float64 `json:"start_us"`
	Compute float64 `json:"compute_us"`
}

// OpTime is what an rOperator took. Times are sums over its rTasks unless said otherwise.
type OpTime struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Instance string   `json:"instance"`
	Nodes    []string `json:"nodes"`
	// Precision, Arithmetic and Stored are those of Op.
	Precision  string `json:"precision,omitempty"`
	Arithmetic string `json:"arithmetic,omitempty"`
	Stored     string `json:"stored,omitempty"`

	RTasks   int     `json:"rtasks"`
	Compute  float64 `json:"compute_us"` // sum over its rTasks
	Mean     float64 `json:"mean_us"`
	Max      float64 `json:"max_us"`
	Load     float64 `json:"load_us"`
	Wait     float64 `json:"wait_us"`
	Import   float64 `json:"import_us"`
	Stall    float64 `json:"stall_us"`       // the part of compute in which it waited for streamed weights
	Streamed int64   `json:"streamed_bytes"` // weights that came through the ring
	Critical float64 `json:"critical_us"`    // compute of its rTasks on the critical path
	Share    float64 `json:"critical_share"`

	Predicted float64 `json:"predicted_us,omitempty"` // of all its rTasks, when the plan was made
	Source    string  `json:"predicted_by,omitempty"` // "measured" or "modelled"
	Ratio     float64 `json:"compute_by_predicted,omitempty"`
}

// VEUTime is what a vEU spent its time on.
type VEUTime struct {
	VEU         int     `json:"veu"`
	SM          int     `json:"sm"` // its multiprocessor in its last launch
	Steps       int     `json:"steps"`
	Compute     float64 `json:"compute_us"`
	Load        float64 `json:"load_us"`
	Wait        float64 `json:"wait_us"`
	Import      float64 `json:"import_us"`
	Stall       float64 `json:"stall_us"`
	Utilisation float64 `json:"utilisation"` // compute divided by the span of the inference
}

// LaunchAt says when a launch ran.
type LaunchAt struct {
	Segment int     `json:"segment"`
	Wave    int     `json:"wave"`
	Kind    string  `json:"kind"`
	VEUs    int     `json:"veus"`
	Begin   float64 `json:"begin_us"`
	End     float64 `json:"end_us"`
}

const us = 1e-3 // microseconds in a nanosecond

// Report adds up the times of the timeline.
func (t *Timeline) Report() *Report {
	r := &Report{
		Schema: "rammerc/profile/v1", Name: t.Plan.Name, Model: t.Plan.Model, Planned: t.Plan.Device,
		Span: t.Span * us, RTasks: len(t.Runs), Launched: len(t.Launches), Dropped: t.Dropped, Lost: t.DroppedChunks,
		Ops: []OpTime{}, PerVEU: t.perVEU(), Launches: []LaunchAt{},
	}
	r.VEUs = len(r.PerVEU)
	sms := map[int]bool{}
	for _, l := range t.Launches {
		r.Launches = append(r.Launches, LaunchAt{l.Segment, l.Wave, l.Kind, len(l.VEUs), l.Begin * us, l.End * us})
		for _, v := range l.VEUs {
			sms[v.SM] = true
		}
	}
	r.SMs = len(sms)
	r.Shares = shares(r.PerVEU, r.Span)
	path := t.Critical()
	r.Path = t.pathReport(path)
	r.Ops = t.perOp(path)
	r.Weights = t.weights()
	return r
}

func (t *Timeline) weights() *Weights {
	if len(t.Chunks) == 0 {
		return nil
	}
	w := &Weights{Copies: len(t.Chunks)}
	n := float64(w.Copies)
	for i := range t.Chunks {
		c := &t.Chunks[i]
		w.Bytes += int64(c.Bytes)
		w.Copy += (c.Landed - c.Issued) * us / n
		w.Ahead += (c.Wanted - c.Issued) * us / n
		if c.Landed <= c.Wanted {
			w.There += 1 / n
		}
	}
	return w
}

func shares(veus []VEUTime, span float64) Shares {
	var s Shares
	if len(veus) == 0 || span == 0 {
		return s
	}
	for _, v := range veus {
		s.Compute += v.Compute
		s.Load += v.Load
		s.Wait += v.Wait
		s.Import += v.Import
		s.Stall += v.Stall
	}
	all := span * float64(len(veus))
	s.Compute, s.Load, s.Wait, s.Import, s.Stall = s.Compute/all, s.Load/all, s.Wait/all, s.Import/all, s.Stall/all
	s.Idle = max(0, 1-s.Compute-s.Load-s.Wait-s.Import)
	return s
}

func (t *Timeline) perVEU() []VEUTime {
	n := 0
	for _, l := range t.Launches {
		for _, v := range l.VEUs {
			n = max(n, v.VEU+1)
		}
	}
	for i := range t.Runs { // a damaged trace can have steps of a vEU without its launch
		n = max(n, t.Runs[i].VEU+1)
	}
	out := make([]VEUTime, n)
	for i := range out {
		out[i].VEU = i
	}
	for _, l := range t.Launches {
		for _, v := range l.VEUs {
			out[v.VEU].SM = v.SM
		}
	}
	for i := range t.Runs {
		x := &t.Runs[i]
		v := &out[x.VEU]
		v.Steps++
		v.Compute += x.Compute() * us
		v.Load += x.Load() * us
		v.Wait += x.Wait() * us
		v.Import += x.Import() * us
		v.Stall += x.Stall * us
	}
	for i := range out {
		if t.Span > 0 {
			out[i].Utilisation = out[i].Compute / (t.Span * us)
		}
	}
	return out
}

func (t *Timeline) pathReport(path []Link) Path {
	p := Path{Length: len(path), Steps: []PathStep{}}
	for _, l := range path {
		x := &t.Runs[l.Run]
		gap := &p.Launch
		switch l.By {
		case ByWait:
			gap = &p.Wait
		case ByOrder:
			gap = &p.Order
		}
		*gap += l.Gap * us
		p.Compute += x.Compute() * us
		p.Steps = append(p.Steps, PathStep{
			t.Plan.Ops[x.Op].Name, x.RTask, x.Segment, x.VEU, x.Order, l.By, l.Gap * us, x.Started * us,
			x.Compute() * us,
		})
	}
	return p
}

// perOp lists the rOperators that ran, those that took longest first.
func (t *Timeline) perOp(path []Link) []OpTime {
	all := make([]OpTime, len(t.Plan.Ops))
	for i := range t.Runs {
		x := &t.Runs[i]
		o := &all[x.Op]
		o.RTasks++
		c := x.Compute() * us
		o.Compute += c
		o.Max = max(o.Max, c)
		o.Load += x.Load() * us
		o.Wait += x.Wait() * us
		o.Import += x.Import() * us
		o.Stall += x.Stall * us
		o.Streamed += int64(x.Streamed)
	}
	for _, l := range path {
		x := &t.Runs[l.Run]
		all[x.Op].Critical += x.Compute() * us
	}
	out := []OpTime{}
	for i, o := range all {
		if o.RTasks == 0 {
			continue
		}
		p := &t.Plan.Ops[i]
		o.Name, o.Kind, o.Instance, o.Nodes = p.Name, p.Kind, p.Instance, p.Nodes
		o.Precision, o.Arithmetic, o.Stored = p.Precision, p.Arithmetic, p.Stored
		o.Mean = o.Compute / float64(o.RTasks)
		o.Predicted, o.Source = p.Predicted*float64(o.RTasks)*us, p.Source
		if o.Predicted > 0 {
			o.Ratio = o.Compute / o.Predicted
		}
		if t.Span > 0 {
			o.Share = o.Critical / (t.Span * us)
		}
		out = append(out, o)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Compute > out[j].Compute })
	return out
}
