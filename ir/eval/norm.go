package eval

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

func softmax(c *call) []*ir.Tensor    { return one(alongAxis(c, softmaxLine)) }
func logSoftmax(c *call) []*ir.Tensor { return one(alongAxis(c, logSoftmaxLine)) }

// alongAxis applies f to each line along the attribute axis. A scalar is one line of one element.
func alongAxis(c *call, f func(x []float64)) *ir.Tensor {
	t := c.arg(0)
	out := c.alloc(t.DType, t.Dims)
	if len(t.Dims) == 0 {
		line := values[float64](t)
		f(line)
		store(out, 0, line)
		return out
	}
	eachLane(t, out, axisOf(c.Attr("axis").I, len(t.Dims)), f)
	return out
}

// softmaxLine subtracts the maximum first, so that nothing overflows. A line all of whose elements are -∞ gives NaN.
func softmaxLine(x []float64) {
	m := maxFloat(x)
	s := 0.0
	for i, v := range x {
		x[i] = math.Exp(v - m)
		s += x[i]
	}
	for i := range x {
		x[i] /= s
	}
}

func logSoftmaxLine(x []float64) {
	m := maxFloat(x)
	s := 0.0
	for _, v := range x {
		s += math.Exp(v - m)
	}
	for i := range x {
		x[i] -= m + math.Log(s)
	}
}

// moments returns the mean and the variance, with the number of elements as divisor.
func moments(x []float64) (mean, variance float64) {
	mean = meanOf(x)
	for _, v := range x {
		variance += (v - mean) * (v - mean)
	}
	return mean, variance / float64(len(x))
}

// batchNorm normalises each channel (axis 1) with the given statistics. In training mode it uses those of X, and the
// updated running statistics are outputs 1 and 2.
func batchNorm(c *call) []*ir.Tensor {
	x := c.arg(0)
	if len(x.Dims) < 2 {
		fail("X has dims %v, want at least a batch and a channel axis", x.Dims)
	}
	channels := int(x.Dims[1])
	var p [4][]float64 // scale, B, mean, variance
	for i := range p {
		p[i] = channelValues(c.arg(i+1), channels)
	}
	outs := []*ir.Tensor{nil}
	if c.Attr("training_mode").I != 0 {
		m, v := channelMoments(x)
		for _, s := range [][2][]float64{{p[2], m}, {p[3], v}} {
			outs = append(outs, result(c, c.arg(3).DType, []int64{int64(channels)},
				blend(s[0], s[1], c.Attr("momentum").F)))
		}
		p[2], p[3] = m, v
	}
	eps := c.Attr("epsilon").F
	outs[0] = perChannel(c, x, func(ch int, v []float64) {
		factor := p[0][ch] / math.Sqrt(p[3][ch]+eps)
		for i, e := range v {
			v[i] = (e-p[2][ch])*factor + p[1][ch]
		}
	})
	return outs
}

// blend is a running statistic after a step: old·momentum + now·(1 - momentum).
func blend(old, now []float64, momentum float64) []float64 {
	out := make([]float64, len(old))
	for i := range out {
		out[i] = old[i]*momentum + now[i]*(1-momentum)
	}
	return out
}

func channelMoments(x *ir.Tensor) (means, variances []float64) {
	batch, channels, n := split3(x.Dims, 1)
	line := make([]float64, batch*n)
	for ch := range channels {
		for b := range batch {
			load(line[b*n:(b+1)*n], x, (b*channels+ch)*n)
		}
		m, v := moments(line)
		means, variances = append(means, m), append(variances, v)
	}
	return means, variances
}

func channelValues(t *ir.Tensor, channels int) []float64 {
	if t.Len() != int64(channels) {
		fail("there are %d values for %d channels", t.Len(), channels)
	}
	return floats(t)
}

// perChannel applies f to the elements of each channel of each batch.
func perChannel(c *call, x *ir.Tensor, f func(ch int, v []float64)) *ir.Tensor {
	out := c.alloc(x.DType, x.Dims)
	batch, channels, n := split3(x.Dims, 1)
	v := make([]float64, n)
	for i := range batch * channels {
		load(v, x, i*n)
		f(i%channels, v)
		store(out, i*n, v)
	}
	return out
}

func instanceNorm(c *call) []*ir.Tensor {
	x := c.arg(0)
	if len(x.Dims) < 2 {
		fail("input has dims %v, want at least a batch and a channel axis", x.Dims)
	}
	scale, bias := channelValues(c.arg(1), int(x.Dims[1])), channelValues(c.arg(2), int(x.Dims[1]))
	eps := c.Attr("epsilon").F
	return one(perChannel(c, x, func(ch int, v []float64) {
		m, variance := moments(v)
		factor := scale[ch] / math.Sqrt(variance+eps)
		for i, e := range v {
			v[i] = (e-m)*factor + bias[ch]
		}
	}))
}

// layerNorm normalises over the axes from axis on. The outputs Mean and InvStdDev have the extent 1 on these axes.
func layerNorm(c *call) []*ir.Tensor {
	x := c.arg(0)
	axis := axisOf(c.Attr("axis").I, len(x.Dims))
	outer, n := int(ir.Count(x.Dims[:axis])), int(ir.Count(x.Dims[axis:]))
	scale, bias := layerNormAffine(c, c.arg(1), x.Dims, axis), layerNormAffine(c, c.opt(2), x.Dims, axis)
	eps := c.Attr("epsilon").F
	out := c.alloc(x.DType, x.Dims)
	means, invs := make([]float64, outer), make([]float64, outer)
	v := make([]float64, n)
	for o := range outer {
		load(v, x, o*n)
		m, variance := moments(v)
		inv := 1 / math.Sqrt(variance+eps)
		factor, offset := scale(o), bias(o)
		for i, e := range v {
			v[i] = (e - m) * inv * factor[i]
			if offset != nil {
				v[i] += offset[i]
			}
		}
		store(out, o*n, v)
		means[o], invs[o] = m, inv
	}
	dims := append([]int64{}, x.Dims...)
	for i := axis; i < len(dims); i++ {
		dims[i] = 1
	}
	stash := layerNormStash(c)
	return []*ir.Tensor{out, result(c, stash, dims, means), result(c, stash, dims, invs)}
}

// rmsNorm divides each row by its root mean square.
func rmsNorm(c *call) []*ir.Tensor {
	x := c.arg(0)
	axis := axisOf(c.Attr("axis").I, len(x.Dims))
	n := int(ir.Count(x.Dims[axis:]))
	scale, eps := layerNormAffine(c, c.arg(1), x.Dims, axis), c.Attr("epsilon").F
	out := c.alloc(x.DType, x.Dims)
	v := make([]float64, n)
	for o := range int(ir.Count(x.Dims[:axis])) {
		load(v, x, o*n)
		square := 0.0
		for _, e := range v {
			square += e * e
		}
		inverse, factor := 1/math.Sqrt(square/float64(n)+eps), scale(o)
		for i := range v {
			v[i] *= inverse * factor[i]
		}
		store(out, o*n, v)
	}
	return one(out)
}

// layerNormAffine returns a function for the scales or offsets of normalised row o, which returns nil if t is absent.
// Usually they are the same for all rows, but the standard lets them broadcast to X in any way.
func layerNormAffine(c *call, t *ir.Tensor, dims []int64, axis int) func(o int) []float64 {
	if t == nil {
		return func(int) []float64 { return nil }
	}
	if len(t.Dims) <= len(dims)-axis {
		v := floats(broadcastTo(c, t, dims[axis:]))
		return func(int) []float64 { return v }
	}
	v, n := floats(broadcastTo(c, t, dims)), int(ir.Count(dims[axis:]))
	return func(o int) []float64 { return v[o*n : (o+1)*n] }
}

// layerNormStash is the element type of Mean and InvStdDev, which the attribute stash_type numbers.
func layerNormStash(c *call) ir.DType {
	d, ok := ir.DTypeOfONNX(c.Attr("stash_type").I)
	if !ok || !d.IsFloat() {
		fail("attribute stash_type: %d is no float type", c.Attr("stash_type").I)
	}
	return d
}

// lrn divides each element by (bias + alpha/size·Σ x²)^beta, where the sum is over the size channels around its own.
func lrn(c *call) []*ir.Tensor {
	x := c.arg(0)
	if len(x.Dims) < 2 {
		fail("X has dims %v, want at least a batch and a channel axis", x.Dims)
	}
	size := int(c.Attr("size").I)
	if size < 1 {
		fail("attribute size: %d, want at least 1", size)
	}
	alpha, beta, bias := c.Attr("alpha").F/float64(size), c.Attr("beta").F, c.Attr("bias").F
	before := (size - 1) / 2
	out := c.alloc(x.DType, x.Dims)
	sq := make([]float64, x.Dims[1])
	eachLane(x, out, 1, func(line []float64) {
		for i, v := range line {
			sq[i] = v * v
		}
		for i := range line {
			lo, hi := max(0, i-before), min(len(line), i-before+size)
			line[i] /= math.Pow(bias+alpha*sumOf(sq[lo:hi]), beta)
		}
	})
	return one(out)
}
