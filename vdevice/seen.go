package vdevice

// seen is what a step knows of imports: for every vEU, how many of its steps have brought their operands
// when the step computes. It is more than what is known to be complete: tagged data come from a step that
// has imported, but may not be done.
type seen struct {
	h      *order
	row    []int32 // per step id
	clocks *clocks // the entry of a step's own vEU does not count
}

func newSeen(h *order) *seen {
	s := &seen{h: h, row: make([]int32, len(h.row)), clocks: newClocks(h.veus)}
	counters := make([]int32, len(h.counters)) // rows: what those that have added saw
	for i := range counters {
		counters[i] = s.clocks.add()
	}
	for _, at := range h.topo {
		step := &h.p.Steps[at.VEU][at.Order]
		row := int32(0)
		if at.Order > 0 {
			row = s.row[h.id(At{at.VEU, at.Order - 1})]
		}
		if step.waiting() || len(step.Follows) > 0 {
			row = s.clocks.copyOf(row)
			mine := s.clocks.row(row)
			for i := range len(step.Waits) + len(step.Follows) {
				s.join(mine, *step.on(i))
			}
			for _, c := range step.Counters {
				maxInto(mine, s.clocks.row(counters[c]))
			}
		}
		s.row[h.id(at)] = row
		if step.Adds > 0 {
			s.join(s.clocks.row(counters[step.Adds-1]), at)
		}
	}
	return s
}

// join adds what the step at from has seen, and its own imports.
func (s *seen) join(mine []int32, from At) {
	maxInto(mine, s.clocks.row(s.row[s.h.id(from)]))
	mine[from.VEU] = max(mine[from.VEU], from.Order+1)
}

// of is how many steps of vEU v have imported when the one at y computes.
func (s *seen) of(y At, v int32) int32 {
	if y.VEU == v {
		return y.Order + 1
	}
	return s.clocks.row(s.row[s.h.id(y)])[v]
}
