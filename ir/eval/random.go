package eval

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// uniforms is a sequence of numbers in (0, 1). Number i depends on the seed and i only. So every engine computes the
// same numbers, in any order, and every run repeats them.
type uniforms struct{ seed uint64 }

// randomOf is the sequence of a node. Every node has a seed; the importer gives one to nodes without.
func randomOf(c *call) uniforms { return uniforms{mix(math.Float64bits(c.Attr("seed").F))} }

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// at is number i: the middle of one of 2^52 equal parts of the unit interval, so never 0 or 1.
func (u uniforms) at(i int) float64 {
	return (float64(mix(u.seed+uint64(i)*0x9e3779b97f4a7c15)>>12) + 0.5) / (1 << 52)
}

// normal is number i of a standard normal distribution, by the method of Box and Muller.
func (u uniforms) normal(i int) float64 {
	return math.Sqrt(-2*math.Log(u.at(2*i))) * math.Cos(2*math.Pi*u.at(2*i+1))
}

func randomNormal(c *call) []*ir.Tensor {
	u, mean, scale := randomOf(c), c.Attr("mean").F, c.Attr("scale").F
	return one(drawn(c, func(i int) float64 { return mean + scale*u.normal(i) }))
}

func randomUniform(c *call) []*ir.Tensor {
	u, low, high := randomOf(c), c.Attr("low").F, c.Attr("high").F
	return one(drawn(c, func(i int) float64 { return low + (high-low)*u.at(i) }))
}

// drawn makes a tensor whose element i is f(i). It has the shape of the input or, without one, of the attribute shape.
func drawn(c *call, f func(i int) float64) *ir.Tensor {
	dims, d := c.Attr("shape").Ints, ir.Invalid
	if t := c.opt(0); t != nil {
		dims, d = t.Dims, t.DType
	}
	d = typeAttr(c, "dtype", d)
	c.checkSize(ir.Float64, dims)
	if !d.IsFloat() {
		fail("not defined for element type %v", d)
	}
	v := make([]float64, ir.Count(dims))
	for i := range v {
		v[i] = f(i)
	}
	return result(c, d, dims, v)
}

// bernoulli is 1 with the probability that the input's element is, else 0.
func bernoulli(c *call) []*ir.Tensor {
	t := c.arg(0)
	u, p := randomOf(c), floats(t)
	v := make([]int64, len(p))
	for i := range v {
		v[i] = truth(u.at(i) < p[i])
	}
	return one(result(c, typeAttr(c, "dtype", t.DType), t.Dims, v))
}

// multinomial draws sample_size classes for each row x of the input; class i has the probability e^x_i / Σ e^x.
func multinomial(c *call) []*ir.Tensor {
	t, n := c.arg(0), c.Attr("sample_size").I
	if len(t.Dims) != 2 || t.Dims[1] < 1 {
		fail("input has dims %v, want rows of log probabilities", t.Dims)
	}
	dims := []int64{t.Dims[0], n}
	c.checkSize(ir.Int64, dims)
	u, x, classes := randomOf(c), floats(t), int(t.Dims[1])
	v := make([]int64, 0, ir.Count(dims))
	sums := make([]float64, classes)
	for row := range int(t.Dims[0]) {
		line := x[row*classes : (row+1)*classes]
		top, total := maxFloat(line), 0.0
		for i, l := range line {
			total += math.Exp(l - top)
			sums[i] = total
		}
		for range n {
			at, class := u.at(len(v))*total, int64(0)
			for class < int64(classes-1) && sums[class] <= at {
				class++
			}
			v = append(v, class)
		}
	}
	return one(result(c, typeAttr(c, "dtype", ir.Int32), dims, v))
}
