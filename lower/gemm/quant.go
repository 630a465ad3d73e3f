package gemm

import (
	"encoding/binary"
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
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
	f, err := contraction.ReadFactors(b, g, true)
	if err != nil {
		return err
	}
	x, shape := f.X, b.Extents(g.Outputs[0], build.ForTiles)
	last := len(x.Shape) - 1
	cuts := [2]int{last - 1, last}
	if last == 0 {
		x, last = roperator.InsertDim(x, 0), 1
		cuts = [2]int{0, 0}
	}
	p := contraction.Product{
		Kind: "MatMul", Batch: shape[:cuts[0]], M: x.Shape[last-1], K: q.K, N: q.N, A: x, Prologue: f.Prologue,
		Multiplied: x.DType(), Tail: tails.Spec{DType: g.Anchor.Outputs[0].DType, Shape: shape, Cuts: cuts},
		RootMeanSquare: rootMeanSquare(g),
	}
	if ir.Count(x.Shape[:last]) <= gemv.MostRows && ir.Count(shape) > 0 && addFewRows(b, g, p, q, w.Name) {
		return nil
	}
	if p.Prologue != nil {
		p.Multiplied = p.Prologue.DType
	}
	p.B = dequantized(b, q, p.Multiplied).Broadcast(matrixShape(p))
	return LowerProduct(b, g, p)
}

// matrixShape is the shape of the product's right factor.
func matrixShape(p contraction.Product) []int64 {
	return append(append([]int64{}, p.Batch...), p.K, p.N)
}

// addFewRows adds a product that reads the weights as they are. It returns false if there is no kernel for it.
func addFewRows(b *build.Builder, g *build.Group, p contraction.Product, q *gemv.Quantized, name string) bool {
	if functor.RealType(p.Multiplied) != ir.Float32 || q.K == 0 {
		return false
	}
	p.B = roperator.Contiguous(q.View.Buf, []int64{q.K, q.N}).Broadcast(matrixShape(p))
	if d := p.Tail.DType; q.PerColumn() {
		scale := ir.FromSlice(ir.Float32, q.Scales, q.N)
		p.Tail.Own = functor.Cast(d, functor.Apply("Mul", functor.Leaf(ir.Float32, 0), functor.Leaf(ir.Float32, 1)))
		p.Tail.Operands = []roperator.View{b.Constant(name+".scale", scale)}
		p.Tail.DType = ir.Float32
	}
	p.FoldBatch(p.Tail.Arrange(b.Out(g.Outputs[0])))
	p.Normalise(b)
	return gemv.AddQuantized(b, g, p, q)
}

// dequantized is the constant of the numbers that q stands for. Those that are multiplied in 16 bits are rounded when
// they are packed.
func dequantized(b *build.Builder, q *gemv.Quantized, multiplied ir.DType) roperator.View {
	d := ir.Float32
	if multiplied == ir.Float64 {
		d = multiplied
	}
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
				x := (float32(codes[k*q.N+n]) - float32(zero)) * q.Scales[row+n]
				if d == ir.Float64 {
					out = binary.LittleEndian.AppendUint64(out, math.Float64bits(float64(x)))
				} else {
					out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
				}
			}
		}
		return out
	}, q.View)
	return roperator.Contiguous(v.Buf, []int64{q.K, q.N})
}
