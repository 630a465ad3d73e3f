package eval

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// turns is a loop that is running (ir/ops_repeat.go).
type turns struct {
	turn    int64
	carried []*ir.Tensor   // what the turn before has left; nil in the first one
	rows    [][]*ir.Tensor // of the other inputs of the end, those of each turn so far
}

// repeated is a loop of a graph: the nodes that begin and end it, and all between them that depend on its beginning.
type repeated struct {
	begin, end *ir.Node
	body       []*ir.Node
}

// findLoops fills in p.loops and p.inner. until has, for each inner node, the index of the node that ends the loop.
func (p *plan) findLoops(g *ir.Graph) (until map[*ir.Node]int) {
	p.loops, p.inner, until = map[*ir.Node]*repeated{}, map[*ir.Node]bool{}, map[*ir.Node]int{}
	for i, end := range g.Nodes {
		if !end.IsInternal("RepeatEnd") || end.Inputs[0] == nil || end.Inputs[0].Def == nil {
			continue
		}
		l := &repeated{begin: end.Inputs[0].Def, end: end}
		inside := map[*ir.Node]bool{l.begin: true}
		for _, n := range g.Nodes[:i] {
			inside[n] = inside[n] || slices.ContainsFunc(n.Inputs, func(v *ir.Value) bool {
				return v != nil && v.Def != nil && inside[v.Def]
			})
			if inside[n] && n != l.begin {
				l.body = append(l.body, n)
			}
			if inside[n] {
				p.inner[n], until[n] = true, i
			}
		}
		p.loops[end] = l
	}
	return until
}

// stepOrLoop runs a node, and the whole of a loop when it comes to its end. By then all is there that its body takes
// from outside.
func (r *runner) stepOrLoop(p *plan, n *ir.Node, s *scope) error {
	l := p.loops[n]
	switch {
	case p.inner[n]:
		return nil
	case l == nil:
		return r.step(n, s)
	case r.takeKnown(n, s):
		return nil
	}
	t := &turns{}
	r.turns[l.begin], r.turns[l.end] = t, t
	defer func() { delete(r.turns, l.begin); delete(r.turns, l.end) }()
	nodes := append([]*ir.Node{l.begin}, l.body...)
	for t.turn = range l.end.Int("trips", 1) {
		if t.turn > 0 {
			t.leave(l, s)
		}
		for _, m := range nodes {
			if err := r.compute(m, s); err != nil {
				return err
			}
		}
	}
	return r.compute(l.end, s)
}

// leave notes what a turn leaves to the next one and to the end.
func (t *turns) leave(l *repeated, s *scope) {
	t.carried = nil
	carried := int(l.end.Int("carried", 0))
	for i, v := range l.end.Inputs[1:] {
		x := s.lookup(v)
		if i < carried {
			t.carried = append(t.carried, x)
			continue
		}
		if len(t.rows) <= i-carried {
			t.rows = append(t.rows, nil)
		}
		t.rows[i-carried] = append(t.rows[i-carried], x)
	}
}

// repeatBegin gives a turn its number, what the turn before has left, and its chunks.
func repeatBegin(c *call) []*ir.Tensor {
	t := c.turns()
	trips, carried := c.Attr("trips").I, int(c.Attr("carried").I)
	out := []*ir.Tensor{ir.FromSlice(ir.Int64, []int64{t.turn})}
	for i := range c.in {
		x := c.arg(i)
		switch {
		case i < carried && t.carried != nil:
			out = append(out, t.carried[i])
		case i < carried:
			out = append(out, x)
		default:
			out = append(out, chunkOf(c, x, int(c.Attr("axes").Ints[i-carried]), trips, c.chunk(i-carried, t.turn)))
		}
	}
	return out
}

// turns is the loop that the node belongs to.
func (c *call) turns() *turns {
	t := c.run.turns[c.Node]
	if t == nil {
		fail("it runs only in a graph, with the other end of its loop")
	}
	return t
}

// chunk is which chunk the given turn has of value i.
func (c *call) chunk(i int, turn int64) int64 {
	if c.Attr("reverse").Ints[i] != 0 {
		return c.Attr("trips").I - 1 - turn
	}
	return turn
}

// chunkOf is one of so many equal parts of x along an axis.
func chunkOf(c *call, x *ir.Tensor, axis int, trips, at int64) *ir.Tensor {
	if axis < 0 || axis >= len(x.Dims) || x.Dims[axis]%trips != 0 {
		fail("dims %v have no %d equal parts along axis %d", x.Dims, trips, axis)
	}
	dims := append([]int64{}, x.Dims...)
	dims[axis] /= trips
	strides := make([]int64, len(dims))
	n := int64(1)
	for d := len(dims) - 1; d >= 0; d-- {
		strides[d] = n
		n *= x.Dims[d]
	}
	return viewOf(c, x, at*dims[axis]*strides[axis], dims, strides)
}

// repeatEnd joins what all turns have made.
func repeatEnd(c *call) []*ir.Tensor {
	t := c.turns()
	carried := int(c.Attr("carried").I)
	var out []*ir.Tensor
	for i := range c.in[1:] {
		x := c.arg(i + 1)
		if i < carried {
			out = append(out, x)
			continue
		}
		rows := []*ir.Tensor{x}
		if t.rows != nil {
			rows = append(append([]*ir.Tensor{}, t.rows[i-carried]...), x)
		}
		list := make([]*ir.Tensor, len(rows))
		for turn := range rows {
			list[c.chunk(i-carried, int64(turn))] = rows[turn]
		}
		out = append(out, joined(c, list, int(c.Attr("axes").Ints[i-carried])))
	}
	return out
}
