package codegen

import (
	"encoding/binary"
	"math"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule/vdevice"
)

// Kinds of moves, as in rt/device.cuh.
const (
	plainMove  = 0
	taggedMove = 1
)

// move is an entry of the program tables: count elements from the staged one on, step apart where at says.
type move struct {
	at     uint64
	staged uint32
	step   uint32
	count  uint16
	kind   uint16
}

func (m move) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, m.at)
	b = le.AppendUint32(le.AppendUint32(b, m.staged), m.step)
	b = le.AppendUint16(le.AppendUint16(b, m.count), m.kind)
	return append(b, make([]byte, abi.MoveBytes-20)...)
}

// stepMoves lists the moves of a step: its imports, then its exports.
func (l *layout) stepMoves(p *vdevice.Program, t vdevice.Task) (imports, exports []move) {
	c := p.Candidate(t.Op)
	var runs []roperator.Run
	for i := range c.Imports {
		s := &c.Imports[i]
		buf := s.Access.View.Buf
		runs = s.AppendRuns(runs[:0], int(t.Index))
		if p.CarryOf(buf.ID).HasTags() {
			imports = l.appendTagged(imports, buf, runs)
		} else {
			imports = l.appendPlain(imports, buf, runs)
		}
	}
	for i := range c.Exports {
		s := &c.Exports[i]
		buf := s.Access.View.Buf
		runs = s.AppendRuns(runs[:0], int(t.Index))
		carry := p.CarryOf(buf.ID)
		if carry.HasTags() {
			exports = l.appendTagged(exports, buf, runs)
		}
		if carry.HasPlain() {
			exports = l.appendPlain(exports, buf, runs)
		}
	}
	return imports, exports
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
			moves = append(moves, move{at(r.Elem + done*r.Step), uint32(r.At + done), uint32(r.Step), uint16(n), kind})
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
	resident bool
}

func (s *staging) raise(o staging) {
	s.moves, s.imports = max(s.moves, o.moves), max(s.imports, o.imports)
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
