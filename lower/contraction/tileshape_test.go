package contraction

import (
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
)

// TestSplits: sums are split where that fills the rounds of a wide device, and not where little is left to
// do between taking a tile up and adding it.
func TestSplits(t *testing.T) {
	spec, err := device.Find("h100")
	if err != nil {
		t.Fatal(err)
	}
	h100 := target.Of(spec)
	veus := int64(h100.VEUs)
	for _, c := range []struct {
		name       string
		m, n, k    int64
		share      float64 // of the device
		split      bool
		leastShare float64 // of the rounds, by the shape that fills them best
	}{
		{"one tile, a long sum", 16, 64, 1 << 16, 1, true, 0.9},
		{"one tile, a short sum", 16, 64, 300, 1, false, 0},
		{"many tiles", 2048, 2048, 4096, 1, false, 0},
		{"a round that is not full", 32, 6075, 7392, 1, true, 0.9},
		{"a matrix of many elements and a short sum", 96, 1024, 512, 1, false, 0},
		{"few tiles", 96, 196, 480, 1, true, 0.4},
		{"few tiles beside others", 96, 196, 480, 0.2, false, 0},
	} {
		shapes := UsefulShapes(&h100, precision.Strict, Float32s, c.m, c.n)
		tasks := func(s TileShape) int64 { return build.CeilDiv(c.m, s.BM) * build.CeilDiv(c.n, s.BN) }
		splits := SplitsFor(&h100, Float32s, shapes, tasks, c.k, c.m*c.n, c.share)
		if (splits > 1) != c.split {
			t.Errorf("%s: %d splits", c.name, splits)
		}
		share := 0.0
		for _, s := range shapes {
			n := tasks(s) * splits
			share = max(share, float64(n)/float64(build.CeilDiv(n, veus)*veus))
		}
		if share < c.leastShare {
			t.Errorf("%s: %d splits fill %.2f of the rounds", c.name, splits, share)
		}
	}
}

// TestSplitsByTaps are 3x3 convolutions of 512 by 512 channels in tf32. On an H200 tiles of conv_taps were fastest whole
// where they fill the device, and with sums in four parts where they are too few (splits of taps in
// bench/results/h200-changes.json). By tiles of conv_wgmma alone both would be split.
func TestSplitsByTaps(t *testing.T) {
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	const channels, taps = 512, 9
	h200 := target.Of(spec)
	for _, c := range []struct{ images, side, want int64 }{{32, 14, 1}, {8, 14, 4}} {
		m, places := c.images*c.side*c.side, c.images*(c.side+1)*(c.side+1)
		shapes := GroupShapes(&h200, precision.TF32, Float32s, m, channels, false)
		tasks := func(s TileShape) int64 { return build.CeilDiv(m, s.BM) * build.CeilDiv(channels, s.BN) }
		var others []OtherTiles
		for _, s := range TapShapes(&h200, precision.TF32, Float32s, m, channels) {
			others = append(others, func(splits int64) (int64, float64, bool) {
				stages := build.CeilDiv(channels, s.BK)
				if stages%splits != 0 {
					return 0, 0, false
				}
				tiles := build.CeilDiv(places, s.BM) * build.CeilDiv(channels, s.BN)
				return splits * tiles, s.TapFlops(stages / splits * taps), s.BM*s.BN >= 128*128
			})
		}
		splits := func(others ...OtherTiles) int64 {
			return SplitsFor(&h200, Float32s, shapes, tasks, channels*taps, m*channels, 1, others...)
		}
		if without, with := splits(), splits(others...); without == 1 || with != c.want {
			t.Errorf("%d images: %d splits, without taps %d, want %d and some", c.images, with, without, c.want)
		}
	}
}

// TestRingsRunOut: the ring of a strip of few large stages runs out in a long sum, on many multiprocessors at once, and
// not in a short one; more stages of the same tile are enough.
func TestRingsRunOut(t *testing.T) {
	few := TileShape{BM: 64, BN: 128, BK: 64, kg: 1, st: 5, multiplied: ir.Float16, groups: true, wide: 1}
	many := few
	many.st = 8
	for _, c := range []struct {
		name         string
		s            TileShape
		stages, busy float64
		runsOut      bool
	}{
		{"a long sum", few, 48, 0.75, true},
		{"a short sum", few, 12, 0.75, false},
		{"few multiprocessors", few, 48, 0.1, false},
		{"a deeper ring", many, 48, 0.75, false},
	} {
		if longer := c.s.RingFlops(ir.Float16, c.stages, c.busy) > c.s.stripFlops(ir.Float16, c.stages, c.busy); longer != c.runsOut {
			t.Errorf("%s: the ring runs out: %t", c.name, longer)
		}
	}
}

// TestLongerRings: a ring of 64×96 has another stage for a long sum that leaves the device half free, and for a very long
// one, but not in float32, and no other tile has.
func TestLongerRings(t *testing.T) {
	wide := TileShape{BM: 64, BN: 96, BK: 128, kg: 2, st: 4, multiplied: ir.Float16, groups: true, wide: 1}
	single, narrow := wide, wide
	single.multiplied, narrow.BN = ir.Float32, 64
	for _, c := range []struct {
		name         string
		s            TileShape
		stages, busy float64
		longer       bool
	}{
		{"a long sum", wide, 6, 0.48, true},
		{"a short sum", wide, 3, 0.37, false},
		{"a busy device", wide, 6, 0.97, false},
		{"a very long sum", wide, 24, 0.97, true},
		{"float32", single, 24, 0.48, false},
		{"a narrower tile", narrow, 24, 0.48, false},
	} {
		want := c.s
		if c.longer {
			want.st++
		}
		if got := c.s.Longer(c.stages, c.busy); got != want {
			t.Errorf("%s: %d stages", c.name, got.st)
		}
	}
}

// TestJoinsOfFewStages: groups that share k meet for more than they save where each has two stages at most and the
// results are only rounded.
func TestJoinsOfFewStages(t *testing.T) {
	s := TileShape{BM: 64, BN: 64, BK: 128, kg: 2, st: 4, multiplied: ir.Float16, groups: true, wide: 1}
	usual, few := s.JoinFlops(ir.Float16, 2, false), s.JoinFlops(ir.Float16, 2, true)
	if usual <= 0 || few <= usual || s.JoinFlops(ir.Float16, 6, true) != usual {
		t.Errorf("%g cycles of few plain results, %g of others", few/cycleFlops, usual/cycleFlops)
	}
	if cost := s.JoinFlops(ir.Float32, 2, true); cost != 0 {
		t.Errorf("partial sums cost %g", cost)
	}
}

// TestLacksRegisters: of tiles of three groups the widest are for sums that are only rounded, and those of 128 columns for
// what adds no rows in 16 bits. All others take every epilogue.
func TestLacksRegisters(t *testing.T) {
	for _, c := range []struct {
		rows, columns int64
		d             ir.DType
		plain         bool
		bytes         float64
		lacks         bool
	}{
		{128, 192, ir.Float16, false, 2, false},
		{192, 192, ir.Float16, true, 0, false},
		{192, 192, ir.Float16, false, 0, true},
		{192, 192, ir.Float32, true, 0, true},
		{192, 128, ir.Float16, false, 0, false},
		{192, 128, ir.Float16, false, 2, true},
		{192, 128, ir.Float32, false, 4, false},
		{192, 96, ir.Int8, false, 1, false},
	} {
		s := TileShape{BM: c.rows, BN: c.columns, kg: 1, multiplied: c.d, groups: true, wide: 1}
		if lacks := s.LacksRegisters(c.plain, c.bytes, false); lacks != c.lacks {
			t.Errorf("%dx%d of %v, %v bytes added: lacks registers: %t", c.rows, c.columns, c.d, c.bytes, lacks)
		}
	}
}

// TestSplitProducts are 128x3072 by 768 and 196x1536 by 384 in float16. On an H200 the first was fastest in five parts of
// those timed, and the second whole (long sums in bench/results/h200-changes.json).
func TestSplitProducts(t *testing.T) {
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	h200 := target.Of(spec)
	e := Elements{Left: ir.Float16, Right: ir.Float16, Multiplied: ir.Float16, Sum: ir.Float32}
	for _, c := range []struct{ m, k, n, most int64 }{{128, 3072, 768, 5}, {196, 1536, 384, 1}} {
		shapes := append(UsefulShapes(&h200, precision.FP16, e, c.m, c.n), GroupShapes(&h200, precision.FP16, e, c.m, c.n, true)...)
		tasks := func(s TileShape) int64 { return build.CeilDiv(c.m, s.BM) * build.CeilDiv(c.n, s.BN) }
		if splits := SplitsFor(&h200, e, shapes, tasks, c.k, c.m*c.n, 1); splits > c.most || c.most > 1 && splits == 1 {
			t.Errorf("%dx%d by %d: %d splits", c.m, c.k, c.n, splits)
		}
	}
}
