package onnx

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// The operators of ONNX Runtime's own domain, com.microsoft: what its optimiser fuses, what its quantiser writes, and
// what its builders of language models export. contrib_*.go have the rules.

// contribDomain is the domain of ONNX Runtime's own operators.
const contribDomain = "com.microsoft"

// What several rules say about themselves.
const (
	asStandard = "the standard operator of this name"
	asFormula  = "written out as its formula"
	between    = "computed between dequantisation and quantisation"
	exactly32  = "written out as a MatMul in int32, whose result is scaled"
	softmaxed  = "written out as a softmax between two products"
)

var contribRules = []rule{
	{"Attention", 1, always, contribAttention, softmaxed},
	{"BiasAdd", 1, always, biasAdd, asFormula},
	{"BiasGelu", 1, always, gelu("none"), asFormula},
	{"BiasSoftmax", 1, always, biasSoftmax, asFormula},
	{"BiasSplitGelu", 1, always, biasSplitGelu, asFormula},
	{"DequantizeLinear", 1, always, dequantizeLinear, asFormula},
	{"DynamicQuantizeLSTM", 1, always, quantizedLSTM, "written out as a Scan of steps with exact products"},
	{"DynamicQuantizeMatMul", 1, always, dynamicQuantizeMatMul, exactly32},
	{"EmbedLayerNormalization", 1, always, embedLayerNorm, "written out as the LayerNormalization of a sum of rows"},
	{"FastGelu", 1, always, gelu("tanh"), asFormula},
	{"FusedConv", 1, always, fusedConv, "Conv, a sum and an activation"},
	{"FusedGemm", 1, always, fusedGemm, "Gemm and an activation"},
	{"FusedMatMul", 1, always, fusedMatMul, "Transpose, MatMul and a factor"},
	{"FusedMatMulActivation", 1, always, fusedMatMul, "FusedMatMul and an activation"},
	{"GatherBlockQuantized", 1, always, gatherBlockQuantized, "Gather, whose result is dequantised"},
	{"Gelu", 1, always, gelu("none"), asStandard},
	{"GemmFastGelu", 1, always, gemmFastGelu, "MatMul, a sum and Gelu"},
	{"GroupNorm", 1, always, contribGroupNorm, "written out as an InstanceNormalization of the groups"},
	{"GroupQueryAttention", 1, always, groupQueryAttention, softmaxed},
	{"MatMulInteger16", 1, always, matMulInteger16, "MatMul in int32"},
	{"MatMulIntegerToFloat", 1, always, matMulIntegerToFloat, exactly32},
	{"MatMulNBits", 1, always, matMulNBits, "written out as DequantizeLinear of the weights, and MatMul"},
	{"MoE", 1, always, experts, "written out as products of all experts, of which those that are selected count"},
	{"MultiHeadAttention", 1, always, multiHeadAttention, softmaxed},
	{"NhwcConv", 1, always, nhwcConv, "Conv between two Transposes"},
	{"NhwcFusedConv", 1, always, nhwcConv, "Conv and an activation between two Transposes"},
	{"NhwcMaxPool", 1, always, nhwcMaxPool, "MaxPool between two Transposes"},
	{"PackedAttention", 1, always, packedAttention, softmaxed},
	{"QAttention", 1, always, quantizedAttention, softmaxed},
	{"QGemm", 1, always, qGemm, exactly32},
	{"QLinearAdd", 1, always, qlinearBinary("Add"), between},
	{"QLinearAveragePool", 1, always,
		qlinearPool("AveragePool", "auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"),
		between},
	{"QLinearConcat", 1, always, qlinearConcat, between},
	{"QLinearConv", 1, always, contribQLinearConv, asStandard},
	{"QLinearGlobalAveragePool", 1, always, qlinearPool("GlobalAveragePool"), between},
	{"QLinearLeakyRelu", 1, always, qlinearUnary("LeakyRelu", "alpha"), between},
	{"QLinearMul", 1, always, qlinearBinary("Mul"), between},
	{"QLinearReduceMean", 1, always, qlinearReduceMean, between},
	{"QLinearSigmoid", 1, always, qlinearUnary("Sigmoid"), between},
	{"QLinearSoftmax", 1, always, qlinearSoftmax, between},
	{"QLinearWhere", 1, always, qlinearWhere, between},
	{"QMoE", 1, always, quantizedExperts, "written out as MoE of dequantised weights"},
	{"QuantizeLinear", 1, always, quantizeLinear, asFormula},
	{"QuickGelu", 1, always, quickGelu, asFormula},
	{"RotaryEmbedding", 1, always, contribRotary, asFormula},
	{"SkipGroupNorm", 1, always, contribGroupNorm, "a sum and GroupNorm"},
	{"SkipLayerNormalization", 1, always, skipNorm(false), "a sum and LayerNormalization"},
	{"SkipSimplifiedLayerNormalization", 1, always, skipNorm(true), "a sum and RMSNormalization"},
	{"TransposeMatMul", 1, always, fusedMatMul, "FusedMatMul, its newer name"},
}

// matMulNBits is A[…,K]·Wᵀ + bias, where W[N,K] has 4 or 8 bits, a scale for each row and block of it, and zero points,
// which are half of the range by default. B holds W by rows and blocks, the last of which is padded; weights of 4 bits
// are packed two to a byte, the first in the lower half.
func matMulNBits(c *rewriting) {
	if !c.arity(3, 6) {
		return
	}
	k, n := c.takeInt("K", 0), c.takeInt("N", 0)
	bits, block := c.takeInt("bits", 4), c.takeInt("block_size", 0)
	delete(c.n.Attrs, "accuracy_level") // how exact ONNX Runtime has to be at least
	a, scale := c.n.Input(0), c.n.Input(2)
	d, ok := c.dtypeOf(a)
	switch {
	case !ok:
		return
	case c.n.Input(4) != nil:
		c.refuse("unsupported-op", "input 4 (g_idx)", "", "groups of reordered weights are not supported")
	case bits != 4 && bits != 8:
		c.refuse("bad-attribute", "attribute bits", "", "weights of %d bits are not supported, wanted 4 or 8", bits)
	case block < 16 || block&(block-1) != 0 || block > 1<<20:
		c.refuse("bad-attribute", "attribute block_size", "", "blocks of %d weights are not possible", block)
	case k < 1 || n < 1 || k > math.MaxInt32 || n > math.MaxInt32:
		c.refuse("bad-attribute", "attribute K", "", "weights of %d rows and %d columns are not possible", k, n)
	}
	if c.refused {
		return
	}
	blocks := (k + block - 1) / block
	w := c.packedWeights(1, n, blocks*block, bits)
	zero := c.number("zero", float64(int(1)<<(bits-1)), ir.Float32)
	if c.n.Input(3) != nil {
		if t, ok := c.dtypeOf(c.n.Input(3)); ok && t.IsFloat() {
			zero = c.cast(c.reshaped(c.n.Input(3), n, blocks), ir.Float32)
		} else if points := c.packedWeights(3, n, blocks, bits); points != nil {
			zero = c.cast(c.constant("zero_points", points), ir.Float32)
		}
	}
	if c.refused {
		return
	}
	wide := c.constant("weights", columnsOf(w, k))
	g := granularity{x: wide, axis: 1, block: block}
	y := c.emit("Sub", nil, c.cast(wide, ir.Float32), c.aligned(zero, g))
	y = c.emit("Mul", nil, y, c.aligned(c.cast(c.reshaped(scale, n, blocks), ir.Float32), g))
	y = c.emit("MatMul", nil, a, c.transpose(c.cast(y, d), 1, 0))
	if bias := c.n.Input(5); bias != nil {
		y = c.emit("Add", nil, y, bias)
	}
	c.finish(y)
}

// reshaped is x as a matrix.
func (c *rewriting) reshaped(x *ir.Value, rows, columns int64) *ir.Value {
	return c.emit("Reshape", nil, x, c.ints("shape", rows, columns))
}

// packedWeights reads input i, constant bytes, as a matrix of unsigned integers of bits bits, each row of which begins
// with a new byte.
func (c *rewriting) packedWeights(i int, rows, columns, bits int64) *ir.Tensor {
	v := c.n.Input(i)
	if v.Const == nil {
		c.refuse("not-constant", "input", "", "input %d must be a constant", i)
		return nil
	}
	packed, ok := v.Const.Data.([]uint8)
	stride := (columns*bits + 7) / 8
	if !ok || int64(len(packed)) != rows*stride {
		c.refuse("bad-shape", "input", "", "input %d has %d bytes, wanted %d for %d rows of %d numbers of %d bits", i,
			len(packed), rows*stride, rows, columns, bits)
		return nil
	}
	d := ir.Uint8
	if bits == 4 {
		d = ir.Uint4
	}
	t := ir.NewTensor(d, rows, columns)
	out := ir.Slice[uint8](t)
	for r := range rows {
		for j := range columns {
			bit := j * bits
			out[r*columns+j] = packed[r*stride+bit/8] >> (bit % 8) & (1<<bits - 1)
		}
	}
	return t
}

// columnsOf is the first n columns of a matrix of bytes.
func columnsOf(t *ir.Tensor, n int64) *ir.Tensor {
	rows, width := t.Dims[0], t.Dims[1]
	if width == n {
		return t
	}
	out := ir.NewTensor(t.DType, rows, n)
	from, to := ir.Slice[uint8](t), ir.Slice[uint8](out)
	for r := range rows {
		copy(to[r*n:(r+1)*n], from[r*width:])
	}
	return out
}
