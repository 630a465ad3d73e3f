package eval

import (
	"fmt"
	"math"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// TestReduceDefinition compares reductions over all sets of axes with reductions of a single axis, after a
// transposition that has brought the elements together.
func TestReduceDefinition(t *testing.T) {
	x := apply1(t, "Abs", nil, normal(random(50), 2, 3, 4))
	byHand := map[string]func(v []float64) float64{
		"ReduceSum": sumOf[float64], "ReduceMean": meanOf, "ReduceMax": maxOf[float64], "ReduceMin": minOf[float64],
		"ReduceProd": prodOf[float64], "ReduceL1": sumOf[float64],
		"ReduceSumSquare": func(v []float64) float64 { return dot(v, v) },
		"ReduceL2":        func(v []float64) float64 { return math.Sqrt(dot(v, v)) },
		"ReduceLogSum":    func(v []float64) float64 { return math.Log(sumOf(v)) },
		"ReduceLogSumExp": func(v []float64) float64 {
			s := 0.0
			for _, e := range v {
				s += math.Exp(e)
			}
			return math.Log(s)
		},
	}
	for _, axes := range [][]int64{{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {-1, 0, 1}} {
		var perm, kept []int64
		for a := range int64(3) {
			if !containsAxis(axes, a) {
				perm, kept = append(perm, a), append(kept, x.Dims[a])
			}
		}
		for a := range int64(3) {
			if containsAxis(axes, a) {
				perm = append(perm, a)
			}
		}
		rows := values[float64](apply1(t, "Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, x))
		n := int(x.Len() / ir.Count(kept))
		for op, f := range byHand {
			want := ir.NewTensor(ir.Float32, kept...)
			for i := range ir.Slice[float32](want) {
				ir.Slice[float32](want)[i] = float32(f(rows[i*n : (i+1)*n]))
			}
			got := apply1(t, op, ir.Attrs{"keepdims": ir.IntAttr(0)}, x, i64(axes...))
			near(t, fmt.Sprint(op, axes), got, want, 1e-4)
		}
	}
}

func containsAxis(axes []int64, a int64) bool {
	for _, x := range axes {
		if (x+3)%3 == a {
			return true
		}
	}
	return false
}

func TestReduceForms(t *testing.T) {
	x := f32([]float32{1, 2, 3, 4}, 2, 2)
	near(t, "all, kept", apply1(t, "ReduceSum", nil, x), f32([]float32{10}, 1, 1), 0)
	noop := ir.Attrs{"noop_with_empty_axes": ir.IntAttr(1)}
	near(t, "none", apply1(t, "ReduceSum", noop, x), x, 0)
	near(t, "none, squared", apply1(t, "ReduceSumSquare", noop, x), f32([]float32{1, 4, 9, 16}, 2, 2), 0)
	empty := ir.NewTensor(ir.Float32, 2, 0)
	inf := float32(math.Inf(1))
	for op, want := range map[string]float32{"ReduceSum": 0, "ReduceProd": 1, "ReduceMax": -inf, "ReduceMin": inf,
		"ReduceLogSum": -inf} {
		near(t, op+" of nothing", apply1(t, op, nil, empty, i64(1)), f32([]float32{want, want}, 2, 1), 0)
	}
	big := f32([]float32{1000, 1000}, 2)
	near(t, "no overflow", apply1(t, "ReduceLogSumExp", nil, big), f32([]float32{1000 + math.Ln2}, 1), 1e-4)
	u := ir.FromSlice(ir.Uint64, []uint64{1 << 63, 3}, 2)
	near(t, "uint64", apply1(t, "ReduceMax", nil, u), ir.FromSlice(ir.Uint64, []uint64{1 << 63}, 1), 0)
	b := ir.FromSlice(ir.Bool, []bool{true, false}, 2)
	near(t, "bool", apply1(t, "ReduceMin", nil, b), ir.FromSlice(ir.Bool, []bool{false}, 1), 0)
}

func TestArgReduce(t *testing.T) {
	x := f32([]float32{1, 3, 3, 2, 0, 0}, 2, 3)
	flat := func(last int64) ir.Attrs {
		return ir.Attrs{"axis": ir.IntAttr(-1), "keepdims": ir.IntAttr(0), "select_last_index": ir.IntAttr(last)}
	}
	near(t, "first largest", apply1(t, "ArgMax", flat(0), x), i64(1, 0), 0)
	near(t, "last largest", apply1(t, "ArgMax", flat(1), x), i64(2, 0), 0)
	near(t, "first smallest", apply1(t, "ArgMin", flat(0), x), i64(0, 1), 0)
	near(t, "last smallest", apply1(t, "ArgMin", flat(1), x), i64(0, 2), 0)
}

func TestSoftmax(t *testing.T) {
	x := normal(random(51), 3, 4, 5)
	axis := ir.Attrs{"axis": ir.IntAttr(1)}
	soft := apply1(t, "Softmax", axis, x)
	e := apply1(t, "Exp", nil, x)
	near(t, "Softmax", soft, apply1(t, "Div", nil, e, apply1(t, "ReduceSum", nil, e, i64(1))), 1e-6)
	near(t, "LogSoftmax", apply1(t, "LogSoftmax", axis, x), apply1(t, "Log", nil, soft), 1e-5)
	shifted := apply1(t, "Add", nil, x, f32([]float32{1e4}))
	near(t, "large values", apply1(t, "Softmax", axis, shifted), soft, 1e-2)
}

// TestNormalisations compares normalisations with their formulas in elementwise operators and reductions.
func TestNormalisations(t *testing.T) {
	r := random(52)
	x, scale, bias := normal(r, 2, 3, 4, 5), normal(r, 3), normal(r, 3)
	op := func(name string, in ...*ir.Tensor) *ir.Tensor { t.Helper(); return apply1(t, name, nil, in...) }
	eps := f32([]float32{1e-5})
	spread := func(v *ir.Tensor) *ir.Tensor { return reshaped(v, []int64{v.Dims[0], 1, 1}) }
	standard := func(mean, variance *ir.Tensor) *ir.Tensor {
		return op("Div", op("Sub", x, mean), op("Sqrt", op("Add", variance, eps)))
	}
	stats := func(axes ...int64) (mean, variance *ir.Tensor) {
		mean = op("ReduceMean", x, i64(axes...))
		d := op("Sub", x, mean)
		return mean, op("ReduceMean", op("Mul", d, d), i64(axes...))
	}
	affine := func(v *ir.Tensor) *ir.Tensor { return op("Add", op("Mul", v, spread(scale)), spread(bias)) }

	mean, variance := normal(r, 3), op("Abs", normal(r, 3))
	near(t, "BatchNormalization", op("BatchNormalization", x, scale, bias, mean, variance),
		affine(standard(spread(mean), spread(variance))), 1e-4)
	m, v := stats(2, 3)
	near(t, "InstanceNormalization", op("InstanceNormalization", x, scale, bias), affine(standard(m, v)), 1e-4)

	m, v = stats(2, 3)
	gain, offset := normal(r, 4, 5), normal(r, 5)
	outs := apply(t, "LayerNormalization", ir.Attrs{"axis": ir.IntAttr(2)}, 3, x, gain, offset)
	near(t, "LayerNormalization", outs[0], op("Add", op("Mul", standard(m, v), gain), offset), 1e-4)
	near(t, "Mean", outs[1], m, 1e-6)
	near(t, "InvStdDev", outs[2], op("Reciprocal", op("Sqrt", op("Add", v, eps))), 1e-4)
}

func TestLRN(t *testing.T) {
	x := f32([]float32{1, 2, 3, 4}, 1, 4, 1)
	attrs := ir.Attrs{"size": ir.IntAttr(3), "alpha": ir.FloatAttr(3), "beta": ir.FloatAttr(1), "bias": ir.FloatAttr(2)}
	want := f32([]float32{1.0 / (2 + 5), 2.0 / (2 + 14), 3.0 / (2 + 29), 4.0 / (2 + 25)}, 1, 4, 1)
	near(t, "odd size", apply1(t, "LRN", attrs, x), want, 1e-6)
	attrs["size"], attrs["alpha"] = ir.IntAttr(2), ir.FloatAttr(2) // an even size looks ahead
	want = f32([]float32{1.0 / (2 + 5), 2.0 / (2 + 13), 3.0 / (2 + 25), 4.0 / (2 + 16)}, 1, 4, 1)
	near(t, "even size", apply1(t, "LRN", attrs, x), want, 1e-6)
}
