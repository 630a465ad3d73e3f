package codegen

import (
	"slices"

	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// near says of every step of a vEU how many steps of its run from it on are near ones, one after another
// (rt/exec/near.cuh), which of its operands are in memory, and whether its result goes there.
func (m *mover) near(veu int, steps []vdevice.Step, runs []int32) []uint32 {
	out := make([]uint32, len(steps))
	if !m.apart {
		return out
	}
	for i, n := range vdevice.CountInRuns(runs, func(i int) bool { return m.isNear(&steps[i], veu) }) {
		if n == 0 {
			continue
		}
		out[i] = min(uint32(n), schema.NearCountMask)
		imports, exports := m.of(steps[i].Task, veu)
		for k, x := range imports {
			if x.Kind == schema.PlainMove {
				out[i] |= 1 << (schema.NearPlainShift + k)
			}
		}
		if countKind(exports, schema.PlainMove) > 0 {
			out[i] |= schema.NearToPlain
		}
	}
	return out
}

// readied lists the moves of a near step, of the given order, as the executor wants them. All imports name the
// step's gate. The first export goes to slots, if only to none. Then comes what is kept of operands in memory:
// where it is, and words behind the slots, of which steps have parts in turn.
func (m *mover) readied(imports, exports []schema.Move, order int) ([]schema.Move, []schema.Move) {
	var to, gate schema.Move
	rest := exports
	if len(exports) > 0 && exports[0].Kind == schema.SlotMove {
		to, rest = exports[0], exports[1:]
	} else {
		to.Kind = schema.SlotMove
	}
	for _, x := range imports {
		if x.Kind == schema.SlotMove {
			gate = x
		}
	}
	out := []schema.Move{to}
	at := m.kept + order%schema.KeptParts*m.keeps
	for k := range imports {
		if x := &imports[k]; x.Kind == schema.PlainMove {
			x.Slot, x.Gate = uint32(at), gate.Gate
			at += int(x.Count)
			kept := *x
			kept.Kind = schema.KeptMove
			out = append(out, kept)
		}
	}
	return imports, append(out, rest...)
}

// findNear finds out whether the program may have near steps: a word of a slot is only ever stored by the warp
// of the same number as the one that takes it, in all slots. What a warp knows of another vEU's is then enough
// to use words again, for as far as a step follows from another, so does each warp's part of it. All slots must
// be filled at once by what will be near steps and taken by such, be equally long, and share either all words
// or none.
func (m *mover) findNear(rows [][]vdevice.Step) {
	if len(m.p.Slots) == 0 {
		return
	}
	m.kept = (m.p.SlotWords() + 3) / 4 * 4
	if !m.alike() {
		return
	}
	length := m.p.Slots[0].Hi - m.p.Slots[0].Lo
	for v, steps := range rows {
		runs := m.p.Runs(v)
		for i := range steps {
			near := runs[i] > 0 && m.isNear(&steps[i], v)
			imports, exports := m.of(steps[i].Task, v)
			if near {
				m.keeps = max(m.keeps, countKind(imports, schema.PlainMove)*int(imports[0].Count))
			} else if countKind(imports, schema.SlotMove)+countKind(exports, schema.SlotMove) > 0 {
				return
			}
			for _, x := range exports {
				if x.Kind == schema.SlotMove && (int64(x.Count) != length || x.Gate>>schema.GateShift != 0) {
					return
				}
			}
		}
	}
	m.apart = true
}

// alike reports whether all slots have the same length, and any two of them all words or none in common.
func (m *mover) alike() bool {
	length := m.p.Slots[0].Hi - m.p.Slots[0].Lo
	var starts []int32
	for i := range m.p.Slots {
		s := &m.p.Slots[i]
		if s.Hi-s.Lo != length {
			return false
		}
		starts = append(starts, s.At)
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	for i := 1; i < len(starts); i++ {
		if int64(starts[i]-starts[i-1]) < length {
			return false
		}
	}
	return true
}

func countKind(moves []schema.Move, kind schema.MoveKind) int {
	n := 0
	for i := range moves {
		if moves[i].Kind == kind {
			n++
		}
	}
	return n
}

// isNear reports whether the step's operands are rows of an even number of elements that are in the vEU's
// slots, or in memory that the program does not write, and its result goes to the same words of other
// vEUs' slots, to memory, or both, and whether nothing else has to be done for it.
func (m *mover) isNear(s *vdevice.Step, veu int) bool {
	c := m.p.Candidate(s.Task.Op)
	if !c.Inst.Kernel.Near || s.Polls() > 0 || len(s.Out) > 0 || len(m.p.Slots) == 0 {
		return false
	}
	imports, exports := m.of(s.Task, veu)
	if len(imports) != len(c.Imports) || len(imports) == 0 || len(imports) > schema.MaxNearOperands {
		return false
	}
	n := imports[0].Count
	for i, x := range imports {
		inSlot := x.Kind == schema.SlotMove
		fixed := x.Kind == schema.PlainMove && x.Step == 1 && !m.written(c.Imports[i].Access.View.Buf.ID)
		if x.Count != n || n%2 != 0 || !inSlot && !fixed || fixed && x.At%8 != 0 {
			return false
		}
	}
	for _, x := range exports {
		if x.Kind != schema.SpareMove && (x.Count != n || x.Staged != 0 || x.Kind == schema.PlainMove && x.Step != 1) {
			return false
		}
	}
	return countKind(exports, schema.TaggedMove) == 0 && countKind(exports, schema.SlotMove) <= 1 && countKind(exports, schema.PlainMove) <= 1
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
