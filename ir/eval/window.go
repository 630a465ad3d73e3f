package eval

import (
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
)

// window describes the windows of a convolution or pool along one spatial axis. It is resolved from the attributes
// independently of ir.ConvGeometry.
type window struct {
	in, out, kernel, stride, dilation int
	before, behind                    int // padding
}

// place is the input place that output place o reads with tap k, -1 if that lies in the padding.
func (w window) place(o, k int) int {
	x := o*w.stride - w.before + k*w.dilation
	if x < 0 || x >= w.in {
		return -1
	}
	return x
}

// sourceOf is place for a transposed convolution: the input place whose tap k is added to output place o, -1 if there
// is none.
func (w window) sourceOf(o, k int) int {
	x := o + w.before - k*w.dilation
	if x < 0 || x%w.stride != 0 || x/w.stride >= w.in {
		return -1
	}
	return x / w.stride
}

// table lists the results of place for all o and k; k changes fastest.
func (w window) table(place func(w window, o, k int) int) []int {
	t := make([]int, 0, w.out*w.kernel)
	for o := range w.out {
		for k := range w.kernel {
			t = append(t, place(w, o, k))
		}
	}
	return t
}

// geometry holds the attributes from which windows are resolved. Lists have one entry for each spatial axis.
type geometry struct {
	auto                       string // auto_pad
	strides, dilations         []int64
	pads                       []int64 // those before each axis, then those behind each
	kernel                     []int64
	rank                       int     // number of spatial axes
	outputPadding, outputShape []int64 // of ConvTranspose; outputShape is nil when absent
}

// maxWindow bounds extents and attributes so that sums of products of two of them do not overflow.
const maxWindow = 1 << 30

// geometryOf reads the attributes; kernel is the weights' extents, or nil for pools.
func geometryOf(c *call, rank int, kernel []int64) geometry {
	if rank < 1 {
		fail("X has no spatial axes")
	}
	g := geometry{auto: c.Attr("auto_pad").S, kernel: kernel, rank: rank}
	if k := c.Attr("kernel_shape"); k.Kind != 0 {
		if kernel != nil && fmt.Sprint(kernel) != fmt.Sprint(k.Ints) {
			fail("attribute kernel_shape: %v, but the weights have %v", k.Ints, kernel)
		}
		g.kernel = k.Ints
	}
	g.kernel = listAttr("kernel_shape", g.kernel, rank, 1)
	g.strides = attrOr(c, "strides", rank, 1, 1)
	g.dilations = attrOr(c, "dilations", rank, 1, 1)
	g.pads = attrOr(c, "pads", 2*rank, 0, 0)
	g.outputPadding = attrOr(c, "output_padding", rank, 0, 0)
	if a := c.Attr("output_shape"); a.Kind != 0 {
		g.outputShape = listAttr("output_shape", a.Ints, rank, 0)
	}
	return g
}

// attrOr is an attribute of n numbers, each at least least, or n times def if the attribute is absent.
func attrOr(c *call, name string, n int, def, least int64) []int64 {
	if a := c.Attr(name); a.Kind != 0 {
		return listAttr(name, a.Ints, n, least)
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = def
	}
	return v
}

// listAttr fails unless v, the value of an attribute, has n numbers from least to maxWindow.
func listAttr(name string, v []int64, n int, least int64) []int64 {
	if len(v) != n {
		fail("attribute %s: %v, want %d numbers", name, v, n)
	}
	for _, x := range v {
		if x < least || x > maxWindow {
			fail("attribute %s: %v, want at least %d each", name, v, least)
		}
	}
	return v
}

// windows resolves the padding and the output extents of a convolution or pool. With explicit padding, ceil rounds the
// extents up, that is, it adds a last window that is not complete. This window is left out if it would begin behind the
// last element of the input.
func (g geometry) windows(in []int64, ceil bool) []window {
	ws := make([]window, g.rank)
	for i := range ws {
		k, s, d := g.kernel[i], g.strides[i], g.dilations[i]
		reach := (k-1)*d + 1
		before, behind := g.pads[i], g.pads[g.rank+i]
		switch g.auto {
		case "VALID":
			before, behind, ceil = 0, 0, false
		case "SAME_UPPER", "SAME_LOWER":
			total := max(((in[i]+s-1)/s-1)*s+reach-in[i], 0)
			before, behind = halves(total, g.auto == "SAME_UPPER")
		}
		room := in[i] + before + behind - reach
		if room < 0 {
			fail("a window of %d elements does not fit into %d with padding %d and %d", reach, in[i], before, behind)
		}
		out := room/s + 1
		if ceil && room%s != 0 && out*s < in[i]+before {
			out++
		}
		ws[i] = window{int(in[i]), int(out), int(k), int(s), int(d), int(before), int(behind)}
	}
	return ws
}

// halves divides padding; an odd element goes to the end for SAME_UPPER, and to the beginning otherwise.
func halves(total int64, upper bool) (before, behind int64) {
	if upper {
		return total / 2, total - total/2
	}
	return total - total/2, total / 2
}

// transposed resolves the padding, which is cut off the output, and the output extents of a transposed convolution.
func (g geometry) transposed(in []int64) []window {
	ws := make([]window, g.rank)
	for i := range ws {
		k, s, d := g.kernel[i], g.strides[i], g.dilations[i]
		full := s*(in[i]-1) + g.outputPadding[i] + (k-1)*d + 1
		before, behind := g.pads[i], g.pads[g.rank+i]
		upper := g.auto == "SAME_UPPER"
		switch {
		case g.outputShape != nil:
			before, behind = halves(max(full-g.outputShape[i], 0), upper)
			full = max(full, g.outputShape[i])
		case upper || g.auto == "SAME_LOWER":
			before, behind = halves(max(full-in[i]*s, 0), upper)
			full = max(full, in[i]*s)
		case g.auto == "VALID":
			before, behind = 0, 0
		}
		out := full - before - behind
		if out < 0 {
			fail("the padding %d and %d removes more than all %d elements", before, behind, full)
		}
		ws[i] = window{int(in[i]), int(out), int(k), int(s), int(d), int(before), int(behind)}
	}
	return ws
}

// outDims are the dims of an output: lead, then the extents of the windows.
func outDims(lead []int64, ws []window) []int64 {
	dims := append([]int64{}, lead...)
	for _, w := range ws {
		dims = append(dims, int64(w.out))
	}
	return dims
}

// taps lists, for every output place in row-major order, the flat input places that its window reads, without padding.
type taps struct {
	places [][]int32
	padded []int // how many elements each window has, padding included
}

// tapsOf combines the windows of all axes: it starts with one place of a single tap, and each axis multiplies the
// places by its extent and the taps by its kernel.
func tapsOf(ws []window) taps {
	size := 1
	for _, w := range ws {
		size *= max(w.in, 1)
	}
	if size > math.MaxInt32 {
		fail("a channel of %d elements is too large", size)
	}
	t := taps{places: [][]int32{{0}}, padded: []int{1}}
	for _, w := range ws {
		next := taps{}
		for i, base := range t.places {
			for o := range w.out {
				var offs []int32
				for _, b := range base {
					for k := range w.kernel {
						if x := w.place(o, k); x >= 0 {
							offs = append(offs, b*int32(w.in)+int32(x))
						}
					}
				}
				next.places = append(next.places, offs)
				next.padded = append(next.padded, t.padded[i]*w.padded(o))
			}
		}
		t = next
	}
	return t
}

// padded counts the taps of output place o that lie in the input or its padding. The last window of ceil_mode may reach
// beyond both.
func (w window) padded(o int) int {
	n := 0
	for k := range w.kernel {
		if x := o*w.stride - w.before + k*w.dilation; x < w.in+w.behind {
			n++
		}
	}
	return n
}

// spatial splits X's dims into batch, channels and the spatial extents.
func spatial(x *ir.Tensor) (batch, channels int, rest []int64) {
	if len(x.Dims) < 3 {
		fail("X has dims %v, want batch, channel and spatial axes", x.Dims)
	}
	for _, n := range x.Dims {
		if n > maxWindow {
			fail("X has dims %v, one of which is too large", x.Dims)
		}
	}
	return int(x.Dims[0]), int(x.Dims[1]), x.Dims[2:]
}
