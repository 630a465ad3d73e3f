package ir

// Operators between which a graph repeats. What lies on a path from a RepeatBegin to its RepeatEnd, its body, is run
// `trips` times:
//
//	%k, %h, %x = rammer.RepeatBegin(%h0, %X)     h0: before the first turn    X: cut into `trips` chunks, x is one of them
//	%next, %y = …(%h, %x)
//	%last, %Y = rammer.RepeatEnd(%k, %next, %y)  last: behind the last turn   Y: the y of all turns, one behind the other
//
// A graph has no edge back from next to h, so all passes see a graph like any other. They may rewrite the body, since
// its values stand for those of any turn. What needs no value of the loop is no part of the body, and is computed
// once.
var repeatOps = []Op{
	{
		Domain: InternalDomain, Name: "RepeatBegin", Since: 1, Kind: KindIndexed, Infer: inferRepeatBegin,
		Inputs:  []Port{{Name: "values", Types: storedTypes, Optional: true, Variadic: true}},
		Outputs: []Port{port("turn", "", int64Type), variadic("inside", "", storedTypes)},
		Attrs:   repeatAttrs,
		Doc: "begins a loop: the number of the turn, the `carried` values of the turn, which begin with those of the inputs, " +
			"and its chunks of the other inputs along `axes`, from the last chunk on where `reverse` is 1",
	},
	{
		Domain: InternalDomain, Name: "RepeatEnd", Since: 1, Kind: KindIndexed, Infer: inferRepeatEnd,
		Inputs:  []Port{port("turn", "", int64Type), variadic("inside", "", storedTypes)},
		Outputs: []Port{variadic("values", "", storedTypes)},
		Attrs:   repeatAttrs,
		Doc: "ends the loop of the RepeatBegin that makes `turn`: the `carried` values behind the last turn, and the other " +
			"inputs of all turns, joined along `axes`, the first one last where `reverse` is 1",
	},
}

// repeatAttrs: each loop of a graph has another number, which keeps passes from joining two of them as equal nodes.
var repeatAttrs = []AttrSpec{
	required("loop", AttrInt), required("trips", AttrInt), intAttr("carried", 0), absent("axes", AttrInts),
	absent("reverse", AttrInts),
}

// repeatLists checks the attributes of a node with so many values of its own, beside the number of the turn.
func repeatLists(c *InferContext, values int) bool {
	carried, axes, reverse := c.int("carried"), c.ints("axes"), c.ints("reverse")
	switch {
	case c.int("trips") < 1:
		return c.badAttr("trips", "the value is %d, wanted at least 1", c.int("trips"))
	case carried < 0 || carried > int64(values):
		return c.badAttr("carried", "the value is %d, but there are %d values", carried, values)
	case len(axes) != values-int(carried) || len(reverse) != len(axes):
		return c.badAttr("axes", "axes and reverse have %d and %d entries, wanted one for each of %d values", len(axes),
			len(reverse), values-int(carried))
	}
	return true
}

func inferRepeatBegin(c *InferContext) {
	n := len(c.Node.Inputs)
	if !repeatLists(c, n) {
		return
	}
	if len(c.Node.Outputs) != n+1 {
		c.Report("bad-arity", "", "the node has %d outputs, wanted one more than its %d inputs", len(c.Node.Outputs), n)
		return
	}
	c.set(0, Shape{})
	carried := int(c.int("carried"))
	for i := range n {
		c.setType(i+1, c.dtype(i))
		shape := c.shape(i)
		if shape == nil || i < carried {
			c.set(i+1, shape)
			continue
		}
		axis, ok := c.axis("attribute axes", c.ints("axes")[i-carried], len(shape))
		if !ok {
			return
		}
		part := append(Shape{}, shape...)
		if extent, known := shape[axis].Const(); known {
			if extent%c.int("trips") != 0 {
				c.badInput("bad-shape", i, "the extent %d of axis %d is no multiple of the %d turns", extent, axis,
					c.int("trips"))
				return
			}
			part[axis] = D(extent / c.int("trips"))
		} else {
			part[axis] = shape[axis].CeilDiv(D(c.int("trips")))
		}
		c.set(i+1, part)
	}
}

func inferRepeatEnd(c *InferContext) {
	n := len(c.Node.Inputs) - 1
	if !repeatLists(c, n) {
		return
	}
	if len(c.Node.Outputs) != n {
		c.Report("bad-arity", "", "the node has %d outputs, wanted one less than its %d inputs", len(c.Node.Outputs), n+1)
		return
	}
	carried := int(c.int("carried"))
	for i := range n {
		c.setType(i, c.dtype(i+1))
		shape := c.shape(i + 1)
		if shape == nil || i < carried {
			c.set(i, shape)
			continue
		}
		axis, ok := c.axis("attribute axes", c.ints("axes")[i-carried], len(shape))
		if !ok {
			return
		}
		whole := append(Shape{}, shape...)
		whole[axis] = c.mul(shape[axis], D(c.int("trips")))
		c.set(i, whole)
	}
}

// Repeat is a loop of a graph: its ends, and the nodes between them in the order of the graph.
type Repeat struct {
	Begin, End *Node
	Body       []*Node
}

// Trips is how many turns the loop has.
func (r *Repeat) Trips() int64 { return r.End.Int("trips", 1) }

// Repeats lists the loops of a graph, in the order of their ends.
func Repeats(g *Graph) []Repeat {
	var out []Repeat
	for i, n := range g.Nodes {
		if n.IsInternal("RepeatEnd") && n.Input(0) != nil && n.Input(0).Def != nil {
			out = append(out, repeatOf(g.Nodes[:i], n))
		}
	}
	return out
}

// repeatOf finds the loop that ends with a node, which stands behind the given ones.
func repeatOf(nodes []*Node, end *Node) Repeat {
	r := Repeat{Begin: end.Inputs[0].Def, End: end}
	inside := map[*Node]bool{r.Begin: true} // reached from the beginning
	for _, n := range nodes {
		for _, v := range n.Inputs {
			if v != nil && v.Def != nil && inside[v.Def] && !n.IsInternal("RepeatEnd") {
				inside[n] = true
			}
		}
	}
	needed := map[*Node]bool{} // reaches the end
	mark := func(n *Node) {
		for _, v := range n.Inputs {
			if v != nil && v.Def != nil && inside[v.Def] {
				needed[v.Def] = true
			}
		}
	}
	mark(end)
	for i := len(nodes) - 1; i >= 0; i-- {
		if needed[nodes[i]] && nodes[i] != r.Begin {
			mark(nodes[i])
		}
	}
	for _, n := range nodes {
		if needed[n] && n != r.Begin {
			r.Body = append(r.Body, n)
		}
	}
	return r
}
