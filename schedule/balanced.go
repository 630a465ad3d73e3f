package schedule

// balanced cuts the graph into as many waves as wavefronts does, but lets rOperators come later that nothing waits for
// yet. Each goes to the wave that it lengthens least, of those between its predecessors and the last one in which it
// keeps nobody waiting:
//
//	wave        0    1    2    3
//	wavefront   A X  B    C    D        X is only needed by D, and B leaves most of the device idle,
//	balanced    A    B X  C    D        so X runs beside B.
func (p *planner) balanced() [][]int32 {
	if len(p.g.Ops) == 0 {
		return nil
	}
	earliest := p.ops.levels()
	last := 0
	for _, w := range earliest {
		last = max(last, w)
	}
	latest := p.ops.latest(last)
	waves := make([]waveLoad, last+1)
	level := make([]int, len(earliest))
	out := make([][]int32, last+1)
	place := func(op int32, w int) {
		level[op] = w
		waves[w].add(fastest(p.plain[op]))
	}
	for op := range earliest { // those that have no choice come first
		if earliest[op] == latest[op] {
			place(int32(op), earliest[op])
		}
	}
	for op := range earliest {
		if earliest[op] == latest[op] {
			continue
		}
		first := 0
		for _, q := range p.ops.preds[op] {
			first = max(first, level[q]+1)
		}
		best, least := first, 0.0
		for w := first; w <= latest[op]; w++ {
			longer := waves[w]
			longer.add(fastest(p.plain[op]))
			if cost := longer.time(p.spec.VEUs()) - waves[w].time(p.spec.VEUs()); w == first || cost < least {
				best, least = w, cost
			}
		}
		place(int32(op), best)
	}
	for op, w := range level {
		out[w] = append(out[w], int32(op))
	}
	return out
}

// waveLoad is what the rTasks of a wave take.
type waveLoad struct{ longest, work float64 }

func (w *waveLoad) add(ch *choice) {
	w.longest, w.work = max(w.longest, ch.taskTime), w.work+ch.work()
}

// time is a bound of the wave's time: the longest rTask, or all work on all vEUs.
func (w *waveLoad) time(veus int) float64 { return max(w.longest, w.work/float64(veus)) }
