package graphopt

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// commonSubexpressions merges nodes of one graph that apply the same operator with the same attributes to the same
// inputs, and constants with the same elements.
//
// Requires: nothing. Leaves: two such nodes only where both results are outputs of the model, whose names must stay.
func commonSubexpressions(c *Context, g *ir.Graph) (bool, error) {
	merged := c.mergeConstants(g)
	known := map[string]*ir.Node{}
	changed := c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		key, ok := expressionKey(n)
		if !ok {
			return
		}
		first := known[key]
		if first == nil {
			known[key] = n
			return
		}
		if len(n.Outputs) == 1 {
			s.forward(first.Outputs[0])
			return
		}
		s.forwardAll(first)
	})
	return merged || changed, nil
}

// forwardAll is forward for a node with several results: all of them are replaced by those of first.
func (s *sweep) forwardAll(first *ir.Node) {
	n := s.node
	for i, v := range n.Outputs {
		if v != nil && (s.output[v] || first.Output(i) == nil) {
			return
		}
	}
	for i, v := range n.Outputs {
		if v != nil {
			s.by[v] = first.Outputs[i]
			s.uses[first.Outputs[i]] += s.uses[v]
		}
	}
	s.count(n.Inputs, -1)
	first.Origins = mergeOrigins(first, n)
	s.drop, s.changed = true, true
}

// expressionKey is a text that is equal for nodes that compute the same. Attributes that a node leaves out count with
// their defaults. ok is false for nodes with graphs as attributes, which are not compared.
func expressionKey(n *ir.Node) (key string, ok bool) {
	op := ir.LookupOp(n.Domain, n.Op)
	if op == nil || len(n.Outputs) == 0 {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%s/%d", n.Domain, n.Op, len(n.Outputs))
	for _, spec := range op.Attrs {
		a := n.Attr(spec.Name)
		if a.Kind == ir.AttrGraph {
			return "", false
		}
		fmt.Fprintf(&b, ";%s=%s", spec.Name, attrKey(a))
	}
	names := make([]string, len(n.Inputs))
	for i, v := range n.Inputs {
		if v != nil {
			names[i] = fmt.Sprintf("%q", v.Name)
		}
	}
	if commutes(n) {
		slices.Sort(names)
	}
	fmt.Fprintf(&b, "(%s)", strings.Join(names, ","))
	return b.String(), true
}

// attrKey is a text that is equal for equal attributes; floats are compared by their bits.
func attrKey(a ir.Attr) string {
	if a.Kind == ir.AttrTensor {
		return a.T.Hash()
	}
	floats := make([]uint64, len(a.Floats))
	for i, f := range a.Floats {
		floats[i] = math.Float64bits(f)
	}
	return fmt.Sprintf("%d %d %x %q %d %x %q", a.Kind, a.I, math.Float64bits(a.F), a.S, a.Ints, floats, a.Strs)
}

// commutes reports whether n's result is independent of the order of its two inputs, also in the sign of a zero. Min
// and Max are not among these operators, since their result for 0 and -0 may depend on the order.
func commutes(n *ir.Node) bool {
	switch n.Op {
	case "Add", "Mul", "And", "Or", "Xor", "Equal":
		return n.Domain == "" && len(n.Inputs) == 2
	}
	return false
}

// mergeConstants replaces equal constants of g by one of them.
func (c *Context) mergeConstants(g *ir.Graph) bool {
	by := map[*ir.Value]*ir.Value{}
	known := map[string][]*ir.Value{}
	for _, v := range g.Consts {
		if slices.Contains(c.Root.Outputs, v) {
			continue
		}
		key := sketch(v.Const)
		i := slices.IndexFunc(known[key], func(o *ir.Value) bool { return equalTensors(o.Const, v.Const) })
		if i >= 0 {
			by[v] = known[key][i]
		} else {
			known[key] = append(known[key], v)
		}
	}
	if len(by) == 0 {
		return false
	}
	g.Consts = slices.DeleteFunc(slices.Clone(g.Consts), func(v *ir.Value) bool { return by[v] != nil })
	ir.ReplaceMany(c.Root, by)
	return true
}

// sketch is a text that is equal for equal tensors. It contains only few elements, so that it is cheap for large
// tensors, and unequal tensors may have the same one.
func sketch(t *ir.Tensor) string {
	const samples = 16
	data := reflect.ValueOf(t.Data)
	var b strings.Builder
	fmt.Fprintf(&b, "%v%v", t.DType, t.Dims)
	for i := range min(samples, data.Len()) {
		fmt.Fprintf(&b, " %v", data.Index(i*data.Len()/min(samples, data.Len())))
	}
	return b.String()
}

// equalTensors compares types, dims and the bits of the elements: 0 and -0 are different, and a NaN equals itself.
func equalTensors(a, b *ir.Tensor) bool {
	if a.DType != b.DType || !slices.Equal(a.Dims, b.Dims) {
		return false
	}
	switch x := a.Data.(type) {
	case []float32:
		return slices.EqualFunc(x, b.Data.([]float32),
			func(p, q float32) bool { return math.Float32bits(p) == math.Float32bits(q) })
	case []float64:
		return slices.EqualFunc(x, b.Data.([]float64),
			func(p, q float64) bool { return math.Float64bits(p) == math.Float64bits(q) })
	}
	return reflect.DeepEqual(a.Data, b.Data)
}
