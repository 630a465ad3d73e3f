package vdevice

// imported says what steps know of imports: for every vEU, how many of its steps have brought in their operands when a
// step computes. That is more than what is known to be complete. A step whose tagged data have come must have imported
// its own operands before it computed them, though it may not be complete.
type imported struct {
	h      *order
	row    []int32 // per step id
	clocks *clocks // the entry of a step's own vEU does not count
}

func newImported(h *order) *imported {
	s := &imported{h: h, row: make([]int32, len(h.row)), clocks: newClocks(h.veus)}
	meetings := make([]int32, len(h.meetings)) // rows: what the steps knew that have announced themselves there
	for i := range meetings {
		meetings[i] = s.clocks.add()
	}
	for _, at := range h.topo {
		step := h.p.stepAt(at)
		row := int32(0)
		if at.Order > 0 {
			row = s.row[h.id(At{at.VEU, at.Order - 1})]
		}
		if len(step.In) > 0 {
			row = s.clocks.copyOf(row)
			mine := s.clocks.row(row)
			for _, e := range step.In {
				if m := h.meetingID(e); m >= 0 {
					maxInto(mine, s.clocks.row(meetings[m]))
				} else {
					s.join(mine, e.At)
				}
			}
		}
		s.row[h.id(at)] = row
		for _, e := range step.Out {
			if m := h.meetingID(e); m >= 0 {
				s.join(s.clocks.row(meetings[m]), at)
			}
		}
	}
	return s
}

// join adds what the step at from knows, and its own imports.
func (s *imported) join(mine []int32, from At) {
	maxInto(mine, s.clocks.row(s.row[s.h.id(from)]))
	mine[from.VEU] = max(mine[from.VEU], from.Order+1)
}

// of is how many steps of vEU v have imported when the step at y computes.
func (s *imported) of(y At, v int32) int32 {
	if y.VEU == v {
		return y.Order + 1
	}
	return s.clocks.row(s.row[s.h.id(y)])[v]
}
