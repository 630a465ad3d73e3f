package axes

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// rule finds the axes of a node's outputs from those of its inputs, of which at least one is dynamic. It refuses a node
// of which a live element of an output could depend on dead elements.
type rule func(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error)

// rules are by operator, with the domain in front of it. Elementwise operators have elementwise.
var rules map[string]rule

// The map is filled here because rules refer to functions that read it: as an initialiser it would be a cycle.
func init() {
	rules = map[string]rule{
		"rammer.View": func(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
			list, err := a.viewAxes(n, in[0])
			return [][]Axis{list}, err
		},
		"Identity": same, "Dropout": same, "rammer.Declared": same,
		"rammer.Select": func(a *analyser, _ *ir.Node, in [][]Axis) ([][]Axis, error) {
			list, err := a.broadcast(in[1], in[2])
			return [][]Axis{list}, err
		},
		"Reshape": reshape, "Flatten": reshape, "Squeeze": reshape, "Unsqueeze": reshape,
		"Transpose": transpose, "rammer.Concat": concat, "Concat": concat,
		"ConstantOfShape": filled, "Pad": padded,

		"MatMul": product, "rammer.RMSMatMul": product, "rammer.IntegerMatMul": product,
		"rammer.QuantizedMatMul": product,
		"Gemm":                   gemm, "rammer.Attention": attention,

		"LayerNormalization": lastAxes, "rammer.RMSNormalization": lastAxes,
		"Softmax": alongAxis, "LogSoftmax": alongAxis,
		"OneHot": oneHot, "Gather": gather, "GatherElements": gatherElements, "GatherND": gatherND, "TopK": alongLines,
		"ScatterND": scatter, "ScatterElements": scatter,

		"RoiAlign": regions, "Resize": resized,

		"rammer.NonZero": nonZero, "rammer.NonMaxSuppression": nonMaxSuppression, "rammer.Range": countUp,
		"rammer.RepeatBegin": repeatBegin, "rammer.RepeatEnd": repeatEnd,
		"rammer.Append": appended, "rammer.WriteRows": written, "CumSum": running,

		"rammer.LSTMCell": cell, "rammer.GRUCell": cell, "rammer.RNNCell": cell,
	}
	for _, op := range []string{
		"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
		"ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin",
	} {
		rules[op] = reduction
	}
	for _, op := range []string{
		"Conv", "ConvTranspose", "rammer.IntegerConv", "MaxPool", "AveragePool", "LpPool", "GlobalAveragePool",
		"GlobalMaxPool", "BatchNormalization", "InstanceNormalization", "LRN", "DepthToSpace", "SpaceToDepth",
	} {
		rules[op] = images
	}
}

// shapeOperand reports whether input i of n says the shape of the result, which the outputs' extents tell as well.
func shapeOperand(n *ir.Node, i int) bool {
	return i == 1 && (n.Is("Reshape") || n.Is("Expand") || n.Is("TopK")) || i == 0 && n.Is("ConstantOfShape") ||
		i == 3 && n.Is("Resize")
}

// apply applies the rule for n.
func (a *analyser) apply(n *ir.Node, in [][]Axis) ([][]Axis, error) {
	key := n.Op
	if n.Domain != "" {
		key = n.Domain + "." + n.Op
	}
	if r := rules[key]; r != nil {
		return r(a, n, in)
	}
	if op := ir.LookupOp(n.Domain, n.Op); op != nil && op.Kind == ir.KindElementwise {
		return elementwise(a, n, in)
	}
	return nil, errors.New("no rule says which of its elements depend on each other")
}

// broadcast joins the axes of operands, aligned at the last one.
func (a *analyser) broadcast(lists ...[]Axis) ([]Axis, error) {
	rank := 0
	for _, l := range lists {
		rank = max(rank, len(l))
	}
	out := slices.Repeat([]Axis{StaticAxis(1)}, rank)
	for _, l := range lists {
		for i, x := range l {
			at := &out[rank-len(l)+i]
			switch {
			case x.IsOne():
			case at.IsOne():
				*at = x
			case !at.Equal(x):
				return nil, fmt.Errorf("its operands have %s beside %s", a.text([]Axis{*at}), a.text([]Axis{x}))
			}
		}
	}
	return out, nil
}

func elementwise(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	out, err := a.broadcast(in...)
	return slices.Repeat([][]Axis{out}, len(n.Outputs)), err
}

func same(_ *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	return slices.Repeat([][]Axis{in[0]}, len(n.Outputs)), nil
}

// reshape groups the factors of the input anew. Static factors may be divided where no dynamic ones are between.
func reshape(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	rest := slices.Clone(Join(in[0]...))
	v := n.Outputs[0]
	var out []Axis
	for d := range a.dims(0, v) {
		var x Axis
		for len(rest) > 0 && !a.fits(Join(x), a.extentsOf(v, d)) {
			f := rest[0]
			if f.Symbol != Static || Join(append(slices.Clone(x), f)).Largest() <= a.dims(0, v)[d] {
				x, rest = append(x, f), rest[1:]
				continue
			}
			part := a.dims(0, v)[d] / Join(x).Largest()
			if part <= 1 || f.N%part != 0 {
				return nil, errors.New("its result has parts of dims whose extents only a run knows")
			}
			x, rest[0].N = append(x, Factor{Static, part}), f.N/part
		}
		out = append(out, Join(x))
	}
	return [][]Axis{out}, nil
}

func transpose(_ *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	out := slices.Clone(in[0])
	slices.Reverse(out)
	for i, p := range n.Ints("perm") {
		out[i] = in[0][p]
	}
	return [][]Axis{out}, nil
}

// axisAttr is the attribute axis, counted from the front.
func axisAttr(n *ir.Node, def int64, rank int) int {
	axis := int(n.Int("axis", def))
	if axis < 0 {
		axis += rank
	}
	return axis
}

// static is an error unless all axes are static; what says what they are.
func (a *analyser) static(what string, list ...Axis) error {
	if anyDynamic(list) {
		return fmt.Errorf("%s is %s", what, a.text(list))
	}
	return nil
}

func concat(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	at := axisAttr(n, 0, len(in[0]))
	out, sum := slices.Clone(in[0]), int64(0)
	for _, l := range in {
		if err := a.static("the axis along which it concatenates", l[at]); err != nil {
			return nil, err
		}
		sum += l[at].Largest()
		for d := range l {
			if d != at && !l[d].Equal(out[d]) {
				return nil, fmt.Errorf("its operands have %s beside %s", a.text(out), a.text(l))
			}
		}
	}
	out[at] = StaticAxis(sum)
	return [][]Axis{out}, nil
}

// product is a MatMul, or an operator with the same shapes.
func product(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	x, y := in[0], in[1]
	if len(x) < 2 || len(y) < 2 {
		return nil, errors.New("one of its factors is a vector")
	}
	last := len(x) - 1
	if err := a.static("the axis over which it sums", x[last], y[len(y)-2]); err != nil {
		return nil, err
	}
	out, err := a.broadcast(x[:last-1], y[:len(y)-2])
	return [][]Axis{append(out, x[last-1], y[len(y)-1])}, err
}

func gemm(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	x, y := in[0], in[1]
	m, k, k2, c := x[0], x[1], y[0], y[1]
	if n.Int("transA", 0) != 0 {
		m, k = k, m
	}
	if n.Int("transB", 0) != 0 {
		k2, c = c, k2
	}
	if err := a.static("the axis over which it sums", k, k2); err != nil {
		return nil, err
	}
	out := []Axis{m, c}
	if len(in) > 2 && in[2] != nil {
		sum, err := a.broadcast(out, in[2])
		if err != nil || len(sum) != 2 || !sum[0].Equal(m) || !sum[1].Equal(c) {
			return nil, fmt.Errorf("what it adds to %s is %s", a.text(out), a.text(in[2]))
		}
	}
	return [][]Axis{out}, nil
}

// attention sums over the keys, whose number its rKernels are told in each run.
func attention(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	q, k, v := in[0], in[1], in[2]
	rank := len(q)
	if len(k) < 2 || len(v) < 2 || rank < 2 {
		return nil, errors.New("its operands are no matrices")
	}
	keys, columns := k[len(k)-2], v[len(v)-1]
	if err := a.static("the axis over which it sums", q[rank-1], k[len(k)-1], columns); err != nil {
		return nil, err
	}
	if !keys.Equal(v[len(v)-2]) || len(keys) > 1 && keys.Dynamic() {
		return nil, fmt.Errorf("its keys are %s and its values %s", a.text(k), a.text(v))
	}
	batch := [][]Axis{q[:rank-2], k[:len(k)-2], v[:len(v)-2]}
	if len(in) > 3 && in[3] != nil {
		mask := in[3]
		for i, want := range []Axis{q[rank-2], keys} {
			if d := len(mask) - 2 + i; d >= 0 && !mask[d].IsOne() && !mask[d].Equal(want) {
				return nil, fmt.Errorf("its mask is %s", a.text(mask))
			}
		}
		batch = append(batch, mask[:max(len(mask)-2, 0)])
	}
	out, err := a.broadcast(batch...)
	return [][]Axis{append(out, q[rank-2], columns)}, err
}

// lastAxes is a normalisation over the axes from the attribute axis on.
func lastAxes(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	at := axisAttr(n, -1, len(in[0]))
	if err := a.static("the axes over which it normalises", in[0][at:]...); err != nil {
		return nil, err
	}
	for _, l := range in[1:] {
		if err := a.static("its scale or bias", l...); err != nil {
			return nil, err
		}
	}
	out := [][]Axis{in[0]}
	for range len(n.Outputs) - 1 {
		stats := slices.Clone(in[0])
		for d := at; d < len(stats); d++ {
			stats[d] = StaticAxis(1)
		}
		out = append(out, stats)
	}
	return out, nil
}

// alongAxis normalises along an axis, whose extent its rKernels are told in each run.
func alongAxis(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	return [][]Axis{in[0]}, a.begins("the axis over which it normalises", in[0][axisAttr(n, -1, len(in[0]))])
}

// begins is an error unless the live elements along an axis are the first ones, so that their number tells them apart:
// at most the outermost factor is dynamic. what says what the axis is.
func (a *analyser) begins(what string, x Axis) error {
	if len(x) > 1 && x[1:].Dynamic() {
		return fmt.Errorf("%s is %s", what, a.text([]Axis{x}))
	}
	return nil
}

// reduction is over axes, of which its rKernels are told in each run how many elements they have.
func reduction(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	keep := n.Int("keepdims", 1) != 0
	var out, over []Axis
	reduced := reducedAxes(n, len(in[0]))
	for d, x := range in[0] {
		switch {
		case !reduced[d]:
			out = append(out, x)
			continue
		case keep:
			out = append(out, StaticAxis(1))
		}
		over = append(over, x)
	}
	return [][]Axis{out}, a.begins("what it reduces", Join(over...))
}

// reducedAxes says which axes of an input of the given rank a reduction is over.
func reducedAxes(n *ir.Node, rank int) []bool {
	list := []int64{n.Int("axis", 0)}
	if n.Op != "ArgMax" && n.Op != "ArgMin" {
		list = nil
		if v := n.Input(1); v != nil {
			list = ir.Slice[int64](v.Const)
		}
		if len(list) == 0 && n.Int("noop_with_empty_axes", 0) == 0 {
			return slices.Repeat([]bool{true}, rank)
		}
	}
	out := make([]bool, rank)
	for _, d := range list {
		out[(d+int64(rank))%int64(rank)] = true
	}
	return out
}

// cell is a step of a recurrence, of which each sequence of a batch is independent.
func cell(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	batch := in[0][0]
	for i, l := range in {
		switch {
		case l == nil:
		case len(l) > 0 && l[0].Equal(batch) && (i == 0 || batch.Dynamic()): // x, a state, or lengths of sequences
			if err := a.static("a row of an operand", l[1:]...); err != nil {
				return nil, err
			}
		default:
			if err := a.static("a parameter or state", l...); err != nil {
				return nil, err
			}
		}
	}
	out := make([][]Axis, len(n.Outputs))
	for i, v := range n.Outputs {
		if v != nil {
			out[i] = StaticAxes(a.dims(0, v))
			out[i][0] = batch
		}
	}
	return out, nil
}

// regions samples each region by itself, of which the rKernel is told in each run how many there are.
func regions(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	if err := a.static("an image", in[0]...); err != nil {
		return nil, err
	}
	count := in[1][0]
	if !count.Equal(in[2][0]) {
		return nil, fmt.Errorf("its regions are %s and their images %s", a.text(in[1]), a.text(in[2]))
	}
	out := StaticAxes(a.dims(0, n.Outputs[0]))
	out[0] = count
	return [][]Axis{out}, a.begins("the list of regions", count)
}

// resized samples along the axes whose extents it changes, and nothing else.
func resized(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	v := n.Outputs[0]
	out := StaticAxes(a.dims(0, v))
	for d, x := range in[0] {
		if !x.Dynamic() {
			continue
		}
		if n.Str("coordinate_transformation_mode", "") == "tf_crop_and_resize" || !a.fits(x, a.extentsOf(v, d)) {
			return nil, a.static("a resized image", in[0]...)
		}
		out[d] = x
	}
	return [][]Axis{out}, nil
}

// images is an operator that computes each image of a batch by itself.
func images(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	if err := a.static("an image", in[0][1:]...); err != nil {
		return nil, err
	}
	for _, l := range in[1:] {
		if err := a.static("a parameter", l...); err != nil {
			return nil, err
		}
	}
	out := make([][]Axis, len(n.Outputs))
	for i, v := range n.Outputs {
		if v == nil {
			continue
		}
		out[i] = StaticAxes(a.dims(0, v))
		out[i][0] = in[0][0]
	}
	return out, nil
}
