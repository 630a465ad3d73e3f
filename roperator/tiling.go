package roperator

import (
	"math/bits"

	"github.com/rammerc/rammerc/rkernels"
)

// tiling cuts an iteration space into rTasks: rTask k is the k-th tile in row-major order. It is the
// Go side of rk::Tiles.
type tiling struct {
	dims   []int64
	extent []int64 // of a tile, the last one along a dim may be smaller
	counts []int64 // tiles along each dim
	tasks  int
	// unit is how many elements a step of the last dim stands for in boxes: kernels that move packs
	// count packs.
	unit int64
}

// newTiling cuts dims into tiles of about target elements: whole inner dims, a part of one dim, single
// indices of the outer dims.
func newTiling(dims []int64, target int64) tiling {
	extent := make([]int64, len(dims))
	left := target
	for d := len(dims) - 1; d >= 0; d-- {
		extent[d] = min(dims[d], max(left, 1))
		if extent[d] < dims[d] {
			extent[d] = evenChunk(dims[d], extent[d])
			left = 1
			continue
		}
		left /= max(dims[d], 1)
	}
	return tilingOf(dims, extent)
}

// evenChunk is the extent of the chunks when n is cut into as many as extents of most ask for, none
// much smaller than the others.
func evenChunk(n, most int64) int64 { return ceilDiv(n, ceilDiv(n, most)) }

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// tilingOf is the tiling with tiles of the given extents.
func tilingOf(dims, extent []int64) tiling {
	t := tiling{dims: dims, extent: extent, tasks: 1, unit: 1}
	for d := range dims {
		n := ceilDiv(dims[d], extent[d])
		t.counts = append(t.counts, n)
		t.tasks *= int(n)
	}
	return t
}

// box fills in the tile of an rTask, in elements.
func (t *tiling) box(task int, lo, hi []int64) {
	for d := len(t.dims) - 1; d >= 0; d-- {
		k := int64(task) % t.counts[d]
		task /= int(t.counts[d])
		lo[d] = k * t.extent[d]
		hi[d] = min(lo[d]+t.extent[d], t.dims[d])
	}
	if last := len(t.dims) - 1; last >= 0 {
		lo[last] *= t.unit
		hi[last] *= t.unit
	}
}

// largest is the number of elements of the largest rTask.
func (t *tiling) largest() int64 {
	n := t.unit
	for _, e := range t.extent {
		n *= e
	}
	return n
}

// args is the rk::Tiles.
func (t *tiling) args() rkernels.Struct {
	dims, extent, counts := rkernels.List{}, rkernels.List{}, rkernels.List{}
	for d := range t.dims {
		dims = append(dims, rkernels.Int(t.dims[d]))
		extent = append(extent, divArg(t.extent[d]))
		counts = append(counts, divArg(t.counts[d]))
	}
	return rkernels.Struct{
		{Name: "dims", Value: dims}, {Name: "extent", Value: extent}, {Name: "counts", Value: counts},
	}
}

// divArg is the rk::Div by d: n / d = (high(n·mul) + n) >> shift for 0 ≤ n < 2^31 (Granlund and
// Montgomery, "Division by invariant integers using multiplication", 1994).
func divArg(d int64) rkernels.Struct {
	shift := bits.Len64(uint64(d - 1))
	mul := (uint64(1)<<32*(uint64(1)<<shift-uint64(d)))/uint64(d) + 1
	return rkernels.Struct{intArg("d", d), intArg("mul", int64(mul)), intArg("shift", int64(shift))}
}

// stridedArg is a view as an rk::Strided; the last dim's stride is multiplied by unit.
func stridedArg(v View, unit int64) rkernels.Struct {
	s := rkernels.List{}
	for d := range v.Shape {
		step := stepOf(v, d)
		if d == len(v.Shape)-1 && unit > 1 {
			step *= unit
		}
		s = append(s, rkernels.Int(step))
	}
	return rkernels.Struct{refArg("ref", v), {Name: "s", Value: s}}
}

// spaces of this many elements in an rTask suit work that moves elements: fine, coarse, and coarser
// ones for what would otherwise be thousands of rTasks.
func mapTargets(total int64) []int64 {
	targets := []int64{1024, 4096}
	for t := int64(16384); total/t >= 256 && t <= 1<<18; t *= 4 {
		targets = append(targets, t)
	}
	return targets
}

// coalesce drops dims of one element and joins neighbouring dims that every view steps through as
// through one, after sorting dims by the first view's strides, largest first. All views have one shape.
// At least one dim is left.
func coalesce(views []View) []View {
	order := strideOrder(views[0])
	out := make([]View, len(views))
	for i, v := range views {
		out[i] = View{Buf: v.Buf, Offset: v.Offset}
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
func strideOrder(v View) []int {
	order := make([]int, len(v.Shape))
	for i := range order {
		order[i] = i
		for k := i; k > 0 && v.Strides[order[k-1]] < v.Strides[order[k]]; k-- {
			order[k-1], order[k] = order[k], order[k-1]
		}
	}
	return order
}
