package roperator

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// WordBytes is the size of a word, in bytes. The executor moves words, and a tagged word carries one beside its tag:
// the hardware stores 64 bits at once.
const WordBytes = 4

// IsWord reports whether elements of type d are words, so that the executor can move them.
func IsWord(d ir.DType) bool { return d.Size() == WordBytes }

// PerWord is how many elements of type d a tagged word carries; 0 if it carries none.
func PerWord(d ir.DType) int64 {
	switch n := d.Size(); n {
	case WordBytes, WordBytes / 2:
		return int64(WordBytes / n)
	}
	return 0
}

// quad is how many words an aligned load of 16 bytes brings from shared memory.
const quad = 4

// WholeQuads rounds a number of words up, so that what comes after them is aligned for the widest loads.
func WholeQuads(words int64) int64 { return (words + quad - 1) / quad * quad }

// Staged is an access that the executor carries out for the rKernel. When an rTask starts, the part that it imports
// is in shared memory, in the import area; the elements that it exports it hands to the executor one by one, by
// number. Whether the buffer is in plain memory or in tagged words is for the schedule to choose; the rKernel does
// not see the difference. The elements must be words.
type Staged struct {
	Access Access
	Index  int     // of the access in Reads or Writes, -1 for constants, which are no dependency
	At     int64   // element of the import area, or number, of the box's first element
	Pitch  []int64 // per dim of the view: how many further the next index is
}

// Run is a part of what an rTask imports or exports: Count elements that are consecutive in the import area, or have
// consecutive numbers, and are Stride elements apart in the buffer.
type Run struct {
	Elem   int64 // first element in the buffer
	At     int64 // its element of the import area, or number
	Count  int64
	Stride int64
}

// ImportArea is how many words of shared memory c's rTasks need for what they import.
func (c *Candidate) ImportArea() int64 {
	most := int64(0)
	var runs []Run
	for i := range c.Imports {
		for task := range c.Tasks {
			runs = c.Imports[i].AppendRuns(runs[:0], task)
			for _, r := range runs {
				most = max(most, r.At+r.Count)
			}
		}
	}
	return most
}

// Polled is how many words the executor takes for each of c's rTasks. The threads of rKernels for direct and for near
// steps take theirs by themselves.
func (c *Candidate) Polled() int64 {
	if k := c.Inst.Kernel; k.Direct > 0 || k.Near {
		return 0
	}
	n := int64(0)
	var runs []Run
	for i := range c.Imports {
		runs = c.Imports[i].AppendRuns(runs[:0], 0)
		for _, r := range runs {
			n += r.Count
		}
	}
	return n
}

// AppendRuns cuts the part that an rTask accesses into as few runs as possible.
func (s *Staged) AppendRuns(dst []Run, task int) []Run {
	a := &s.Access
	n := len(a.View.Shape)
	var loBuf, hiBuf [16]int64
	lo, hi := loBuf[:n], hiBuf[:n]
	if a.Box == nil {
		copy(hi, a.View.Shape)
	} else {
		a.Box(task, lo, hi)
	}
	elem, at := a.View.Offset, s.At
	for d := range n {
		if hi[d] <= lo[d] {
			return dst
		}
		elem += lo[d] * a.View.Strides[d]
	}
	// Dims that continue each other both in the buffer and in the import area make up one run.
	inner, count, step := n, int64(1), int64(0)
	for inner > 0 {
		d := inner - 1
		if extent := hi[d] - lo[d]; extent > 1 {
			if step == 0 && a.View.Strides[d] > 0 {
				step = a.View.Strides[d]
			}
			if s.Pitch[d] != count || a.View.Strides[d] != step*count || step == 0 {
				break
			}
			count *= extent
		}
		inner--
	}
	step = max(step, 1)
	var idx [16]int64
	for {
		r := Run{Elem: elem, At: at, Count: count, Stride: step}
		for d := range inner {
			r.Elem += idx[d] * a.View.Strides[d]
			r.At += idx[d] * s.Pitch[d]
		}
		dst = append(dst, r)
		d := inner - 1
		for ; d >= 0; d-- {
			if idx[d]++; idx[d] < hi[d]-lo[d] {
				break
			}
			idx[d] = 0
		}
		if d < 0 {
			return dst
		}
	}
}

// WholeWords reports whether the part of the view that an rTask accesses is made up of whole words of so many elements.
func (a *Access) WholeWords(task int, perWord int64) bool {
	if perWord == 1 {
		return true
	}
	n := len(a.View.Shape)
	lo, hi := make([]int64, n), slices.Clone(a.View.Shape)
	if a.Box != nil {
		a.Box(task, lo, hi)
	}
	first, whole := a.View.Offset, false
	for d, stride := range a.View.Strides {
		extent := hi[d] - lo[d]
		switch {
		case extent <= 0:
			return true
		case extent > 1 && stride == 1:
			whole = extent%perWord == 0
		case extent > 1 && stride%perWord != 0:
			return false
		}
		first += lo[d] * stride
	}
	return whole && first%perWord == 0
}

// Imported says for each of c's reads, by index, whether it may be of tagged words: an import, or what the rKernel polls
// itself; nil if there are none.
func (c *Candidate) Imported() []bool { return marked(c.Imports, c.Polls, len(c.Reads)) }

// Exported says for each of c's writes, by index, whether it may be of tagged words; nil if there are none.
func (c *Candidate) Exported() []bool { return marked(c.Exports, c.Gives, len(c.Writes)) }

func marked(list []Staged, own []int, n int) []bool {
	if len(list)+len(own) == 0 {
		return nil
	}
	out := make([]bool, n)
	for i := range list {
		if k := list[i].Index; k >= 0 {
			out[k] = true
		}
	}
	for _, k := range own {
		out[k] = true
	}
	return out
}
