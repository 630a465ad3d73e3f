package difftest

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// The greatest numbers of elements of a tensor. Those of large cases need several tiles of an rKernel.
const (
	maxElems      = 4096
	maxElemsLarge = 1 << 15
)

// dims draws a shape: small, sometimes with ones and zeros, sometimes with one longer axis.
func (r *generator) dims(rank int) []int64 {
	d := make([]int64, rank)
	for i := range d {
		d[i] = r.extent()
	}
	if rank > 0 && r.one(6) {
		d[r.IntN(rank)] = oneOf[int64](r, 9, 16, 17, 33, 40)
	}
	if rank > 0 && r.large && r.one(2) {
		d[r.IntN(rank)] = r.wide()
	}
	for ir.Count(d) > r.limit()/4 {
		d[r.IntN(rank)] = 2
	}
	return d
}

func (r *generator) limit() int64 {
	if r.large {
		return maxElemsLarge
	}
	return maxElems
}

// wide is an extent around the extents of tiles.
func (r *generator) wide() int64 { return oneOf[int64](r, 63, 64, 65, 100, 127, 128, 130, 200, 257) }

func (r *generator) extent() int64 {
	if r.one(60) {
		return 0
	}
	if r.large && r.one(6) {
		return r.wide()
	}
	return []int64{1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8}[r.IntN(12)]
}

// tensor draws elements: floats from the normal distribution, and small integers. Wild tensors also have specials.
func (r *generator) tensor(d ir.DType, dims []int64, wild bool) *ir.Tensor {
	return r.fill(d, dims, func() float64 {
		switch {
		case d == ir.Bool:
			return float64(r.IntN(2))
		case d.IsFloat() && wild && r.IntN(5) == 0:
			return specials[r.IntN(len(specials))]
		case d.IsFloat() && r.IntN(24) == 0: // whole numbers, so that some elements are equal or zero
			return float64(r.IntN(3) - 1)
		case d.IsFloat():
			return r.NormFloat64()
		case d.IsSigned():
			return float64(r.IntN(13) - 6)
		}
		return float64(r.IntN(10))
	})
}

// specials are elements that break assumptions. There are no large ones, because whether x·x overflows depends on the
// precision that an engine computes in.
var specials = []float64{
	math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, 1e-40, -1e-40, math.SmallestNonzeroFloat32,
	1e-30, 0.5, 1.5, 2.5, -0.5, 100, -100,
}

// weights draws a constant such that its products with numbers around 1, summed over fan elements, are around 1 again.
func (r *generator) weights(d ir.DType, fan int64, dims ...int64) *ir.Tensor {
	scale := 1 / math.Sqrt(float64(max(fan, 1)))
	return r.fill(d, dims, func() float64 { return scale * r.NormFloat64() })
}

// between draws floats from [lo, hi) or integers from lo to hi.
func (r *generator) between(d ir.DType, lo, hi float64, dims ...int64) *ir.Tensor {
	return r.fill(d, dims, func() float64 {
		if d.IsFloat() {
			return lo + (hi-lo)*r.Float64()
		}
		return lo + float64(r.IntN(int(hi-lo)+1))
	})
}

func (r *generator) fill(d ir.DType, dims []int64, next func() float64) *ir.Tensor {
	t := ir.NewTensor(ir.Float64, dims...)
	data := ir.Slice[float64](t)
	for i := range data {
		data[i] = next()
	}
	return convert(t, d)
}

func filled(d ir.DType, x float64, dims ...int64) *ir.Tensor {
	t := ir.NewTensor(ir.Float64, dims...)
	data := ir.Slice[float64](t)
	for i := range data {
		data[i] = x
	}
	return convert(t, d)
}

// convert is t with its elements converted to d, as Cast does.
func convert(t *ir.Tensor, d ir.DType) *ir.Tensor {
	if t.DType == d {
		return t
	}
	n := &ir.Node{Op: "Cast", Attrs: ir.Attrs{"to": ir.IntAttr(d.ONNX())}, Outputs: []*ir.Value{{Name: "y"}}}
	out, err := eval.Node(n, []*ir.Tensor{t})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return out[0]
}

// tame reports whether the elements of a result are so small that sums, products and squares of them do not overflow.
// It is asked of cases that are not wild.
func tame(op string, t *ir.Tensor) bool {
	limit := map[ir.DType]float64{ir.Float16: 200, ir.BFloat16: 1e4, ir.Float32: 1e4, ir.Float64: 1e4}[t.DType]
	if limit == 0 {
		limit = 1 << 24
		if op == "BitwiseNot" || op == "BitShift" || op == "Cast" || t.DType.Size() < 4 {
			return true
		}
	}
	for i := range t.Len() {
		if !(math.Abs(tolerance.At(t, i)) <= limit) {
			return false
		}
	}
	return true
}

// undefined reports nodes whose results the standard does not define for these inputs.
func undefined(n *ir.Node, in []*ir.Tensor) bool {
	if n.Domain != "" || len(in) == 0 || in[0] == nil {
		return false
	}
	switch n.Op {
	case "Cast":
		to, _ := ir.DTypeOfONNX(n.Int("to", 0))
		return !castable(in[0], to)
	case "CastLike":
		return !castable(in[0], in[1].DType)
	case "Div", "Mod":
		return in[0].DType.IsInt() && someElement(in[1], func(x float64) bool { return x == 0 || x == -1 })
	case "Pow":
		return !in[0].DType.IsFloat() && (someElement(in[1], func(x float64) bool { return !(x >= 0 && x <= 4) }) ||
			someElement(in[0], func(x float64) bool { return math.Abs(x) > 10 }))
	case "BitShift":
		width := float64(8 * in[0].DType.Size())
		return someElement(in[1], func(x float64) bool { return x >= width })
	case "ReduceMean", "ReduceMax", "ReduceMin":
		return in[0].Len() == 0
	case "Shrink":
		return !in[0].DType.IsFloat() && n.Float("bias", 0) != 0
	case "OneHot":
		return someElement(in[0], func(x float64) bool { return x != math.Floor(x) })
	}
	return false
}

// castable reports whether every element can be converted to d. Integers always can, because they wrap.
func castable(t *ir.Tensor, d ir.DType) bool {
	if !t.DType.IsFloat() || !d.IsInt() {
		return true
	}
	bits := float64(8 * d.Size())
	lo, hi := 0.0, math.Exp2(bits)
	if d.IsSigned() {
		lo, hi = -math.Exp2(bits-1), math.Exp2(bits-1)
	}
	return !someElement(t, func(x float64) bool { return !(math.Trunc(x) >= lo && math.Trunc(x) < hi) })
}

func someElement(t *ir.Tensor, f func(float64) bool) bool {
	for i := range t.Len() {
		if f(tolerance.At(t, i)) {
			return true
		}
	}
	return false
}

func rankOf(v *ir.Value) int { return len(v.Shape) }

func dimsOf(v *ir.Value) []int64 { return slices.Clone(v.Shape.MustConsts()) }
