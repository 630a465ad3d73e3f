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
	q := quantized(b, g)
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
		RootMeanSquare: rootMeanSquare(g), Parts: partsOf(b, g),
	}
	if ir.Count(x.Shape[:last]) <= gemv.MostRows && ir.Count(shape) > 0 && addFewRows(b, g, p, q) {
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

// quantized are the weights of a rammer.QuantizedMatMul.
func quantized(b *build.Builder, g *build.Group) *gemv.Quantized {
	var zero *ir.Tensor
	if len(g.Inputs) > 3 && g.Inputs[3] != nil {
		zero = g.Inputs[3].Const
	}
	w := g.Inputs[1]
	return gemv.NewQuantized(b.In(w), w.Const, g.Inputs[2].Const, zero, g.Anchor.Int("block", 1))
}

// addFewRows adds a product that reads the weights as they are. It returns false if there is no kernel for it.
func addFewRows(b *build.Builder, g *build.Group, p contraction.Product, q *gemv.Quantized) bool {
	if functor.RealType(p.Multiplied) != ir.Float32 || q.K == 0 {
		return false
	}
	matrix := func(q *gemv.Quantized) roperator.View {
		return roperator.Contiguous(q.View.Buf, []int64{q.K, q.N}).Broadcast(matrixShape(p))
	}
	p.B = matrix(q)
	weights := []*gemv.Quantized{q}
	own, operands := columnScales(b, g, p.Tail.DType, q)
	if second := b.Second(g); second != nil {
		r := quantized(b, second)
		weights, p.Second = append(weights, r), matrix(r)
		pair := &tails.Pair{Value: second.Outputs[0], Epilogue: second.Epilogue}
		pair.Own, pair.Operands = columnScales(b, second, p.Tail.DType, r)
		p.Tail.Pair = pair
	}
	if own != nil {
		p.Tail.Own, p.Tail.Operands, p.Tail.DType = own, operands, ir.Float32
	}
	p.FoldBatch(p.Tail.Arrange(b.Out(g.Outputs[0])))
	p.Normalise(b)
	return gemv.AddQuantized(b, g, p, weights)
}

// columnScales multiplies sums by the scales of columns, if all weights of a column have one. Then the result of type d
// is leaf 0, and the scales are leaf 1.
func columnScales(b *build.Builder, g *build.Group, d ir.DType,
	q *gemv.Quantized) (*functor.Expr, []roperator.View) {
	if !q.PerColumn() {
		return nil, nil
	}
	scale := ir.FromSlice(ir.Float32, q.Scales, q.N)
	own := functor.Cast(d, functor.Apply("Mul", functor.Leaf(ir.Float32, 0), functor.Leaf(ir.Float32, 1)))
	return own, []roperator.View{b.Constant(g.Inputs[1].Name+".scale", scale)}
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
