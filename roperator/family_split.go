package roperator

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// splitSums are candidates that add up the partial results part[i0·splits + s][i1][i2] into t.out.
func splitSums(part View, t *tail, splits int64) []*Candidate {
	var out []*Candidate
	for _, target := range []int64{256, 1024} {
		out = append(out, splitSum(part, t, splits, target))
	}
	return out
}

// splitSum cuts [i1][i2] into tiles of about target elements: whole rows where they are short.
func splitSum(part View, t *tail, splits, target int64) *Candidate {
	d0, d1, d2 := t.out.Shape[0], t.out.Shape[1], t.out.Shape[2]
	cols := min(d2, target)
	rows := min(d1, max(1, target/cols))
	t1, t2 := tileCount(d1, rows), tileCount(d2, cols)
	box := func(task int, lo, hi []int64) {
		i := int64(task)
		i0, r, c := i/t2/t1, i/t2%t1*rows, i%t2*cols
		lo[0], hi[0] = i0, i0+1
		lo[1], hi[1] = r, min(r+rows, d1)
		lo[2], hi[2] = c, min(c+cols, d2)
	}
	partBox := func(task int, lo, hi []int64) {
		box(task, lo, hi)
		lo[0], hi[0] = lo[0]*splits, hi[0]*splits
	}
	args := []rkernels.Field{
		refArg("part", part), {Name: "out", Value: operand3(t.out)}, intArg("d1", d1), intArg("d2", d2),
		intArg("splits", splits), intArg("rows", rows), divField("cols", cols),
		divField("tiles1", t1), divField("tiles2", t2), {Name: "epi", Value: t.args},
	}
	elems := float64(rows * cols)
	return &Candidate{
		Inst: rkernels.Find("split_sum").Bind(t.functor), Tasks: int(d0 * t1 * t2), Args: args,
		Reads:  append(appendRead(nil, part, partBox), t.reads(box)...),
		Writes: []Access{{View: t.out, Box: box}},
		Work: Work{
			Flops:      elems * float64(splits),
			ReadBytes:  elems * (4*float64(splits) + t.bytesPerElement()),
			WriteBytes: elems * float64(t.out.DType().Size()),
		},
	}
}

// lowerTypedProduct adds a product of elements other than float32.
func (b *Builder) lowerTypedProduct(g *Group, p product) error {
	acc, ok := accumulators[p.tail.dtype]
	if !ok {
		return unsupportedType(p.tail.dtype)
	}
	p.normalise(b)
	t := b.newTail(g, p.tail)
	const side = 32
	tm, tn := tileCount(p.m, side), tileCount(p.n, side)
	at := productTiles{batch: p.batch, m: p.m, n: p.n, k: p.k, bm: side, bn: side, tm: tm, tn: tn, splits: 1, kSplit: p.k}
	size := float64(p.tail.dtype.Size())
	work := Work{Flops: 2 * side * side * float64(p.k), WriteBytes: side * side * size}
	work.ReadBytes = side * side * t.bytesPerElement()
	addTraffic(&work, p.a, side*size*float64(p.k))
	addTraffic(&work, p.b, side*size*float64(p.k))
	b.Add(g.Kind(), &Candidate{
		Inst:  rkernels.Find("gemm_typed").Bind(CppType(p.tail.dtype), CppType(acc), t.functor),
		Tasks: int(ir.Count(p.batch) * tm * tn),
		Args: []rkernels.Field{
			refArg("a", p.a), refArg("b", p.b), {Name: "out", Value: operand3(t.out)},
			intArg("M", p.m), intArg("N", p.n), intArg("K", p.k), divField("tiles_m", tm), divField("tiles_n", tn),
			divField("batch1", p.batch[1]), divField("batch2", p.batch[2]),
			intArg("a0", stepOf(p.a, 0)), intArg("a1", stepOf(p.a, 1)), intArg("a2", stepOf(p.a, 2)),
			intArg("am", stepOf(p.a, 3)), intArg("ak", stepOf(p.a, 4)),
			intArg("b0", stepOf(p.b, 0)), intArg("b1", stepOf(p.b, 1)), intArg("b2", stepOf(p.b, 2)),
			intArg("bk", stepOf(p.b, 3)), intArg("bn", stepOf(p.b, 4)),
			{Name: "epi", Value: t.args},
		},
		Reads:  append(at.reads(p.a, p.b), t.reads(at.outBox)...),
		Writes: []Access{{View: t.out, Box: at.outBox}},
		Work:   work,
	})
	t.finish(b)
	return nil
}

// accumulators are the types in which products of an element type are summed.
var accumulators = map[ir.DType]ir.DType{
	ir.Float64: ir.Float64, ir.Float16: ir.Float32, ir.BFloat16: ir.Float32,
	ir.Int32: ir.Int32, ir.Int64: ir.Int64, ir.Uint32: ir.Uint32, ir.Uint64: ir.Uint64,
}
