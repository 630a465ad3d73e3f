package graphopt

import (
	"github.com/rammerc/rammerc/ir"
)

// The products of matrices among what recognizeIntegers rewrites. With the zero points p of a and q of b,
//
//	Σ (a - p)·(b - q) = Σ a·b - p·Σ b - q·Σ a + K·p·q
//
// where the sums over b alone are constants if b is, and q is 0 then, as constants are stored less their zero points.

// product rewrites a product of floats that are codes.
func (r *integers) product(n *ir.Node) {
	a := codesOf(n.Inputs[0])
	if a == nil || a.scale == nil || constOf(a.v) != nil || len(n.Outputs[0].Shape) == 0 {
		return
	}
	scale, zero, ok := a.uniform()
	if !ok {
		return
	}
	if d := dequantizedBy(n.Inputs[1]); d != nil && isByte(d.w.DType) {
		r.weightedProduct(n, a, scale, zero, d)
		return
	}
	b := codesOf(n.Inputs[1])
	if !n.Is("MatMul") || b == nil || b.scale == nil || !bothMatrices(a.v, b.v) {
		return
	}
	if other, zeroB, ok := b.uniform(); ok {
		sum := r.internal("IntegerMatMul", nil, a.v, b.v)
		r.becomeScaled(r.lessBoth(sum, a.v, b.v, zero, zeroB), []float64{scale * other}, nil, 0, nil)
	}
}

// bothMatrices reports whether both factors have rows and columns, of known number.
func bothMatrices(a, b *ir.Value) bool {
	_, okA := a.Shape.Consts()
	_, okB := b.Shape.Consts()
	return okA && okB && len(a.Shape) > 1 && len(b.Shape) > 1
}

// weightedProduct rewrites the product of a with constants d.
func (r *integers) weightedProduct(n *ir.Node, a *codes, scale float64, zero int64, d *dequantized) {
	if n.Int("transB", 0) != 0 {
		d.transpose()
	}
	q := d.inColumns()
	if q == nil || q.block != d.w.Dims[0] {
		return
	}
	columns := q.w.Dims[1]
	parts := centred(q.w, q.zero)
	scales, shift := numbers(q.scale), make([]float64, columns)
	excess := columnSums(parts)
	for i := range scales {
		scales[i] *= scale
		shift[i] = -float64(zero) * float64(excess[i]) * scales[i]
	}
	bias := n.Input(2)
	if bias != nil {
		if t := constantTree(bias, 0); t != nil &&
			(t.Len() == 1 || t.Len() == columns && t.Dims[len(t.Dims)-1] == columns) {
			for i, x := range repeated(numbers(t), int(columns)) {
				shift[i] += x
			}
			bias = nil
		}
	}
	r.becomeScaled(r.sums("IntegerMatMul", nil, a.v, parts), scales, shift, 0, bias)
}

// columnSums adds up the columns of matrices [K][N], all parts together.
func columnSums(parts []*ir.Tensor) []int64 {
	columns := parts[0].Dims[1]
	sums := make([]int64, columns)
	for _, t := range parts {
		for i, x := range ir.Slice[int8](t) {
			sums[int64(i)%columns] += int64(x)
		}
	}
	return sums
}

// lessBoth is the sum of products of a and b less what their zero points add to it.
func (r *integers) lessBoth(sum, a, b *ir.Value, zeroA, zeroB int64) *ir.Value {
	depth, _ := a.Shape[len(a.Shape)-1].Const()
	if zeroA != 0 {
		sum = r.elementwise("Sub", ir.Int32, "centred", sum, r.lineSum(b, -2, zeroA, -depth*zeroA*zeroB))
	}
	if zeroB != 0 {
		sum = r.elementwise("Sub", ir.Int32, "centred", sum, r.lineSum(a, -1, zeroB, 0))
	}
	return sum
}

// lineSum is factor·Σ v + more, where the sum is over axis, which becomes 1.
func (r *integers) lineSum(v *ir.Value, axis, factor, more int64) *ir.Value {
	n := r.node
	shape := append(ir.Shape{}, v.Shape...)
	shape[int64(len(shape))+axis] = ir.D(1)
	wide := r.add("Cast", castAttrs("Cast", ir.Int32), n.Origins, ir.Int32, v.Shape, v.Name+".whole", v)
	axes := r.constant(v.Name+".axis", ir.FromSlice(ir.Int64, []int64{axis}, 1))
	out := r.add("ReduceSum", ir.Attrs{"keepdims": ir.IntAttr(1)}, n.Origins, ir.Int32, shape, v.Name+".sum",
		wide, axes)
	number := func(x int64) *ir.Value {
		return r.constant(v.Name+".zero", ir.FromSlice(ir.Int32, []int32{int32(x)}))
	}
	out = r.add("Mul", nil, n.Origins, ir.Int32, shape, v.Name+".sum", out, number(factor))
	if more != 0 {
		out = r.add("Add", nil, n.Origins, ir.Int32, shape, v.Name+".sum", out, number(more))
	}
	return out
}

// integerProduct rewrites a product of int32 whose factors are codes less their zero points: MatMulInteger and
// QLinearMatMul.
func (r *integers) integerProduct(n *ir.Node) {
	a, b := codesOf(n.Inputs[0]), codesOf(n.Inputs[1])
	if a == nil || b == nil || a.scale != nil || b.scale != nil || constOf(a.v) != nil {
		return
	}
	zero, ok := a.uniformZero()
	if constOf(b.v) == nil || len(b.v.Const.Dims) != 2 || b.v.Const.Len() == 0 {
		zeroB, okB := b.uniformZero()
		if ok && okB && bothMatrices(a.v, b.v) {
			sum := r.lessBoth(r.internal("IntegerMatMul", nil, a.v, b.v), a.v, b.v, zero, zeroB)
			r.forward(sum)
		}
		return
	}
	parts, okB := b.weights()
	if !okB || !ok && len(a.v.Shape) == 1 {
		return
	}
	sum := r.sums("IntegerMatMul", nil, a.v, parts)
	columns := []int64{parts[0].Dims[1]}
	switch {
	case !ok:
		sum = r.lessExcess(sum, a.zero, columnSums(parts), columns)
	case zero != 0:
		at := r.constant(n.Inputs[0].Name+".zero", ir.FromSlice(ir.Int32, []int32{int32(zero)}))
		sum = r.lessExcess(sum, at, columnSums(parts), columns)
	}
	r.forward(sum)
}
