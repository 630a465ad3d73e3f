package vdevice

import "github.com/rammerc/rammerc/device"

// Timeline says when a program's steps run, in nanoseconds from its start.
type Timeline struct {
	Start, End [][]float64 // [vEU][order]; Start is after the waits, before the step's dispatch
	Makespan   float64
	Busy       []float64 // per vEU: time spent in steps
	Critical   []At      // the chain of steps that determines Makespan, first to last
	VEUs       int       // how many vEUs run at once; where launches are on several streams, Busy has more
}

// Utilisation is the part of all vEUs' time that is spent in steps.
func (t *Timeline) Utilisation() float64 {
	if t.Makespan == 0 {
		return 0
	}
	sum := 0.0
	for _, b := range t.Busy {
		sum += b
	}
	return sum / (t.Makespan * float64(t.VEUs))
}

// PlanTime is how long the plan's segments take one after another with their launches, in all turns of loops, in ns.
func PlanTime(plan *Plan, cost func(Task) float64) (float64, error) {
	sum := 0.0
	for i := range plan.Segments {
		t, err := SegmentTime(plan, i, cost)
		if err != nil {
			return 0, err
		}
		sum += t * float64(plan.Runs(i))
	}
	return sum, nil
}

// SegmentTime is how long segment i of the plan takes with its launch, in ns; of a loop, in one turn.
func SegmentTime(plan *Plan, i int, cost func(Task) float64) (float64, error) {
	s := plan.Segments[i]
	t, err := SimulateSegment(s, cost)
	if err != nil {
		return 0, err
	}
	cold := i == 0 || plan.Segments[i-1].Kind == RProgram
	return LaunchCost(&plan.Spec.Cost, s.Kind, cold, plan.Overlaps(i)) + t.Makespan, nil
}

// LaunchCost is the time from the end of what a launch depends on to its first step, in ns. A launch is cold that
// nothing runs before, or an rProgram. One that overlaps may come while the launch before it is still running.
func LaunchCost(c *device.Cost, kind SegmentKind, cold, overlaps bool) float64 {
	switch {
	case kind == RProgram:
		return c.Launch
	case cold:
		return max(c.Cold, c.Node)
	case overlaps:
		return c.PDL
	}
	return c.Node
}

// SimulateSegment runs a segment on the model of its device. Times count from the start of its first step. In an
// rProgram a step starts when the step before it on its vEU has ended and its edges are satisfied, each kind by its
// own rules (edgeRules.arrives and device.Spec.StartTime); in other segments launches decide too. cost is how long an
// rTask takes, in ns, if the weights that it streams are there. The vEU's loader runs ahead of the steps by as much
// as the ring holds, and a step does not end before its last weights have come. If steps wait for each other in a
// circle, the error shows it.
func SimulateSegment(seg Segment, cost func(Task) float64) (*Timeline, error) {
	p := seg.Program
	h, cycle := newOrder(p, seg.Kind)
	if cycle != nil {
		return nil, cycleDiag(p, cycle)
	}
	s := &simulation{
		h: h, cost: cost, why: make([]At, len(h.topo)),
		between: LaunchCost(&p.Spec.Cost, Waves, false, !seg.Serial),
		t:       &Timeline{Busy: make([]float64, h.veus), VEUs: min(h.veus, p.Spec.VEUs())},
	}
	s.last, s.streams = make([]lastAnnounced, len(h.meetings)), newStreams(seg)
	for _, steps := range p.Steps {
		s.t.Start = append(s.t.Start, make([]float64, len(steps)))
		s.t.End = append(s.t.End, make([]float64, len(steps)))
	}
	switch seg.Kind {
	case RProgram:
		s.byWaits()
	case Parallel:
		s.byNodes()
	default:
		s.byWaves()
	}
	s.critical()
	return s.t, nil
}

type simulation struct {
	h    *order
	cost func(Task) float64
	t    *Timeline
	why  []At // per step id: the step whose end decided when it started; VEU -1 for none

	polls   []int64           // per rOperator: 1 + the words that an rTask takes; 0: not computed yet
	between float64           // from one launch of a stream to the next
	blocks  int               // of the launch at hand, if some of them share a multiprocessor
	slower  map[int32]float64 // per rOperator of that launch: its Crowding
	last    []lastAnnounced   // per meeting point of the order
	streams streams
}

// lastAnnounced is when the last of the steps ends that have announced themselves at a meeting point, and which it is.
type lastAnnounced struct {
	end float64
	at  At
}

func (s *simulation) byWaits() {
	spec := s.h.p.Spec
	for _, at := range s.h.topo {
		step := s.h.p.stepAt(at)
		free, why := s.previous(at)
		set, last, n := s.polled(at, step)
		start := spec.StartTime(free, set, n)
		if n > 0 && start > spec.StartTime(free, 0, n) {
			why = last
		}
		for _, e := range step.In {
			if r := e.row(); !r.polled {
				if there, by := r.arrives(s, at, e); there > start {
					start, why = there, by
				}
			}
		}
		s.run(at, start, why)
		for _, e := range step.Out {
			if m := s.h.meetingID(e); m >= 0 {
				if end := s.t.End[at.VEU][at.Order]; end >= s.last[m].end {
					s.last[m] = lastAnnounced{end, at}
				}
			}
		}
	}
}

// words is how many words the executor takes for the step at a place.
func (s *simulation) words(here At) int64 {
	op := s.h.p.stepAt(here).Task.Op
	if s.polls == nil {
		s.polls = make([]int64, len(s.h.p.Ops))
	}
	if s.polls[op] == 0 {
		s.polls[op] = 1 + s.h.p.Candidate(op).Polled()
	}
	return s.polls[op] - 1
}

// polled is when the last of the words is set that the executor polls for a step, by which step, and how many words
// there are.
func (s *simulation) polled(at At, step *Step) (set float64, last At, n int) {
	last = At{-1, -1}
	for _, e := range step.In {
		r := e.row()
		if !r.polled {
			continue
		}
		n++
		if there, by := r.arrives(s, at, e); there > set || last.VEU < 0 {
			set, last = there, by
		}
	}
	return set, last, n
}

// byWaves starts the steps of a wave when all steps of the wave before it have ended and the next launch has come.
func (s *simulation) byWaves() {
	next := make([]int32, s.h.veus)
	open, opener := 0.0, At{-1, -1}
	early := 0.0 // when the loaders of the wave's launch begin
	blocks := s.h.p.Blocks()
	for w := int32(0); w < int32(s.h.waves); w++ {
		s.streams.open(int(w), early, s.h.p.Spec)
		s.crowd(blocks[w])
		end, last := open, opener
		for v, steps := range s.h.p.Steps {
			for ; int(next[v]) < len(steps) && steps[next[v]].Wave == w; next[v]++ {
				at := At{int32(v), next[v]}
				start, why := s.previous(at)
				if start <= open {
					start, why = open, opener
				}
				s.run(at, start, why)
				if e := s.t.End[v][next[v]]; e > end {
					end, last = e, at
				}
			}
		}
		early = end
		if s.overlaps() {
			early = open
		}
		open, opener = end+s.between, last
	}
}

// crowd begins a launch of so many blocks.
func (s *simulation) crowd(blocks int) {
	if s.blocks = 0; s.h.p.Spec.Together(blocks) > 1 {
		s.blocks, s.slower = blocks, map[int32]float64{}
	}
}

// crowding is how many times longer an rTask of op takes in the launch at hand, which by itself takes ns.
func (s *simulation) crowding(op int32, ns float64) float64 {
	f, ok := s.slower[op]
	if !ok {
		f = Crowding(s.h.p.Spec, s.h.p.Candidate(op), ns, s.blocks)
		s.slower[op] = f
	}
	return f
}

// Blocks is the number of vEUs that have steps in each wave.
func (p *Program) Blocks() []int {
	n := make([]int, p.Waves)
	for _, steps := range p.Steps {
		for o := range steps {
			if o == 0 || steps[o].Wave != steps[o-1].Wave {
				n[steps[o].Wave]++
			}
		}
	}
	return n
}

// previous is when the step before the one at at ends on its vEU, and that step.
func (s *simulation) previous(at At) (float64, At) {
	if at.Order == 0 {
		return 0, At{-1, -1}
	}
	return s.t.End[at.VEU][at.Order-1], At{at.VEU, at.Order - 1}
}

// overlaps reports that a launch may come while the one before it on its stream is still running.
func (s *simulation) overlaps() bool { return s.between < s.h.p.Spec.Cost.Node }

func (s *simulation) run(at At, start float64, why At) {
	step := &s.h.p.Steps[at.VEU][at.Order]
	ns := s.cost(step.Task)
	if s.blocks > 0 {
		ns *= s.crowding(step.Task.Op, ns)
	}
	end := start + s.h.p.Spec.Cost.Step + ns
	end = s.streams.end(at.VEU, start, end, s.h.p.streamBytes(step.Task))
	if s.h.kind == RProgram && len(step.Out) > 0 {
		end += s.h.p.Spec.Cost.Publish
	}
	s.t.Start[at.VEU][at.Order], s.t.End[at.VEU][at.Order] = start, end
	s.t.Busy[at.VEU] += end - start
	s.t.Makespan = max(s.t.Makespan, end)
	s.why[s.h.base[at.VEU]+int(at.Order)] = why
}

// critical follows the reasons back from the step that ends last.
func (s *simulation) critical() {
	at := At{-1, -1}
	for v, ends := range s.t.End {
		if n := len(ends); n > 0 && ends[n-1] == s.t.Makespan {
			at = At{int32(v), int32(n - 1)}
			break
		}
	}
	var path []At
	for ; at.VEU >= 0; at = s.why[s.h.base[at.VEU]+int(at.Order)] {
		path = append(path, at)
	}
	for i := len(path) - 1; i >= 0; i-- {
		s.t.Critical = append(s.t.Critical, path[i])
	}
}
