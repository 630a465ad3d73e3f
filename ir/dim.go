package ir

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
)

// Dim is one extent of a shape: a constant, or an expression over named symbols.
//
// An expression is kept as a polynomial with integer coefficients, in a normal form, so that extents compare equal
// however they were computed: (batch+1)·2 and 2·batch+2 are the same Dim. The factors of a product are called atoms.
// An atom is a symbol, or an operation that a polynomial cannot express: a floor quotient, a maximum, a minimum or a
// broadcast extent, whose operands are Dims again. For example 2·batch·⌊seq/4⌋ + 1 has the constant term 1 and one
// term with the coefficient 2 and the atoms batch and ⌊seq/4⌋.
//
// Dims are immutable. The zero Dim is the constant 0.
type Dim struct {
	n int64  // the constant term; the whole value when t is empty
	t []term // the other terms, sorted by key; no coefficient is zero
}

// term is a product of a coefficient and atoms.
type term struct {
	coef  int64
	atoms []*atom // sorted by key; at least one
	key   string  // the atoms' text, joined by "*"; equal products have equal keys
}

// atom is a factor that is not broken down further.
type atom struct {
	op   string // "" for a symbol, "div" for ⌊a/b⌋, "max", "min", "broadcast"
	name string // of a symbol
	a, b Dim    // the operands of the other atoms
	key  string // the atom's text, as in Dim.String
}

// D is the constant dim n.
func D(n int64) Dim { return Dim{n: n} }

// Sym is the symbolic dim called name.
func Sym(name string) Dim {
	a := &atom{name: name, key: symbolText(name)}
	return Dim{t: []term{{1, []*atom{a}, a.key}}}
}

// symbolText is a symbol's name as the text form spells it: quoted unless it is a plain identifier that cannot be taken
// for a function. Names come from model files, where they may be any string.
func symbolText(name string) string {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') && r != '.' {
			return strconv.Quote(name)
		}
	}
	if name == "" || dimFunctions[name] != nil {
		return strconv.Quote(name)
	}
	return name
}

// dimFunctions are the functions of two dims in the text form. A symbol of the same name is quoted.
var dimFunctions map[string]func(a, b Dim) Dim

// The map is filled here because its functions print dims, and printing reads the map: as an initialiser of the
// variable this would be an initialisation cycle.
func init() {
	dimFunctions = map[string]func(a, b Dim) Dim{"max": Dim.Max, "min": Dim.Min, "broadcast": Dim.Broadcast}
}

// Const returns the value of a constant dim.
func (d Dim) Const() (int64, bool) { return d.n, len(d.t) == 0 }

// Equal reports whether the two expressions are the same polynomial.
func (d Dim) Equal(o Dim) bool {
	if d.n != o.n || len(d.t) != len(o.t) {
		return false
	}
	for i := range d.t {
		if d.t[i].coef != o.t[i].coef || d.t[i].key != o.t[i].key {
			return false
		}
	}
	return true
}

// Add returns d + o. Coefficients saturate at the ends of int64 instead of overflowing. Such an extent is far beyond
// the largest that inference accepts (maxElements), so it is reported and never used.
func (d Dim) Add(o Dim) Dim {
	r := Dim{n: satAdd(d.n, o.n)}
	i, j := 0, 0
	for i < len(d.t) || j < len(o.t) {
		switch {
		case j == len(o.t) || i < len(d.t) && d.t[i].key < o.t[j].key:
			r.t = append(r.t, d.t[i])
			i++
		case i == len(d.t) || o.t[j].key < d.t[i].key:
			r.t = append(r.t, o.t[j])
			j++
		default:
			if c := satAdd(d.t[i].coef, o.t[j].coef); c != 0 {
				r.t = append(r.t, term{c, d.t[i].atoms, d.t[i].key})
			}
			i++
			j++
		}
	}
	return r
}

// Neg returns -d.
func (d Dim) Neg() Dim { return d.Mul(D(-1)) }

// Sub returns d - o.
func (d Dim) Sub(o Dim) Dim { return d.Add(o.Neg()) }

// Mul returns d · o.
func (d Dim) Mul(o Dim) Dim {
	r := Dim{n: satMul(d.n, o.n)}
	for _, t := range d.t {
		if o.n != 0 {
			r = r.Add(Dim{t: []term{{satMul(t.coef, o.n), t.atoms, t.key}}})
		}
		for _, u := range o.t {
			atoms := append(append([]*atom{}, t.atoms...), u.atoms...)
			sort.SliceStable(atoms, func(i, j int) bool { return atoms[i].key < atoms[j].key })
			keys := make([]string, len(atoms))
			for i, a := range atoms {
				keys[i] = a.key
			}
			r = r.Add(Dim{t: []term{{satMul(t.coef, u.coef), atoms, strings.Join(keys, "*")}}})
		}
	}
	if d.n != 0 {
		for _, u := range o.t {
			r = r.Add(Dim{t: []term{{satMul(u.coef, d.n), u.atoms, u.key}}})
		}
	}
	return r
}

// FloorDiv returns ⌊d / o⌋. It simplifies the quotient where that is exact for all values of the symbols, for example
// ⌊(4·seq + 3)/4⌋ = seq; otherwise the quotient becomes an atom. Division by the constant 0 gives 0, and the caller
// must report it.
func (d Dim) FloorDiv(o Dim) Dim {
	if c, ok := o.Const(); ok {
		if c == 0 {
			return Dim{}
		}
		if n, ok := d.Const(); ok {
			return D(floorDiv(n, c))
		}
		if c == 1 {
			return d
		}
		r := Dim{}
		exact := c > 0
		for _, t := range d.t {
			exact = exact && t.coef%c == 0
		}
		if exact { // ⌊(c·x + n)/c⌋ = x + ⌊n/c⌋ for whole x
			r.n = floorDiv(d.n, c)
			for _, t := range d.t {
				r.t = append(r.t, term{t.coef / c, t.atoms, t.key})
			}
			return r
		}
	}
	if d.Equal(o) {
		return D(1)
	}
	if q, ok := d.divideTerms(o); ok {
		return q
	}
	return compound("div", d, o)
}

// divideTerms divides by a single term such as 2·batch when every term of d is a multiple of it.
func (d Dim) divideTerms(o Dim) (Dim, bool) {
	if o.n != 0 || len(o.t) != 1 || d.n != 0 {
		return Dim{}, false
	}
	r := Dim{}
	for _, t := range d.t {
		if t.coef%o.t[0].coef != 0 {
			return Dim{}, false
		}
		rest := append([]*atom{}, t.atoms...)
		for _, a := range o.t[0].atoms {
			found := false
			for i, b := range rest {
				if a.key == b.key {
					rest = append(rest[:i], rest[i+1:]...)
					found = true
					break
				}
			}
			if !found {
				return Dim{}, false
			}
		}
		q := D(t.coef / o.t[0].coef)
		for _, a := range rest {
			q = q.Mul(Dim{t: []term{{1, []*atom{a}, a.key}}})
		}
		r = r.Add(q)
	}
	return r, true
}

// CeilDiv returns ⌈d / o⌉.
func (d Dim) CeilDiv(o Dim) Dim { return d.Add(o).Sub(D(1)).FloorDiv(o) }

// Max returns the larger of the two.
func (d Dim) Max(o Dim) Dim { return extreme("max", d, o) }

// Min returns the smaller of the two.
func (d Dim) Min(o Dim) Dim { return extreme("min", d, o) }

// Broadcast is the common extent of two axes that are broadcast together, as ONNX and numpy define it: equal extents
// stay, and an extent of 1 is stretched to the other. For constants that is the one that is not 1. The maximum would be
// wrong: 0 and 1 broadcast to 0. Different constants other than 1 do not broadcast; then the result is the larger one,
// and BroadcastShapes reports the error. For symbols the result is an atom whose operands are sorted, so that it does
// not depend on the order in which axes were combined.
func (d Dim) Broadcast(o Dim) Dim {
	parts := append(d.broadcastParts(nil), o.broadcastParts(nil)...)
	sort.Slice(parts, func(i, j int) bool { return parts[i].String() < parts[j].String() })
	known, other := D(1), []Dim(nil)
	for i, p := range parts {
		n, ok := p.Const()
		m, _ := known.Const()
		switch {
		case ok && n != 1 && (m == 1 || n > m):
			known = p
		case !ok && (i == 0 || !p.Equal(parts[i-1])):
			other = append(other, p)
		}
	}
	if n, _ := known.Const(); n != 1 || len(other) == 0 {
		return known
	}
	r := other[len(other)-1]
	for i := len(other) - 2; i >= 0; i-- {
		r = compound("broadcast", other[i], r)
	}
	return r
}

// broadcastParts appends the operands of d if it is a broadcast extent, those of nested ones too; otherwise d itself.
func (d Dim) broadcastParts(list []Dim) []Dim {
	if d.n == 0 && len(d.t) == 1 && d.t[0].coef == 1 && len(d.t[0].atoms) == 1 {
		if a := d.t[0].atoms[0]; a.op == "broadcast" {
			return a.b.broadcastParts(a.a.broadcastParts(list))
		}
	}
	return append(list, d)
}

// extreme is the maximum or minimum: one of the operands if their difference is a constant, otherwise an atom with the
// operands in the order of their text, so that max(a,b) and max(b,a) are the same.
func extreme(op string, d, o Dim) Dim {
	if n, ok := d.Sub(o).Const(); ok {
		if (n >= 0) == (op == "max") {
			return d
		}
		return o
	}
	if o.String() < d.String() {
		d, o = o, d
	}
	return compound(op, d, o)
}

// compound makes a Dim of a single atom that is not a symbol.
func compound(op string, a, b Dim) Dim {
	x := &atom{op: op, a: a, b: b}
	if op == "div" {
		x.key = "(" + a.String() + ")/(" + b.String() + ")"
	} else {
		x.key = op + "(" + a.String() + "," + b.String() + ")"
	}
	return Dim{t: []term{{1, []*atom{x}, x.key}}}
}

// Bind replaces the symbols whose names are keys of bind by constants, and simplifies.
func (d Dim) Bind(bind map[string]int64) Dim {
	r := D(d.n)
	for _, t := range d.t {
		p := D(t.coef)
		for _, a := range t.atoms {
			p = p.Mul(a.bind(bind))
		}
		r = r.Add(p)
	}
	return r
}

func (a *atom) bind(bind map[string]int64) Dim {
	switch a.op {
	case "":
		if v, ok := bind[a.name]; ok {
			return D(v)
		}
		return Dim{t: []term{{1, []*atom{a}, a.key}}}
	case "div":
		return a.a.Bind(bind).FloorDiv(a.b.Bind(bind))
	}
	return dimFunctions[a.op](a.a.Bind(bind), a.b.Bind(bind))
}

// Symbols adds the names of all symbols in d to set.
func (d Dim) Symbols(set map[string]bool) {
	for _, t := range d.t {
		for _, a := range t.atoms {
			if a.op == "" {
				set[a.name] = true
			} else {
				a.a.Symbols(set)
				a.b.Symbols(set)
			}
		}
	}
}

// String prints the expression without spaces, e.g. "2*batch+1" or "(seq+3)/(4)"; ParseDim reads it back.
func (d Dim) String() string {
	if len(d.t) == 0 {
		return strconv.FormatInt(d.n, 10)
	}
	var b strings.Builder
	for i, t := range d.t {
		c := t.coef
		if c < 0 {
			b.WriteByte('-')
		} else if i > 0 {
			b.WriteByte('+')
		}
		if c != 1 && c != -1 {
			fmt.Fprintf(&b, "%s*", strings.TrimPrefix(strconv.FormatInt(c, 10), "-"))
		}
		b.WriteString(t.key)
	}
	if d.n != 0 {
		fmt.Fprintf(&b, "%+d", d.n)
	}
	return b.String()
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// satAdd adds, with results beyond the ends of int64 replaced by these ends.
func satAdd(a, b int64) int64 {
	s := a + b
	if (a > 0) == (b > 0) && (s > 0) != (a > 0) && a != 0 && b != 0 {
		if a > 0 {
			return math.MaxInt64
		}
		return math.MinInt64
	}
	return s
}

// satMul multiplies, with results beyond the ends of int64 replaced by these ends.
func satMul(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	p := a * b
	if p/b != a || a == -1 && b == math.MinInt64 || b == -1 && a == math.MinInt64 {
		if (a > 0) == (b > 0) {
			return math.MaxInt64
		}
		return math.MinInt64
	}
	return p
}
