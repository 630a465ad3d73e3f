package vdevice

import (
	"slices"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// nearRules are those of near steps. The operands of a near step are in the vEU's slots, or in memory that the
// program does not write, and its result goes to the same words of the slots of its cluster, or to memory:
//
//	warp w   wait for part w of the gate ─▶ take words 64w … 64w+63 ─▶ compute ─▶ store them into others' slots
//
// A warp waits for what its own threads take and goes on without a barrier. Words of slots are used again, and what
// the program orders are steps, not warps. So a word must only ever be stored by the warp of the same number as the
// one that takes it: as far as a step follows from another, so does each warp's part of it.
type nearRules struct{ residentRules }

func (r nearRules) refuses(m *ModeCheck, at At) string {
	if why := r.residentRules.refuses(m, at); why != "" {
		return why
	}
	s, c := m.p.stepAt(at), m.candidate(at)
	switch {
	case !c.Inst.Kernel.Near:
		return "its rKernel has no near form"
	case m.kind != RProgram || len(m.p.Slots) == 0:
		return "no words travel in slots of a cluster"
	case s.Polls() > 0:
		return "it waits for other steps"
	case len(s.Out) > 0:
		return "other steps wait for it"
	}
	imports, exports := m.moves.plainOf(at)
	if len(imports) != len(c.Imports) || len(imports) == 0 || len(imports) > schema.MaxNearOperands {
		return "an operand is no single run of elements, or there are too many"
	}
	n := imports[0].Count
	for i, x := range imports {
		inSlot := x.Kind == schema.SlotMove
		fixed := x.Kind == schema.PlainMove && x.Step == 1 && !m.moves.writes[c.Imports[i].Access.View.Buf.ID]
		if x.Count != n || n%2 != 0 || !inSlot && !fixed || fixed && x.At%8 != 0 {
			return "an operand is no row of an even number of elements in a slot, or in memory that the program does not write"
		}
	}
	return nearResult(exports, n)
}

// nearResult says why a near step of n elements must not have these exports.
func nearResult(exports []schema.Move, n uint16) string {
	for _, x := range exports {
		if x.Kind != schema.SpareMove && (x.Count != n || x.Staged != 0 || x.Kind == schema.PlainMove && x.Step != 1) {
			return "its result does not go to rows of as many elements as its operands have"
		}
	}
	if countKind(exports, schema.TaggedMove) > 0 {
		return "its result also travels in words of global memory"
	}
	if countKind(exports, schema.SlotMove) > 1 || countKind(exports, schema.PlainMove) > 1 {
		return "its result goes to several places"
	}
	return ""
}

// refusesProgram checks what keeps words from crossing warps: all slots are filled at once by near steps and taken by
// near steps, are equally long, and share either all words or none.
func (nearRules) refusesProgram(m *ModeCheck, has func(At) bool) string {
	if len(m.p.Slots) == 0 {
		return "no words travel in slots of a cluster"
	}
	if !m.p.slotsCoincide() {
		return "words could cross warps: slots differ in length, or share some of their words"
	}
	length := m.p.Slots[0].Hi - m.p.Slots[0].Lo
	for v, steps := range m.p.Steps {
		for o := range steps {
			at := At{int32(v), int32(o)}
			imports, exports := m.moves.plainOf(at)
			if !has(at) && countKind(imports, schema.SlotMove)+countKind(exports, schema.SlotMove) > 0 {
				return "words could cross warps: " + stepName(m.p, at) + " takes or fills slots and is not near"
			}
			for _, x := range exports {
				if x.Kind == schema.SlotMove && (int64(x.Count) != length || x.Gate>>schema.GateShift != 0) {
					return "words could cross warps: " + stepName(m.p, at) + " fills a part of a slot"
				}
			}
		}
	}
	return ""
}

// slotsCoincide reports whether all slots have the same length, and any two of them all words or none in common.
func (p *Program) slotsCoincide() bool {
	length := p.Slots[0].Hi - p.Slots[0].Lo
	var starts []int32
	for i := range p.Slots {
		s := &p.Slots[i]
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

// nearKeeps is how many words a near step needs at most for operands that it has in memory.
func (m *Moves) nearKeeps() int {
	n := 0
	for v, steps := range m.p.Steps {
		for o := range steps {
			if steps[o].Mode != ModeNear {
				continue
			}
			if imports, _ := m.plainOf(At{int32(v), int32(o)}); len(imports) > 0 {
				n = max(n, countKind(imports, schema.PlainMove)*int(imports[0].Count))
			}
		}
	}
	return n
}

// keptAt is the first of the words behind the slots, in which operands of near steps wait that come from memory.
func (p *Program) keptAt() int { return int(roperator.WholeQuads(int64(p.SlotWords()))) }

// SharedWords is how many words of shared memory a vEU has for slots, and behind them for what near steps keep.
func (m *Moves) SharedWords() int {
	for _, steps := range m.p.Steps {
		if slices.ContainsFunc(steps, func(s Step) bool { return s.Mode == ModeNear }) {
			return m.p.keptAt() + schema.KeptParts*m.keeps
		}
	}
	return m.p.SlotWords()
}

// arrange lists the moves of a near step as the executor wants them. All imports name the step's gate. The first export
// goes to slots, if only to none. Then comes what is kept of operands in memory: where it is, and words behind the
// slots, of which successive steps have parts in turn.
func (nearRules) arrange(m *Moves, at At, imports, exports []schema.Move) (in, out []schema.Move) {
	to, rest := schema.Move{Kind: schema.SlotMove}, exports
	if len(exports) > 0 && exports[0].Kind == schema.SlotMove {
		to, rest = exports[0], exports[1:]
	}
	gate := uint32(0)
	for _, x := range imports {
		if x.Kind == schema.SlotMove {
			gate = x.Gate
		}
	}
	out = []schema.Move{to}
	word := m.p.keptAt() + int(at.Order)%schema.KeptParts*m.keeps
	for k := range imports {
		if x := &imports[k]; x.Kind == schema.PlainMove {
			x.Slot, x.Gate = uint32(word), gate
			word += int(x.Count)
			kept := *x
			kept.Kind = schema.KeptMove
			out = append(out, kept)
		}
	}
	return imports, append(out, rest...)
}

// encode says how many steps are near, which operands are in memory, and whether the result goes there.
func (nearRules) encode(m *Moves, at At, count int, row *schema.Step) {
	row.Near = min(uint32(count), schema.NearCountMask)
	imports, exports := m.plainOf(at)
	for k, x := range imports {
		if x.Kind == schema.PlainMove {
			row.Near |= 1 << (schema.NearPlainShift + k)
		}
	}
	if countKind(exports, schema.PlainMove) > 0 {
		row.Near |= schema.NearToPlain
	}
}
