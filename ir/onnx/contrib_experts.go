package onnx

import (
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
)

// expertsRule writes out a mixture of experts. Each expert is a network of two or three products. The router gives each
// token a number for each expert; the k experts with the largest ones compute, and their results are added up with the
// softmax of these numbers as weights. All experts are written out for all tokens, and the weights of the others are 0.
type expertsRule struct {
	w          *rewriting
	weights    [3]*ir.Value // of the products fc1, fc2, fc3: [experts][outputs][inputs]; fc3 may be nil
	biases     [3]*ir.Value // [experts][outputs], nil for none
	mixing     *ir.Value    // numbers for weights, where they are others than the router's; [tokens][experts]
	k          int64
	normalize  bool // the weights of the k experts add up to 1
	activation string
	fusion     int64 // where SwiGLU's two parts are: 0 in fc1 and fc3, 1 alternating in fc1, 2 in its halves
	alpha      float64
	beta       float64
	limit      float64 // of SwiGLU's operands, 0 for none
}

// experts rewrites MoE.
func experts(c *rewriting) {
	if !c.arity(3, 8) || !c.needs(4) {
		return
	}
	e := &expertsRule{w: c}
	for i := range e.weights {
		e.weights[i], e.biases[i] = c.n.Input(2+2*i), c.n.Input(3+2*i)
	}
	e.finishExperts()
}

// quantizedExperts rewrites QMoE, whose weights are quantised, packed into bytes, and constant.
func quantizedExperts(c *rewriting) {
	if !c.arity(4, 15) || !c.needs(5, 6) {
		return
	}
	e := &expertsRule{w: c, mixing: c.n.Input(14)}
	e.normalize = e.mixing == nil // the weights of the selected experts are a softmax among these
	bits, block := c.takeInt("expert_weight_bits", 4), c.takeInt("block_size", 0)
	c.takeInt("accuracy_level", 0)
	if kind := c.takeString("quant_type", "int", "int", "fp4", "nvfp4", "fp8", "wfp4afp8"); kind != "int" {
		c.refuse("unsupported-op", "attribute quant_type", "", "weights of type %s are not supported", kind)
	}
	if c.takeInt("weights_prepacked", -1) == 1 {
		c.refuse("unsupported-op", "attribute weights_prepacked", "",
			"weights in the layout of one device are not supported")
	}
	for i := range e.weights {
		own := c.takeInt(fmt.Sprintf("fc%d_expert_weight_bits", i+1), bits)
		if c.n.Input(2+3*i) == nil || c.refused {
			continue
		}
		e.weights[i], e.biases[i] = e.dequantizedWeights(2+3*i, 11+i, own, block), c.n.Input(4+3*i)
	}
	if !c.refused {
		e.finishExperts()
	}
}

// dequantizedWeights are the weights of input i, with the scales of the input behind it. The zero points of input zeros
// are half of the range if that is absent. There is a scale for each row, or for each block of a row.
func (e *expertsRule) dequantizedWeights(i, zeros int, bits, block int64) *ir.Value {
	c := e.w
	if bits != 2 && bits != 4 && bits != 8 {
		c.refuse("unsupported-op", "attribute expert_weight_bits", "", "weights of %d bits are not supported", bits)
		return nil
	}
	w := c.n.Input(i)
	if bits < 8 {
		w = c.unpacked(i, bits)
	}
	scales := c.n.Input(i + 1)
	shape, ok := c.shapeOf(scales)
	d, ok2 := c.dtypeOf(c.n.Input(0))
	if !ok || !ok2 || c.refused {
		return nil
	}
	zero := c.number("zero", float64(int64(1)<<(bits-1)), ir.Float32)
	if c.n.Input(zeros) != nil {
		points := c.n.Input(zeros)
		if bits < 8 {
			points = c.unpackedTo(zeros, bits, scales)
		}
		zero = c.cast(points, ir.Float32)
	}
	spread := func(v *ir.Value) *ir.Value {
		switch {
		case len(c.inferredShape(v)) == 2:
			return c.unsqueeze(v, 2)
		case len(c.inferredShape(v)) == 3 && block > 0:
			place := c.emit("Div", nil, c.countTo(c.extentOf(w, 2)), c.int64("block", block))
			return c.emit("Gather", axisAttr(2), v, place)
		}
		return v
	}
	if len(shape) == 3 && block < 1 {
		c.refuse("bad-attribute", "attribute block_size", "", "scales of rank 3 need it")
		return nil
	}
	y := c.emit("Sub", nil, c.cast(w, ir.Float32), spread(zero))
	return c.cast(c.emit("Mul", nil, y, spread(c.cast(scales, ir.Float32))), d)
}

func (e *expertsRule) finishExperts() {
	c := e.w
	e.k = c.takeInt("k", 1)
	e.normalize = c.takeInt("normalize_routing_weights", 0) != 0 || e.normalize
	e.activation = c.takeString("activation_type", "relu", "relu", "gelu", "silu", "swiglu", "identity", "relu2",
		"geglu")
	e.fusion = c.takeInt("swiglu_fusion", 0)
	e.alpha, e.beta = c.takeFloat("activation_alpha", 1), c.takeFloat("activation_beta", 0)
	e.limit = c.takeFloat("swiglu_limit", 0)
	for _, name := range []string{"use_sparse_mixer", "swiglu_limit_after_activation"} {
		if c.takeInt(name, 0) != 0 {
			c.refuse("unsupported-op", "attribute "+name, "", "only 0 is supported")
		}
	}
	x := c.n.Input(0)
	count, known := c.knownExtent(e.weights[0], 0)
	width, known2 := c.knownExtent(e.weights[0], 2)
	switch {
	case c.refused:
		return
	case !known || !known2:
		c.later("unknown-extent", "the number of experts cannot be inferred, but the operator's rewriting depends on it")
		return
	case e.k < 1 || e.k > count:
		c.refuse("bad-attribute", "attribute k", "", "there are %d experts, so that %d cannot be selected", count, e.k)
		return
	}
	tokens := c.unsqueeze(c.reshape(x, -1, width), 0) // [1][tokens][width]
	y := e.product(1, e.activated(tokens))            // [experts][tokens][width]
	weights := c.unsqueeze(c.transpose(e.routed(count), 1, 0), 2)
	y = c.emit("ReduceSum", ir.Attrs{"keepdims": ir.IntAttr(0)}, c.emit("Mul", nil, y, weights), c.ints("axes", 0))
	if !c.refused {
		c.finish(c.emit("Reshape", nil, y, c.shapeValue(x)))
	}
}

// product is what product i of each expert makes of x.
func (e *expertsRule) product(i int, x *ir.Value) *ir.Value {
	y := e.w.emit("MatMul", nil, x, e.w.transpose(e.weights[i], 0, 2, 1))
	if e.biases[i] != nil {
		y = e.w.emit("Add", nil, y, e.w.unsqueeze(e.biases[i], 1))
	}
	return y
}

// activated is the input of the second product: a function of the first one or, where there is a third one, its product
// with that.
func (e *expertsRule) activated(tokens *ir.Value) *ir.Value {
	c := e.w
	first := e.product(0, tokens)
	switch e.activation {
	case "swiglu", "geglu":
		return e.gated(first, tokens)
	case "relu":
		first = c.emit("Relu", nil, first)
	case "relu2":
		first = c.emit("Relu", nil, first)
		first = c.emit("Mul", nil, first, first)
	case "gelu":
		first = c.emit("Gelu", ir.Attrs{"approximate": ir.StringAttr("tanh")}, first)
	case "silu":
		first = c.emit("Mul", nil, first, c.emit("Sigmoid", nil, first))
	}
	if e.weights[2] != nil {
		first = c.emit("Mul", nil, first, e.product(2, tokens))
	}
	return first
}

// gated is SwiGLU or GEGLU: the function of one part times the other.
func (e *expertsRule) gated(first, tokens *ir.Value) *ir.Value {
	c := e.w
	var gate, linear *ir.Value
	switch {
	case e.fusion == 1:
		pairs := c.reshape(first, 0, 0, -1, 2)
		a, b := c.halves(pairs, 3)
		gate, linear = c.squeeze(a, 3), c.squeeze(b, 3)
	case e.fusion == 2:
		gate, linear = c.halves(first, 2)
	case e.weights[2] == nil:
		c.refuse("missing-input", "", "", "the weights of fc3 are absent, swiglu_fusion=0 needs them")
		return first
	default:
		gate, linear = first, e.product(2, tokens)
	}
	if e.activation == "geglu" {
		return c.emit("Mul", nil, c.emit("Gelu", ir.Attrs{"approximate": ir.StringAttr("tanh")}, gate), linear)
	}
	if e.limit > 0 {
		least, most := c.scalar("least", -e.limit, gate), c.scalar("most", e.limit, gate)
		gate, linear = c.emit("Min", nil, gate, most), c.emit("Clip", nil, linear, least, most)
	}
	inner := gate
	if e.alpha != 1 {
		inner = c.emit("Mul", nil, gate, c.scalar("alpha", e.alpha, gate))
	}
	if e.beta != 0 {
		linear = c.emit("Add", nil, linear, c.scalar("beta", e.beta, gate))
	}
	return c.emit("Mul", nil, c.emit("Mul", nil, gate, c.emit("Sigmoid", nil, inner)), linear)
}

// routed are the weights of the experts for each token, [tokens][experts], of which k are not 0.
func (e *expertsRule) routed(count int64) *ir.Value {
	c := e.w
	logits := c.n.Input(1)
	d, ok := c.dtypeOf(logits)
	if !ok {
		return nil
	}
	_, best := c.topK(logits, e.k)
	one := c.constant("one", ir.FromSlice(ir.Float32, []float32{0, 1}, 2))
	chosen := c.emit("OneHot", axisAttr(-1), best, c.int64("experts", count), one)
	chosen = c.emit("ReduceSum", ir.Attrs{"keepdims": ir.IntAttr(0)}, chosen, c.ints("axes", 1))
	weights := e.mixing
	if weights == nil {
		weights = c.emit("Softmax", axisAttr(-1), c.cast(logits, ir.Float32))
	}
	weights = c.emit("Mul", nil, c.cast(weights, ir.Float32), chosen)
	if e.normalize {
		sum := c.emit("ReduceSum", nil, weights, c.ints("axes", -1))
		weights = c.emit("Div", nil, weights, c.emit("Max", nil, sum,
			c.number("tiny", math.SmallestNonzeroFloat32, ir.Float32)))
	}
	return c.cast(weights, d)
}

// topK are the k largest elements along the last axis of x, and their indices.
func (c *rewriting) topK(x *ir.Value, k int64) (values, indices *ir.Value) {
	values = &ir.Value{Name: c.s.im.namer.Fresh(c.p.name + "/largest")}
	indices = &ir.Value{Name: c.s.im.namer.Fresh(c.p.name + "/indices")}
	c.s.emit(&ir.Node{
		Op: "TopK", Name: c.p.name, Inputs: []*ir.Value{x, c.ints("k", k)}, Outputs: []*ir.Value{values, indices},
		Origins: c.p.origin(),
	})
	return values, indices
}
