package codegen

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// Kinds of moves, as in rt/device/device.cuh.
const (
	plainMove  = 0
	taggedMove = 1
	slotMove   = 2
	spareMove  = 3
	keptMove   = 4
)

// move is an entry of the program tables: count elements from the staged one on, step apart where at says.
type move struct {
	at     uint64
	staged uint32
	step   uint32
	count  uint16
	kind   uint16

	slot, ranks, gate uint32 // of a slotMove
}

func (m move) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, m.at)
	b = le.AppendUint32(le.AppendUint32(b, m.staged), m.step)
	b = le.AppendUint16(le.AppendUint16(b, m.count), m.kind)
	return le.AppendUint32(le.AppendUint32(le.AppendUint32(b, m.slot), m.ranks), m.gate)
}

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
func (m *mover) of(t vdevice.Task, veu int) (imports, exports []move) {
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
				exports[k].kind = spareMove
			}
		}
		if carry.HasPlain() {
			exports = m.appendPlain(exports, buf, m.runs)
		}
	}
	exports = joinNear(exports)
	// What near steps give comes first, that to slots before that to memory.
	slices.SortStableFunc(exports, func(a, b move) int { return exportOrder[a.kind] - exportOrder[b.kind] })
	return imports, exports
}

var exportOrder = [...]int{slotMove: 0, plainMove: 1, taggedMove: 2, spareMove: 3}

// joinNear makes one of moves of the same words to several vEUs.
func joinNear(moves []move) []move {
	out := moves[:0]
	for _, x := range moves {
		if x.kind != slotMove || !joinedNear(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// joinedNear adds x to one of the moves, if it goes with any.
func joinedNear(moves []move, x move) bool {
	for i := range moves {
		m := &moves[i]
		if m.kind != slotMove {
			continue
		}
		if m.staged == x.staged && m.count == x.count && m.slot == x.slot && m.gate == x.gate {
			m.ranks |= x.ranks
			return true
		}
	}
	return false
}

// inSlot makes the imports of a run that starts at elem ones from the vEU's slot, if it has one.
func (m *mover) inSlot(imports []move, veu int32, buf *roperator.Buffer, elem int64) {
	i := m.p.FindSlot(veu, int32(buf.ID), elem)
	if i < 0 {
		return
	}
	slot := &m.p.Slots[i]
	for k := range imports {
		imports[k].kind, imports[k].slot = slotMove, uint32(int64(slot.At)+elem-slot.Lo)
		imports[k].gate = uint32(slot.Gate) | uint32(m.phases[i])<<8
		elem += int64(imports[k].count)
	}
}

// toSlots appends the exports of the runs into slots of the vEU's cluster.
func (m *mover) toSlots(exports []move, veu int32, buf *roperator.Buffer) []move {
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
				x.ranks = 1 << (slot.VEU % int32(m.p.Cluster))
				x.gate = uint32(slot.Gate) | (x.slot-uint32(slot.At))<<8
			}
		})
	}
	return exports
}

func (l *layout) appendTagged(moves []move, buf *roperator.Buffer, runs []roperator.Run) []move {
	return appendMoves(moves, taggedMove, runs, func(elem int64) uint64 { return uint64(l.plan.Words[buf.ID] + elem) })
}

func (l *layout) appendPlain(moves []move, buf *roperator.Buffer, runs []roperator.Run) []move {
	return appendMoves(moves, plainMove, runs, func(elem int64) uint64 { return l.refBits(buf, elem*int64(buf.DType.Size())) })
}

// appendMoves cuts runs that are longer than a move can say.
func appendMoves(moves []move, kind uint16, runs []roperator.Run, at func(elem int64) uint64) []move {
	for _, r := range runs {
		for done := int64(0); done < r.Count; {
			n := min(r.Count-done, math.MaxUint16)
			moves = append(moves, move{
				at: at(r.Elem + done*r.Step), staged: uint32(r.At + done), step: uint32(r.Step), count: uint16(n), kind: kind,
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
		space = abi.WeightsSpace
		offset += l.constAt[buf.ID]
	case roperator.Input:
		space = uint64(abi.FirstPortSpace + buf.Index)
	case roperator.Output:
		space = uint64(abi.FirstPortSpace + len(l.inputs) + buf.Index)
	}
	return space<<56 | uint64(offset)
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
