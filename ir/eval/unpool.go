package eval

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// maxUnpool puts X's elements to the flat indices that MaxPool gave, and zeros everywhere else. The indices refer to
// the extents that the window attributes give; output_shape then adds zeros behind each axis.
func maxUnpool(c *call) []*ir.Tensor {
	x, places := c.arg(0), c.arg(1)
	if len(x.Dims) < 3 || !slices.Equal(x.Dims, places.Dims) {
		fail("X has dims %v but its indices %v, want the same, of rank 3 at least", x.Dims, places.Dims)
	}
	spatial := len(x.Dims) - 2
	kernel := listAttr("kernel_shape", c.Attr("kernel_shape").Ints, spatial, 1)
	strides, pads := attrOr(c, "strides", spatial, 1, 1), attrOr(c, "pads", 2*spatial, 0, 0)
	dims := slices.Clone(x.Dims[:2])
	for i, n := range x.Dims[2:] {
		dims = append(dims, (n-1)*strides[i]+kernel[i]-pads[i]-pads[i+spatial])
	}
	out := c.alloc(x.DType, dims)
	to, from := mustElems(out), mustElems(x)
	for i, p := range ints(places) {
		to.copyAt(int(at(p, out.Len())), from, i, 1)
	}
	if c.opt(2) == nil {
		return one(out)
	}
	shape := ints(c.opt(2))
	if len(shape) != len(dims) {
		fail("output_shape %v does not fit rank %d", shape, len(dims))
	}
	for i, n := range shape {
		if n < dims[i] {
			fail("output_shape %v is smaller than %v, which the windows cover", shape, dims)
		}
		out = padAxis(c, out, i, 0, n-dims[i], "constant", nil)
	}
	return one(out)
}

// col2Im makes images of columns. A column of the input holds the elements of one window, block_shape of them for each
// channel. They are added to the image at the places of the window.
func col2Im(c *call) []*ir.Tensor {
	t, image, block := c.arg(0), ints(c.arg(1)), ints(c.arg(2))
	n := len(image)
	if len(t.Dims) != 3 || n == 0 || len(block) != n {
		fail("an input of dims %v, image_shape %v and block_shape %v do not fit together", t.Dims, image, block)
	}
	strides, dilations := attrOr(c, "strides", n, 1, 1), attrOr(c, "dilations", n, 1, 1)
	pads := attrOr(c, "pads", 2*n, 0, 0)
	size, count := int64(1), int64(1)
	blocks := make([]int64, n)
	for i := range image {
		if image[i] < 0 || block[i] < 1 || block[i] > maxWindow || image[i] > maxWindow {
			fail("image_shape %v or block_shape %v is out of range", image, block)
		}
		blocks[i] = max((image[i]+pads[i]+pads[i+n]-dilations[i]*(block[i]-1)-1)/strides[i]+1, 0)
		size, count = checkedMul(size, block[i]), checkedMul(count, blocks[i])
	}
	if t.Dims[1]%size != 0 || t.Dims[2] != count {
		fail("input has dims %v, want a multiple of %d rows and %d columns", t.Dims, size, count)
	}
	out := c.alloc(t.DType, append([]int64{t.Dims[0], t.Dims[1] / size}, image...))
	places := make([]int, 0, size*count)
	rows := newOdometer(block, nil, nil)
	for ok := true; ok; ok = rows.next() {
		cols := newOdometer(blocks, nil, nil)
		for ok := count > 0; ok; ok = cols.next() {
			place := 0
			for d := range image {
				x := cols.index[d]*strides[d] - pads[d] + rows.index[d]*dilations[d]
				if x < 0 || x >= image[d] || place < 0 {
					place = -1
				} else {
					place = place*int(image[d]) + int(x)
				}
			}
			places = append(places, place)
		}
	}
	switch domainOf(t.DType) {
	case floatDomain:
		addColumns[float64](t, out, places)
	case uintDomain:
		addColumns[uint64](t, out, places)
	default:
		addColumns[int64](t, out, places)
	}
	return one(out)
}

// addColumns adds element k of each image's columns to the image's place places[k], and drops it where that is -1.
func addColumns[N number](t, out *ir.Tensor, places []int) {
	if len(places) == 0 || out.Len() == 0 {
		return
	}
	plane := int(ir.Count(out.Dims[2:]))
	column, sum := make([]N, len(places)), make([]N, plane)
	for i := range int(t.Len()) / len(places) {
		load(column, t, i*len(places))
		clear(sum)
		for k, p := range places {
			if p >= 0 {
				sum[p] += column[k]
			}
		}
		store(out, i*plane, sum)
	}
}

// centerCropPad brings axes to given extents: it keeps the middle of an axis that is too long, and puts zeros around
// one that is too short. An odd element is cut off or added at the end.
func centerCropPad(c *call) []*ir.Tensor {
	t, shape := c.arg(0), ints(c.arg(1))
	axes := make([]int64, len(t.Dims))
	for i := range axes {
		axes[i] = int64(i)
	}
	if a := c.Attr("axes"); a.Kind != 0 {
		axes = a.Ints
	}
	if len(shape) != len(axes) {
		fail("there are %d extents for %d axes", len(shape), len(axes))
	}
	for i, axis := range axesOf(axes, len(t.Dims)) {
		n := t.Dims[axis]
		if shape[i] < 0 || shape[i] > 1<<40 {
			fail("the extent %d is out of range", shape[i])
		}
		before := (shape[i] - n) / 2
		if shape[i] < n {
			before = -((n - shape[i]) / 2)
		}
		t = padAxis(c, t, axis, before, shape[i]-n-before, "constant", nil)
	}
	return one(t)
}

// deformConv is a two-dimensional Conv in which each tap of a window is moved by its offset and weighted by its mask.
// The moved taps lie between elements of X, which are interpolated bilinearly.
func deformConv(c *call) []*ir.Tensor {
	x, w, offset := c.arg(0), c.arg(1), c.arg(2)
	if len(x.Dims) != 4 || len(w.Dims) != 4 || len(offset.Dims) != 4 {
		fail("X has dims %v, W %v and offset %v, want rank 4", x.Dims, w.Dims, offset.Dims)
	}
	d := newDeformation(c, x, w, offset)
	out := c.alloc(x.DType, []int64{x.Dims[0], w.Dims[0], offset.Dims[2], offset.Dims[3]})
	y := make([]float64, out.Len())
	perGroup := int(w.Dims[0]) / d.groups
	depth := d.inGroup * d.taps
	c.parallel(int(x.Dims[0])*d.places, func(i int) {
		n, p := i/d.places, i%d.places
		column := d.column(n, p)
		for m := range int(w.Dims[0]) {
			sum := 0.0
			if d.bias != nil {
				sum = d.bias[m]
			}
			for k, v := range column[m/perGroup*depth:][:depth] {
				sum += v * d.weights[m*depth+k]
			}
			y[(n*int(w.Dims[0])+m)*d.places+p] = sum
		}
	})
	store(out, 0, y)
	return one(out)
}

// deformation holds the inputs and attributes of a DeformConv.
type deformation struct {
	x, weights, offset, bias, mask []float64
	h, w, channels                 int // of X
	kh, kw, taps                   int // of the kernel; taps = kh·kw
	outW, places                   int // width and number of output places
	groups, inGroup, offsetGroups  int // inGroup: input channels of a group
	strides, dilations, pads       []int64
}

// newDeformation reads the inputs and attributes, and fails unless they fit together.
func newDeformation(c *call, x, w, offset *ir.Tensor) *deformation {
	d := &deformation{
		x: floats(x), weights: floats(w), offset: floats(offset),
		h: int(x.Dims[2]), w: int(x.Dims[3]), channels: int(x.Dims[1]),
		kh: int(w.Dims[2]), kw: int(w.Dims[3]), taps: int(w.Dims[2] * w.Dims[3]),
		outW: int(offset.Dims[3]), places: int(offset.Dims[2] * offset.Dims[3]),
		groups: int(c.Attr("group").I), inGroup: int(w.Dims[1]), offsetGroups: int(c.Attr("offset_group").I),
		strides: attrOr(c, "strides", 2, 1, 1), dilations: attrOr(c, "dilations", 2, 1, 1),
		pads: attrOr(c, "pads", 4, 0, 0),
	}
	if d.groups < 1 || d.offsetGroups < 1 || d.groups > d.channels || d.groups*d.inGroup != d.channels ||
		d.offsetGroups > d.channels || d.channels%d.offsetGroups != 0 || int(w.Dims[0])%d.groups != 0 {
		fail("%d groups and %d offset groups do not fit X of dims %v and W of dims %v", d.groups, d.offsetGroups,
			x.Dims, w.Dims)
	}
	for i := range 2 {
		span := x.Dims[2+i] + d.pads[i] + d.pads[i+2] - (w.Dims[2+i]-1)*d.dilations[i] - 1
		if span < 0 || offset.Dims[2+i] != span/d.strides[i]+1 {
			fail("offset has dims %v, which the windows do not fit", offset.Dims)
		}
	}
	each := int64(d.offsetGroups * d.taps)
	checkDims(offset, x.Dims[0], 2*each, offset.Dims[2], offset.Dims[3])
	if b := c.opt(3); b != nil {
		checkDims(b, w.Dims[0])
		d.bias = floats(b)
	}
	if m := c.opt(4); m != nil {
		checkDims(m, x.Dims[0], each, offset.Dims[2], offset.Dims[3])
		d.mask = floats(m)
	}
	return d
}

// column is what the window at output place p of batch n reads, in the order [channel][tap].
func (d *deformation) column(n, p int) []float64 {
	out := make([]float64, d.channels*d.taps)
	py, px := int64(p/d.outW), int64(p%d.outW)
	perOffset := d.channels / d.offsetGroups
	for og := range d.offsetGroups {
		for k := range d.taps {
			at := (n*d.offsetGroups+og)*d.taps + k
			y := float64(py*d.strides[0]-d.pads[0]+int64(k/d.kw)*d.dilations[0]) + d.offset[2*at*d.places+p]
			x := float64(px*d.strides[1]-d.pads[1]+int64(k%d.kw)*d.dilations[1]) + d.offset[(2*at+1)*d.places+p]
			mask := 1.0
			if d.mask != nil {
				mask = d.mask[at*d.places+p]
			}
			for ch := og * perOffset; ch < (og+1)*perOffset; ch++ {
				plane := d.x[(n*d.channels+ch)*d.h*d.w:][:d.h*d.w]
				out[ch*d.taps+k] = mask * bilinear(plane, d.h, d.w, y, x)
			}
		}
	}
	return out
}

// bilinear interpolates a plane of h×w elements, which is surrounded by zeros, at place (y, x).
func bilinear(plane []float64, h, w int, y, x float64) float64 {
	if !(y > -1 && y < float64(h) && x > -1 && x < float64(w)) {
		return 0
	}
	y0, x0 := math.Floor(y), math.Floor(x)
	sum := 0.0
	for i := range 2 {
		for j := range 2 {
			iy, ix := int(y0)+i, int(x0)+j
			if iy >= 0 && iy < h && ix >= 0 && ix < w {
				sum += (1 - math.Abs(y-float64(iy))) * (1 - math.Abs(x-float64(ix))) * plane[iy*w+ix]
			}
		}
	}
	return sum
}
