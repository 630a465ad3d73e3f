package onnx

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Operators of ai.onnx.ml that exchange keys for other values. A key is looked up by comparing it with all keys, which
// are few.

// lookup compares x, whose elements are keys, with a list of keys along a new last axis: it is [x…][keys], true where
// they are equal. NaN equals NaN.
func (c *rewriting) lookup(x *ir.Value, keys *ir.Tensor) *ir.Value {
	shape, ok := c.shapeOf(x)
	if !ok {
		return nil
	}
	x = c.unsqueeze(x, int64(len(shape)))
	list := c.constant("keys", keys)
	if keys.DType == ir.Float64 && c.s.typeOf(x).dtype == ir.Float32 {
		list = c.cast(list, ir.Float32)
	}
	same := c.emit("Equal", nil, x, list)
	if slices.ContainsFunc(numbersOf(keys), math.IsNaN) {
		same = c.emit("Or", nil, same, c.emit("And", nil, c.emit("IsNaN", nil, x), c.emit("IsNaN", nil, list)))
	}
	return same
}

// numbersOf are the elements of a list of floats, nil of others.
func numbersOf(t *ir.Tensor) []float64 {
	switch s := t.Data.(type) {
	case []float64:
		return s
	case []float32:
		return widen(s)
	}
	return nil
}

// takeList removes the attribute that holds a list of keys or values: a tensor, or a list whose attribute's name ends
// with the element type. It is nil, and the node refused, if there is none.
func (c *rewriting) takeList(tensor, prefix string) *ir.Tensor {
	if a, ok := c.take(tensor, ir.AttrTensor); ok {
		t := &ir.Tensor{DType: a.T.DType, Dims: []int64{a.T.Len()}, Data: a.T.Data}
		c.s.im.texts.tensors[t] = c.s.im.texts.tensors[a.T]
		return t
	}
	if list := c.takeInts(prefix + "_int64s"); len(list) > 0 {
		return ir.FromSlice(ir.Int64, list, int64(len(list)))
	}
	if a, ok := c.take(prefix+"_strings", ir.AttrStrings); ok && len(a.Strs) > 0 {
		return c.s.im.texts.numbered(a.Strs, int64(len(a.Strs)))
	}
	if list := c.takeFloats(prefix + "_floats"); len(list) > 0 {
		t := ir.NewTensor(ir.Float32, int64(len(list)))
		for i, x := range list {
			ir.Slice[float32](t)[i] = float32(x)
		}
		return t
	}
	c.refuse("bad-attribute", "attribute "+prefix+"_int64s", "", "the attribute is absent, and so are its other forms")
	return nil
}

// labelEncoder exchanges keys for values. Before opset 2 of the domain it exchanged strings for their places in a list,
// or the other way round, as the type of the input says.
func labelEncoder(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	if a, ok := c.take("classes_strings", ir.AttrStrings); ok {
		places := ir.FromSlice(ir.Int64, upTo(0, int64(len(a.Strs))), int64(len(a.Strs)))
		names := c.s.im.texts.numbered(a.Strs, int64(len(a.Strs)))
		if c.s.im.texts.isText(c.n.Input(0)) {
			c.exchange(names, places)
		} else {
			c.exchange(places, names)
		}
		return
	}
	keys := c.takeList("keys_tensor", "keys")
	if c.refused {
		return
	}
	if values := c.takeList("values_tensor", "values"); !c.refused {
		c.exchange(keys, values)
	}
}

// exchange finishes a LabelEncoder.
func (c *rewriting) exchange(keys, values *ir.Tensor) {
	if keys.Len() != values.Len() || keys.Len() == 0 {
		c.refuse("bad-attribute", "attribute keys_tensor", "", "there are %d keys and %d values", keys.Len(), values.Len())
		return
	}
	other := c.defaultOf(values)
	same := c.lookup(c.n.Input(0), keys)
	if c.refused || same == nil {
		return
	}
	last := ir.Attrs{"axis": ir.IntAttr(-1), "keepdims": ir.IntAttr(0)}
	number := c.cast(same, ir.Float32)
	place := c.emit("ArgMax", last, number)
	found := c.emit("ReduceMax", ir.Attrs{"keepdims": ir.IntAttr(0)}, number, c.ints("axes", -1))
	value := c.emit("Gather", axisAttr(0), c.constant("values", values), place)
	c.finish(c.emit("Where", nil, c.cast(found, ir.Bool), value, c.constant("default", other)))
}

// defaultOf takes the attributes that say what keys become that are none of the list.
func (c *rewriting) defaultOf(values *ir.Tensor) *ir.Tensor {
	number, float := c.takeInt("default_int64", -1), c.takeFloat("default_float", 0)
	text, given := c.take("default_string", ir.AttrString)
	if !given {
		text.S = "_Unused"
	}
	if a, ok := c.take("default_tensor", ir.AttrTensor); ok && a.T.DType == values.DType && a.T.Len() == 1 {
		return &ir.Tensor{DType: a.T.DType, Dims: []int64{}, Data: a.T.Data}
	}
	switch {
	case c.s.im.texts.tensors[values]:
		return c.s.im.texts.numbered([]string{text.S})
	case values.DType == ir.Int64:
		return ir.FromSlice(ir.Int64, []int64{number})
	case values.DType == ir.Float32:
		return ir.FromSlice(ir.Float32, []float32{float32(float)})
	}
	return ir.NewTensor(values.DType)
}

// oneHotEncoder is 1 where an element is the category of the last axis, and 0 elsewhere. With zeros = 0 an element that
// is no category is an error, which no program can raise; it becomes zeros all the same.
func oneHotEncoder(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	d, ok := c.dtypeOf(c.n.Input(0))
	if !ok {
		return
	}
	c.takeInt("zeros", 1)
	cats := c.takeList("", "cats")
	if c.refused {
		return
	}
	if ints, ok := cats.Data.([]int64); ok && d != ir.Int64 {
		list := make([]float64, len(ints))
		for i, n := range ints {
			list[i] = float64(n)
		}
		cats = ir.FromSlice(ir.Float64, list, int64(len(list)))
		if d != ir.Float32 {
			c.n.Inputs[0] = c.cast(c.n.Input(0), ir.Float64)
		}
	}
	if same := c.lookup(c.n.Input(0), cats); !c.refused {
		c.finish(c.cast(same, ir.Float32))
	}
}

// zipMap gives each score its label. The program's output are the scores, in the order of the labels; whoever calls it
// knows the labels.
func zipMap(c *rewriting) {
	if !c.arity(1, 1) {
		return
	}
	c.takeInts("classlabels_int64s")
	c.take("classlabels_strings", ir.AttrStrings)
	c.s.im.zipped[c.n.Output(0)] = true
	c.finish(c.n.Input(0))
}
