package eval

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// roiAlign divides each region into output_height × output_width bins. The value of a bin is the mean or maximum of
// samples in it, each of which is interpolated bilinearly.
func roiAlign(c *call) []*ir.Tensor {
	x, rois, batches := c.arg(0), c.arg(1), ints(c.arg(2))
	ph, pw := c.Attr("output_height").I, c.Attr("output_width").I
	if len(x.Dims) != 4 || ph < 1 || pw < 1 {
		fail("X has dims %v and there are %d by %d bins, want N, C, H, W and at least 1", x.Dims, ph, pw)
	}
	count := int64(len(batches))
	checkDims(rois, count, 4)
	out := c.alloc(x.DType, []int64{count, x.Dims[1], ph, pw})
	r := newRoiReader(c, x)
	boxes, data := floats(rois), floats(x)
	y := make([]float64, out.Len())
	planes, bins := int(x.Dims[1]), int(ph*pw)
	c.parallel(int(count), func(n int) {
		batch := int(at(batches[n], x.Dims[0]))
		samples, each := r.samples(boxes[4*n:4*n+4], int(ph), int(pw))
		for ch := range planes {
			plane := data[(batch*planes+ch)*r.h*r.w:]
			for b := range bins {
				y[(n*planes+ch)*bins+b] = r.pool(plane, samples[b*each:(b+1)*each])
			}
		}
	})
	store(out, 0, y)
	return one(out)
}

// roiReader samples regions of the planes of X.
type roiReader struct {
	h, w   int     // extents of a plane
	scale  float64 // spatial_scale: from coordinates of regions to those of X
	offset float64 // half a pixel in the mode half_pixel, else 0
	half   bool    // the mode is half_pixel
	ratio  int64   // sampling_ratio: samples along each side of a bin; 0: as many as it has pixels
	max    bool    // the mode is max, else avg
}

func newRoiReader(c *call, x *ir.Tensor) *roiReader {
	r := &roiReader{
		h: int(x.Dims[2]), w: int(x.Dims[3]), scale: c.Attr("spatial_scale").F, ratio: c.Attr("sampling_ratio").I,
		half: c.Attr("coordinate_transformation_mode").S == "half_pixel", max: c.Attr("mode").S == "max",
	}
	if r.half {
		r.offset = 0.5
	}
	return r
}

// corners are the four elements around a sample, with their weights.
type corners [4]tap

// samples lists the samples of all bins of a region, one bin after another; each bin has the same number of them. box
// is x1, y1, x2, y2.
func (r *roiReader) samples(box []float64, ph, pw int) (list []corners, each int) {
	x0, y0 := box[0]*r.scale-r.offset, box[1]*r.scale-r.offset
	width, height := box[2]*r.scale-r.offset-x0, box[3]*r.scale-r.offset-y0
	if !r.half {
		width, height = max(width, 1), max(height, 1)
	}
	stepY, stepX := height/float64(ph), width/float64(pw)
	gh, gw := r.grid(stepY), r.grid(stepX)
	if gh*gw > maxWindow || gh*gw*ph*pw > maxWindow {
		fail("a region of %v by %v elements has too many samples", height, width)
	}
	for py := range ph {
		for px := range pw {
			for iy := range gh {
				y := y0 + float64(py)*stepY + (float64(iy)+0.5)*stepY/float64(gh)
				for ix := range gw {
					x := x0 + float64(px)*stepX + (float64(ix)+0.5)*stepX/float64(gw)
					list = append(list, r.around(y, x))
				}
			}
		}
	}
	return list, gh * gw
}

// grid is the number of samples along one side of a bin of step pixels.
func (r *roiReader) grid(step float64) int {
	if r.ratio > 0 {
		return int(min(r.ratio, maxWindow))
	}
	return int(min(max(math.Ceil(step), 0), maxWindow))
}

// around returns the four elements around a place and their weights. A place more than one pixel outside of the plane
// counts as 0: its weights are 0.
func (r *roiReader) around(y, x float64) corners {
	if !(y >= -1 && y <= float64(r.h) && x >= -1 && x <= float64(r.w)) || r.h == 0 || r.w == 0 {
		return corners{}
	}
	yLow, yHigh, ly := between(max(y, 0), r.h)
	xLow, xHigh, lx := between(max(x, 0), r.w)
	return corners{
		{yLow*r.w + xLow, (1 - ly) * (1 - lx)}, {yLow*r.w + xHigh, (1 - ly) * lx},
		{yHigh*r.w + xLow, ly * (1 - lx)}, {yHigh*r.w + xHigh, ly * lx},
	}
}

// between returns the elements before and after place x on an axis of n, and how far x is from the first of them.
func between(x float64, n int) (low, high int, rest float64) {
	low = int(x)
	if low >= n-1 {
		return n - 1, n - 1, 0
	}
	return low, low + 1, x - float64(low)
}

// pool is the mean of the samples or, in the mode max, the largest weighted element of any of them, as ONNX's reference
// computes it.
func (r *roiReader) pool(plane []float64, samples []corners) float64 {
	if len(samples) == 0 {
		return 0
	}
	sum, best := 0.0, math.Inf(-1)
	for _, s := range samples {
		for _, t := range s {
			v := 0.0
			if t.weight != 0 {
				v = t.weight * plane[t.place]
			}
			sum += v
			best = max(best, v)
		}
	}
	if r.max {
		return best
	}
	return sum / float64(len(samples))
}

// maxRoiPool takes the largest element in each bin of each region. The borders of bins are rounded to whole elements.
func maxRoiPool(c *call) []*ir.Tensor {
	x, rois := c.arg(0), c.arg(1)
	pooled := listAttr("pooled_shape", c.Attr("pooled_shape").Ints, 2, 1)
	if len(x.Dims) != 4 || len(rois.Dims) != 2 {
		fail("X has dims %v and rois %v, want N, C, H, W and a matrix", x.Dims, rois.Dims)
	}
	checkDims(rois, rois.Dims[0], 5)
	out := c.alloc(x.DType, []int64{rois.Dims[0], x.Dims[1], pooled[0], pooled[1]})
	h, w, planes := x.Dims[2], x.Dims[3], x.Dims[1]
	boxes, data, scale := floats(rois), floats(x), c.Attr("spatial_scale").F
	y := make([]float64, 0, out.Len())
	for n := range rois.Dims[0] {
		box := boxes[5*n : 5*n+5]
		batch := at(toInt64(saturate(box[0], ir.Int64)), x.Dims[0])
		for ch := range planes {
			plane := data[(batch*planes+ch)*h*w:]
			for py := range pooled[0] {
				y0, y1 := roiBin(box[2]*scale, box[4]*scale, py, pooled[0], h)
				for px := range pooled[1] {
					x0, x1 := roiBin(box[1]*scale, box[3]*scale, px, pooled[1], w)
					y = append(y, maxIn(plane, w, y0, y1, x0, x1))
				}
			}
		}
	}
	store(out, 0, y)
	return one(out)
}

// roiBin is the range [lo, hi) of elements in bin i of the n bins of a region from … to, both borders rounded and
// included. Bins may overlap by one element.
func roiBin(from, to float64, i, n, extent int64) (lo, hi int64) {
	first := roundAway(from)
	size := max(roundAway(to)-first+1, 1) / float64(n)
	clip := func(x float64) int64 { return int64(min(max(x, 0), float64(extent))) }
	return clip(math.Floor(float64(i)*size) + first), clip(math.Ceil(float64(i+1)*size) + first)
}

// roundAway rounds to the nearest whole number, ties away from zero.
func roundAway(x float64) float64 { return math.Round(min(max(x, -farAway), farAway)) }

// maxIn is the largest element of plane in rows [y0, y1) and columns [x0, x1), 0 if there are none.
func maxIn(plane []float64, w, y0, y1, x0, x1 int64) float64 {
	if y0 >= y1 || x0 >= x1 {
		return 0
	}
	best := math.Inf(-1)
	for y := y0; y < y1; y++ {
		for x := x0; x < x1; x++ {
			best = max(best, plane[y*w+x])
		}
	}
	return best
}
