package codegen

import (
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// Plain is where the executor finds a byte of a buffer, as an rt::Ref.
func (l *layout) Plain(buf *roperator.Buffer, byteOffset int64) uint64 {
	return l.refBits(buf, byteOffset)
}

// Word is the number of an element's tagged word.
func (l *layout) Word(buf *roperator.Buffer, elem int64) uint64 {
	return uint64(l.plan.Words[buf.ID] + elem)
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

// staging is what a vEU of the program needs for operands that the executor moves, and whether any instance keeps
// operands on chip.
type staging struct {
	moves    int
	imports  int64
	slots    int // words
	resident bool
	words    bool // rKernels poll and store tagged words themselves
}

func (s *staging) raise(o staging) {
	s.moves, s.imports, s.slots = max(s.moves, o.moves), max(s.imports, o.imports), max(s.slots, o.slots)
	s.resident, s.words = s.resident || o.resident, s.words || o.words
}

func (l *layout) addStaging(c *roperator.Candidate) {
	l.staging.raise(staging{
		imports: c.ImportArea(), resident: c.Inst.Kernel.Resident, words: len(c.Polls)+len(c.Gives) > 0,
	})
}

// allStaging is the staging of all models that share the program.
func (l *layout) allStaging() staging {
	s := l.staging
	for _, p := range l.parts {
		s.raise(p.allStaging())
	}
	return s
}
