package codegen

import (
	"slices"

	"github.com/rammerc/rammerc/schedule/vdevice"
)

// near says, for every step of a vEU, how many steps of its run from it on are near ones, one after another
// (rt/near.cuh).
func (m *mover) near(veu int, steps []vdevice.Step, runs []int32) []int32 {
	return vdevice.CountInRuns(runs, func(i int) bool { return m.isNear(&steps[i], veu) })
}

// isNear reports whether the step's operands are rows of an even number of elements that are in the vEU's
// slots, or in memory that the program does not write, and its result goes to the same words of other
// vEUs' slots, to memory, or both, and whether nothing else has to be done for it.
func (m *mover) isNear(s *vdevice.Step, veu int) bool {
	c := m.p.Candidate(s.Task.Op)
	if !c.Inst.Kernel.Near || len(s.Waits)+len(s.Counters) > 0 || s.Signal || s.Adds > 0 || len(m.p.Slots) == 0 {
		return false
	}
	imports, exports := m.of(s.Task, veu)
	if len(imports) != len(c.Imports) || len(imports) == 0 {
		return false
	}
	n := imports[0].count
	for i, x := range imports {
		inSlot := x.kind == slotMove
		fixed := x.kind == plainMove && x.step == 1 && !m.written(c.Imports[i].Access.View.Buf.ID)
		if x.count != n || n%2 != 0 || !inSlot && !fixed {
			return false
		}
	}
	var kinds [spareMove + 1]int
	for _, x := range exports {
		kinds[x.kind]++
		if x.kind != spareMove && (x.count != n || x.staged != 0 || x.kind == plainMove && x.step != 1) {
			return false
		}
	}
	return kinds[taggedMove] == 0 && kinds[slotMove] <= 1 && kinds[plainMove] <= 1
}

// written reports whether the program's rTasks write to the buffer.
func (m *mover) written(buf int) bool {
	if m.writes == nil {
		for id, pick := range m.p.Pick {
			if pick < 0 {
				continue
			}
			for _, a := range m.p.Ops[id].Candidates[pick].Writes {
				m.writes = append(m.writes, a.View.Buf.ID)
			}
		}
		slices.Sort(m.writes)
	}
	_, found := slices.BinarySearch(m.writes, buf)
	return found
}
