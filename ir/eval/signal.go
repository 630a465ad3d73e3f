package eval

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// dft computes the discrete Fourier transform of every line along axis, directly by its definition as a sum.
func dft(c *call) []*ir.Tensor {
	t := c.arg(0)
	last := len(t.Dims) - 1
	axis := -2
	if a := c.opt(2); a != nil {
		axis = int(scalarInt(a))
	}
	axis = axisOf(int64(axis), len(t.Dims))
	if axis == last || t.Dims[last] != 1 && t.Dims[last] != 2 {
		fail("axis %[2]d of dims %[1]v cannot be transformed: want an axis before the last one, which holds the parts of the numbers", t.Dims, axis)
	}
	f := fourier{inverse: c.Attr("inverse").I != 0, onesided: c.Attr("onesided").I != 0}
	if f.onesided && !f.inverse && t.Dims[last] == 2 {
		fail("a one-sided transform needs real numbers")
	}
	n := t.Dims[axis]
	if f.onesided && f.inverse {
		n = 2 * (n - 1)
	}
	if l := c.opt(1); l != nil {
		n = scalarInt(l)
	}
	if n < 1 || n > maxWindow {
		fail("the length %d of the transform is out of range", n)
	}
	return one(f.transform(c, t, axis, int(n)))
}

// fourier is a kind of transform. A one-sided transform of n real numbers computes only the first n/2+1 bins, since the
// others are their complex conjugates; its inverse takes these bins and gives real numbers.
type fourier struct{ inverse, onesided bool }

// transform computes transforms of length n along axis. t, whose last axis holds the parts of the numbers, is taken as
// [outer, axis, inner, parts]. Lines are cut off or filled with zeros to length n.
func (f fourier) transform(c *call, t *ir.Tensor, axis, n int) *ir.Tensor {
	last := len(t.Dims) - 1
	outer, have, inner := split3(t.Dims[:last], axis)
	parts := int(t.Dims[last])
	bins, outParts := n, 2
	switch {
	case f.onesided && f.inverse:
		outParts = 1
	case f.onesided:
		bins = n/2 + 1
	}
	dims := slices.Clone(t.Dims)
	dims[axis], dims[last] = int64(bins), int64(outParts)
	out := c.alloc(t.DType, dims)
	x, y := floats(t), make([]float64, out.Len())
	cos, sin := twiddles(n)
	c.parallel(outer*inner, func(line int) {
		o, i := line/inner, line%inner
		re, im := make([]float64, n), make([]float64, n)
		for k := range min(n, have) {
			at := ((o*have+k)*inner + i) * parts
			re[k] = x[at]
			if parts == 2 {
				im[k] = x[at+1]
			}
		}
		if f.onesided && f.inverse {
			mirror(re, im)
		}
		for k := range bins {
			a, b := f.bin(re, im, cos, sin, k)
			at := ((o*bins+k)*inner + i) * outParts
			y[at] = a
			if outParts == 2 {
				y[at+1] = b
			}
		}
	})
	store(out, 0, y)
	return out
}

// twiddles are the cosines and sines of 2π·i/n for i from 0 to n-1.
func twiddles(n int) (cos, sin []float64) {
	cos, sin = make([]float64, n), make([]float64, n)
	for i := range n {
		sin[i], cos[i] = math.Sincos(2 * math.Pi * float64(i) / float64(n))
	}
	return cos, sin
}

// mirror completes the one-sided spectrum of a real signal: bin n-k is the conjugate of bin k. Bin 0, and bin n/2 for
// an even n, are their own conjugates; so their imaginary parts are taken to be 0.
func mirror(re, im []float64) {
	n := len(re)
	im[0] = 0
	if n%2 == 0 {
		im[n/2] = 0
	}
	for k := n/2 + 1; k < n; k++ {
		re[k], im[k] = re[n-k], -im[n-k]
	}
}

// bin is bin k of the transform: real part a and imaginary part b.
func (f fourier) bin(re, im, cos, sin []float64, k int) (a, b float64) {
	n := len(re)
	sign := -1.0
	if f.inverse {
		sign = 1
	}
	for j := range n {
		at := j * k % n
		a += re[j]*cos[at] - sign*im[j]*sin[at]
		b += im[j]*cos[at] + sign*re[j]*sin[at]
	}
	if f.inverse {
		return a / float64(n), b / float64(n)
	}
	return a, b
}

// stft transforms the frames of a signal [batch, length, parts]; a frame begins every frame_step elements. It makes a
// tensor [batch, frames, frame length, parts] of the signal, in which frames may overlap, and transforms that.
func stft(c *call) []*ir.Tensor {
	t, step := c.arg(0), scalarInt(c.arg(1))
	if len(t.Dims) != 3 || t.Dims[2] != 1 && t.Dims[2] != 2 {
		fail("the signal has dims %v, want batch, length, and 1 or 2 parts", t.Dims)
	}
	length := t.Dims[1]
	window := c.opt(2)
	if window != nil {
		length = window.Len()
	}
	if l := c.opt(3); l != nil {
		length = scalarInt(l)
	}
	f := fourier{onesided: c.Attr("onesided").I != 0}
	if f.onesided && t.Dims[2] == 2 {
		fail("a one-sided transform needs real numbers")
	}
	if step < 1 || length < 1 || length > t.Dims[1] || window != nil && window.Len() != length {
		fail("frames of length %d, one every %d elements, do not fit a signal of %d elements", length, step, t.Dims[1])
	}
	frames := 1 + (t.Dims[1]-length)/step
	dims := []int64{t.Dims[0], frames, length, t.Dims[2]}
	parts := t.Dims[2]
	x := viewOf(c, castTo(c, t, ir.Float64), 0, dims, []int64{t.Dims[1] * parts, step * parts, parts, 1})
	if window != nil {
		data, w := slices.Clone(floats(x)), floats(window)
		for i := range data {
			data[i] *= w[i/int(parts)%len(w)]
		}
		x = ir.FromSlice(ir.Float64, data, dims...)
	}
	return one(castTo(c, f.transform(c, x, 2, int(length)), t.DType))
}

// windowFunction is an operator with size values of f, whose argument goes from 0 to 2π: value i is at 2π·i/size or, if
// the window is not periodic, at 2π·i/(size-1).
func windowFunction(f func(turn float64) float64) opFunc {
	return func(c *call) []*ir.Tensor {
		size := scalarInt(c.arg(0))
		d := typeAttr(c, "output_datatype", ir.Float32)
		c.checkSize(d, []int64{size})
		span := size
		if c.Attr("periodic").I == 0 {
			span--
		}
		v := make([]float64, size)
		for i := range v {
			v[i] = f(2 * math.Pi * float64(i) / float64(max(span, 1)))
		}
		return one(castTo(c, ir.FromSlice(ir.Float64, v, size), d))
	}
}

func hann(turn float64) float64    { return 0.5 - 0.5*math.Cos(turn) }
func hamming(turn float64) float64 { return 25.0/46 - 21.0/46*math.Cos(turn) }
func blackman(turn float64) float64 {
	return 0.42 - 0.5*math.Cos(turn) + 0.08*math.Cos(2*turn)
}

// melWeightMatrix has a column for each bin of the mel scale, with a triangle over the bins of a transform. The three
// corners of a triangle are equally spaced on the mel scale and are rounded down to bins; where the left corner and the
// centre are the same bin, the weight there is 1.
func melWeightMatrix(c *call) []*ir.Tensor {
	bins, length, rate := scalarInt(c.arg(0)), scalarInt(c.arg(1)), scalarInt(c.arg(2))
	low, high := scalar[float64](c.arg(3)), scalar[float64](c.arg(4))
	if bins < 1 || length < 1 || rate < 1 || bins > maxWindow {
		fail("%d bins, a transform of length %d and the rate %d: each must be at least 1", bins, length, rate)
	}
	d := typeAttr(c, "output_datatype", ir.Float32)
	rows := length/2 + 1
	c.checkSize(ir.Float64, []int64{rows, bins})
	mel := func(hertz float64) float64 { return 2595 * math.Log10(1+hertz/700) }
	from, step := mel(low), (mel(high)-mel(low))/float64(bins+2)
	corner := make([]int64, bins+2)
	for i := range corner {
		hertz := 700 * (math.Pow(10, (from+float64(i)*step)/2595) - 1)
		corner[i] = toInt64(saturate(math.Floor(float64(length+1)*hertz/float64(rate)), ir.Int64))
		if corner[i] < 0 || corner[i] >= rows {
			fail("the edges %v and %v Hz are beyond the bins of the transform", low, high)
		}
	}
	v := make([]float64, rows*bins)
	for i := range bins {
		left, center, right := corner[i], corner[i+1], corner[i+2]
		for j := left; j <= center; j++ {
			v[j*bins+i] = 1
			if center > left {
				v[j*bins+i] = float64(j-left) / float64(center-left)
			}
		}
		for j := center; j < right; j++ {
			v[j*bins+i] = float64(right-j) / float64(right-center)
		}
	}
	return one(castTo(c, ir.FromSlice(ir.Float64, v, rows, bins), d))
}
