package ir

import (
	"math"
	"strconv"
)

// What may be known of an expression without its symbols' values: its terms, and the range of its values.

// Term is a product of a number and symbols.
type Term struct {
	Coef    int64
	Symbols []string // as often as they are factors; none for a number
}

// Terms are the terms of d, of which d is the sum. ok is false if one of their factors is not a symbol, such as a
// minimum.
func (d Dim) Terms() (list []Term, ok bool) {
	if d.n != 0 {
		list = append(list, Term{Coef: d.n})
	}
	for _, t := range d.t {
		x := Term{Coef: t.coef}
		for _, a := range t.atoms {
			if a.op != "" {
				return nil, false
			}
			x.Symbols = append(x.Symbols, a.name)
		}
		list = append(list, x)
	}
	return list, true
}

// Symbol is the name of the symbol that d is, if it is no more than that.
func (d Dim) Symbol() (name string, ok bool) {
	list, ok := d.Terms()
	if !ok || len(list) != 1 || list[0].Coef != 1 || len(list[0].Symbols) != 1 {
		return "", false
	}
	return list[0].Symbols[0], true
}

// Most is an upper bound of d where no symbol is negative and each is at most what hi says of it. ok is false if hi does
// not know a symbol.
func (d Dim) Most(hi func(symbol string) (int64, bool)) (most int64, ok bool) {
	most = d.n
	for _, t := range d.t {
		if t.coef < 0 && t.neverNegative(hi) {
			continue
		}
		if t.coef < 0 {
			return 0, false
		}
		p := t.coef
		for _, a := range t.atoms {
			n, ok := a.most(hi)
			if !ok {
				return 0, false
			}
			p = satMul(p, max(n, 0))
		}
		most = satAdd(most, p)
	}
	return most, true
}

// neverNegative reports whether no atom of t can be negative.
func (t term) neverNegative(hi func(string) (int64, bool)) bool {
	for _, a := range t.atoms {
		if !a.neverNegative(hi) {
			return false
		}
	}
	return true
}

// neverNegative is term.neverNegative of an atom. Only symbols that hi knows are extents.
func (a *atom) neverNegative(hi func(string) (int64, bool)) bool {
	switch a.op {
	case "":
		_, known := hi(a.name)
		return known
	case "max":
		return a.a.neverNegative(hi) || a.b.neverNegative(hi)
	case "div":
		n, ok := a.b.Const()
		return ok && n > 0 && a.a.neverNegative(hi)
	}
	return a.a.neverNegative(hi) && a.b.neverNegative(hi)
}

// neverNegative reports whether d is a sum of products that cannot be negative.
func (d Dim) neverNegative(hi func(string) (int64, bool)) bool {
	ok := d.n >= 0
	for _, t := range d.t {
		ok = ok && t.coef > 0 && t.neverNegative(hi)
	}
	return ok
}

// most is Most of an atom.
func (a *atom) most(hi func(string) (int64, bool)) (int64, bool) {
	if a.op == "" {
		return hi(a.name)
	}
	x, okX := a.a.Most(hi)
	y, okY := a.b.Most(hi)
	switch {
	case a.op == "min" && okX && okY:
		return min(x, y), true
	case a.op == "min" && okX:
		return x, true
	case a.op == "min" && okY:
		return y, true
	case (a.op == "max" || a.op == "broadcast") && okX && okY:
		return max(x, y), true
	case a.op == "div" && okX:
		if n, ok := a.b.Const(); ok && n > 0 {
			return max(floorDiv(x, n), 0), true
		}
	}
	return math.MaxInt64, false
}

// Computed is a number that nothing is known of; expressions with different numbers k are different.
func Computed(k int) Dim { return Sym("computed." + strconv.Itoa(k)) }
