package roperator

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
)

// Verify checks an rOperator graph. What each candidate writes must be inside its buffers and cover its outputs
// exactly once; rOperators must read only what the caller gave or earlier ones wrote; views must be inside their
// buffers; every element of the program's outputs must be written. What it finds is a defect of a lowering, not of a
// model.
func Verify(g *Graph) error {
	var l diag.List
	written := make([]bool, len(g.Buffers))
	for _, b := range g.Buffers {
		written[b.ID] = b.Kind == Input || b.Kind == Const
	}
	for i, op := range g.Ops {
		if op.ID != i {
			l.Add(opDiag(op, fmt.Sprintf("ID is %d, want %d", op.ID, i)))
		}
		for _, c := range op.Candidates {
			verifyCandidate(&l, g, op, c, written)
			verifyStream(&l, g, op, c)
			verifyPointwise(&l, op, c)
		}
		for _, a := range op.Candidates[0].Writes {
			written[a.View.Buf.ID] = true
		}
	}
	verifyOutputs(&l, g)
	return l.Err()
}

// verifyOutputs finds elements of output buffers that no rOperator writes.
func verifyOutputs(l *diag.List, g *Graph) {
	seen := map[*Buffer][]uint64{}
	for _, b := range g.Buffers {
		if b.Kind == Output {
			seen[b] = make([]uint64, (b.Elems+63)/64)
		}
	}
	for _, op := range g.Ops {
		c := op.Candidates[0]
		for _, a := range c.Writes {
			words := seen[a.View.Buf]
			for t := 0; words != nil && t < c.Tasks; t++ {
				boxes, _ := a.appendBoxes(nil, t)
				for i := range boxes {
					a.View.Buf.mark(words, &boxes[i])
				}
			}
		}
	}
	for _, p := range g.Outputs {
		b, count := g.Buffers[p.Buffer], int64(0)
		for _, word := range seen[b] {
			count += int64(bits.OnesCount64(word))
		}
		if count != b.Elems {
			l.Add(&diag.Diagnostic{ID: "roperator-verify", Port: "output " + p.Name,
				Message: fmt.Sprintf("%d of %d elements are written", count, b.Elems)})
		}
	}
}

func opDiag(op *ROperator, msg string) *diag.Diagnostic {
	return &diag.Diagnostic{ID: "roperator-verify", Node: op.Name, Op: op.Kind, Message: msg}
}

func verifyCandidate(l *diag.List, g *Graph, op *ROperator, c *Candidate, written []bool) {
	name := c.Inst.Name()
	if c.Tasks < 1 {
		l.Add(opDiag(op, name+" has no rTasks"))
		return
	}
	for _, a := range c.Reads {
		if a.View.Buf.Kind == Const {
			l.Add(opDiag(op, name+" lists a constant as a read"))
		}
		if b := a.View.Buf; !written[b.ID] && !a.Before && (!b.State || b.Kind == Arena) {
			l.Add(opDiag(op, fmt.Sprintf("%s reads %s, which nothing wrote before", name, a.View.Buf.Name)))
		}
		verifyBounds(l, op, name, a.View)
	}
	for _, a := range c.Writes {
		if k := a.View.Buf.Kind; k == Input || k == Const {
			l.Add(opDiag(op, fmt.Sprintf("%s writes %s, a %v buffer", name, a.View.Buf.Name, k)))
		}
		verifyBounds(l, op, name, a.View)
		if !a.Joint {
			verifyTiling(l, op, c, a)
		} else if a.Box != nil {
			l.Add(opDiag(op, name+" writes boxes of what its rTasks write together"))
		}
	}
	for _, a := range append(slices.Clone(c.Reads), c.Writes...) {
		verifyTurns(l, g, op, name, &a)
	}
}

// verifyTurns checks that all turns of a loop together access a view of which each accesses a part, and that values of the
// turn before are those of a loop.
func verifyTurns(l *diag.List, g *Graph, op *ROperator, name string, a *Access) {
	t := &a.Turns
	switch {
	case a.Before && (op.Loop == 0 || !a.View.Buf.State):
		l.Add(opDiag(op, fmt.Sprintf("%s reads of %s what the turn before left, but is in no loop that leaves it", name,
			a.View.Buf.Name)))
	case t.Trips == 0:
	case op.Loop == 0 || g.Loops[op.Loop-1].Trips != t.Trips:
		l.Add(opDiag(op, fmt.Sprintf("%s has a part of %s for each of %d turns, which its loop has not", name,
			a.View.Buf.Name, t.Trips)))
	case t.Rows < 1 || t.Rows*t.Trips != a.View.Shape[t.Dim] || t.Step != t.Rows && t.Step != -t.Rows ||
		t.First != max(0, -t.Step*(t.Trips-1)):
		l.Add(opDiag(op, fmt.Sprintf("%s: %d turns of %d elements from %d%+d·turn on are not the %d of %s", name, t.Trips,
			t.Rows, t.First, t.Step, a.View.Shape[t.Dim], a.View.Buf.Name)))
	}
}

// StreamAlign is what addresses and lengths of blocks of weights must be multiples of, in bytes, to be copied in
// bulk.
const StreamAlign = 16

// verifyStream checks that the blocks of weights of a candidate are inside constants that its arguments refer to.
// Only such constants are in the weights file.
func verifyStream(l *diag.List, g *Graph, op *ROperator, c *Candidate) {
	name, step := c.Inst.Name(), int64(c.Inst.StreamStep())
	if (c.Stream != nil) != (step > 0) {
		l.Add(opDiag(op, fmt.Sprintf("%s: the manifest says it takes %d streamed bytes at a time, the candidate streams: %v", name, step, c.Stream != nil)))
		return
	}
	if c.Stream == nil {
		return
	}
	used := map[int]bool{}
	c.Refs(func(id int) { used[id] = true })
	for t := range c.Tasks {
		ref, n := c.Stream(t)
		why := ""
		switch {
		case ref.Buffer < 0 || ref.Buffer >= len(g.Buffers) || g.Buffers[ref.Buffer].Kind != Const:
			why = "is not in a constant"
		case !used[ref.Buffer]:
			why = "is in a constant that no argument mentions"
		case ref.Offset < 0 || n <= 0 || ref.Offset+n > g.Buffers[ref.Buffer].Bytes():
			why = "is not inside its constant"
		case ref.Offset%StreamAlign != 0 || n%step != 0:
			why = fmt.Sprintf("does not start at a multiple of %d or is no multiple of %d long", StreamAlign, step)
		}
		if why != "" {
			l.Add(opDiag(op, fmt.Sprintf("%s: the weight block of rTask %d, %d bytes at %d, %s", name, t, n, ref.Offset,
				why)))
			return
		}
	}
}

// verifyBounds checks that a view is inside its buffer.
func verifyBounds(l *diag.List, op *ROperator, name string, v View) {
	lo, hi := v.Offset, v.Offset
	for d := range v.Shape {
		if v.Shape[d] == 0 {
			return
		}
		if s := v.Strides[d] * (v.Shape[d] - 1); s > 0 {
			hi += s
		} else {
			lo += s
		}
	}
	if lo < 0 || hi >= v.Buf.Elems {
		l.Add(opDiag(op, fmt.Sprintf("%s: view of %s covers elements %d…%d of %d", name, v.Buf.Name, lo, hi,
			v.Buf.Elems)))
	}
}

// verifyPointwise checks that rTasks read of replaceable operands what they write of the result.
func verifyPointwise(l *diag.List, op *ROperator, c *Candidate) {
	_, operands := c.Replaceable()
	for i := range c.Reads {
		r := &c.Reads[i]
		if !listed(operands, r.View.Buf) {
			continue
		}
		for t := range c.Tasks {
			if !slices.Equal(r.part(t), c.Writes[0].part(t)) {
				l.Add(opDiag(op, fmt.Sprintf("%s: rTask %d reads another part of the pointwise operand %s than it writes",
					c.Inst.Name(), t, r.View.Buf.Name)))
				break
			}
		}
	}
}

// part is the part of the view that an rTask accesses: the lower bounds of all dims, then the upper ones.
func (a *Access) part(task int) []int64 {
	n := len(a.View.Shape)
	out := make([]int64, 2*n)
	if a.Box == nil {
		copy(out[n:], a.View.Shape)
	} else {
		a.Box(task, out[:n], out[n:])
	}
	return out
}

// verifyTiling checks that the boxes that are written are disjoint and cover the whole view. It keeps one bit for
// each element.
func verifyTiling(l *diag.List, op *ROperator, c *Candidate, a Access) {
	seen := make([]uint64, (a.View.Buf.Elems+63)/64)
	total := int64(0)
	var boxes []Box
	for t := 0; t < c.Tasks; t++ {
		var exact bool
		if boxes, exact = a.appendBoxes(boxes[:0], t); !exact {
			l.Add(opDiag(op, fmt.Sprintf("%s: rTask %d writes elements of %s that no exact boxes describe",
				c.Inst.Name(), t, a.View.Buf.Name)))
			return
		}
		for i := range boxes {
			total += boxes[i].Volume()
			if again := a.View.Buf.mark(seen, &boxes[i]); again {
				l.Add(opDiag(op, fmt.Sprintf("%s: rTask %d writes %v of %s again", c.Inst.Name(), t, boxes[i],
					a.View.Buf.Name)))
				return
			}
		}
	}
	if want := a.View.Count(); total != want {
		l.Add(opDiag(op, fmt.Sprintf("%s: rTasks write %d elements of %s, want %d", c.Inst.Name(), total,
			a.View.Buf.Name, want)))
	}
}

// mark sets the bits of the elements of a box, and reports whether one of them was set before.
func (b *Buffer) mark(seen []uint64, x *Box) bool {
	again := false
	var at [MaxDims]int32
	copy(at[:], x.Lo[:])
	last := int(x.N) - 1
	for {
		base := int64(0)
		for i := 0; i < last; i++ {
			base += int64(at[i]) * b.Canon[i]
		}
		for j := int64(x.Lo[last]); j < int64(x.Hi[last]); j++ {
			e := base + j
			if e >= b.Elems {
				return true
			}
			again = again || seen[e/64]&(1<<(e%64)) != 0
			seen[e/64] |= 1 << (e % 64)
		}
		d := last - 1
		for ; d >= 0; d-- {
			if at[d]++; at[d] < x.Hi[d] {
				break
			}
			at[d] = x.Lo[d]
		}
		if d < 0 {
			return again
		}
	}
}
