package eval

import (
	"bytes"
	endian "encoding/binary"
	"math"

	"github.com/rammerc/rammerc/ir"
)

// floatMap is an operator that applies f to each element of a float tensor.
func floatMap(f func(x float64) float64) opFunc {
	return func(c *call) []*ir.Tensor {
		x := c.arg(0)
		out := c.alloc(x.DType, x.Dims)
		mapped(x, out, f)
		return one(out)
	}
}

// floatMapWith is floatMap for a function that depends on the node's attributes.
func floatMapWith(f func(c *call) func(x float64) float64) opFunc {
	return func(c *call) []*ir.Tensor { return floatMap(f(c))(c) }
}

// numberMap is an operator that applies a function to each element: f to floats, i to integers and u to uint64. A nil
// function means that the operator is not defined for these.
func numberMap(f func(x float64) float64, i func(x int64) int64, u func(x uint64) uint64) opFunc {
	return func(c *call) []*ir.Tensor {
		x := c.arg(0)
		out := c.alloc(x.DType, x.Dims)
		d := domainOf(x.DType)
		switch {
		case d == floatDomain && f != nil:
			mapped(x, out, f)
		case d == intDomain && i != nil:
			mapped(x, out, i)
		case d == uintDomain && u != nil:
			mapped(x, out, u)
		default:
			fail("not defined for element type %v", x.DType)
		}
		return one(out)
	}
}

// test is an operator that applies a predicate to each element of a float tensor. q makes the predicate from the
// attributes.
func test(q func(c *call) func(x float64) bool) opFunc {
	return func(c *call) []*ir.Tensor {
		x := c.arg(0)
		f := q(c)
		out := c.alloc(ir.Bool, x.Dims)
		mapped(x, out, func(v float64) int64 { return truth(f(v)) })
		return one(out)
	}
}

func isNaN(*call) func(x float64) bool { return math.IsNaN }

func isInf(c *call) func(x float64) bool {
	neg, pos := c.Attr("detect_negative").I != 0, c.Attr("detect_positive").I != 0
	return func(x float64) bool { return neg && math.IsInf(x, -1) || pos && math.IsInf(x, 1) }
}

func not(c *call) []*ir.Tensor {
	x := c.arg(0)
	out := c.alloc(ir.Bool, x.Dims)
	mapped(x, out, func(v int64) int64 { return 1 - v })
	return one(out)
}

func negFloat(x float64) float64 { return -x }
func absInt(x int64) int64       { return max(x, -x) }
func negInt(x int64) int64       { return -x }
func reluInt(x int64) int64      { return max(x, 0) }
func signUint(x uint64) uint64   { return min(x, 1) }

func signInt(x int64) int64 { return truth(x > 0) - truth(x < 0) }

func same[N number](x N) N { return x }

func signFloat(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x // NaN, 0 and -0 stay what they are
}

func reciprocal(x float64) float64 { return 1 / x }
func relu(x float64) float64       { return max(x, 0) }
func sigmoid(x float64) float64    { return 1 / (1 + math.Exp(-x)) }
func softsign(x float64) float64   { return x / (1 + math.Abs(x)) }
func mish(x float64) float64       { return x * math.Tanh(softplus(x)) }

// softplus is log(1 + e^x) in a form that does not overflow.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func hardSwish(x float64) float64 { return x * max(0, min(1, x/6+0.5)) }

func leakyRelu(c *call) func(x float64) float64 {
	alpha := c.Attr("alpha").F
	return func(x float64) float64 { return leak(x, alpha) }
}

func elu(c *call) func(x float64) float64 {
	alpha := c.Attr("alpha").F
	return func(x float64) float64 { return eluOf(x, alpha) }
}

func eluOf(x, alpha float64) float64 {
	if x < 0 {
		return alpha * math.Expm1(x)
	}
	return x
}

func selu(c *call) func(x float64) float64 {
	alpha, gamma := c.Attr("alpha").F, c.Attr("gamma").F
	return func(x float64) float64 { return gamma * eluOf(x, alpha) }
}

func celu(c *call) func(x float64) float64 {
	alpha := c.Attr("alpha").F
	return func(x float64) float64 { return max(x, 0) + min(0, alpha*math.Expm1(x/alpha)) }
}

func hardSigmoid(c *call) func(x float64) float64 {
	alpha, beta := c.Attr("alpha").F, c.Attr("beta").F
	return func(x float64) float64 { return max(0, min(1, alpha*x+beta)) }
}

func thresholdedRelu(c *call) func(x float64) float64 {
	alpha := c.Attr("alpha").F
	return func(x float64) float64 { return thresholded(x, alpha) }
}

func thresholded(x, alpha float64) float64 {
	if x <= alpha {
		return 0
	}
	return x
}

func gelu(c *call) func(x float64) float64 {
	if c.Attr("approximate").S == "tanh" {
		return func(x float64) float64 {
			return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}
	}
	return func(x float64) float64 { return 0.5 * x * math.Erfc(-x/math.Sqrt2) }
}

// shrink computes in floats also for integers, because bias and lambd are floats.
func shrink(c *call) []*ir.Tensor {
	x := c.arg(0)
	bias, lambd := c.Attr("bias").F, c.Attr("lambd").F
	f := func(v float64) float64 {
		switch {
		case v < -lambd:
			return v + bias
		case v > lambd:
			return v - bias
		case math.IsNaN(v):
			return v
		}
		return 0
	}
	out := c.alloc(ir.Float64, x.Dims)
	mapped(x, out, f)
	return one(castTo(c, out, x.DType))
}

// cast is ONNX's Cast.
func cast(c *call) []*ir.Tensor {
	to, ok := ir.DTypeOfONNX(c.Attr("to").I)
	if !ok || to == ir.String {
		fail("attribute to: %d is no element type that can be cast to", c.Attr("to").I)
	}
	return one(castAsAsked(c, to))
}

func castLike(c *call) []*ir.Tensor { return one(castAsAsked(c, c.arg(1).DType)) }

// castAsAsked converts the first input. The attributes saturate and round_mode are for narrow floats alone.
func castAsAsked(c *call, to ir.DType) *ir.Tensor {
	t := c.arg(0)
	f, narrow := narrowFloats[to]
	if !narrow || t.DType == to {
		return castTo(c, t, to)
	}
	how := narrowRounding{saturate: c.Attr("saturate").I != 0, mode: c.Attr("round_mode").S}
	out := c.alloc(to, t.Dims)
	codes := ir.Slice[uint8](out)
	for i, x := range values[float64](t) {
		codes[i] = f.round(x, how)
	}
	return out
}

// castTo converts elements. From float to integer the fraction is cut off, values out of range become the nearest in
// range, and NaN becomes 0; the standard leaves the latter two open. Integers wrap around, and so do floats that become
// integers of less than 8 bits. Everything but 0 becomes true.
func castTo(c *call, t *ir.Tensor, to ir.DType) *ir.Tensor {
	if t.DType == to {
		return t
	}
	out := c.alloc(to, t.Dims)
	from := domainOf(t.DType)
	switch dest := domainOf(to); {
	case from == floatDomain && to.IsNarrowInt():
		mapped(t, out, func(x float64) int64 { return toInt64(saturate(x, ir.Int32)) })
	case from == floatDomain && dest == intDomain:
		mapped(t, out, func(x float64) int64 { return toInt64(saturate(x, to)) })
	case from == floatDomain && dest == uintDomain:
		mapped(t, out, func(x float64) uint64 { return toUint64(saturate(x, to)) })
	case from == floatDomain:
		mapped(t, out, same[float64])
	case from == uintDomain:
		mapped(t, out, same[uint64])
	default:
		mapped(t, out, same[int64])
	}
	return out
}

// bitCast reinterprets the bytes of elements as another type of the same size.
func bitCast(c *call) []*ir.Tensor {
	t := c.arg(0)
	to, ok := ir.DTypeOfONNX(c.Attr("to").I)
	if !ok || to.Size() != t.DType.Size() {
		fail("attribute to: %d is no element type of the size of %v", c.Attr("to").I, t.DType)
	}
	out := c.alloc(to, t.Dims)
	var raw bytes.Buffer
	must := func(err error) {
		if err != nil {
			fail("%v", err)
		}
	}
	must(endian.Write(&raw, endian.LittleEndian, t.Data))
	must(endian.Read(&raw, endian.LittleEndian, out.Data))
	return one(out)
}
