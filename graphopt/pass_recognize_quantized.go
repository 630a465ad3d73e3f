package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// recognizeQuantized finds products of few rows with weights that are dequantised before: (Cast(w) - zero)·scale, which
// is what the importer makes of DequantizeLinear and MatMulNBits. The weights stay as they are then, of 8 or 4 bits, and
// the product reads them so.
//
// Requires: types inferred. It must come before constants are folded, which would make floats of the weights. Leaves:
// rammer.QuantizedMatMul. Weights whose scales differ along k other than in blocks stay as they are.
func recognizeQuantized(c *Context, g *ir.Graph) (bool, error) {
	type key struct {
		w          *ir.Value
		transposed bool
	}
	done := map[key]*quantized{}
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		if !isPlainProduct(n) || n.Inputs[1].Def == nil || !n.Outputs[0].DType.IsFloat() {
			return
		}
		dims, ok := n.Inputs[0].Shape.Consts()
		if !ok || len(dims) == 0 || ir.Count(dims[:len(dims)-1]) > mostRows {
			return
		}
		w := key{n.Inputs[1], n.Int("transB", 0) != 0}
		if done[w] == nil {
			d := dequantizedBy(w.w)
			if d == nil {
				return
			}
			if w.transposed {
				d.transpose()
			}
			if done[w] = d.inColumns(); done[w] == nil {
				return
			}
		}
		s.multiplyQuantized(n, done[w])
	}), nil
}

// dequantized is a matrix (Cast(w) - zero)·scale of constants. scale and zero are broadcast to it, or stand for blocks of
// it along an axis.
type dequantized struct {
	w           *ir.Tensor
	scale, zero *blocked // zero is nil for zero points of 0
}

// blocked is a matrix of constants, each of which stands for block neighbours along axis. block is 0 where it is broadcast
// instead.
type blocked struct {
	t     *ir.Tensor
	axis  int
	block int64
}

// dequantizedBy takes apart what computes v; it is nil for anything but a dequantised matrix of constants.
func dequantizedBy(v *ir.Value) *dequantized {
	if t := definedBy(v, "Transpose"); t != nil && len(v.Shape) == 2 {
		d := dequantizedBy(t.Inputs[0])
		if perm := t.Attrs["perm"].Ints; d != nil && !slices.Equal(perm, []int64{0, 1}) {
			d.transpose()
		}
		return d
	}
	if t := definedBy(v, "Cast"); t != nil && v.DType.IsFloat() && t.Inputs[0].DType.IsFloat() {
		return dequantizedBy(t.Inputs[0])
	}
	mul := definedBy(v, "Mul")
	if mul == nil || len(v.Shape) != 2 {
		return nil
	}
	d := &dequantized{scale: blockedBy(mul.Inputs[1])}
	codes := mul.Inputs[0]
	if sub := definedBy(codes, "Sub"); sub != nil {
		codes = sub.Inputs[0]
		if d.zero = blockedBy(sub.Inputs[1]); d.zero == nil {
			return nil
		}
	}
	cast := definedBy(codes, "Cast")
	if cast == nil || d.scale == nil || constOf(cast.Inputs[0]) == nil || len(cast.Inputs[0].Shape) != 2 {
		return nil
	}
	d.w = cast.Inputs[0].Const
	if !slices.Contains([]ir.DType{ir.Int8, ir.Uint8, ir.Int4, ir.Uint4}, d.w.DType) {
		return nil
	}
	return d
}

// transpose makes d the transposed matrix.
func (d *dequantized) transpose() {
	d.w = compute("Transpose", nil, d.w)
	for _, b := range []*blocked{d.scale, d.zero} {
		if b != nil {
			b.t, b.axis = compute("Transpose", nil, b.t), 1-b.axis
		}
	}
}

// blockedBy evaluates a scale or zero point. A Gather with the indices i/block repeats each element for a block; it is
// not carried out.
func blockedBy(v *ir.Value) *blocked {
	b := &blocked{}
	if cast := definedBy(v, "Cast"); cast != nil && definedBy(cast.Inputs[0], "Gather") != nil {
		inner := blockedBy(cast.Inputs[0])
		if inner != nil {
			inner.t = convert(inner.t, v.DType)
		}
		return inner
	}
	if gather := definedBy(v, "Gather"); gather != nil && len(v.Shape) == 2 {
		index := constantTree(gather.Inputs[1], 0)
		if index == nil || index.DType != ir.Int64 || len(index.Dims) != 1 {
			return nil
		}
		list := ir.Slice[int64](index)
		b.block = int64(len(list))
		if first := slices.Index(list, 1); first > 0 {
			b.block = int64(first)
		}
		for i, at := range list {
			if at != int64(i)/b.block {
				return nil
			}
		}
		b.axis, v = normalAxis(gather.Int("axis", 0), 2), gather.Inputs[0]
	}
	if b.t = constantTree(v, 0); b.t == nil || len(b.t.Dims) > 2 {
		return nil
	}
	for len(b.t.Dims) < 2 {
		b.t = reshaped(b.t, append([]int64{1}, b.t.Dims...)...)
	}
	return b
}

// mostTree bounds the depth of the expressions of constants that constantTree evaluates.
const mostTree = 8

// constantTree is the value of v if it is computed from constants alone, otherwise nil.
func constantTree(v *ir.Value, depth int) *ir.Tensor {
	switch {
	case v.Const != nil:
		return v.Const
	case v.Def == nil || v.Def.Domain != "" || depth > mostTree || len(v.Def.Subgraphs()) > 0:
		return nil
	}
	in := make([]*ir.Tensor, len(v.Def.Inputs))
	for i, x := range v.Def.Inputs {
		if x == nil {
			continue
		}
		if in[i] = constantTree(x, depth+1); in[i] == nil {
			return nil
		}
	}
	out, err := eval.NodeWith(v.Def, in, eval.Options{MaxBytes: DefaultFoldLimit << 8})
	if err != nil || len(out) != 1 {
		return nil
	}
	return out[0]
}

// inColumns brings d to the form of rammer.QuantizedMatMul: scales and zero points for each column and block of rows. It
// is nil where that is not possible.
func (d *dequantized) inColumns() *quantized {
	k, n := d.w.Dims[0], d.w.Dims[1]
	if d.w.Len() == 0 {
		return nil
	}
	q := &quantized{w: d.w, block: k}
	for _, b := range []*blocked{d.scale, d.zero} {
		if b != nil && b.block > 0 && b.t.Dims[b.axis] > 1 {
			if b.axis != 0 || q.block != k && q.block != b.block {
				return nil
			}
			q.block = b.block
		}
	}
	groups := (k + q.block - 1) / q.block
	if q.scale = d.scale.rows(groups, n); q.scale == nil {
		return nil
	}
	q.scale = convert(q.scale, ir.Float32)
	if d.zero != nil {
		if q.zero = d.zero.rows(groups, n); q.zero == nil {
			return nil
		}
		q.zero = convert(q.zero, d.w.DType)
	}
	return q
}

// rows broadcasts b to [groups,n], nil if it has other dims.
func (b *blocked) rows(groups, n int64) *ir.Tensor {
	if r, c := b.t.Dims[0], b.t.Dims[1]; r != 1 && r != groups || c != 1 && c != n {
		return nil
	}
	return compute("Expand", nil, b.t, ir.FromSlice(ir.Int64, []int64{groups, n}, 2))
}
