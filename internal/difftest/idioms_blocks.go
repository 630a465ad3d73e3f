package difftest

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

func growResidual(r *generator) {
	x := r.features(2)
	y := x
	for range 1 + r.IntN(2) {
		y = r.activation(r.linear(y, lastDim(x)))
	}
	r.activation(r.either("Add", x, y))
}

func growConvNorm(r *generator) {
	x := r.image()
	y := r.conv(x)
	if !r.one(3) {
		y = r.batchNorm(y)
	}
	if same := slices.Equal(dimsOf(x), dimsOf(y)) && x.DType == y.DType; same && r.one(2) {
		y = r.either("Add", x, y)
	}
	if !r.one(4) {
		r.activation(y)
	}
}

func growConvAffine(r *generator) {
	r.affine(r.conv(r.image()), 1+r.IntN(3))
}

// growPreActivated is a layer of DenseNet: a norm or a part of it, an activation, and only then the convolution. Others
// may read what that reads.
func growPreActivated(r *generator) {
	x := r.image()
	y := r.conv(r.activation(r.affine(x, 1+r.IntN(2))))
	if slices.Equal(dimsOf(x)[2:], dimsOf(y)[2:]) && x.DType == y.DType && dimsOf(x)[0] == dimsOf(y)[0] {
		r.node("Concat", ir.Attrs{"axis": ir.IntAttr(1)}, x, y)
	}
}

// growDenseBlock is a block of DenseNet: each layer takes what all before it have made.
func growDenseBlock(r *generator) {
	parts := []*ir.Value{r.image()}
	for range 2 + r.IntN(3) {
		x := parts[0]
		if len(parts) > 1 {
			x = r.node("Concat", ir.Attrs{"axis": ir.IntAttr(1)}, parts...)
		}
		y := x
		if r.one(2) {
			y = r.activation(r.affine(y, 1+r.IntN(2)))
		}
		y = r.conv(y)
		if slices.Equal(dimsOf(x)[2:], dimsOf(y)[2:]) && x.DType == y.DType && dimsOf(x)[0] == dimsOf(y)[0] {
			parts = append(parts, y)
		} else {
			parts = append(parts, r.activation(x))
		}
	}
	r.node("Concat", ir.Attrs{"axis": ir.IntAttr(1)}, parts...)
}

// affine adds operators on each channel of an image.
func (r *generator) affine(y *ir.Value, count int) *ir.Value {
	c := slices.Repeat([]int64{1}, rankOf(y)-1)
	c[0] = dimsOf(y)[1]
	for range count {
		k := r.constant(r.tensor(y.DType, oneOf(r, c, c, []int64{1}, nil), false))
		y = r.either(oneOf(r, "Add", "Mul", "Sub"), y, k)
	}
	return y
}

func growDense(r *generator) {
	x := r.features(2)
	n := 1 + int64(r.IntN(9))
	y := r.linear(x, n)
	if r.one(2) {
		y = r.activation(y)
	}
	if r.one(2) {
		y = r.either("Mul", y, r.vector(y))
	}
	if r.one(3) {
		y = r.node("Reshape", nil, y, r.ints(-1, n))
		y = r.either("Add", y, r.vector(y))
	}
	if r.one(2) {
		r.linear(y, lastDim(y))
	}
}

func growExcite(r *generator) {
	x := r.image()
	s := r.node("GlobalAveragePool", nil, x)
	c := dimsOf(x)[1]
	dims := slices.Repeat([]int64{1}, rankOf(x))
	dims[0], dims[1] = c, c
	if r.one(2) { // squeezed to fewer channels first
		units := 1 + int64(r.IntN(4))
		dims[0] = units
		s = r.activation(r.node("Conv", nil, s, r.constant(r.weights(x.DType, c, dims...))))
		dims = slices.Clone(dims)
		dims[0], dims[1] = c, units
	}
	s = r.node("Sigmoid", nil, r.node("Conv", nil, s, r.constant(r.weights(x.DType, dims[1], dims...))))
	r.either("Mul", x, s)
}

// growBranches joins several views of one value; some branches are views themselves.
func growBranches(r *generator) {
	x := r.features(2)
	axis := r.axis(rankOf(x))
	var in []*ir.Value
	for range 2 + r.IntN(3) {
		switch y := x; r.IntN(5) {
		case 0:
			in = append(in, y)
		case 1:
			in = append(in, r.slice(x))
		default:
			in = append(in, r.activation(y))
		}
	}
	y := r.node("Concat", ir.Attrs{"axis": ir.IntAttr(axis)}, in...)
	if r.one(2) {
		r.activation(y)
	}
}

func growGatedUnit(r *generator) {
	x := r.linear(r.features(2), 2*(1+int64(r.IntN(4))))
	parts := r.nodes("", "Split", 2, ir.Attrs{"axis": ir.IntAttr(-1)}, x)
	r.either("Mul", parts[0], r.node("Sigmoid", nil, parts[1]))
}

// growRotation is a rotary embedding, which swaps the halves of a value and negates one of them.
func growRotation(r *generator) {
	x := r.find(func(v *ir.Value) bool {
		return v.DType == r.palette[0] && rankOf(v) > 1 && lastDim(v)%2 == 0 && lastDim(v) > 0
	})
	if x == nil {
		x = r.source(r.palette[0], append(r.dims(1+r.IntN(2)), 2*r.extent()))
	}
	half := lastDim(x) / 2
	part := func(from, to int64) *ir.Value {
		return r.node("Slice", nil, x, r.ints(from), r.ints(to), r.ints(-1))
	}
	y := r.node("Concat", ir.Attrs{"axis": ir.IntAttr(-1)}, r.node("Neg", nil, part(half, math.MaxInt64)),
		part(0, half))
	r.node("Add", nil, r.either("Mul", x, r.vector(x)), r.either("Mul", y, r.vector(x)))
}

func growHead(r *generator) {
	y := r.node("GlobalAveragePool", nil, r.activation(r.image()))
	y = r.node("Flatten", nil, y)
	k, n := lastDim(y), 1+int64(r.IntN(5))
	y = r.node("Gemm", ir.Attrs{"transB": ir.IntAttr(1)}, y, r.constant(r.weights(y.DType, k, n, k)),
		r.constant(r.weights(y.DType, 1, n)))
	if r.one(2) {
		r.node("Softmax", nil, y)
	}
}
