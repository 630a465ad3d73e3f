package eval

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// gridSample interpolates X at the places that the grid names. A place is computed in the grid's precision and not in
// float64: in the mode "nearest" the smallest difference may select another element than other engines do. Weights and
// sums are float64.
func gridSample(c *call) []*ir.Tensor {
	x, grid := c.arg(0), c.arg(1)
	spatial := len(x.Dims) - 2
	if spatial < 1 || len(grid.Dims) != len(x.Dims) || grid.Dims[0] != x.Dims[0] ||
		grid.Dims[spatial+1] != int64(spatial) {
		fail("a grid of dims %v does not fit X of dims %v", grid.Dims, x.Dims)
	}
	rows := grid.Dims[1 : spatial+1]
	dims := append([]int64{x.Dims[0], x.Dims[1]}, rows...)
	out := c.alloc(x.DType, dims)
	if out.Len() == 0 {
		return one(out)
	}
	if ir.Count(x.Dims) == 0 {
		fail("X of dims %v has no elements to sample", x.Dims)
	}
	g := newGridReader(c, x, grid)
	places, planes := int(ir.Count(rows)), int(x.Dims[1])
	data, coords := floats(castTo(c, x, ir.Float64)), floats(grid)
	y := make([]float64, out.Len())
	c.parallel(int(x.Dims[0])*places, func(i int) {
		n, p := i/places, i%places
		taps := g.taps(coords[i*spatial : (i+1)*spatial])
		for ch := range planes {
			plane := data[(n*planes+ch)*g.plane:][:g.plane]
			sum := 0.0
			for _, t := range taps {
				sum += t.weight * plane[t.place]
			}
			y[(n*planes+ch)*places+p] = sum
		}
	})
	wide := ir.FromSlice(ir.Float64, y, dims...)
	return one(castTo(c, wide, x.DType))
}

// tap is an element of a plane, by its flat index, and its weight in a sum.
type tap struct {
	place  int
	weight float64
}

// gridReader turns places of a grid into taps.
type gridReader struct {
	extent  []int64 // X's spatial extents
	stride  []int64 // and their strides in a plane
	plane   int     // elements of a plane
	align   bool    // -1 and 1 are the centres of the first and last element, and not their outer edges
	mode    string
	padding string
	round   func(x float64) float64 // rounds to the grid's precision
}

func newGridReader(c *call, x, grid *ir.Tensor) *gridReader {
	g := &gridReader{
		extent: x.Dims[2:], stride: rowMajor(x.Dims[2:]), plane: int(ir.Count(x.Dims[2:])),
		align: c.Attr("align_corners").I != 0, mode: c.Attr("mode").S, padding: c.Attr("padding_mode").S,
		round: func(x float64) float64 { return float64(float32(x)) },
	}
	if grid.DType == ir.Float64 {
		g.round = func(x float64) float64 { return x }
	}
	return g
}

// taps are the elements that contribute to one place: the products of the taps on each axis. Elements of the zero
// padding are left out. By the standard the last coordinate belongs to the first spatial axis.
func (g *gridReader) taps(at []float64) []tap {
	out := []tap{{0, 1}}
	for d, n := range g.extent {
		index, weight := g.axis(at[len(at)-1-d], n)
		next := make([]tap, 0, len(out)*len(index))
		for _, t := range out {
			for i, x := range index {
				if x >= 0 {
					next = append(next, tap{t.place + int(x*g.stride[d]), t.weight * weight[i]})
				}
			}
		}
		out = next
	}
	return out
}

// farAway bounds places, so that infinities can be converted to integers.
const farAway = 1 << 30

// axis returns the elements that a normalised coordinate reads on an axis of n elements, and their weights. The index
// -1 stands for zero padding.
func (g *gridReader) axis(at float64, n int64) (index []int64, weight []float64) {
	size := float64(n)
	var x float64
	if g.align {
		x = g.round(g.round(g.round(at+1)/2) * (size - 1))
	} else {
		x = g.round(g.round(g.round(g.round(at+1)*size)-1) / 2)
	}
	if math.IsNaN(x) {
		x = -farAway
	}
	x = min(max(x, -farAway), farAway)
	if g.mode == "nearest" {
		x = math.RoundToEven(x)
	}
	x = g.inside(x, n)
	base := math.Floor(x)
	first, weights := int64(base), []float64{1}
	switch g.mode {
	case "linear":
		weights = []float64{1 - (x - base), x - base}
	case "cubic":
		k := cubicKernel(-0.75)
		first--
		for i := range 4 {
			weights = append(weights[:i], k(x-(base-1+float64(i))))
		}
	}
	for i := range weights {
		index = append(index, g.pixel(first+int64(i), n))
	}
	return index, weights
}

// inside moves a place that lies outside of the borders to the place whose value it has by the padding mode.
func (g *gridReader) inside(x float64, n int64) float64 {
	lo, hi := g.borders(n)
	if x >= lo && x <= hi {
		return x
	}
	switch g.padding {
	case "border":
		return min(max(x, 0), float64(n-1))
	case "reflection":
		return g.round(reflected(x, lo, hi))
	}
	return x
}

// borders are the places of the coordinates -1 and 1.
func (g *gridReader) borders(n int64) (lo, hi float64) {
	if g.align {
		return 0, float64(n - 1)
	}
	return -0.5, float64(n) - 0.5
}

// reflected mirrors x at the borders until it lies between them.
func reflected(x, lo, hi float64) float64 {
	span := hi - lo
	if span <= 0 {
		return lo
	}
	from := lo - x
	if x > hi {
		from = x - hi
	} else if x >= lo {
		return x
	}
	times := math.Floor(from / span)
	rest := from - times*span
	if (math.Mod(times, 2) == 0) == (x < lo) {
		return lo + rest
	}
	return hi - rest
}

// pixel is the element at place i by the padding mode, -1 for zero.
func (g *gridReader) pixel(i, n int64) int64 {
	if i >= 0 && i < n {
		return i
	}
	switch g.padding {
	case "border":
		return min(max(i, 0), n-1)
	case "reflection":
		lo, hi := g.borders(n)
		return min(max(int64(reflected(float64(i), lo, hi)), 0), n-1)
	}
	return -1
}

// affineGrid applies the affine map theta to the normalised place of each element of the output.
func affineGrid(c *call) []*ir.Tensor {
	theta, size := c.arg(0), ints(c.arg(1))
	rank := int64(len(size) - 2)
	if rank != 2 && rank != 3 {
		fail("size is %v, want 4 or 5 extents", size)
	}
	checkDims(theta, size[0], rank, rank+1)
	spatial := size[2:]
	dims := append(append([]int64{size[0]}, spatial...), rank)
	out := c.alloc(theta.DType, dims)
	m, y := floats(theta), make([]float64, out.Len())
	at := 0
	for n := range size[0] {
		o := newOdometer(spatial, nil, nil)
		for ok := ir.Count(spatial) > 0; ok; ok = o.next() {
			for row := range rank {
				line := m[(n*rank+row)*(rank+1):][:rank+1]
				sum := line[rank]
				for k := range rank {
					axis := rank - 1 - k
					sum += line[k] * gridPlace(o.index[axis], spatial[axis], c.Attr("align_corners").I != 0)
				}
				y[at] = sum
				at++
			}
		}
	}
	store(out, 0, y)
	return one(out)
}

// gridPlace is the normalised coordinate of element i of n. With align, a single element would have to be at -1 and at
// 1; the standard's reference puts it at -1.
func gridPlace(i, n int64, align bool) float64 {
	if !align {
		return (2*float64(i)+1)/float64(n) - 1
	}
	if n == 1 {
		return -1
	}
	return 2*float64(i)/float64(n-1) - 1
}
