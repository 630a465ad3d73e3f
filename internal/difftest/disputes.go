package difftest

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/rammerc/rammerc/ir"
)

// foreign says why a case cannot be compared with onnxruntime; "" if it can.
func foreign(c *Case) string {
	if c.Wild {
		return "special numbers: the standard leaves open what becomes of them"
	}
	return ""
}

// disputed reports nodes that onnxruntime computes in another way than the standard's text says. The table says in
// which.
func disputed(n *ir.Node) bool {
	for _, d := range disputes {
		if slices.Contains(strings.Fields(d.ops), n.Op) && d.about(n) {
			return true
		}
	}
	return false
}

var disputes = []struct {
	ops, why string
	about    func(n *ir.Node) bool
}{
	{"ConvTranspose", "SAME with a window shorter than the stride: the output is the input times the stride",
		samePadded},
	{"MaxPool AveragePool LpPool", "SAME pads as if there were no dilation",
		func(n *ir.Node) bool { return samePadded(n) && n.HasAttr("dilations") }},
	{
		"ReduceSum ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp ReduceMax ReduceMin ArgMax ArgMin",
		"of nothing: keepdims is not heeded", emptyOperand,
	},
	{"ReduceLogSum ReduceLogSumExp", "logarithms rounded to integers",
		func(n *ir.Node) bool { return n.Inputs[0].DType.IsInt() }},
	{"MaxPool AveragePool", "VALID leaves out windows that begin inside, whatever ceil_mode says",
		func(n *ir.Node) bool {
			return n.Str("auto_pad", "") == "VALID" && n.Int("ceil_mode", 0) != 0
		}},
	{"Pad", "wrap takes what negative pads remove on the other side into account", func(n *ir.Node) bool {
		return n.Str("mode", "") == "wrap" && n.Inputs[1].Const != nil &&
			slices.Min(ir.Slice[int64](n.Inputs[1].Const)) < 0
	}},
	{"LSTM", "clip holds for the input of every activation, that of the cell's state too",
		func(n *ir.Node) bool { return n.HasAttr("clip") }},
	{"LSTM GRU RNN", "a sequence of no steps keeps its initial state", mayBeEmptySequence},
	{
		"RandomNormal RandomUniform RandomNormalLike RandomUniformLike Bernoulli Multinomial",
		"the standard names no generator", func(*ir.Node) bool { return true },
	},
	{"AffineGrid", "align_corners of one element, whose corners are both borders", func(n *ir.Node) bool {
		return n.Int("align_corners", 0) != 0 && n.Inputs[1].Const != nil &&
			slices.Contains(ir.Slice[int64](n.Inputs[1].Const)[2:], 1)
	}},
	{"GridSample", "cubic with border: a place outside is brought to the border first", func(n *ir.Node) bool {
		return n.Str("mode", "") == "cubic" && n.Str("padding_mode", "") == "border"
	}},
	{"AveragePool MaxPool LpPool", "SAME with a window shorter than the stride begins at the first element",
		func(n *ir.Node) bool {
			return samePadded(n) && n.HasAttr("strides")
		}},
	{"Col2Im", "dilations along one axis", func(n *ir.Node) bool { return len(n.Ints("dilations")) == 1 }},
	{"HannWindow HammingWindow BlackmanWindow DFT STFT", "computed in float32",
		func(n *ir.Node) bool { return n.Outputs[0].DType == ir.Float64 }},
	{"MatMul Gemm Conv ConvTranspose", "where there is nothing to multiply the sum is 0 or the bias", emptyOperand},
	{
		"MatMulInteger ConvInteger QLinearMatMul QLinearConv",
		"pairs of uint8 · int8 are added in 16 bits, saturating, where the processor has no VNNI",
		func(n *ir.Node) bool { return saturates() && slices.ContainsFunc(n.Inputs, isInt8) },
	},
	{"NonZero", "the place of a scalar has a coordinate", func(n *ir.Node) bool { return len(n.Inputs[0].Shape) == 0 }},
	{"Shrink", "computed in float32", func(n *ir.Node) bool { return n.Inputs[0].DType == ir.Float64 }},
	{"Gelu", "constants of the approximation in float32", func(n *ir.Node) bool {
		return n.Inputs[0].DType == ir.Float64 && n.Str("approximate", "") == "tanh"
	}},
	{"Resize", "align_corners by scales: the output's extent before it is rounded counts", func(n *ir.Node) bool {
		return n.Str("coordinate_transformation_mode", "") == "align_corners" && n.Input(2) != nil
	}},
}

// saturates reports whether the processor lacks the instructions that add products of bytes in 32 bits. Without them
// onnxruntime adds in 16 bits, where sums saturate.
var saturates = sync.OnceValue(func() bool {
	info, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && runtime.GOARCH == "amd64" && !strings.Contains(string(info), "vnni")
})

func isInt8(v *ir.Value) bool { return v != nil && v.DType == ir.Int8 }

func samePadded(n *ir.Node) bool { return strings.HasPrefix(n.Str("auto_pad", ""), "SAME") }

func emptyOperand(n *ir.Node) bool {
	return slices.ContainsFunc(n.Inputs[0].Shape, func(d ir.Dim) bool { return d.Equal(ir.D(0)) })
}

func mayBeEmptySequence(n *ir.Node) bool {
	lens := n.Input(4)
	return lens != nil && (lens.Const == nil || slices.Contains(ir.Slice[int32](lens.Const), 0))
}
