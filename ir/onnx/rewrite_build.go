package onnx

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Building blocks of rules that take an operator apart into others.

// arity refuses a node with fewer or more inputs than the operator has; the first need of them must be there.
func (c *rewriting) arity(need, most int) bool {
	if len(c.n.Inputs) > most {
		c.refuse("bad-arity", fmt.Sprintf("input %d", most), "", "the operator has only %d inputs", most)
		return false
	}
	for i := range need {
		if c.n.Input(i) == nil {
			c.refuse("missing-input", fmt.Sprintf("input %d", i), "", "the input is absent, the operator needs it")
		}
	}
	return !c.refused
}

// finish hands values to the node's outputs; nothing is left of the node itself. Attributes that the
// rule did not take are mistakes.
func (c *rewriting) finish(values ...*ir.Value) {
	for _, name := range sortedKeys(c.n.Attrs) {
		c.refuse("bad-attribute", "attribute "+name, "", "the operator has no such attribute, or it is of another kind")
	}
	if len(c.n.Outputs) > len(values) {
		c.refuse("bad-arity", fmt.Sprintf("output %d", len(values)), "", "the operator has only %d outputs", len(values))
	}
	if c.refused {
		return
	}
	for i, out := range c.n.Outputs {
		if out == nil {
			continue
		}
		if values[i] == nil {
			panic("BUG: a rule gives no value for an output")
		}
		c.emitTo(out, "Identity", nil, values[i])
	}
	c.dropped = true
}

func (c *rewriting) takeString(name, def string, legal ...string) string {
	a, ok := c.take(name, ir.AttrString)
	if !ok {
		return def
	}
	if !slices.Contains(legal, a.S) {
		c.refuse("bad-attribute", "attribute "+name, "", "the value %q is unknown, wanted one of %q", a.S, legal)
	}
	return a.S
}

// takeType takes an attribute that holds an element type; absent and 0 give def.
func (c *rewriting) takeType(name string, def ir.DType) ir.DType {
	code := c.takeInt(name, 0)
	if code == 0 {
		return def
	}
	if code != int64(int32(code)) {
		c.refuse("bad-attribute", "attribute "+name, "", "the element type %d is unknown", code)
		return def
	}
	d, err := parseDType(int32(code))
	if err != nil {
		c.refuse(typeID(err), "attribute "+name, "", "%v", err)
		return def
	}
	return d
}

// cast converts x; d is also its type when it is that already.
func (c *rewriting) cast(x *ir.Value, d ir.DType) *ir.Value {
	if c.s.typeOf(x).dtype == d {
		return x
	}
	return c.emit("Cast", ir.Attrs{"to": ir.IntAttr(d.ONNX())}, x)
}

func (c *rewriting) transpose(x *ir.Value, perm ...int64) *ir.Value {
	return c.emit("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, x)
}

// reshape takes 0 for the extent of x and -1 for the rest.
func (c *rewriting) reshape(x *ir.Value, dims ...int64) *ir.Value {
	return c.emit("Reshape", nil, x, c.ints("shape", dims...))
}

func (c *rewriting) unsqueeze(x *ir.Value, axes ...int64) *ir.Value {
	if len(axes) == 0 {
		return x
	}
	return c.emit("Unsqueeze", nil, x, c.ints("axes", axes...))
}

func (c *rewriting) squeeze(x *ir.Value, axes ...int64) *ir.Value {
	return c.emit("Squeeze", nil, x, c.ints("axes", axes...))
}

// slice cuts [start, end) out of an axis.
func (c *rewriting) slice(x *ir.Value, axis, start, end int64) *ir.Value {
	return c.emit("Slice", nil, x, c.ints("starts", start), c.ints("ends", end), c.ints("axes", axis))
}

func (c *rewriting) concat(axis int64, parts ...*ir.Value) *ir.Value {
	return c.emit("Concat", axisAttr(axis), parts...)
}

// halves splits an axis into two equal parts.
func (c *rewriting) halves(x *ir.Value, axis int64) (a, b *ir.Value) {
	a = &ir.Value{Name: c.s.im.namer.Fresh(c.p.name + "/first")}
	b = &ir.Value{Name: c.s.im.namer.Fresh(c.p.name + "/second")}
	c.s.emit(&ir.Node{
		Op: "Split", Name: c.p.name, Attrs: ir.Attrs{"axis": ir.IntAttr(axis), "num_outputs": ir.IntAttr(2)},
		Inputs: []*ir.Value{x}, Outputs: []*ir.Value{a, b}, Origins: c.p.origin(),
	})
	return a, b
}

// extentOf is the extent of x along axis as a list of one, a constant where it is known.
func (c *rewriting) extentOf(x *ir.Value, axis int) *ir.Value {
	if n, ok := c.knownExtent(x, axis); ok {
		return c.ints("extent", n)
	}
	return c.extent(x, int64(axis))
}

func (c *rewriting) knownExtent(x *ir.Value, axis int) (int64, bool) {
	s := c.inferredShape(x)
	if axis >= len(s) {
		return 0, false
	}
	return s[axis].Const()
}

// dimOf is the extent of x along axis as a graph knows it; false when not even a symbol is known.
func (c *rewriting) dimOf(x *ir.Value, axis int) (ir.Dim, bool) {
	s := c.inferredShape(x)
	if axis >= len(s) {
		return ir.Dim{}, false
	}
	return s[axis], true
}

// countTo is the list 0, 1, … below n, a list of one.
func (c *rewriting) countTo(n *ir.Value) *ir.Value {
	if n.Const != nil && n.DType == ir.Int64 && n.Const.Len() == 1 {
		if k := ir.Slice[int64](n.Const)[0]; k >= 0 && k <= 4096 {
			return c.ints("count", upTo(0, k)...)
		}
	}
	return c.emit("Range", nil, c.int64("start", 0), c.squeeze(n, 0), c.int64("step", 1))
}

// int64 adds a constant of rank 0.
func (c *rewriting) int64(name string, x int64) *ir.Value {
	return c.constant(name, ir.FromSlice(ir.Int64, []int64{x}))
}

// number adds a constant of rank 0 of a floating-point type.
func (c *rewriting) number(name string, x float64, d ir.DType) *ir.Value {
	t, ok := fill(d, x, nil)
	if !ok {
		c.refuse("bad-type", "", "", "the element type %v is not supported here", d)
		return nil
	}
	return c.constant(name, t)
}

// rankOf is the rank of an input that a rule depends on; the node is refused unless it is one of legal.
func (c *rewriting) rankOf(i int, legal ...int) (int, bool) {
	shape, ok := c.shapeOf(c.n.Input(i))
	if !ok {
		return 0, false
	}
	if len(legal) > 0 && !slices.Contains(legal, len(shape)) {
		c.refuse("bad-rank", fmt.Sprintf("input %d", i), "", "the rank is %d, wanted one of %v", len(shape), legal)
		return 0, false
	}
	return len(shape), true
}
