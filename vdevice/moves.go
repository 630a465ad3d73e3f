package vdevice

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// A move is a run of elements that the executor brings into a step's import area, or that the step's rTask gives away.
// Where the elements are depends on the kind of edge that brings them: in plain memory, in tagged words or in slots.

// Addresses says where a plan's buffers are, in the form of a Move's At. Package codegen knows; checks need no more
// than how places are aligned.
type Addresses interface {
	// Plain is a byte of a buffer in memory, Word the tagged word of an element.
	Plain(buf *roperator.Buffer, byteOffset int64) uint64
	Word(buf *roperator.Buffer, elem int64) uint64
}

// noAddresses is for those who only ask what kinds of moves there are. Buffers begin at multiples of more than any move
// needs, so the place in the buffer stands for its alignment.
type noAddresses struct{}

func (noAddresses) Plain(_ *roperator.Buffer, byteOffset int64) uint64 { return uint64(byteOffset) }
func (noAddresses) Word(_ *roperator.Buffer, elem int64) uint64        { return uint64(elem) }

// Moves lists the moves of a program's steps.
type Moves struct {
	p      *Program
	at     Addresses
	polled map[int32]bool // tagged buffers of which somebody takes elements from global memory
	phases []int32        // of the gates of the program's slots
	runs   []roperator.Run
	writes map[int]bool // Buffer.IDs that the program writes
	keeps  int          // words that a near step needs for operands from memory
}

// NewMoves prepares the listing. The program must be in form, as Verify checks it.
func NewMoves(p *Program, at Addresses) *Moves {
	m := &Moves{p: p, at: at, polled: p.Polled(), phases: p.GatePhases(), writes: map[int]bool{}}
	for id, pick := range p.Pick {
		if pick < 0 {
			continue
		}
		for _, a := range p.Candidate(int32(id)).Writes {
			m.writes[a.View.Buf.ID] = true
		}
	}
	m.keeps = m.nearKeeps()
	return m
}

// Of lists the moves of the step at a place as the program tables have them: its imports, then its exports.
func (m *Moves) Of(at At) (imports, exports []schema.Move) {
	imports, exports = m.plainOf(at)
	return m.p.stepAt(at).Mode.row().arrange(m, at, imports, exports)
}

// plainOf lists the moves of a step before its mode arranges them: imports in the order of the operands; exports to
// slots first, then those to memory.
func (m *Moves) plainOf(at At) (imports, exports []schema.Move) {
	t := m.p.stepAt(at).Task
	c := m.p.Candidate(t.Op)
	for i := range c.Imports {
		m.runs = c.Imports[i].AppendRuns(m.runs[:0], int(t.Index))
		imports = m.takes(imports, at, c.Imports[i].Access.View.Buf)
	}
	for i := range c.Exports {
		m.runs = c.Exports[i].AppendRuns(m.runs[:0], int(t.Index))
		buf := c.Exports[i].Access.View.Buf
		for k := range edgeRows {
			exports = edgeRows[k].gives(m, at, buf, exports)
		}
		if m.p.CarryOf(buf.ID).HasPlain() {
			exports = m.appendPlain(exports, buf, m.runs)
		}
	}
	exports = joinRanks(exports)
	slices.SortStableFunc(exports, func(a, b schema.Move) int { return exportOrder[a.Kind] - exportOrder[b.Kind] })
	return imports, exports
}

// takes appends the imports of the runs at hand: of the first kind of edge that brings them, or from memory.
func (m *Moves) takes(imports []schema.Move, at At, buf *roperator.Buffer) []schema.Move {
	for k := range edgeRows {
		if out, brought := edgeRows[k].takes(m, at, buf, imports); brought {
			return out
		}
	}
	return m.appendPlain(imports, buf, m.runs)
}

// exportOrder is the order of a step's exports: the steps of other vEUs wait for those to slots.
var exportOrder = [...]int{schema.SlotMove: 0, schema.PlainMove: 1, schema.TaggedMove: 2, schema.SpareMove: 3}

// joinRanks makes one move of those that take the same words to the same place in several vEUs of a cluster.
func joinRanks(moves []schema.Move) []schema.Move {
	out := moves[:0]
	for _, x := range moves {
		if x.Kind != schema.SlotMove || !joinedTo(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// joinedTo adds the vEUs of x to one of the moves, if there is one that it goes with.
func joinedTo(moves []schema.Move, x schema.Move) bool {
	for i := range moves {
		m := &moves[i]
		if m.Kind == schema.SlotMove && m.Staged == x.Staged && m.Count == x.Count && m.Slot == x.Slot &&
			m.Gate == x.Gate {
			m.Ranks |= x.Ranks
			return true
		}
	}
	return false
}

func (m *Moves) appendPlain(moves []schema.Move, buf *roperator.Buffer, runs []roperator.Run) []schema.Move {
	return appendMoves(moves, schema.PlainMove, runs, func(elem int64) uint64 {
		return m.at.Plain(buf, elem*int64(buf.DType.Size()))
	})
}

func (m *Moves) appendTagged(moves []schema.Move, buf *roperator.Buffer, runs []roperator.Run) []schema.Move {
	return appendMoves(moves, schema.TaggedMove, runs, func(elem int64) uint64 { return m.at.Word(buf, elem) })
}

// appendMoves cuts runs that are longer than a move can say.
func appendMoves(moves []schema.Move, kind schema.MoveKind, runs []roperator.Run,
	at func(elem int64) uint64) []schema.Move {
	for _, r := range runs {
		for done := int64(0); done < r.Count; {
			n := min(r.Count-done, math.MaxUint16)
			moves = append(moves, schema.Move{
				At: at(r.Elem + done*r.Stride), Staged: uint32(r.At + done), Step: uint32(r.Stride), Count: uint16(n),
				Kind: kind,
			})
			done += n
		}
	}
	return moves
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
