package gemm

import (
	"encoding/binary"
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/gemv"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// QuantizedMatMul lowers products with quantised weights. Products of few rows are bound by the bytes of their weights,
// so kernels read these as they are. For others the weights are dequantised at compile time.
func QuantizedMatMul(b *build.Builder, g *build.Group) error {
	for i := 1; i < len(g.Inputs); i++ {
		if v := g.Inputs[i]; v != nil && v.Const == nil {
			return &build.NotConstant{Node: g.Anchor, Input: i, Name: []string{"x", "w", "scale", "zero"}[i]}
		}
	}
	w, scale := g.Inputs[1], g.Inputs[2].Const
	var zero *ir.Tensor
	if len(g.Inputs) > 3 && g.Inputs[3] != nil {
		zero = g.Inputs[3].Const
	}
	q := gemv.NewQuantized(b.In(w), w.Const, scale, zero, g.Anchor.Int("block", 1))
	before, prologue := g.Prologue[0], g.Prologue[0]
	if before != nil && before.DType == ir.Float32 && g.Inputs[0].DType == ir.Float32 {
		before = nil // the kernel takes it
	} else {
		prologue = nil
	}
	x, err := elementwise.Mapped(b, before, g.Inputs[0])
	if err != nil {
		return err
	}
	shape := b.Extents(g.Outputs[0], build.ForTiles)
	last := len(x.Shape) - 1
	cuts := [2]int{last - 1, last}
	if last == 0 {
		x, last = roperator.InsertDim(x, 0), 1
		cuts = [2]int{0, 0}
	}
	p := contraction.Product{
		Kind: "MatMul", Batch: shape[:cuts[0]], M: x.Shape[last-1], K: q.K, N: q.N, A: x, Prologue: prologue,
		Tail: tails.Spec{DType: ir.Float32, Shape: shape, Cuts: cuts},
	}
	matrix := append(append([]int64{}, p.Batch...), q.K, q.N)
	if ir.Count(x.Shape[:last]) <= gemv.MostRows && x.DType() == ir.Float32 && ir.Count(shape) > 0 && q.K > 0 {
		few := p
		few.B = roperator.Contiguous(q.View.Buf, w.Const.Dims).Broadcast(matrix)
		if q.PerColumn() {
			few.Tail.Own = functor.Apply("Mul", functor.Leaf(ir.Float32, 0), functor.Leaf(ir.Float32, 1))
			few.Tail.Operands = []roperator.View{b.Constant(w.Name+".scale", scale)}
		}
		few.FoldBatch(few.Tail.Arrange(b.Out(g.Outputs[0])))
		few.Normalise(b)
		if gemv.AddQuantized(b, g, few, q) {
			return nil
		}
	}
	p.Tail.DType = x.DType()
	p.B = dequantized(b, q, x.DType()).Broadcast(matrix)
	return LowerProduct(b, g, p)
}

// dequantized is the constant of the numbers that q stands for, in the type that they are multiplied in.
func dequantized(b *build.Builder, q *gemv.Quantized, d ir.DType) roperator.View {
	v := b.Packed(q.View.Buf.Name+".dequantized", d, q.K*q.N, func() []byte {
		codes := q.Codes()
		out := make([]byte, 0, int64(d.Size())*q.K*q.N)
		for k := range q.K {
			row := k / q.Block * q.N
			for n := range q.N {
				zero := q.Zeros[0]
				if len(q.Zeros) > 1 {
					zero = q.Zeros[row+n]
				}
				out = appendNumber(out, d, (float32(codes[k*q.N+n])-float32(zero))*q.Scales[row+n])
			}
		}
		return out
	}, q.View)
	return roperator.Contiguous(v.Buf, []int64{q.K, q.N})
}

// appendNumber appends x, rounded to type d.
func appendNumber(out []byte, d ir.DType, x float32) []byte {
	le := binary.LittleEndian
	switch d {
	case ir.Float64:
		return le.AppendUint64(out, math.Float64bits(float64(x)))
	case ir.Float16:
		return le.AppendUint16(out, ir.ToFloat16(x))
	case ir.BFloat16:
		return le.AppendUint16(out, ir.ToBFloat16(x))
	}
	return le.AppendUint32(out, math.Float32bits(x))
}
