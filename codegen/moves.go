package codegen

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// mover lists the moves of a program's steps.
type mover struct {
	*layout
	p      *vdevice.Program
	polled map[int32]bool // tagged buffers that somebody takes from global memory
	runs   []roperator.Run
	phases []int32 // of the gates of the program's slots

	// Of near steps (near.go): whether there may be any, where the words behind the slots begin, and how many
	// words of them a step needs.
	apart       bool
	kept, keeps int

	writes []int // buffers that the program writes, sorted; nil until somebody asks
}

func (l *layout) mover(p *vdevice.Program) *mover {
	return &mover{layout: l, p: p, polled: p.Polled(), phases: p.GatePhases()}
}

// of lists the moves of a step: its imports, then its exports.
func (m *mover) of(t vdevice.Task, veu int) (imports, exports []schema.Move) {
	c := m.p.Candidate(t.Op)
	for i := range c.Imports {
		s := &c.Imports[i]
		buf := s.Access.View.Buf
		m.runs = s.AppendRuns(m.runs[:0], int(t.Index))
		if !m.p.CarryOf(buf.ID).HasTags() {
			imports = m.appendPlain(imports, buf, m.runs)
			continue
		}
		for k := range m.runs {
			from := len(imports)
			imports = m.appendTagged(imports, buf, m.runs[k:k+1])
			m.inSlot(imports[from:], int32(veu), buf, m.runs[k].Elem)
		}
	}
	for i := range c.Exports {
		s := &c.Exports[i]
		buf := s.Access.View.Buf
		m.runs = s.AppendRuns(m.runs[:0], int(t.Index))
		carry := m.p.CarryOf(buf.ID)
		if carry.HasTags() {
			exports = m.toSlots(exports, int32(veu), buf)
			from := len(exports)
			exports = m.appendTagged(exports, buf, m.runs)
			for k := from; k < len(exports) && !m.polled[int32(buf.ID)]; k++ {
				exports[k].Kind = schema.SpareMove
			}
		}
		if carry.HasPlain() {
			exports = m.appendPlain(exports, buf, m.runs)
		}
	}
	exports = joinNear(exports)
	// What near steps give comes first, that to slots before that to memory.
	slices.SortStableFunc(exports, func(a, b schema.Move) int { return exportOrder[a.Kind] - exportOrder[b.Kind] })
	return imports, exports
}

var exportOrder = [...]int{schema.SlotMove: 0, schema.PlainMove: 1, schema.TaggedMove: 2, schema.SpareMove: 3}

// joinNear makes one of moves of the same words to several vEUs.
func joinNear(moves []schema.Move) []schema.Move {
	out := moves[:0]
	for _, x := range moves {
		if x.Kind != schema.SlotMove || !joinedNear(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// joinedNear adds x to one of the moves, if it goes with any.
func joinedNear(moves []schema.Move, x schema.Move) bool {
	for i := range moves {
		m := &moves[i]
		if m.Kind != schema.SlotMove {
			continue
		}
		if m.Staged == x.Staged && m.Count == x.Count && m.Slot == x.Slot && m.Gate == x.Gate {
			m.Ranks |= x.Ranks
			return true
		}
	}
	return false
}

// inSlot makes the imports of a run that starts at elem ones from the vEU's slot, if it has one.
func (m *mover) inSlot(imports []schema.Move, veu int32, buf *roperator.Buffer, elem int64) {
	i := m.p.FindSlot(veu, int32(buf.ID), elem)
	if i < 0 {
		return
	}
	slot := &m.p.Slots[i]
	for k := range imports {
		imports[k].Kind, imports[k].Slot = schema.SlotMove, uint32(int64(slot.At)+elem-slot.Lo)
		imports[k].Gate = uint32(slot.Gate) | uint32(m.phases[i])<<schema.GateShift
		elem += int64(imports[k].Count)
	}
}

// toSlots appends the exports of the runs into slots of the vEU's cluster.
func (m *mover) toSlots(exports []schema.Move, veu int32, buf *roperator.Buffer) []schema.Move {
	for _, r := range m.runs {
		m.p.EachSlot(veu, int32(buf.ID), r.Elem, r.Elem+r.Count, func(i int) {
			slot := &m.p.Slots[i]
			lo, hi := max(r.Elem, slot.Lo), min(r.Elem+r.Count, slot.Hi)
			from := len(exports)
			part := roperator.Run{Elem: lo, At: r.At + lo - r.Elem, Count: hi - lo, Step: 1}
			exports = m.appendTagged(exports, buf, []roperator.Run{part})
			m.inSlot(exports[from:], slot.VEU, buf, lo)
			for k := from; k < len(exports); k++ {
				x := &exports[k]
				x.Ranks = 1 << (slot.VEU % int32(m.p.Cluster))
				x.Gate = uint32(slot.Gate) | (x.Slot-uint32(slot.At))<<schema.GateShift
			}
		})
	}
	return exports
}

func (l *layout) appendTagged(moves []schema.Move, buf *roperator.Buffer, runs []roperator.Run) []schema.Move {
	return appendMoves(moves, schema.TaggedMove, runs, func(elem int64) uint64 { return uint64(l.plan.Words[buf.ID] + elem) })
}

func (l *layout) appendPlain(moves []schema.Move, buf *roperator.Buffer, runs []roperator.Run) []schema.Move {
	return appendMoves(moves, schema.PlainMove, runs, func(elem int64) uint64 { return l.refBits(buf, elem*int64(buf.DType.Size())) })
}

// appendMoves cuts runs that are longer than a move can say.
func appendMoves(moves []schema.Move, kind schema.MoveKind, runs []roperator.Run, at func(elem int64) uint64) []schema.Move {
	for _, r := range runs {
		for done := int64(0); done < r.Count; {
			n := min(r.Count-done, math.MaxUint16)
			moves = append(moves, schema.Move{
				At: at(r.Elem + done*r.Step), Staged: uint32(r.At + done), Step: uint32(r.Step), Count: uint16(n), Kind: kind,
			})
			done += n
		}
	}
	return moves
}

// refBits is an rt::Ref to a byte of the buffer.
func (l *layout) refBits(buf *roperator.Buffer, offset int64) uint64 {
	space := uint64(0)
	switch buf.Kind {
	case roperator.Arena:
		offset += l.plan.Arena[buf.ID]
	case roperator.Const:
		space = schema.WeightsSpace
		offset += l.constAt[buf.ID]
	case roperator.Input:
		space = uint64(schema.FirstPortSpace + buf.Index)
	case roperator.Output:
		space = uint64(schema.FirstPortSpace + len(l.inputs) + buf.Index)
	}
	return space<<schema.SpaceShift | uint64(offset)
}

// staging is what the program's vEUs need for staged operands: moves a step, elements of the import area,
// and whether an instance keeps operands on chip.
type staging struct {
	moves    int
	imports  int64
	slots    int // words
	resident bool
}

func (s *staging) raise(o staging) {
	s.moves, s.imports, s.slots = max(s.moves, o.moves), max(s.imports, o.imports), max(s.slots, o.slots)
	s.resident = s.resident || o.resident
}

func (l *layout) addStaging(c *roperator.Candidate) {
	l.staging.raise(staging{imports: c.ImportArea(), resident: c.Inst.Kernel.Resident})
}

// allStaging covers the models of a bundle.
func (l *layout) allStaging() staging {
	s := l.staging
	for _, p := range l.parts {
		s.raise(p.allStaging())
	}
	return s
}
