package build

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// KeptBox is the box of a cube's tile followed by whole dims.
func KeptBox(t Tiling, whole []int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		n := len(t.Dims)
		t.Box(task, lo[:n], hi[:n])
		for d, extent := range whole {
			lo[n+d], hi[n+d] = 0, extent
		}
	}
}

// AxisOf is attribute axis, counted from the front.
func AxisOf(n *ir.Node, def int64, rank int) int {
	axis := int(n.Int("axis", def))
	if axis < 0 {
		axis += rank
	}
	return axis
}

// WholeDim widens dim d of the boxes of t to whole.
func WholeDim(t Tiling, d int, extent int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		t.Box(task, lo, hi)
		lo[d], hi[d] = 0, extent
	}
}

// LineBox extends a box of lines to one of the cube.
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

// LineDims are the dims of the lines of a cube.
func LineDims(cube []int64, axis int) []int64 { return []int64{cube[0], cube[3-axis]} }

// Loaded is e, an element of input i, after the input's prologue.
func (g *Group) Loaded(i int, e *functor.Expr) *functor.Expr {
	if g.Prologue[i] == nil {
		return e
	}
	return functor.Graft(g.Prologue[i], []*functor.Expr{e})
}

// MoveCandidates offers tilings of an iteration space of about as many elements as targets for maps.
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

// Tiling cuts an iteration space into rTasks: rTask k is the k-th tile in row-major order. It is the
// Go side of rk::Tiles.
type Tiling struct {
	Dims   []int64
	Extent []int64 // of a tile, the last one along a dim may be smaller
	counts []int64 // tiles along each dim
	Tasks  int
	// unit is how many elements a step of the last dim stands for in boxes: kernels that move packs
	// count packs.
	Unit int64
}

// NewTiling cuts dims into tiles of about target elements: whole inner dims, a part of one dim, single
// indices of the outer dims.
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

// EvenChunk is the extent of the chunks when n is cut into as many as extents of most ask for, none
// much smaller than the others.
func EvenChunk(n, most int64) int64 { return CeilDiv(n, CeilDiv(n, most)) }

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

// Box fills in the tile of an rTask, in elements.
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

// Args is the rk::Tiles.
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

// spaces of this many elements in an rTask suit work that moves elements: fine, coarse, and coarser
// ones for what would otherwise be thousands of rTasks.
func MapTargets(total int64) []int64 {
	targets := []int64{1024, 4096}
	for t := int64(16384); total/t >= 256 && t <= 1<<18; t *= 4 {
		targets = append(targets, t)
	}
	return targets
}

// Coalesce drops dims of one element and joins neighbouring dims that every view steps through as
// through one, after sorting dims by the first view's strides, largest first. All views have one shape.
// At least one dim is left.
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

// strideOrder lists the dims of v by stride, largest first, equal ones in order.
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
