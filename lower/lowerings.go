package lower

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/attention"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/conv"
	"github.com/rammerc/rammerc/lower/custom"
	"github.com/rammerc/rammerc/lower/einsum"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/gemm"
	"github.com/rammerc/rammerc/lower/indexed"
	"github.com/rammerc/rammerc/lower/norm"
	"github.com/rammerc/rammerc/lower/pool"
	"github.com/rammerc/rammerc/lower/quantize"
	"github.com/rammerc/rammerc/lower/recurrent"
	"github.com/rammerc/rammerc/lower/reduce"
	"github.com/rammerc/rammerc/lower/sampling"
	"github.com/rammerc/rammerc/lower/source"
	"github.com/rammerc/rammerc/lower/squeeze"
	"github.com/rammerc/rammerc/lower/views"
)

// row says which function lowers an operator.
type row struct {
	domain, op string
	lower      build.Lowering
}

// lowerings has a row for every operator with a compiled form. Elementwise operators need none: they are all
// lowered by elementwise.Lower, from the functions that their expressions name.
var lowerings = []row{
	// Views move no data: a value gets another window on a buffer. graphopt turns whatever it can into
	// rammer.View; what arrives as Reshape and the like had no window that strides express, and is copied first.
	{ir.InternalDomain, "View", views.View},
	{"", "Reshape", views.Reshape},
	{"", "Flatten", views.Reshape},
	{"", "Squeeze", views.Reshape},
	{"", "Unsqueeze", views.Reshape},
	{"", "Identity", views.Identity},
	{"", "Dropout", views.Identity},
	{"", "Transpose", views.Transpose},
	{"", "Slice", views.Slice},
	{"", "Split", views.Split},
	{"", "Expand", views.Expand},
	{"", "Concat", views.Concat},
	{ir.InternalDomain, "Concat", views.Concat},
	{"", "Constant", views.Constant},

	// Reductions over axes.
	{"", "ReduceSum", reduce.Reduce},
	{"", "ReduceMean", reduce.Reduce},
	{"", "ReduceMax", reduce.Reduce},
	{"", "ReduceMin", reduce.Reduce},
	{"", "ReduceProd", reduce.Reduce},
	{"", "ReduceL1", reduce.Reduce},
	{"", "ReduceL2", reduce.Reduce},
	{"", "ReduceLogSum", reduce.Reduce},
	{"", "ReduceLogSumExp", reduce.Reduce},
	{"", "ReduceSumSquare", reduce.Reduce},
	{"", "ArgMax", reduce.Arg},
	{"", "ArgMin", reduce.Arg},
	{"", "GlobalAveragePool", reduce.GlobalPool},
	{"", "GlobalMaxPool", reduce.GlobalPool},

	// Normalisations: statistics of lines, then a map.
	{"", "Softmax", norm.Softmax},
	{"", "LogSoftmax", norm.Softmax},
	{"", "LayerNormalization", norm.LayerNorm},
	{ir.InternalDomain, "RMSNormalization", norm.LayerNorm},
	{"", "InstanceNormalization", norm.InstanceNorm},
	{"", "BatchNormalization", norm.BatchNorm},
	{"", "LRN", norm.LRN},

	// Windows without weights. Global pools are reductions.
	{"", "MaxPool", pool.Pool},
	{"", "AveragePool", pool.Pool},
	{"", "LpPool", pool.Pool},

	// Operators that move elements by computed or given indices.
	{"", "Gather", indexed.Gather},
	{"", "GatherElements", indexed.GatherElements},
	{"", "GatherND", indexed.GatherND},
	{"", "ScatterElements", indexed.ScatterElements},
	{"", "ScatterND", indexed.ScatterND},
	{"", "Pad", indexed.Pad},
	{"", "Resize", indexed.Resize},
	{"", "Tile", indexed.Tile},
	{"", "DepthToSpace", indexed.DepthToSpace},
	{"", "SpaceToDepth", indexed.SpaceToDepth},
	{"", "Trilu", indexed.Trilu},
	{"", "OneHot", indexed.OneHot},
	{"", "CumSum", indexed.CumSum},
	{"", "CumProd", indexed.CumSum},
	{"", "TopK", indexed.TopK},

	{ir.InternalDomain, "Select", indexed.Select},

	// Extents that only a run knows, and what is appended behind them.
	{ir.InternalDomain, "Extent", indexed.Extent},
	{ir.InternalDomain, "Append", indexed.Append},
	{ir.InternalDomain, "WriteRows", indexed.WriteRows},

	// What a run must find to be right.
	{ir.InternalDomain, "Require", indexed.Require},
	{ir.InternalDomain, "Declared", views.Identity},

	// Both ends of a loop.
	{ir.InternalDomain, "RepeatBegin", indexed.RepeatBegin},
	{ir.InternalDomain, "RepeatEnd", indexed.RepeatEnd},

	// Operators that find elements, and say how many.
	{ir.InternalDomain, "NonZero", indexed.NonZero},
	{ir.InternalDomain, "Range", indexed.CountUp},
	{ir.InternalDomain, "NonMaxSuppression", indexed.NonMaxSuppression},

	// Operators that read between the elements of planes.
	{"", "GridSample", sampling.GridSample},
	{"", "RoiAlign", sampling.RoiAlign},
	{"", "EyeLike", sampling.EyeLike},

	// Values that follow from shapes and constants alone. Passes fold them; what was left, because folding was
	// off or the result is large, becomes a constant here.
	{"", "Shape", source.Shape},
	{"", "Size", source.Size},
	{"", "ConstantOfShape", source.ConstantOfShape},
	{"", "Range", source.Range},

	// Matrix products.
	{"", "MatMul", gemm.MatMul},
	{"", "Gemm", gemm.Gemm},
	{"", "Einsum", einsum.Einsum},
	{ir.InternalDomain, "QuantizedMatMul", gemm.QuantizedMatMul},
	{ir.InternalDomain, "RMSMatMul", gemm.MatMul},
	{ir.InternalDomain, "IntegerMatMul", gemm.MatMul},

	// Convolutions.
	{"", "Conv", conv.Conv},
	{"", "ConvTranspose", conv.Conv},
	{ir.InternalDomain, "IntegerConv", conv.IntegerConv},

	// One step of a recurrent operator.
	{ir.InternalDomain, "LSTMCell", recurrent.LSTMCell},
	{ir.InternalDomain, "GRUCell", recurrent.GRUCell},
	{ir.InternalDomain, "RNNCell", recurrent.RNNCell},

	// Fused attention.
	{ir.InternalDomain, "Attention", attention.Attention},
}

// compounds are the lowerings of ir.Compounds.
var compounds = map[string]build.Lowering{
	"CachedAttention": attention.Cached,
	ir.CustomOperator: custom.Operator,
	"DynamicQuantize": quantize.Dynamic,
	"GatherNorm":      norm.GatherNorm,
	"QuantizedNorm":   norm.QuantizedNorm,
	"SqueezeExcite":   squeeze.Excite,
}

// findLowering returns the row for an operator, or the map lowering for elementwise groups.
func findLowering(domain, op string, isMap bool) build.Lowering {
	if isMap {
		return elementwise.Lower
	}
	for _, r := range lowerings {
		if r.domain == domain && r.op == op {
			return r.lower
		}
	}
	return nil
}

// Supported reports whether an operator has a compiled form; elementwise operators all have.
func Supported(domain, op string) bool { return findLowering(domain, op, false) != nil }
