// Package pointwise lowers products whose left factor is constant: convolutions with filters of one tap, and
// matrix products with a constant on the left.
package pointwise

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Product is out[image][group·channel][p] = Σ_k W[group][channel][k]·X[image][group·k][p] with constant W:
// a pointwise convolution, or a matrix product whose left factor is constant.
type Product struct {
	Kind           string
	Images, Groups int64
	OutC, InC      int64 // of a group
	Positions      int64
	X              roperator.View // [image][channel][position]
	W              roperator.View // [group][output channel][input channel]
	Prologue       *functor.Expr
	Tail           tails.Spec
	// Elements are those of the kernel; W is Left, X is Right.
	Elements contraction.Elements
}

func AddLeftConstant(b *build.Builder, g *build.Group, p contraction.Product) {
	Add(b, g, &Product{
		Kind: p.Kind, Images: p.Batch[2], Groups: 1, OutC: p.M, InC: p.K, Positions: p.N,
		X:    roperator.View{Buf: p.B.Buf, Offset: p.B.Offset, Shape: p.B.Shape[2:], Strides: p.B.Strides[2:]},
		W:    roperator.View{Buf: p.A.Buf, Offset: p.A.Offset, Shape: p.A.Shape[2:], Strides: p.A.Strides[2:]},
		Tail: p.Tail, Elements: p.Elements,
	})
}

// Add adds the rOperators of c, with candidates that have the packed constant on the left.
func Add(b *build.Builder, g *build.Group, c *Product) {
	shapes := contraction.UsefulShapes(b.Target(), contraction.LeftConstant(b.Precision()), c.Elements, c.OutC, c.Positions)
	tasks := func(s contraction.TileShape) int64 {
		return c.Images * c.Groups * build.CeilDiv(c.OutC, s.BM) * build.CeilDiv(c.Positions, s.BN)
	}
	splits := contraction.SplitsFor(b.Target(), c.Elements, shapes, tasks, c.InC, ir.Count(c.Tail.Shape), b.Share(g))
	contraction.AddSplit(b, g, c.Kind, c.Elements, c.Tail, splits,
		func(t *tails.Tail, splits int64) []*roperator.Candidate {
			var out []*roperator.Candidate
			packed := map[[3]int64]roperator.View{}
			for _, s := range shapes {
				key := [3]int64{s.BM, s.BK, s.Products()}
				if packed[key].Buf == nil {
					packed[key] = packRows(b, c, s)
				}
				out = append(out, c.candidate(b, s, t, splits, packed[key]))
			}
			return out
		})
}

func (c *Product) candidate(b *build.Builder, s contraction.TileShape, t *tails.Tail, splits int64,
	w roperator.View) *roperator.Candidate {
	pro, proArgs := tails.Prologue(c.X.DType(), c.Prologue)
	tm, tn, tk := build.CeilDiv(c.OutC, s.BM), build.CeilDiv(c.Positions, s.BN), build.CeilDiv(c.InC, s.BK)
	splitK := build.CeilDiv(tk, splits)
	at := &contraction.PositionTiles{Groups: c.Groups, OutC: c.OutC, Positions: c.Positions, Bm: s.BM, Bn: s.BN, Tm: tm,
		Tn: tn, Splits: splits}
	readBox := func(task int, lo, hi []int64) {
		p := at.Tile(task)
		image, split := p.I0/splits, p.I0%splits
		lo[0], hi[0] = image, image+1
		lo[1] = p.Group*c.InC + min(split*splitK*s.BK, c.InC)
		hi[1] = p.Group*c.InC + min((split+1)*splitK*s.BK, c.InC)
		lo[2], hi[2] = p.P0, p.P1
	}
	depth := min(splitK, tk) * s.BK
	return &roperator.Candidate{
		Inst: b.Instance(s.Kernel("conv_pointwise"), s.Params([]any{contraction.LoadMode(c.X, 1, 2)}, c.X.DType(),
			w.DType(), t.Functor, pro)...),
		Tasks: int(c.Images * splits * c.Groups * tm * tn),
		Args: []rkernels.Field{
			arg.Ref("x", c.X), arg.Ref("w", w), {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Div("groups", c.Groups), arg.Int("out_channels", c.OutC), arg.Int("in_channels", c.InC),
			arg.Int("positions", c.Positions), arg.Div("tiles_m", tm), arg.Div("tiles_n", tn),
			arg.Int("tiles_k", tk), arg.Int("split_k", splitK), arg.Div("splits", splits),
			arg.Int("step_n", c.X.Stride(0)), arg.Int("step_c", c.X.Stride(1)), arg.Int("step_p", c.X.Stride(2)),
			{Name: "epi", Value: t.Args}, {Name: "pro", Value: proArgs},
		},
		Reads:  append(roperator.AppendRead(nil, c.X, readBox), t.Reads(at.OutBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: at.OutBox}},
		Work: contraction.TileWork(s, c.Elements, c.OutC, c.Positions, depth, t,
			c.X.Bytes(float64(min(s.BN, c.Positions)*depth))),
	}
}

// packRows packs W for conv_pointwise as [group][channel tile][k tile][bk][bm].
func packRows(b *build.Builder, c *Product, s contraction.TileShape) roperator.View {
	w := c.W
	tm, tk := build.CeilDiv(c.OutC, s.BM), build.CeilDiv(c.InC, s.BK)
	elems := c.Groups * tm * tk * s.PackedBlock(s.BM)
	name := fmt.Sprintf("%s.rows%dx%d%s", w.Buf.Name, s.BM, s.BK, s.PackedSuffix())
	return b.Packed(name, c.Elements.Left, elems, func() []byte {
		pk := pack.New(w, elems, c.Elements.Left)
		rows := pack.NewAxis(c.OutC, func(m int64) (int64, int64) {
			return m * w.Strides[1],
				s.PackedPlace(s.BM, tk, m, 0)
		})
		cols := pack.NewAxis(c.InC, func(k int64) (int64, int64) {
			return k * w.Strides[2],
				s.PackedPlace(s.BM, tk, 0, k)
		})
		for g := range c.Groups {
			pk.Put(w.Offset+g*w.Strides[0], s.PackedPlace(s.BM, tk, g*tm*s.BM, 0), rows, cols)
		}
		return s.FinishPacked(pk.Bytes(), s.BM)
	}, w)
}
