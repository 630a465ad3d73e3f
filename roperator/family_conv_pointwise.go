package roperator

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// pointwise is out[image][group·channel][p] = Σ_k W[group][channel][k]·X[image][group·k][p] with constant W:
// a pointwise convolution, or a matrix product whose left factor is constant.
type pointwise struct {
	kind           string
	images, groups int64
	outC, inC      int64 // of a group
	positions      int64
	x              View // [image][channel][position]
	w              View // [group][output channel][input channel]
	prologue       *Expr
	tail           tailSpec
}

func (c *convolution) pointwise() *pointwise {
	x, _ := c.x.Collapse(1, 2)
	w := View{Buf: c.w.Buf, Offset: c.w.Offset, Shape: c.w.Shape[:3], Strides: c.w.Strides[:3]}
	return &pointwise{
		kind: c.kind, images: c.images, groups: c.groups, outC: c.outC, inC: c.inC, positions: c.positions(),
		x: x, w: w, prologue: c.prologue, tail: c.tail,
	}
}

// leftConstant reports a product that addLeftConstant can take: A is the same for the whole batch, which
// is one dim.
func (p *product) leftConstant() bool {
	for d := range 3 {
		if stepOf(p.a, d) != 0 {
			return false
		}
	}
	return p.batch[0] == 1 && p.batch[1] == 1 && p.prologue == nil
}

func (b *Builder) addLeftConstant(g *Group, p product) {
	b.addPointwise(g, &pointwise{
		kind: p.kind, images: p.batch[2], groups: 1, outC: p.m, inC: p.k, positions: p.n,
		x:    View{Buf: p.b.Buf, Offset: p.b.Offset, Shape: p.b.Shape[2:], Strides: p.b.Strides[2:]},
		w:    View{Buf: p.a.Buf, Offset: p.a.Offset, Shape: p.a.Shape[2:], Strides: p.a.Strides[2:]},
		tail: p.tail,
	})
}

// addPointwise adds it as a product with the packed constant on the left.
func (b *Builder) addPointwise(g *Group, c *pointwise) {
	shapes := usefulShapes(c.outC, c.positions)
	tasks := func(s tileShape) int64 {
		return c.images * c.groups * tileCount(c.outC, s.bm) * tileCount(c.positions, s.bn)
	}
	b.addSplit(g, c.kind, c.tail, splitsFor(shapes, tasks, c.inC, ir.Count(c.tail.shape), b.shares[g.Node]), func(t *tail, splits int64) []*Candidate {
		var out []*Candidate
		packed := map[[2]int64]View{}
		for _, s := range shapes {
			key := [2]int64{s.bm, s.bk}
			if packed[key].Buf == nil {
				packed[key] = b.packRows(c, s)
			}
			out = append(out, c.candidate(s, t, splits, packed[key]))
		}
		return out
	})
}

func (c *pointwise) candidate(s tileShape, t *tail, splits int64, w View) *Candidate {
	pro, proArgs := prologueFunctor(ir.Float32, c.prologue)
	tm, tn, tk := tileCount(c.outC, s.bm), tileCount(c.positions, s.bn), tileCount(c.inC, s.bk)
	splitK := tileCount(tk, splits)
	at := &convTiles{groups: c.groups, outC: c.outC, positions: c.positions, bm: s.bm, bn: s.bn, tm: tm, tn: tn, splits: splits}
	readBox := func(task int, lo, hi []int64) {
		p := at.tile(task)
		image, split := p.i0/splits, p.i0%splits
		lo[0], hi[0] = image, image+1
		lo[1] = p.group*c.inC + min(split*splitK*s.bk, c.inC)
		hi[1] = p.group*c.inC + min((split+1)*splitK*s.bk, c.inC)
		lo[2], hi[2] = p.p0, p.p1
	}
	depth := min(splitK, tk) * s.bk
	return &Candidate{
		Inst:  rkernels.Find("conv_pointwise").Bind(append(s.params(), loadMode(c.x, 1, 2), t.functor, pro)...),
		Tasks: int(c.images * splits * c.groups * tm * tn),
		Args: []rkernels.Field{
			refArg("x", c.x), refArg("w", w), {Name: "out", Value: operand3(t.out)},
			divField("groups", c.groups), intArg("out_channels", c.outC), intArg("in_channels", c.inC),
			intArg("positions", c.positions), divField("tiles_m", tm), divField("tiles_n", tn),
			intArg("tiles_k", tk), intArg("split_k", splitK), divField("splits", splits),
			intArg("step_n", stepOf(c.x, 0)), intArg("step_c", stepOf(c.x, 1)), intArg("step_p", stepOf(c.x, 2)),
			{Name: "epi", Value: t.args}, {Name: "pro", Value: proArgs},
		},
		Reads:  append(appendRead(nil, c.x, readBox), t.reads(at.outBox)...),
		Writes: []Access{{View: t.out, Box: at.outBox}},
		Work:   tileWork(s, c.outC, c.positions, depth, t, 4*float64(min(s.bn, c.positions)*depth)),
	}
}
