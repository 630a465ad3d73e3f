package graphopt

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Inputs of the model from which it computes shapes by several operators, such as those that a function is expanded to.

const (
	longestShape = 8  // how many extents such an input may have
	mostLists    = 64 // how many lists of extents are tried
	anyExtent    = -1 // an extent of a list that may be any number: no shape depends on it
)

// bindShapes makes constants of inputs that are lists of extents, if the model declares the shapes of its outputs and one
// list alone gives these. Its extents are tried in the order in which they stand in a declared shape; one of them may be
// a number that is in none, such as how many channels an image has of which a grid is made. A run fails whose input is
// another list.
func bindShapes(c *Context, g *ir.Graph) bool {
	var declared []*ir.Node
	for _, n := range g.Nodes {
		if n.IsInternal("Declared") {
			if _, known := n.Inputs[0].Shape.Consts(); !known || n.Inputs[0].Shape == nil {
				declared = append(declared, n)
			}
		}
	}
	if len(declared) == 0 {
		return false
	}
	uses, changed := c.usesIn(g), false
	for i, v := range g.Inputs {
		dims, ok := v.Shape.Consts()
		if !ok || len(dims) != 1 || dims[0] < 1 || dims[0] > longestShape || v.DType != ir.Int64 ||
			slices.ContainsFunc(uses[v], readByRule) {
			continue
		}
		if list := onlyShape(c, g, i, declared); list != nil {
			c.bindInput(g, v, list)
			changed = true
		}
	}
	return changed
}

// readByRule reports whether an operator reads the value where read-operands has a rule for it.
func readByRule(u ir.Use) bool {
	return u.Node != nil && u.Node.Domain == "" && operandRules[u.Node.Op] != nil &&
		slices.Contains(ir.ShapePorts[u.Node.Op], u.Index)
}

// onlyShape is the one list of extents with which input i gives all declared shapes, nil if there is none or several.
func onlyShape(c *Context, g *ir.Graph, i int, declared []*ir.Node) []int64 {
	count := int(g.Inputs[i].Shape.MustConsts()[0])
	var fitting []int64
	for _, n := range declared {
		whole := sublists(n.Ints("dims"), count)
		var some [][]int64
		for _, list := range sublists(n.Ints("dims"), count-1) {
			for at := range count {
				some = append(some, slices.Insert(slices.Clone(list), at, anyExtent))
			}
		}
		for _, lists := range [][][]int64{whole, some} {
			if len(lists) > mostLists {
				continue
			}
			for _, list := range lists {
				if slices.Equal(list, fitting) || !givesShapes(c, g, i, list) {
					continue
				}
				if fitting != nil {
					return nil
				}
				fitting = list
			}
			if fitting != nil {
				return fitting
			}
		}
	}
	return nil
}

// sublists are the lists of count of the extents, in their order.
func sublists(dims []int64, count int) [][]int64 {
	var out [][]int64
	for _, places := range subsets(len(dims), min(count, len(dims)+1)) {
		list := make([]int64, 0, count)
		for _, p := range places {
			list = append(list, dims[p])
		}
		out = append(out, list)
	}
	return out
}

// givesShapes reports whether all declared shapes are those of the graph where input i is a list.
func givesShapes(c *Context, g *ir.Graph, i int, list []int64) bool {
	h := ir.Clone(g)
	newContext(h, c.Opts, c.kernels).replaceInput(h, h.Inputs[i], list)
	opts := c.Opts
	opts.After, opts.Check, opts.Disable = nil, false, nil
	err := runPasses(h, []Pass{
		{"fold-constants", foldConstants, "shapes follow from the list"},
		{"inline-branches", inlineBranches, "so do conditions"},
		{"fold-constants", foldConstants, "and what is computed behind them"},
		{"inline-branches", inlineBranches, "those of branches among them"},
		{"fold-constants", foldConstants, "as before"},
	}, opts)
	if err != nil {
		return false
	}
	for _, n := range h.Nodes {
		if n.IsInternal("Declared") {
			if dims, ok := n.Inputs[0].Shape.Consts(); !ok || !slices.Equal(dims, n.Ints("dims")) {
				return false
			}
		}
	}
	return true
}

// replaceInput lets all nodes read a list in the place of input v, of which they get the extent that may be any.
func (c *Context) replaceInput(g *ir.Graph, v *ir.Value, list []int64) *ir.Value {
	m := newMaker(g, c.names, &ir.Node{Name: v.Name})
	number := func(n ...int64) *ir.Value {
		return m.constant("declared", ir.FromSlice(ir.Int64, n, int64(len(n))))
	}
	all := number(list...)
	at := slices.Index(list, anyExtent)
	if at < 0 {
		ir.ReplaceMany(g, map[*ir.Value]*ir.Value{v: all})
		return all
	}
	one, joined := m.value("any", ir.Int64, ir.Dims(1)), m.value("joined", ir.Int64, v.Shape)
	ir.ReplaceMany(g, map[*ir.Value]*ir.Value{v: joined})
	m.node("any", "", "Gather", nil, []*ir.Value{v, number(int64(at))}, []*ir.Value{one})
	var parts []*ir.Value
	for _, part := range []*ir.Value{number(list[:at]...), one, number(list[at+1:]...)} {
		if n, _ := part.Shape[0].Const(); n > 0 {
			parts = append(parts, part)
		}
	}
	m.node("joined", "", "Concat", axisAttr(0), parts, []*ir.Value{joined})
	g.Nodes = slices.Insert(g.Nodes, 0, m.nodes...)
	c.forget()
	return all
}

// bindInput gives all nodes the list in the place of an input, and lets runs fail in which it is another one.
func (c *Context) bindInput(g *ir.Graph, v *ir.Value, list []int64) {
	fixed := c.replaceInput(g, v, list)
	m := newMaker(g, c.names, &ir.Node{Name: v.Name})
	op := func(domain, op string, attrs ir.Attrs, t ir.DType, extent int64, in ...*ir.Value) *ir.Value {
		y := m.value(op, t, ir.Dims(extent))
		m.node(op, domain, op, attrs, in, []*ir.Value{y})
		return y
	}
	count := int64(len(list))
	differ := op("", "Not", nil, ir.Bool, count, op("", "Equal", nil, ir.Bool, count, v, fixed))
	if at := slices.Index(list, anyExtent); at >= 0 {
		matters := slices.Repeat([]bool{true}, len(list))
		matters[at] = false
		differ = op("", "And", nil, ir.Bool, count, differ, m.constant("matters", ir.FromSlice(ir.Bool, matters, count)))
	}
	numbers := op("", "Cast", ir.Attrs{"to": ir.IntAttr(ir.Int64.ONNX())}, ir.Int64, count, differ)
	sum := op("", "ReduceSum", nil, ir.Int64, 1, numbers, m.constant("axis", ir.FromSlice(ir.Int64, []int64{0}, 1)))
	op(ir.InternalDomain, "Require", ir.Attrs{"message": ir.StringAttr(fmt.Sprintf(
		"input %s: the shapes that the model declares want %v", v.Name, list))}, ir.Int64, 1, sum)
	g.Nodes = append(g.Nodes, m.nodes...)
	c.forget()
}
