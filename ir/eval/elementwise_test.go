package eval

import (
	"math"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// TestUnaryValues checks functions at known points, above all at infinities, NaN and zeros.
func TestUnaryValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		op    string
		attrs ir.Attrs
		x, y  []float64
	}{
		{"Abs", nil, []float64{-2, math.Copysign(0, -1), -inf}, []float64{2, 0, inf}},
		{"Neg", nil, []float64{-2, inf}, []float64{2, -inf}},
		{"Sign", nil, []float64{-3, 0, 7, nan}, []float64{-1, 0, 1, nan}},
		{"Relu", nil, []float64{-1, 2, nan, inf}, []float64{0, 2, nan, inf}},
		{"Round", nil, []float64{0.5, 1.5, -2.5, 2.6}, []float64{0, 2, -2, 3}},
		{"Reciprocal", nil, []float64{4, 0}, []float64{0.25, inf}},
		{"Sigmoid", nil, []float64{0, 1000, -1000, math.Log(3)}, []float64{0.5, 1, 0, 0.75}},
		{"Softplus", nil, []float64{1000, -1000, 0}, []float64{1000, 0, math.Ln2}},
		{"Softsign", nil, []float64{3, -1}, []float64{0.75, -0.5}},
		{"LeakyRelu", ir.Attrs{"alpha": ir.FloatAttr(0.25)}, []float64{-4, 4}, []float64{-1, 4}},
		{"Elu", ir.Attrs{"alpha": ir.FloatAttr(2)}, []float64{math.Log(0.5), 3}, []float64{-1, 3}},
		{"Selu", ir.Attrs{"alpha": ir.FloatAttr(2), "gamma": ir.FloatAttr(3)}, []float64{math.Log(0.5), 3},
			[]float64{-3, 9}},
		{"Celu", ir.Attrs{"alpha": ir.FloatAttr(2)}, []float64{2 * math.Log(0.5), 3}, []float64{-1, 3}},
		{"HardSigmoid", nil, []float64{-3, 0, 1, 4}, []float64{0, 0.5, 0.7, 1}},
		{"HardSwish", nil, []float64{-3, 0, 1, 4}, []float64{0, 0, 2.0 / 3, 4}},
		{"ThresholdedRelu", nil, []float64{0.5, 1, 1.5}, []float64{0, 0, 1.5}},
		{"Shrink", ir.Attrs{"lambd": ir.FloatAttr(1), "bias": ir.FloatAttr(0.5)}, []float64{-2, -1, 1, 2},
			[]float64{-1.5, 0, 0, 1.5}},
		{"Mish", nil, []float64{0, 30}, []float64{0, 30}},
		{"Gelu", nil, []float64{0, 10, -10, 1}, []float64{0, 10, 0, 0.8413447460685429}},
		{"Gelu", ir.Attrs{"approximate": ir.StringAttr("tanh")}, []float64{0, 10, 1},
			[]float64{0, 10, 0.8411919906082768}},
		{"Erf", nil, []float64{0, 5, -5, 0.5}, []float64{0, 1, -1, 0.5204998778130465}},
	} {
		n := int64(len(c.x))
		got := apply1(t, c.op, c.attrs, ir.FromSlice(ir.Float64, c.x, n))
		near(t, c.op, got, ir.FromSlice(ir.Float64, c.y, n), 1e-7)
	}
}

// TestInverses checks that a function and its inverse, one after the other, change nothing.
func TestInverses(t *testing.T) {
	x := ir.FromSlice(ir.Float64, []float64{0.1, 0.4, 0.7, 0.95}, 4)
	for _, c := range [][2]string{
		{"Exp", "Log"}, {"Sin", "Asin"}, {"Cos", "Acos"}, {"Tan", "Atan"}, {"Sinh", "Asinh"}, {"Tanh", "Atanh"},
		{"Reciprocal", "Reciprocal"}, {"Cosh", "Acosh"},
	} {
		near(t, c[0], apply1(t, c[1], nil, apply1(t, c[0], nil, x)), x, 1e-12)
	}
	near(t, "Sqrt", apply1(t, "Sqrt", nil, apply1(t, "Mul", nil, x, x)), x, 1e-12)
	near(t, "Floor and Ceil", apply1(t, "Sub", nil, apply1(t, "Ceil", nil, x), apply1(t, "Floor", nil, x)),
		ir.FromSlice(ir.Float64, []float64{1, 1, 1, 1}, 4), 0)
}

func TestInfNaN(t *testing.T) {
	x := f32([]float32{float32(math.Inf(-1)), float32(math.NaN()), 1, float32(math.Inf(1))}, 4)
	bools := func(v ...bool) *ir.Tensor { return ir.FromSlice(ir.Bool, v, 4) }
	near(t, "IsNaN", apply1(t, "IsNaN", nil, x), bools(false, true, false, false), 0)
	near(t, "IsInf", apply1(t, "IsInf", nil, x), bools(true, false, false, true), 0)
	near(t, "IsInf, positive", apply1(t, "IsInf", ir.Attrs{"detect_negative": ir.IntAttr(0)}, x),
		bools(false, false, false, true), 0)
	zero := f32([]float32{0})
	for _, op := range []string{"Max", "Min", "Add"} {
		if v := scalar[float64](apply1(t, "Gather", nil, apply1(t, op, nil, x, zero), i64Scalar(1))); !math.IsNaN(v) {
			t.Errorf("%s of NaN and 0 is %v, want NaN", op, v)
		}
	}
	near(t, "Equal", apply1(t, "Equal", nil, x, x), bools(true, false, true, true), 0)
	near(t, "LessOrEqual", apply1(t, "LessOrEqual", nil, x, zero), bools(true, false, false, false), 0)
}

// TestIntegerArithmetic checks wrapping, truncation and the other differences between integers and real numbers.
func TestIntegerArithmetic(t *testing.T) {
	i8 := func(v ...int8) *ir.Tensor { return ir.FromSlice(ir.Int8, v, int64(len(v))) }
	u8 := func(v ...uint8) *ir.Tensor { return ir.FromSlice(ir.Uint8, v, int64(len(v))) }
	u64 := func(v ...uint64) *ir.Tensor { return ir.FromSlice(ir.Uint64, v, int64(len(v))) }
	fmod := ir.Attrs{"fmod": ir.IntAttr(1)}
	shift := func(d string) ir.Attrs { return ir.Attrs{"direction": ir.StringAttr(d)} }
	for _, c := range []struct {
		op    string
		attrs ir.Attrs
		a, b  *ir.Tensor
		want  *ir.Tensor
	}{
		{"Add", nil, i8(127, -128), i8(1, -1), i8(-128, 127)},
		{"Sub", nil, u8(1), u8(2), u8(255)},
		{"Mul", nil, u64(1 << 63), u64(3), u64(1 << 63)},
		{"Div", nil, i8(7, -7, 7, -128), i8(2, 2, -2, -1), i8(3, -3, -3, -128)},
		{"Div", nil, u64(1<<64 - 1), u64(2), u64(1<<63 - 1)},
		{"Mod", nil, i8(7, -7, 7, -7), i8(3, 3, -3, -3), i8(1, 2, -2, -1)},
		{"Mod", fmod, i8(7, -7, 7, -7), i8(3, 3, -3, -3), i8(1, -1, 1, -1)},
		{"Pow", nil, i8(-2, 3, 1, -1, 2), i8(3, 4, -5, -3, -1), i8(-8, 81, 1, -1, 0)},
		{"Max", nil, u64(1<<63, 1), u64(5, 1<<64-1), u64(1<<63, 1<<64-1)},
		{"BitShift", shift("LEFT"), u8(3, 1, 1), u8(7, 8, 0), u8(128, 0, 1)},
		{"BitShift", shift("RIGHT"), u8(200), u8(3), u8(25)},
		{"BitwiseAnd", nil, u8(12), u8(10), u8(8)},
		{"BitwiseOr", nil, u8(12), u8(10), u8(14)},
		{"BitwiseXor", nil, u8(12), u8(10), u8(6)},
		{"PRelu", nil, i8(-3, 3), i8(2, 2), i8(-6, 3)},
	} {
		near(t, c.op, apply1(t, c.op, c.attrs, c.a, c.b), c.want, 0)
	}
	near(t, "BitwiseNot", apply1(t, "BitwiseNot", nil, u8(0b10100101)), u8(0b01011010), 0)
	in := []*ir.Tensor{i8(1), i8(0)}
	if _, err := Node(nodeOf("", "Div", nil, 1, in), in); err == nil {
		t.Error("an integer division by zero gives no error")
	}
}

// TestFloatMod checks the sign of remainders: that of the dividend with fmod, otherwise that of the divisor.
func TestFloatMod(t *testing.T) {
	a, b := f32([]float32{-5.5, 5.5}, 2), f32([]float32{2, -2}, 2)
	near(t, "fmod", apply1(t, "Mod", ir.Attrs{"fmod": ir.IntAttr(1)}, a, b), f32([]float32{-1.5, 1.5}, 2), 0)
	near(t, "mod", apply1(t, "Mod", nil, a, b), f32([]float32{0.5, -0.5}, 2), 0)
}

// TestBroadcast compares a broadcast addition with one of expanded operands, for many pairs of dims.
func TestBroadcast(t *testing.T) {
	r := random(30)
	for range 100 {
		var a, b []int64
		for range r.IntN(5) {
			n := int64(1 + r.IntN(3))
			a, b = append(a, n), append(b, n)
			switch r.IntN(4) {
			case 0:
				a[len(a)-1] = 1
			case 1:
				b[len(b)-1] = 1
			}
		}
		a = a[r.IntN(len(a)+1):]
		x, y := normal(r, a...), normal(r, b...)
		shape := i64(broadcastDims(a, b)...)
		want := apply1(t, "Sub", nil, apply1(t, "Expand", nil, x, shape), apply1(t, "Expand", nil, y, shape))
		near(t, "broadcast", apply1(t, "Sub", nil, x, y), want, 0)
	}
}

// TestSumRoundsOnce checks that the sum of many inputs is computed in float64 and rounded once.
func TestSumRoundsOnce(t *testing.T) {
	x := []*ir.Tensor{f32([]float32{1 << 24}), f32([]float32{1}), f32([]float32{1})}
	near(t, "Sum", apply1(t, "Sum", nil, x...), f32([]float32{1<<24 + 2}), 0)
	near(t, "Mean", apply1(t, "Mean", nil, f32([]float32{1, 2}, 2), f32([]float32{2, 5}, 2)),
		f32([]float32{1.5, 3.5}, 2), 0)
}

func TestClipWhere(t *testing.T) {
	x := f32([]float32{-2, 0.5, 3}, 3)
	lo, hi := f32([]float32{0}), f32([]float32{1})
	near(t, "both", apply1(t, "Clip", nil, x, lo, hi), f32([]float32{0, 0.5, 1}, 3), 0)
	near(t, "low only", apply1(t, "Clip", nil, x, lo), f32([]float32{0, 0.5, 3}, 3), 0)
	near(t, "crossed", apply1(t, "Clip", nil, x, hi, lo), f32([]float32{0, 0, 0}, 3), 0)
	cond := ir.FromSlice(ir.Bool, []bool{true, false}, 2, 1)
	near(t, "Where", apply1(t, "Where", nil, cond, x, lo), f32([]float32{-2, 0.5, 3, 0, 0, 0}, 2, 3), 0)
}

// TestCasts checks rounding, saturation and wrapping.
func TestCasts(t *testing.T) {
	inf := math.Inf(1)
	floats := ir.FromSlice(ir.Float64, []float64{-1.9, 1.9, 300, -inf, inf, math.NaN()}, 6)
	for _, c := range []struct {
		from, want *ir.Tensor
	}{
		{floats, ir.FromSlice(ir.Int8, []int8{-1, 1, 127, -128, 127, 0}, 6)},
		{floats, ir.FromSlice(ir.Uint8, []uint8{0, 1, 255, 0, 255, 0}, 6)},
		{floats, ir.FromSlice(ir.Int64, []int64{-1, 1, 300, math.MinInt64, math.MaxInt64, 0}, 6)},
		{floats, ir.FromSlice(ir.Uint64, []uint64{0, 1, 300, 0, math.MaxUint64, 0}, 6)},
		{floats, ir.FromSlice(ir.Bool, []bool{true, true, true, true, true, true}, 6)},
		{ir.FromSlice(ir.Float64, []float64{1e300, 1 << 24, 1<<24 + 1}, 3),
			f32([]float32{float32(inf), 1 << 24, 1 << 24}, 3)},
		{i64(257, -1, 0), ir.FromSlice(ir.Uint8, []uint8{1, 255, 0}, 3)},
		{i64(257, -1, 0), ir.FromSlice(ir.Bool, []bool{true, true, false}, 3)},
		{ir.FromSlice(ir.Bool, []bool{true, false}, 2), f32([]float32{1, 0}, 2)},
		{ir.FromSlice(ir.Uint64, []uint64{math.MaxUint64}), ir.FromSlice(ir.Float64, []float64{1 << 64})},
	} {
		got := apply1(t, "CastLike", nil, c.from, c.want)
		near(t, c.want.DType.String(), got, c.want, 0)
		for n := range int64(24) {
			if d, ok := ir.DTypeOfONNX(n); ok && d == c.want.DType {
				near(t, "Cast", apply1(t, "Cast", ir.Attrs{"to": ir.IntAttr(n)}, c.from), got, 0)
			}
		}
	}
}

// TestHalfArithmetic checks that a result in 16 bits is the result for the same numbers in float32, rounded.
func TestHalfArithmetic(t *testing.T) {
	r := random(31)
	x, y := normal(r, 50), normal(r, 50)
	for _, d := range []ir.DType{ir.Float16, ir.BFloat16} {
		like := ir.NewTensor(d)
		cast := func(v *ir.Tensor) *ir.Tensor { return apply1(t, "CastLike", nil, v, like) }
		wide := func(v *ir.Tensor) *ir.Tensor { return apply1(t, "CastLike", nil, v, x) }
		hx, hy := cast(x), cast(y)
		for _, op := range []string{"Add", "Mul", "Div"} {
			near(t, op, apply1(t, op, nil, hx, hy), cast(apply1(t, op, nil, wide(hx), wide(hy))), 0)
		}
	}
}
