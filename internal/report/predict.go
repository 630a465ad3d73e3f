package report

import (
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/trace"
)

// Bar is a step of the schedule and when it runs, in nanoseconds from the start of the first launch.
type Bar struct {
	Segment, VEU, Op, RTask int
	Start, End              float64
}

// predict lays the steps of a plan along time. A step takes what the plan was made with, and starts when the step before
// it on its vEU and those that it waits for have ended; edges and launches cost what the device's description says. It
// knows nothing of memory that steps share, so it shows the order of things, and the plan's own prediction is the better
// total.
func predict(plan *trace.Plan, cost device.Cost) []Bar {
	var all []Bar
	now := 0.0
	for i := range plan.Segments {
		seg := &plan.Segments[i]
		p := &layout{plan: plan, seg: seg, number: i, cost: cost, begin: now}
		switch {
		case seg.Kind == "rprogram":
			p.begin += cost.Launch
			p.persistent()
		case len(seg.Nodes) > 0:
			p.parallel()
		default:
			p.waves()
		}
		for _, b := range p.bars {
			now = max(now, b.End)
		}
		all = append(all, p.bars...)
	}
	return all
}

// layout lays out one segment.
type layout struct {
	plan   *trace.Plan
	seg    *trace.Segment
	number int
	cost   device.Cost
	begin  float64
	bars   []Bar
}

func (p *layout) add(veu int, s *trace.Step, start float64) (end float64) {
	end = start + p.cost.Step + p.plan.Ops[s.Op].Predicted
	p.bars = append(p.bars, Bar{p.number, veu, s.Op, s.RTask, start, end})
	return end
}

// persistent lays out an rProgram: each vEU goes on as far as the steps that it waits for have ended, until none can.
func (p *layout) persistent() {
	ends := make([][]float64, len(p.seg.Steps))
	for again := true; again; {
		again = false
		for v, steps := range p.seg.Steps {
			for len(ends[v]) < len(steps) {
				start, ready := p.ready(ends, v)
				if !ready {
					break
				}
				ends[v] = append(ends[v], p.add(v, &steps[len(ends[v])], start))
				again = true
			}
		}
	}
}

// ready is when the next step of a vEU can start, if all that it waits for has ended.
func (p *layout) ready(ends [][]float64, v int) (start float64, ok bool) {
	order := len(ends[v])
	start = p.begin
	if order > 0 {
		start = ends[v][order-1]
	}
	for _, at := range p.seg.Steps[v][order].Needs {
		if at.Order >= len(ends[at.VEU]) {
			return 0, false
		}
		start = max(start, ends[at.VEU][at.Order]+p.cost.Hop)
	}
	return start, true
}

// byWave are the steps of each wave, as vEU and order.
func (p *layout) byWave() [][]trace.At {
	var waves [][]trace.At
	for v, steps := range p.seg.Steps {
		for order, s := range steps {
			for len(waves) <= s.Wave {
				waves = append(waves, nil)
			}
			waves[s.Wave] = append(waves[s.Wave], trace.At{VEU: v, Order: order})
		}
	}
	return waves
}

// launch lays out the steps of one launch, those of a vEU one after another, and returns when the last has ended.
func (p *layout) launch(steps []trace.At, start float64) float64 {
	next, end := map[int]float64{}, start
	for _, at := range steps {
		from := max(start, next[at.VEU])
		next[at.VEU] = p.add(at.VEU, &p.seg.Steps[at.VEU][at.Order], from)
		end = max(end, next[at.VEU])
	}
	return end
}

// waves lays out one launch for each wave, one after another.
func (p *layout) waves() {
	now := p.begin
	for i, steps := range p.byWave() {
		cost := p.cost.Node
		if i == 0 {
			cost = max(p.cost.Cold, p.cost.Node)
		}
		now = p.launch(steps, now+cost)
	}
}

// parallel lays out a graph of launches: a node comes after those it names and after the one before it on its stream.
func (p *layout) parallel() {
	steps := p.byWave()
	ends, stream := make([]float64, len(p.seg.Nodes)), map[int]float64{}
	for i, n := range p.seg.Nodes {
		start := max(p.begin, stream[n.Stream])
		for _, a := range n.After {
			start = max(start, ends[a])
		}
		if i < len(steps) {
			ends[i] = p.launch(steps[i], start+p.cost.Node)
		}
		stream[n.Stream] = ends[i]
	}
}

// span is when something was in use: from its first step's start to its last step's end. It is empty at first.
type span struct {
	Begin, End float64
	used       bool
}

func (s *span) include(b Bar) {
	if !s.used {
		*s = span{b.Start, b.End, true}
		return
	}
	s.Begin, s.End = min(s.Begin, b.Start), max(s.End, b.End)
}

// lives are the times at which tensors are alive: from the first step that writes or reads one to the last. Outputs of
// the model live to the end, and inputs from the beginning.
func lives(plan *trace.Plan, bars []Bar) []span {
	out := make([]span, len(plan.Buffers))
	for _, b := range bars {
		op := &plan.Ops[b.Op]
		for _, n := range slices.Concat(op.Reads, op.Writes) {
			if n >= 0 && n < len(out) {
				out[n].include(b)
			}
		}
	}
	return out
}
