package ir

import "math"

// Interval are the values from Lo to Hi, both included. The ends of int64 stand for no bound.
type Interval struct{ Lo, Hi int64 }

// unbounded are all values.
var unbounded = Interval{math.MinInt64, math.MaxInt64}

// Bounds are values between which d lies where each symbol lies between those that of says. Symbols that of does not
// know may have any value. The bounds need not be the closest ones.
func (d Dim) Bounds(of func(symbol string) (Interval, bool)) Interval {
	out := Interval{d.n, d.n}
	for _, t := range d.t {
		product := Interval{t.coef, t.coef}
		for _, a := range t.atoms {
			product = product.mul(a.bounds(of))
		}
		out = out.add(product)
	}
	return out
}

func (a *atom) bounds(of func(string) (Interval, bool)) Interval {
	if a.op == "" {
		if i, ok := of(a.name); ok {
			return i
		}
		return unbounded
	}
	x, y := a.a.Bounds(of), a.b.Bounds(of)
	switch a.op {
	case "min":
		return Interval{min(x.Lo, y.Lo), min(x.Hi, y.Hi)}
	case "max":
		return Interval{max(x.Lo, y.Lo), max(x.Hi, y.Hi)}
	case "div":
		if n, ok := a.b.Const(); ok && n > 0 && x != unbounded {
			return Interval{floorDiv(x.Lo, n), floorDiv(x.Hi, n)}
		}
	}
	return unbounded
}

// add is the interval of the sums. A bound that is missing, or that int64 does not hold, is missing in the result.
func (i Interval) add(o Interval) Interval {
	out := unbounded
	if i.Lo != math.MinInt64 && o.Lo != math.MinInt64 {
		out.Lo = satAdd(i.Lo, o.Lo)
	}
	if i.Hi != math.MaxInt64 && o.Hi != math.MaxInt64 {
		out.Hi = satAdd(i.Hi, o.Hi)
	}
	return out
}

// mul is the interval of the products.
func (i Interval) mul(o Interval) Interval {
	if i.Lo == math.MinInt64 || i.Hi == math.MaxInt64 || o.Lo == math.MinInt64 || o.Hi == math.MaxInt64 {
		return unbounded
	}
	all := []int64{satMul(i.Lo, o.Lo), satMul(i.Lo, o.Hi), satMul(i.Hi, o.Lo), satMul(i.Hi, o.Hi)}
	out := Interval{all[0], all[0]}
	for _, n := range all[1:] {
		out = Interval{min(out.Lo, n), max(out.Hi, n)}
	}
	return out
}

// Decided is d where each minimum and maximum, one of whose operands is never larger than the other one, is replaced by
// the operand that it is: min(seq,512) is seq where seq is at most 512. Symbols are between the values that of says.
func (d Dim) Decided(of func(symbol string) (Interval, bool)) Dim {
	r := D(d.n)
	for _, t := range d.t {
		p := D(t.coef)
		for _, a := range t.atoms {
			p = p.Mul(a.decided(of))
		}
		r = r.Add(p)
	}
	return r
}

func (a *atom) decided(of func(string) (Interval, bool)) Dim {
	switch a.op {
	case "":
		return Dim{t: []term{{1, []*atom{a}, a.key}}}
	case "div":
		return a.a.Decided(of).FloorDiv(a.b.Decided(of))
	}
	x, y := a.a.Decided(of), a.b.Decided(of)
	difference := x.Sub(y).Bounds(of)
	smaller, larger := x, y
	switch {
	case difference.Lo >= 0:
		smaller, larger = y, x
	case difference.Hi > 0:
		return dimFunctions[a.op](x, y)
	}
	switch a.op {
	case "min":
		return smaller
	case "max":
		return larger
	}
	return dimFunctions[a.op](x, y)
}
