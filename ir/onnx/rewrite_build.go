package onnx

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Building blocks of rules that write an operator out as others.

// arity reports whether the node has at most most inputs, of which the first need are not absent. Otherwise it refuses
// the node.
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

// finish ends a rule that writes the operator out: values are what the node's outputs become, by Identity nodes, and
// the node itself is dropped. Attributes that the rule has not taken are reported, because the operator has none of
// these names or the attribute is of another kind.
func (c *rewriting) finish(values ...*ir.Value) {
	for _, name := range sortedKeys(c.n.Attrs) {
		c.refuse("bad-attribute", "attribute "+name, "", "the operator has no such attribute, or it is of another kind")
	}
	if len(c.n.Outputs) > len(values) {
		c.refuse("bad-arity", fmt.Sprintf("output %d", len(values)), "", "the operator has only %d outputs",
			len(values))
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

// takeString removes a string attribute and returns it, or def if it is absent. A value other than the legal ones is
// reported.
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

// takeType removes an attribute that holds the number of an element type and returns the type, or def if the attribute
// is absent or 0.
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

// cast converts x to the element type d. If x has it already, cast returns x itself.
func (c *rewriting) cast(x *ir.Value, d ir.DType) *ir.Value {
	if c.s.typeOf(x).dtype == d {
		return x
	}
	return c.emit("Cast", ir.Attrs{"to": ir.IntAttr(d.ONNX())}, x)
}

func (c *rewriting) transpose(x *ir.Value, perm ...int64) *ir.Value {
	return c.emit("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, x)
}

// reshape gives x another shape; 0 keeps the extent of x on the same axis and -1 is inferred, as in Reshape.
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

// slice is the part [start, end) of x along axis.
func (c *rewriting) slice(x *ir.Value, axis, start, end int64) *ir.Value {
	return c.emit("Slice", nil, x, c.ints("starts", start), c.ints("ends", end), c.ints("axes", axis))
}

func (c *rewriting) concat(axis int64, parts ...*ir.Value) *ir.Value {
	return c.emit("Concat", axisAttr(axis), parts...)
}

// halves splits x along axis into two equal parts.
func (c *rewriting) halves(x *ir.Value, axis int64) (a, b *ir.Value) {
	a = &ir.Value{Name: c.s.im.namer.Fresh(c.p.name + "/first")}
	b = &ir.Value{Name: c.s.im.namer.Fresh(c.p.name + "/second")}
	c.s.emit(&ir.Node{
		Op: "Split", Name: c.p.name, Attrs: ir.Attrs{"axis": ir.IntAttr(axis), "num_outputs": ir.IntAttr(2)},
		Inputs: []*ir.Value{x}, Outputs: []*ir.Value{a, b}, Origins: c.p.origin(),
	})
	return a, b
}

// extentOf is the extent of x along axis as a list of one element: a constant if it is known, else computed by Shape.
func (c *rewriting) extentOf(x *ir.Value, axis int) *ir.Value {
	if n, ok := c.knownExtent(x, axis); ok {
		return c.ints("extent", n)
	}
	return c.extent(x, int64(axis))
}

// knownExtent is the extent of x along axis; ok is false unless it is a known constant.
func (c *rewriting) knownExtent(x *ir.Value, axis int) (int64, bool) {
	s := c.inferredShape(x)
	if axis >= len(s) {
		return 0, false
	}
	return s[axis].Const()
}

// dimOf is the extent of x along axis, a constant or an expression; ok is false when nothing is known of it.
func (c *rewriting) dimOf(x *ir.Value, axis int) (ir.Dim, bool) {
	s := c.inferredShape(x)
	if axis >= len(s) {
		return ir.Dim{}, false
	}
	return s[axis], true
}

// countTo is the list 0, 1, …, n-1, where n is a list of one element. Short lists are constants.
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

// rankOf is the rank of input i, on which a rule depends. The node is refused if the rank is not known or not one of
// legal.
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
