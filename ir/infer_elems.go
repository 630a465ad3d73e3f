package ir

import "math"

// knownElems returns v's elements as far as they are known: those of a constant, or those that inference computed.
func knownElems(v *Value) []Dim {
	switch {
	case v == nil:
		return nil
	case v.Const != nil:
		return constElems(v.Const)
	}
	return v.Elems
}

// constElems returns the elements of a small integer or bool tensor, nil for others.
func constElems(t *Tensor) []Dim {
	if boundedCount(t.Dims) > maxElems || !wellFormed(t) {
		return nil
	}
	switch data := t.Data.(type) {
	case []int64:
		return dimsOf(data)
	case []int32:
		return dimsOf(data)
	case []int16:
		return dimsOf(data)
	case []int8:
		return dimsOf(data)
	case []uint8:
		return dimsOf(data)
	case []uint32:
		return dimsOf(data)
	case []uint16:
		if t.DType == Uint16 {
			return dimsOf(data)
		}
	case []bool:
		out := make([]Dim, len(data))
		for i, b := range data {
			out[i] = boolDim(b)
		}
		return out
	}
	return nil
}

func dimsOf[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](data []T) []Dim {
	out := make([]Dim, len(data))
	for i, v := range data {
		out[i] = D(int64(v))
	}
	return out
}

func boolDim(b bool) Dim {
	if b {
		return D(1)
	}
	return D(0)
}

// wellFormed reports whether t's data has the Go type that its element type requires, and the length that its dims say.
func wellFormed(t *Tensor) bool {
	if t == nil {
		return false
	}
	n := -1
	switch data := t.Data.(type) {
	case []float32:
		n = lenIf(t.DType == Float32, data)
	case []float64:
		n = lenIf(t.DType == Float64, data)
	case []uint16:
		n = lenIf(t.DType == Uint16 || t.DType == Float16 || t.DType == BFloat16, data)
	case []int8:
		n = lenIf(t.DType == Int8 || t.DType == Int4 || t.DType == Int2, data)
	case []int16:
		n = lenIf(t.DType == Int16, data)
	case []int32:
		n = lenIf(t.DType == Int32, data)
	case []int64:
		n = lenIf(t.DType == Int64, data)
	case []uint8:
		n = lenIf(t.DType == Uint8 || t.DType == Uint4 || t.DType == Uint2 || t.DType.IsNarrowFloat(), data)
	case []uint32:
		n = lenIf(t.DType == Uint32, data)
	case []uint64:
		n = lenIf(t.DType == Uint64, data)
	case []bool:
		n = lenIf(t.DType == Bool, data)
	case []string:
		n = lenIf(t.DType == String, data)
	}
	for _, d := range t.Dims {
		if d < 0 {
			return false
		}
	}
	return n >= 0 && boundedCount(t.Dims) == int64(n)
}

// lenIf is the length of data, or -1 if ok is false.
func lenIf[T any](ok bool, data []T) int {
	if ok {
		return len(data)
	}
	return -1
}

// elemRule computes one element from one element of each input; ok is false when it is not known.
type elemRule func(c *InferContext, x []Dim) (d Dim, ok bool)

// elemRules are the elementwise operators with which exporters compute shapes. The elements are expressions: extents,
// whose symbols are never negative, and fresh symbols for unknown elements, which may be (inferrer.elemSymbols). A rule
// may use only what holds for all values of the symbols.
var elemRules = map[string]elemRule{
	"Add": fold(Dim.Add),
	"Sub": fold(Dim.Sub),
	"Mul": func(c *InferContext, x []Dim) (Dim, bool) { return c.mul(x[0], x[1]), true },
	"Div": elemDiv,
	"Mod": elemMod,
	"Min": fold(Dim.Min),
	"Max": fold(Dim.Max),
	"Neg": func(_ *InferContext, x []Dim) (Dim, bool) { return x[0].Neg(), true },
	"Abs": elemAbs,

	"Cast":     elemCast,
	"CastLike": elemCast,

	"Equal":          compareRule(func(order int) bool { return order == 0 }),
	"Greater":        compareRule(func(order int) bool { return order > 0 }),
	"GreaterOrEqual": compareRule(func(order int) bool { return order >= 0 }),
	"Less":           compareRule(func(order int) bool { return order < 0 }),
	"LessOrEqual":    compareRule(func(order int) bool { return order <= 0 }),

	"And":   logicRule(func(a, b bool) bool { return a && b }),
	"Or":    logicRule(func(a, b bool) bool { return a || b }),
	"Xor":   logicRule(func(a, b bool) bool { return a != b }),
	"Not":   elemNot,
	"Where": elemWhere,
}

// inferElems fills in the elements of an elementwise node's output once its shape is known.
func (c *InferContext) inferElems() {
	rule := elemRules[c.Op.Name]
	out := c.Node.Output(0)
	if rule == nil || out == nil || !out.DType.IsInt() && out.DType != Bool {
		return
	}
	dims, count := trackable(out.Shape)
	if count < 0 {
		return
	}
	inputs := make([][]Dim, len(c.Node.Inputs))
	for i, v := range c.Node.Inputs {
		if v != nil && (v.DType.IsInt() || v.DType == Bool) {
			inputs[i] = broadcastElems(knownElems(v), v.Shape, dims)
		}
		if inputs[i] == nil && c.Op.Name != "CastLike" {
			return
		}
	}
	if inputs[0] != nil {
		c.setElems(0, c.applyRule(rule, inputs, count, out.DType))
	}
}

// trackable returns the constant extents and the number of elements of a shape whose elements
// inference may track, -1 for others.
func trackable(s Shape) (dims []int64, count int) {
	dims, ok := s.Consts()
	if !ok || !shapeFits(s) || boundedCount(dims) > maxElems {
		return nil, -1
	}
	return dims, int(boundedCount(dims))
}

// applyRule computes count elements. Those that the rule cannot compute become fresh symbols. It returns nil when the
// rule can compute none.
func (c *InferContext) applyRule(rule elemRule, inputs [][]Dim, count int, d DType) []Dim {
	elems := make([]Dim, count)
	known := 0
	for k := range elems {
		x := make([]Dim, 0, len(inputs))
		for _, e := range inputs {
			if e != nil {
				x = append(x, e[k])
			}
		}
		e, ok := rule(c, x)
		if ok && fits(e, d) {
			elems[k] = e
			known++
		} else {
			elems[k] = c.in.freshElem()
		}
	}
	if known == 0 && count > 0 {
		return nil
	}
	return elems
}

// broadcastElems broadcasts the elements of a tensor of shape s to the extents dims, which must be trackable. It
// returns nil when the elements or s are not known.
func broadcastElems(elems []Dim, s Shape, dims []int64) []Dim {
	from, ok := s.Consts()
	if elems == nil || !ok || len(from) > len(dims) || boundedCount(from) != int64(len(elems)) {
		return nil
	}
	out := make([]Dim, boundedCount(dims))
	for k := range out {
		// The coordinates of element k, from the last axis on, give its index at in elems; axes of extent 1 repeat.
		rest, at, step := int64(k), int64(0), int64(1)
		for d := 1; d <= len(dims); d++ {
			i := rest % dims[len(dims)-d]
			rest /= dims[len(dims)-d]
			if d > len(from) {
				continue
			}
			n := from[len(from)-d]
			if n != 1 {
				at += i * step
			}
			step *= n
		}
		if at >= int64(len(elems)) {
			return nil
		}
		out[k] = elems[at]
	}
	return out
}

// fits reports whether a known element is in d's range. A device would compute another value for one that is not,
// because integers of d wrap.
func fits(e Dim, d DType) bool {
	n, ok := e.Const()
	if !ok {
		return true
	}
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	switch d {
	case Bool:
		lo, hi = 0, 1
	case Int8, Int16, Int32:
		hi = 1<<(8*d.Size()-1) - 1
		lo = -hi - 1
	case Uint8, Uint16, Uint32:
		lo, hi = 0, 1<<(8*d.Size())-1
	case Uint64:
		lo = 0
	}
	// The arithmetic of Dims saturates at the ends of int64, so these two values may be wrong.
	return n >= lo && n <= hi && n != math.MinInt64 && n != math.MaxInt64
}

// fold is the rule of an operator that combines its operands one after another.
func fold(op func(a, b Dim) Dim) elemRule {
	return func(_ *InferContext, x []Dim) (Dim, bool) {
		r := x[0]
		for _, d := range x[1:] {
			r = op(r, d)
		}
		return r, true
	}
}

// elemDiv is Div of integers, which truncates as C does. Dims can express only the floor, which is the same unless
// exactly one operand is negative.
func elemDiv(c *InferContext, x []Dim) (Dim, bool) {
	a, aConst := x[0].Const()
	b, bConst := x[1].Const()
	switch {
	case bConst && b == 0, aConst && bConst && b == -1 && a == math.MinInt64:
		return Dim{}, false
	case aConst && bConst:
		return D(a / b), true
	case c.in.notNegative(x[0]) && c.in.notNegative(x[1]):
		return x[0].FloorDiv(x[1]), true
	}
	return Dim{}, false
}

// elemMod is Mod: the remainder has the divisor's sign or, with the attribute fmod, the dividend's.
func elemMod(c *InferContext, x []Dim) (Dim, bool) {
	a, aConst := x[0].Const()
	b, bConst := x[1].Const()
	if !aConst || !bConst || b == 0 || b == -1 {
		return Dim{}, bConst && b == -1
	}
	r := a % b
	if r != 0 && (r < 0) != (b < 0) && c.int("fmod") == 0 {
		r += b
	}
	return D(r), true
}

func elemAbs(c *InferContext, x []Dim) (Dim, bool) {
	if n, ok := x[0].Const(); ok && n < 0 {
		return x[0].Neg(), true
	}
	return x[0], c.in.notNegative(x[0])
}

// elemCast is Cast between integers and bool. applyRule checks that the value is in the range of the new type.
func elemCast(c *InferContext, x []Dim) (Dim, bool) {
	if c.Node.Output(0).DType != Bool {
		return x[0], true
	}
	n, ok := x[0].Const()
	return boolDim(n != 0), ok
}

// compareRule is the rule of a comparison; holds gets -1, 0 or 1 as the first operand is smaller, equal or larger.
func compareRule(holds func(order int) bool) elemRule {
	return func(c *InferContext, x []Dim) (Dim, bool) {
		diff := x[0].Sub(x[1])
		n, ok := diff.Const()
		switch {
		case ok && n == 0:
			return boolDim(holds(0)), true
		case ok && n > 0 || !ok && c.in.positive(diff):
			return boolDim(holds(1)), true
		case ok || c.in.positive(diff.Neg()):
			return boolDim(holds(-1)), true
		}
		return Dim{}, false
	}
}

func logicRule(op func(a, b bool) bool) elemRule {
	return func(_ *InferContext, x []Dim) (Dim, bool) {
		a, aConst := x[0].Const()
		b, bConst := x[1].Const()
		return boolDim(op(a != 0, b != 0)), aConst && bConst
	}
}

func elemNot(_ *InferContext, x []Dim) (Dim, bool) {
	n, ok := x[0].Const()
	return boolDim(n == 0), ok
}

// elemWhere is Where: one of the branches if the condition is known, or if both are equal.
func elemWhere(_ *InferContext, x []Dim) (Dim, bool) {
	n, ok := x[0].Const()
	switch {
	case ok && n != 0:
		return x[1], true
	case ok:
		return x[2], true
	}
	return x[1], x[1].Equal(x[2])
}

// notNegative reports whether d is certainly at least 0: all its symbols are extents, and nothing is subtracted.
func (in *inferrer) notNegative(d Dim) bool {
	if d.n < 0 {
		return false
	}
	for _, t := range d.t {
		if t.coef < 0 {
			return false
		}
		for _, a := range t.atoms {
			if !in.atomNotNegative(a) {
				return false
			}
		}
	}
	return true
}

func (in *inferrer) atomNotNegative(a *atom) bool {
	switch a.op {
	case "":
		return !in.elemSymbols[a.name]
	case "max":
		return in.notNegative(a.a) || in.notNegative(a.b)
	}
	return in.notNegative(a.a) && in.notNegative(a.b)
}

// positive reports whether d is certainly at least 1.
func (in *inferrer) positive(d Dim) bool { return in.notNegative(d.Sub(D(1))) }

// hasUnknown reports whether d depends on an element that is not known and may be negative. Such an element may have a
// special meaning in a list of extents or bounds, for example -1 in Reshape.
func (in *inferrer) hasUnknown(d Dim) bool {
	set := map[string]bool{}
	d.Symbols(set)
	for name := range set {
		if in.elemSymbols[name] {
			return true
		}
	}
	return false
}
