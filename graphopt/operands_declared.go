package graphopt

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Inputs of the model from which it computes shapes by several operators, such as those that a function is expanded to.

// longestShape is how many extents such an input may have.
const longestShape = 8

// bindShapes makes constants of inputs that are lists of extents, if the model declares the shapes of its outputs and one
// list alone gives these. Its extents are tried in the order in which they stand in a declared shape. A run fails whose
// input is another list.
func bindShapes(c *Context, g *ir.Graph) bool {
	var declared []*ir.Node
	for _, n := range g.Nodes {
		if n.IsInternal("Declared") {
			if _, known := n.Inputs[0].Shape.Consts(); !known {
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
		dims := n.Ints("dims")
		all := subsets(len(dims), min(count, len(dims)+1))
		if len(all) > mostVariants {
			continue
		}
		for _, places := range all {
			list := make([]int64, 0, count)
			for _, p := range places {
				list = append(list, dims[p])
			}
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
	return nil
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

// replaceInput lets all nodes read a list in the place of input v.
func (c *Context) replaceInput(g *ir.Graph, v *ir.Value, list []int64) *ir.Value {
	m := newMaker(g, c.names, &ir.Node{Name: v.Name})
	all := m.constant("declared", ir.FromSlice(ir.Int64, list, int64(len(list))))
	ir.ReplaceMany(g, map[*ir.Value]*ir.Value{v: all})
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
	numbers := op("", "Cast", ir.Attrs{"to": ir.IntAttr(ir.Int64.ONNX())}, ir.Int64, count, differ)
	sum := op("", "ReduceSum", nil, ir.Int64, 1, numbers, m.constant("axis", ir.FromSlice(ir.Int64, []int64{0}, 1)))
	op(ir.InternalDomain, "Require", ir.Attrs{"message": ir.StringAttr(fmt.Sprintf(
		"input %s: the shapes that the model declares want %v", v.Name, list))}, ir.Int64, 1, sum)
	g.Nodes = append(g.Nodes, m.nodes...)
	c.forget()
}
