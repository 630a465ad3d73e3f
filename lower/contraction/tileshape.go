package contraction

import (
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// TileShape has the tile parameters of the kernels of contractions: BM×BN results, BK values of k in a stage, kg groups
// of threads that share k, st stages. A thread of gemm_tiled, conv_tiled and conv_pointwise owns tm×tn results; in
// their forms for tensor cores a warp does; products says how many products there stand for one, and multiplied of
// which type. With split these are of parts of float16, which a constant is packed as. Shapes of warp groups are for
// gemm_wgmma, in which each group multiplies 64 rows by all columns of the tile. If wide is not 0, they are for
// gemm_strip, an rTask of which computes so many tiles that lie beside each other.
type TileShape struct {
	BM, BN, BK, tm, tn, kg, st, products int64
	multiplied                           ir.DType
	groups, split                        bool
	wide                                 int64
}

// tileShapes are in the order of few rTasks to many. All have 256 threads. Threads that own 8×8 results read half as
// much of shared memory for each multiplication as those that own 4×4; their shapes take up to 64 KB of shared
// memory, the others 48 KB.
var tileShapes = []TileShape{
	{128, 128, 16, 8, 8, 1, 3, 0, 0, false, false, 0},
	{64, 128, 16, 8, 8, 2, 3, 0, 0, false, false, 0},
	{32, 128, 32, 8, 8, 4, 3, 0, 0, false, false, 0},
	{64, 64, 16, 4, 4, 1, 4, 0, 0, false, false, 0},
	{128, 64, 16, 8, 4, 1, 3, 0, 0, false, false, 0},
	{32, 64, 32, 4, 4, 2, 3, 0, 0, false, false, 0},
	{32, 32, 32, 4, 4, 4, 4, 0, 0, false, false, 0},
	{16, 64, 32, 4, 4, 4, 4, 0, 0, false, false, 0},
}

// SharedBytes is how many bytes the threads of an rTask read from shared memory to add up k products for each result.
// The lanes of a warp share what they read for matrix instructions.
func (s TileShape) SharedBytes(e Elements, k int64) float64 {
	return float64(s.unitType(e).Size()) * float64(s.BM*s.BN*k) * (1/float64(s.tm) + 1/float64(s.tn))
}

// UsefulShapes are the shapes of which an m×n result fills more than half a tile in either direction, or a small one
// if there is none. Those of scalar arithmetic come first, then those on the target's tensor cores, as far as the
// precision allows them. Numbers of 16 bits are multiplied on tensor cores wherever there are such.
func UsefulShapes(t *target.Target, p precision.Precision, e Elements, m, n int64) []TileShape {
	if e.Multiplied == ir.Int8 {
		return ByteShapes(t, m, n)
	}
	if isHalf(e.Multiplied) {
		if shapes := halfShapesOf(t, p, e.Multiplied, m, n); shapes != nil {
			return shapes
		}
	}
	var out []TileShape
	for _, s := range tileShapes {
		if m > s.BM/2 && n > s.BN/2 || m > s.BM/2 && s.BM == 16 {
			out = append(out, s)
		}
	}
	if out == nil {
		smallest := TileShape{32, 32, 32, 4, 4, 4, 4, 0, 0, false, false, 0}
		if m <= 16 {
			smallest = TileShape{16, 64, 32, 4, 4, 4, 4, 0, 0, false, false, 0}
		}
		out = append(out, smallest)
	}
	for _, s := range tensorShapesOf(t, p, e) {
		if m > s.BM/2 && n > s.BN/2 {
			out = append(out, s)
		}
	}
	return out
}

// LoadMode chooses how to read the matrix of v whose rows are dim row and whose columns are dim col: in
// whole loads along the columns where every run of so many elements is aligned, otherwise with lanes along the dim
// whose neighbours are closer.
func LoadMode(v roperator.View, row, col int) int64 {
	n := PerLoad(v.DType())
	aligned := v.Strides[col] == 1 && v.Shape[col]%n == 0 && v.Offset%n == 0
	for d := range v.Shape {
		if d != col && v.Stride(d)%n != 0 {
			aligned = false
		}
	}
	switch {
	case aligned:
		return schema.LoadVec4
	case v.Shape[col] > 1 && (v.Shape[row] == 1 || build.Abs(v.Strides[col]) <= build.Abs(v.Strides[row])):
		return schema.LoadByCol
	}
	return schema.LoadByRow
}

// What a tile costs beside its multiplications, in parts of the target's figures.
const (
	// startLatencies is what an rTask takes beside multiplying and moving its operands, and sumLatencies what
	// another rOperator that adds up takes beside moving the partial sums; in latencies of the target.
	startLatencies, sumLatencies = 1.25, 2.5
	// apartLatencies is what adding up takes longer behind tiles of warp groups. They have all registers of a
	// multiprocessor, so that the launch that adds up starts when they have ended.
	apartLatencies = 4
	// productMoves is how many times as long partial sums of products of 16 bits take to be written and read as L2 takes
	// for so many bytes. Counted once, 128×3072 by 768 is split in eight, which takes 5.4 us, where five parts take 5.0
	// (bench/results/h200-changes.json, long sums).
	productMoves = 2
	// bulkShare is the part of the time of threads' copies that a tile's operands take to come where the loader copies
	// half of them in bulk.
	bulkShare = 0.72
	// leastSplit is the shortest sum worth an rTask of its own.
	leastSplit = 128
	// leastGain is the part of its time that splitting must save.
	leastGain = 0.1
)

// SplitsFor decides over how many rTasks the sum of a tile is spread. It is more than one where tiles are too few for
// the target, or so few that their last round leaves much of it idle, and where sums are long enough to make up for
// adding the parts up. k is the length of the sum, results the number of elements of the result; share is the part
// of the target that rOperators beside this one leave to it; others are tiles whose cost is known. No split of a sum is
// empty, with any of the shapes.
func SplitsFor(t *target.Target, e Elements, shapes []TileShape, tasks func(s TileShape) int64, k, results int64,
	share float64, others ...OtherTiles) int64 {
	m := splitModel{target: t, elements: e, shapes: shapes, tasks: tasks, k: k, results: results, others: others}
	m.slots = max(1, int64(math.Round(share*float64(t.VEUs))))
	best, least := int64(1), m.time(1)*(1-leastGain)
	for n := int64(2); n <= min(k/leastSplit, 2*m.slots); n++ {
		if t := m.time(n); t < least {
			best, least = n, t
		}
	}
	return fullSplits(shapes, k, best)
}

// fullSplits is a number of splits of which none is empty with any of the shapes, whose sums are split at whole stages.
// It is splits or less.
func fullSplits(shapes []TileShape, k, splits int64) int64 {
	longest := int64(1)
	for _, s := range shapes {
		longest = max(longest, s.BK)
	}
	stages := build.CeilDiv(k, longest)
	return max(1, build.CeilDiv(stages, max(1, build.CeilDiv(stages, splits))))
}

// OtherTiles are tiles of warp groups of which it is known what one takes: how many rTasks there are with so many
// splits, what one costs, in tf32 products of mma.sync, and whether it is so long that partial sums leave while others
// multiply. There are none with splits of which one would be empty.
type OtherTiles func(splits int64) (tasks int64, flops float64, long bool)

// FlopsIn is how many tf32 products of mma.sync a multiprocessor makes in so many nanoseconds, which OtherTiles says of
// tiles whose time is known.
func FlopsIn(t *target.Target, ns float64) float64 { return ns * t.Rate(target.Tensor, ir.Float32) }

// splitModel estimates what a contraction takes when its sums are split.
type splitModel struct {
	target     *target.Target
	elements   Elements
	shapes     []TileShape
	tasks      func(s TileShape) int64 // tiles of the result
	k, results int64
	slots      int64 // rTasks that run at once
	others     []OtherTiles
}

// time is how long the best shape takes with so many splits, in nanoseconds. An rTask multiplies, reads its operands
// from shared memory and brings them from L2, all at once; the slowest of the three counts. The vEUs of a
// multiprocessor share its rates.
func (m *splitModel) time(splits int64) float64 {
	t := m.target
	perSM := float64(t.VEUs) / float64(t.SMs)
	depth := build.CeilDiv(m.k, splits)
	out := m.elements.Sum
	if splits == 1 {
		out = m.elements.Left
	}
	least := math.Inf(1)
	for _, s := range m.shapes {
		if s.LacksRegisters(splits > 1, 0, false) { // most sums that are not partial ones are more than rounded
			continue
		}
		tasks := m.tasks(s) * splits
		multiply := s.multiplyTime(t, m.elements, out, depth, t.Busy(tasks)) * perSM
		bytes := float64(s.BM*depth)*float64(m.elements.Left.Size()) +
			float64(s.BN*depth)*float64(m.elements.Right.Size())
		move := bytes / (t.L2Rate / perSM)
		if s.groups {
			move *= bulkShare
		}
		operands := s.SharedBytes(m.elements, depth) / (t.SharedRate / perSM)
		task := startLatencies*t.Latency + max(multiply, move, operands)
		time := task * float64(build.CeilDiv(tasks, m.slots))
		if s.groups && splits > 1 {
			time += m.apart() * t.Latency
		}
		least = min(least, time)
	}
	for _, other := range m.others {
		tasks, flops, long := other(splits)
		if tasks == 0 {
			continue
		}
		time := flops / t.Rate(target.Tensor, ir.Float32) * perSM * float64(build.CeilDiv(tasks, m.slots))
		switch {
		case long && 4*tasks > 3*m.slots && tasks <= m.slots: // of what they leave only reading counts
			time -= m.moveSums(splits) / 2
		case splits > 1:
			time += m.apart() * t.Latency
		}
		least = min(least, time)
	}
	if splits > 1 {
		moves := 1.0
		if isHalf(m.elements.Multiplied) && len(m.others) == 0 {
			moves = productMoves
		}
		least += sumLatencies*t.Latency + moves*m.moveSums(splits)
	}
	return least
}

// apart is what adding up takes longer behind tiles of warp groups, in latencies. Models in 16 bits are faster where it
// counts nothing (RATIONALE.md, small tiles).
func (m *splitModel) apart() float64 {
	if isHalf(m.elements.Multiplied) {
		return 0
	}
	return apartLatencies
}

// moveSums is how long writing and reading partial sums takes.
func (m *splitModel) moveSums(splits int64) float64 {
	if splits == 1 {
		return 0
	}
	t := m.target
	bytes := 2 * float64(m.elements.Sum.Size()) * float64(m.results*splits)
	return bytes * float64(t.VEUs) / float64(t.SMs) / (float64(m.slots) * t.L2Rate)
}

// AddSplit adds a contraction. make makes its candidates for a tail and a number of splits. With one split they
// compute the result; otherwise they compute partial sums [i0·split][i1][i2], which another rOperator adds up.
func AddSplit(b *build.Builder, g *build.Group, kind string, e Elements, s tails.Spec, splits int64,
	make func(t *tails.Tail, splits int64) []*roperator.Candidate) {
	if s.Run == 0 { // one run is a row of the result
		s.Run = ir.Count(s.Shape[s.Cuts[1]:])
	}
	t := tails.New(b, g, s)
	if splits == 1 {
		b.Add(g.Kind(), make(t, 1)...)
		t.Finish(b)
		return
	}
	shape := t.Out.Shape
	part := b.Temp("partial", e.Sum, []int64{shape[0] * splits, shape[1], shape[2]})
	part.Buf.Factors = axes.Join(t.Out.Axis(0), axes.StaticAxis(splits), t.Out.Axis(1), t.Out.Axis(2))
	b.AddParts(kind, roperator.Parts{Count: splits, Length: shape[1] * shape[2], Sum: true},
		make(t.PartialSums(e.Sum, part, s.Run), splits)...)
	if leaveSums(b.Sums(g.Outputs[0]), part, t, splits) {
		return
	}
	b.Add(g.Kind()+" (sum)", splitSums(b, part, t, splits)...)
	t.Finish(b)
}
