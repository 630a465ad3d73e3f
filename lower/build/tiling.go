package build

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// KeptBox is the box of a tile of t, followed by dims that are taken whole.
func KeptBox(t Tiling, whole []int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		n := len(t.Dims)
		t.Box(task, lo[:n], hi[:n])
		for d, extent := range whole {
			lo[n+d], hi[n+d] = 0, extent
		}
	}
}

// AxisOf is the node's attribute axis, counted from the front.
func AxisOf(n *ir.Node, def int64, rank int) int {
	axis := int(n.Int("axis", def))
	if axis < 0 {
		axis += rank
	}
	return axis
}

// WholeDim is the box of a tile of t, but all of dim d.
func WholeDim(t Tiling, d int, extent int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		t.Box(task, lo, hi)
		lo[d], hi[d] = 0, extent
	}
}

// LineBox is a box of a cube: the lines along axis (1 or 2) that a tile of t has. The dims of t are the other two of
// the cube.
func LineBox(t Tiling, axis int, n int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		var l, h [2]int64
		t.Box(task, l[:], h[:])
		other := 3 - axis // axis 1 or 2; the lines' second dim is the other one
		lo[0], hi[0] = l[0], h[0]
		lo[other], hi[other] = l[1], h[1]
		lo[axis], hi[axis] = 0, n
	}
}

// LineDims are the dims of a cube without the one along which its lines lie.
func LineDims(cube []int64, axis int) []int64 { return []int64{cube[0], cube[3-axis]} }

// Loaded is what the prologue of input i makes of e, an element of that input.
func (g *Group) Loaded(i int, e *functor.Expr) *functor.Expr {
	if g.Prologue[i] == nil {
		return e
	}
	return functor.Graft(g.Prologue[i], []*functor.Expr{e})
}

// MoveCandidates makes candidates for work that moves elements, with tiles of several sizes. unit is how many
// consecutive elements are moved at a time.
func MoveCandidates(dims []int64, unit int64, make func(t Tiling) *roperator.Candidate) []*roperator.Candidate {
	var out []*roperator.Candidate
	scaled := append([]int64{}, dims...)
	if last := len(dims) - 1; last >= 0 {
		scaled[last] /= unit
	}
	for _, target := range MapTargets(ir.Count(dims)) {
		t := NewTiling(scaled, max(target/unit, 1))
		t.Unit = unit
		if len(out) > 0 && t.Tasks == out[len(out)-1].Tasks {
			break
		}
		out = append(out, make(t))
	}
	return out
}

// Tiling cuts an iteration space into tiles, one for each rTask, which are numbered in row-major order. It is the Go
// side of rk::Tiles. A space of [4][6] in tiles of [2][4]:
//
//	0 0 0 0 1 1
//	0 0 0 0 1 1
//	2 2 2 2 3 3
//	2 2 2 2 3 3
type Tiling struct {
	Dims   []int64
	Extent []int64 // of a tile, the last one along a dim may be smaller
	counts []int64 // tiles along each dim
	Tasks  int
	// Unit is how many elements an index of the last dim stands for. Kernels that move packs of elements count packs;
	// boxes count elements.
	Unit int64
}

// NewTiling cuts dims into tiles of about target elements, so that a tile is as nearly contiguous as possible: it has
// inner dims whole, a part of one dim, and one index of the dims outside of that.
func NewTiling(dims []int64, target int64) Tiling {
	extent := make([]int64, len(dims))
	left := target
	for d := len(dims) - 1; d >= 0; d-- {
		extent[d] = min(dims[d], max(left, 1))
		if extent[d] < dims[d] {
			extent[d] = EvenChunk(dims[d], extent[d])
			left = 1
			continue
		}
		left /= max(dims[d], 1)
	}
	return TilingOf(dims, extent)
}

// EvenChunk is the size of the chunks if n is cut into as few chunks of at most most as possible, and these are made
// equal.
func EvenChunk(n, most int64) int64 { return CeilDiv(n, CeilDiv(n, most)) }

// CeilDiv is a/b, rounded up.
func CeilDiv(a, b int64) int64 { return (a + b - 1) / b }

// TilingOf is the tiling with tiles of the given extents.
func TilingOf(dims, extent []int64) Tiling {
	t := Tiling{Dims: dims, Extent: extent, Tasks: 1, Unit: 1}
	for d := range dims {
		n := CeilDiv(dims[d], extent[d])
		t.counts = append(t.counts, n)
		t.Tasks *= int(n)
	}
	return t
}

// Box is the tile of an rTask, in elements.
func (t *Tiling) Box(task int, lo, hi []int64) {
	for d := len(t.Dims) - 1; d >= 0; d-- {
		k := int64(task) % t.counts[d]
		task /= int(t.counts[d])
		lo[d] = k * t.Extent[d]
		hi[d] = min(lo[d]+t.Extent[d], t.Dims[d])
	}
	if last := len(t.Dims) - 1; last >= 0 {
		lo[last] *= t.Unit
		hi[last] *= t.Unit
	}
}

// Largest is the number of elements of the largest rTask.
func (t *Tiling) Largest() int64 {
	n := t.Unit
	for _, e := range t.Extent {
		n *= e
	}
	return n
}

// Args is the tiling as an argument of an rKernel.
func (t *Tiling) Args() rkernels.Struct {
	dims, extent, counts := rkernels.List{}, rkernels.List{}, rkernels.List{}
	for d := range t.Dims {
		dims = append(dims, rkernels.Int(t.Dims[d]))
		extent = append(extent, arg.DivOf(t.Extent[d]))
		counts = append(counts, arg.DivOf(t.counts[d]))
	}
	return rkernels.Struct{
		{Name: "dims", Value: dims}, {Name: "extent", Value: extent}, {Name: "counts", Value: counts},
	}
}

// MapTargets are sizes of tiles, in elements, for work that moves elements: a small one, a larger one, and more where
// there would otherwise be thousands of rTasks.
func MapTargets(total int64) []int64 {
	targets := []int64{1024, 4096}
	for t := int64(16384); total/t >= 256 && t <= 1<<18; t *= 4 {
		targets = append(targets, t)
	}
	return targets
}

// Coalesce brings views of one shape to as few dims as possible. It sorts the dims by the first view's strides,
// largest first, drops dims of one element, and joins dims that continue each other in every view. At least one dim
// is left.
func Coalesce(views []roperator.View) []roperator.View {
	order := strideOrder(views[0])
	out := make([]roperator.View, len(views))
	for i, v := range views {
		out[i] = roperator.View{Buf: v.Buf, Offset: v.Offset}
	}
	for _, d := range order {
		n := views[0].Shape[d]
		if n == 1 {
			continue
		}
		last := len(out[0].Shape) - 1
		joins := last >= 0
		for i, v := range views {
			joins = joins && out[i].Strides[last] == v.Strides[d]*n
		}
		for i, v := range views {
			if joins {
				out[i].Shape[last] *= n
				out[i].Strides[last] = v.Strides[d]
				continue
			}
			out[i].Shape = append(out[i].Shape, n)
			out[i].Strides = append(out[i].Strides, v.Strides[d])
		}
	}
	if len(out[0].Shape) == 0 {
		for i := range out {
			out[i].Shape, out[i].Strides = []int64{1}, []int64{1}
		}
	}
	return out
}

// strideOrder lists the dims of v from the largest stride to the smallest.
func strideOrder(v roperator.View) []int {
	order := make([]int, len(v.Shape))
	for i := range order {
		order[i] = i
		for k := i; k > 0 && v.Strides[order[k-1]] < v.Strides[order[k]]; k-- {
			order[k-1], order[k] = order[k], order[k-1]
		}
	}
	return order
}
