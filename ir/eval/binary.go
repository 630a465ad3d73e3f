package eval

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

func add[N number](a, b N) N       { return a + b }
func sub[N number](a, b N) N       { return a - b }
func mul[N number](a, b N) N       { return a * b }
func smallerOf[N number](a, b N) N { return min(a, b) }
func largerOf[N number](a, b N) N  { return max(a, b) }

func divFloat(a, b float64) float64 { return a / b }

// div truncates towards zero.
func div[N int64 | uint64](a, b N) N {
	if b == 0 {
		fail("integer division by zero")
	}
	return a / b
}

// floorMod is the remainder with the divisor's sign.
func floorMod[N int64 | uint64](a, b N) N {
	m := truncMod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m
}

// truncMod is the remainder with the dividend's sign.
func truncMod[N int64 | uint64](a, b N) N {
	if b == 0 {
		fail("integer division by zero")
	}
	return a % b
}

func floorModFloat(a, b float64) float64 {
	m := math.Mod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m
}

var (
	addition       = closed{f: add[float64], i: add[int64], u: add[uint64]}
	subtraction    = closed{f: sub[float64], i: sub[int64], u: sub[uint64]}
	multiplication = closed{f: mul[float64], i: mul[int64], u: mul[uint64]}
	division       = closed{f: divFloat, i: div[int64], u: div[uint64]}
	minimum        = closed{f: smallerOf[float64], i: smallerOf[int64], u: smallerOf[uint64]}
	maximum        = closed{f: largerOf[float64], i: largerOf[int64], u: largerOf[uint64]}
	bitAnd         = closed{i: func(a, b int64) int64 { return a & b }, u: func(a, b uint64) uint64 { return a & b }}
	bitOr          = closed{i: func(a, b int64) int64 { return a | b }, u: func(a, b uint64) uint64 { return a | b }}
	bitXor         = closed{i: func(a, b int64) int64 { return a ^ b }, u: func(a, b uint64) uint64 { return a ^ b }}
	logicAnd       = closed{b: func(a, b int64) int64 { return a & b }}
	logicOr        = closed{b: func(a, b int64) int64 { return a | b }}
	logicXor       = closed{b: func(a, b int64) int64 { return a ^ b }}
)

func mean(x float64, n int) float64 { return x / float64(n) }

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func equal[N number](a, b N) int64     { return truth(a == b) }
func less[N number](a, b N) int64      { return truth(a < b) }
func lessEqual[N number](a, b N) int64 { return truth(a <= b) }
func more[N number](a, b N) int64      { return truth(a > b) }
func moreEqual[N number](a, b N) int64 { return truth(a >= b) }

var (
	isEqual     = predicate{f: equal[float64], i: equal[int64], u: equal[uint64], b: equal[int64]}
	isLess      = predicate{f: less[float64], i: less[int64], u: less[uint64]}
	isLessEqual = predicate{f: lessEqual[float64], i: lessEqual[int64], u: lessEqual[uint64]}
	isMore      = predicate{f: more[float64], i: more[int64], u: more[uint64]}
	isMoreEqual = predicate{f: moreEqual[float64], i: moreEqual[int64], u: moreEqual[uint64]}
)

func mod(c *call) []*ir.Tensor {
	if c.Attr("fmod").I != 0 {
		return binary(closed{f: math.Mod, i: truncMod[int64], u: truncMod[uint64]})(c)
	}
	return binary(closed{f: floorModFloat, i: floorMod[int64], u: floorMod[uint64]})(c)
}

// bitShift shifts unsigned integers; what is shifted out of the element type is gone.
func bitShift(c *call) []*ir.Tensor {
	if c.Attr("direction").S == "LEFT" {
		return binary(closed{
			i: func(a, b int64) int64 { return a << uint64(b) }, u: func(a, b uint64) uint64 { return a << b },
		})(c)
	}
	return binary(closed{
		i: func(a, b int64) int64 { return a >> uint64(b) }, u: func(a, b uint64) uint64 { return a >> b },
	})(c)
}

// pow has the base's element type, whatever that of the exponent is. Two integers give an exact power, which wraps
// around. All other powers are computed in float64.
func pow(c *call) []*ir.Tensor {
	x, y := c.arg(0), c.arg(1)
	out := c.alloc(x.DType, broadcastDims(x.Dims, y.Dims))
	dx, dy := domainOf(x.DType), domainOf(y.DType)
	switch {
	case dx == floatDomain:
		zipped(x, y, out, math.Pow)
	case dy == floatDomain && dx == uintDomain:
		zipped(x, y, out, func(a, b float64) uint64 { return toUint64(saturate(math.Pow(a, b), x.DType)) })
	case dy == floatDomain:
		zipped(x, y, out, func(a, b float64) int64 { return toInt64(saturate(math.Pow(a, b), x.DType)) })
	case dx == uintDomain:
		zipped(x, y, out, intPow[uint64])
	default:
		zipped(x, y, out, intPow[int64])
	}
	return one(out)
}

// intPow is base to the power exp, which wraps around. With a negative exponent the power is truncated towards zero: 1
// and -1 stay what they are, up to the sign, and everything else gives 0, also 0 itself, whose power would be infinite.
func intPow[N int64 | uint64](base N, exp int64) N {
	if exp < 0 {
		switch {
		case base == 1:
			return 1
		case base+1 == 0 && base < 0:
			return 1 - 2*N(exp&1)
		}
		return 0
	}
	p := N(1)
	for ; exp > 0; exp >>= 1 {
		if exp&1 != 0 {
			p *= base
		}
		base *= base
	}
	return p
}

// prelu broadcasts slope to x, and not the other way round.
func prelu(c *call) []*ir.Tensor {
	x, slope := c.arg(0), c.arg(1)
	out := c.alloc(x.DType, x.Dims)
	closed{f: leak[float64], i: leak[int64], u: leak[uint64]}.into(x, slope, out)
	return one(out)
}

func leak[N number](x, slope N) N {
	if x < 0 {
		return slope * x
	}
	return x
}

// where copies elements without computing with them, so it works for every element type. The result starts as y; then
// runs of elements for which the condition holds are copied from x.
func where(c *call) []*ir.Tensor {
	cond, x, y := c.arg(0), c.arg(1), c.arg(2)
	dims := broadcastDims(cond.Dims, x.Dims, y.Dims)
	pick := ir.Slice[bool](broadcastTo(c, cond, dims))
	from := mustElems(broadcastTo(c, y, dims))
	out := from.fresh(from.len())
	out.copyAt(0, from, 0, from.len())
	from = mustElems(broadcastTo(c, x, dims))
	for i := 0; i < len(pick); i++ {
		if !pick[i] {
			continue
		}
		n := 1
		for i+n < len(pick) && pick[i+n] {
			n++
		}
		out.copyAt(i, from, i, n)
		i += n
	}
	return one(with(x, out, dims))
}

// clip is min(max(x, lo), hi), so the result is hi where lo > hi, as the standard says. An absent bound does not limit.
func clip(c *call) []*ir.Tensor {
	x := c.arg(0)
	out := c.alloc(x.DType, x.Dims)
	switch domainOf(x.DType) {
	case floatDomain:
		clipTo[float64](c, x, out)
	case intDomain:
		clipTo[int64](c, x, out)
	case uintDomain:
		clipTo[uint64](c, x, out)
	default:
		fail("not defined for element type %v", x.DType)
	}
	return one(out)
}

func clipTo[N number](c *call, x, out *ir.Tensor) {
	lo, hi := c.opt(1), c.opt(2)
	var least, most N
	if lo != nil {
		least = scalar[N](lo)
	}
	if hi != nil {
		most = scalar[N](hi)
	}
	mapped(x, out, func(v N) N {
		if lo != nil {
			v = max(v, least)
		}
		if hi != nil {
			v = min(v, most)
		}
		return v
	})
}
