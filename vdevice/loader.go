package vdevice

import "github.com/rammerc/rammerc/device"

// UsualRing estimates how many bytes of weights the ring of a vEU holds, before it is known what else needs shared
// memory. Launches that overlap share a multiprocessor, so their rings are smaller than those of an rProgram.
func UsualRing(s *device.Spec, kind SegmentKind) int {
	const beside = 32 << 10 // for the rTasks and the executor
	if kind != RProgram && s.LaunchesOverlap() {
		return max(leastRing*usualStage, s.SharedBeside(overlapping*max(1, s.VEUsPerSM))-beside)
	}
	return max(leastRing*usualStage, s.SharedBound()-beside)
}

// Loader models the loader of one vEU. It brings the weight blocks of the steps one after another, ahead of the steps
// by as much as the ring holds. The zero Loader is that of a vEU that has streamed nothing. Times are in ns.
type Loader struct {
	loaded float64 // when the last byte of all blocks so far is there
	taken  float64 // the bytes of all blocks so far
	steps  []taken // the steps whose blocks may still be in the ring, and some before them
	first  int     // the first of these; what is before is no longer in the ring
}

// taken is a step that has taken its block, bytes from … to of all that the vEU streams, between the times start and
// end.
type taken struct{ from, to, start, end float64 }

// Open starts a launch: the loader may begin at the given time with an empty ring, and its first bytes come after the
// latency.
func (l *Loader) Open(at, latency float64) {
	*l = Loader{loaded: max(l.loaded, at+latency), steps: l.steps[:0]}
}

// ForkTo makes f a copy that can go on without changing this loader. It uses the memory that f has.
func (l *Loader) ForkTo(f *Loader) {
	*f = Loader{loaded: l.loaded, taken: l.taken, steps: append(f.steps[:0], l.steps[l.first:]...)}
}

// Ready is when the last byte of the next step's block is there. The block has so many bytes, the step starts to take
// it at start, the loader brings rate bytes a ns and the ring holds ring bytes.
//
// While the ring is full the loader has to wait: a byte can come only when the byte that is a ring's size before it
// has been taken. Steps take their blocks at an even pace. So it is enough to look at the bytes that follow, by a
// ring's size, the first and the last byte of each block, and at the last byte of this block.
func (l *Loader) Ready(start, bytes, rate float64, ring int) float64 {
	end := l.taken + bytes
	ready := l.loaded + bytes/rate
	// after takes into account that byte number x cannot come before t.
	after := func(x, t float64) {
		if x >= l.taken && x < end {
			ready = max(ready, t+(end-x)/rate)
		}
	}
	room := float64(ring)
	after(l.taken+room, start)
	for l.first < len(l.steps) && l.steps[l.first].to+room < l.taken { // it cannot hold up this block, nor later ones
		l.first++
	}
	for _, s := range l.steps[l.first:] {
		after(s.from+room, s.start)
		after(s.to+room, s.end)
		if x := end - room; x > s.from && x < s.to {
			ready = max(ready, s.start+(s.end-s.start)*(x-s.from)/(s.to-s.from))
		}
	}
	return ready
}

// Taken is how many bytes the steps have taken so far.
func (l *Loader) Taken() float64 { return l.taken }

// Take notes that a step took its block from start to end, and that the last byte of the block was there at ready.
func (l *Loader) Take(start, end, ready, bytes float64) {
	if l.first > len(l.steps)/2 { // so that the list does not grow with the steps of a whole program
		l.steps, l.first = append(l.steps[:0], l.steps[l.first:]...), 0
	}
	l.steps = append(l.steps, taken{l.taken, l.taken + bytes, start, end})
	l.loaded, l.taken = ready, l.taken+bytes
}

// streams is what a simulation knows of the weights that a program streams.
type streams struct {
	rates   []float64 // bytes that a loader brings in a ns, for each wave; of an rProgram there is one
	rate    float64   // in the present launch
	rings   []int     // bytes of the ring, for each wave; of an rProgram there is one
	ring    int       // of the present launch
	loaders []Loader  // per vEU; nil: nothing streams
}

func newStreams(seg Segment) streams {
	p := seg.Program
	plan := Plan{Spec: p.Spec, Segments: []Segment{seg}}
	if p.streamStep() == 0 {
		return streams{}
	}
	s := streams{rings: plan.ringBytes(), loaders: make([]Loader, len(p.Steps))}
	weights, active := p.streamed()
	// Only where several blocks of a launch share a multiprocessor do more loaders bring weights than there are vEUs.
	s.rates = []float64{p.Spec.LoadRate(min(active, p.Spec.VEUs()), weights)}
	if p.Spec.Crowded > 1 {
		s.rates = nil
		for _, blocks := range p.Blocks() {
			s.rates = append(s.rates, p.Spec.LoadRate(min(active, p.Spec.SMs*p.Spec.Sharing(blocks)), weights))
		}
	}
	s.open(0, 0, p.Spec)
	return s
}

// streamed is how many bytes of weights the program streams, and on how many vEUs. Blocks that several rTasks of an
// rOperator take count once: they come from L2 to all but the first of them.
func (p *Program) streamed() (weights int64, active int) {
	seen := make([]bool, len(p.Ops))
	for v := range p.Steps {
		streams := false
		for _, st := range p.Steps[v] {
			if p.streamBytes(st.Task) == 0 {
				continue
			}
			if streams = true; !seen[st.Task.Op] {
				seen[st.Task.Op] = true
				weights += p.Candidate(st.Task.Op).StreamedBytes()
			}
		}
		if streams {
			active++
		}
	}
	return weights, active
}

// ringBytes is how many bytes of weights the ring of each launch of the plan's only segment holds.
func (plan *Plan) ringBytes() []int {
	seg, rule, needs := plan.Segments[0], plan.kernelRule(), plan.launchNeeds()
	kernels := plan.kernelsOf(rule, needs)
	r := plan.RingOf(kernels)
	bytes := func(n Needs, shared, stage int) int { return n.stages(shared, stage) * stage }
	if seg.Kind == RProgram {
		return []int{bytes(needs[0][0], r.Shared, r.StageBytes)}
	}
	var out []int
	for _, n := range needs[0] {
		k := &kernels[rule.kernelOf(kernels, n)]
		out = append(out, bytes(n, k.Side, k.StageBytes))
	}
	return out
}

// open starts a launch whose loaders may begin at the given time.
func (s *streams) open(wave int, at float64, spec *device.Spec) {
	if s.rings != nil {
		s.ring = s.rings[min(wave, len(s.rings)-1)]
		s.rate = s.rates[min(wave, len(s.rates)-1)]
	}
	for v := range s.loaders {
		s.loaders[v].Open(at, spec.Cost.Latency)
	}
}

func (p *Program) streamBytes(t Task) int64 {
	return p.Candidate(t.Op).StreamBytes(int(t.Index))
}

// end is when a step ends that starts at start and streams so many bytes of weights. It would end at end if all of them
// were there from the beginning.
func (s *streams) end(veu int32, start, end float64, bytes int64) float64 {
	if s.loaders == nil || bytes == 0 {
		return end
	}
	l := &s.loaders[veu]
	ready := l.Ready(start, float64(bytes), s.rate, s.ring)
	end = max(end, ready)
	l.Take(start, end, ready, float64(bytes))
	return end
}
