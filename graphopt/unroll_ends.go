package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Loop of unroll-loops: how often it runs, and what ends it.

// loop writes out a Loop. It returns false if that is not possible.
func (u *unrolling) loop() bool {
	if !u.n.Is("Loop") {
		return false
	}
	trips, ok := u.tripLimit()
	if !ok {
		return false
	}
	keep := true
	var alive *ir.Value // whether the iteration is one of the loop's; nil if it is
	if cond := u.n.Input(1); cond != nil {
		if keep, ok = uniformBool(cond); !ok {
			keep, alive = true, cond
		}
	}
	carried := slices.Clone(u.n.Inputs[min(2, len(u.n.Inputs)):])
	if slices.Contains(carried, nil) {
		return false
	}
	u.scans = make([][]*ir.Value, len(u.body.Outputs)-1-len(carried))
	for i := int64(0); keep && (trips < 0 || i < trips); i++ {
		if m := u.n.Input(0); m != nil && m.Const == nil {
			number := u.scalar(ir.FromSlice(ir.Int64, []int64{i}))
			alive = u.both(alive, u.op("Less", nil, number, u.op("Reshape", nil, m, u.list())))
		}
		in := []*ir.Value{u.scalar(ir.FromSlice(ir.Int64, []int64{i})), u.scalar(ir.FromSlice(ir.Bool, []bool{true}))}
		outs, ok := u.run(append(in, carried...))
		if !ok {
			return false
		}
		next := outs[1 : 1+len(carried)]
		if alive != nil {
			if trips < 0 || !u.mayEnd(carried) {
				return false
			}
			for k, v := range next {
				next[k] = u.selected(alive, v, carried[k])
			}
		}
		carried = next
		if keep, ok = uniformBool(outs[0]); !ok {
			keep, alive = true, u.both(alive, outs[0])
		}
		u.pushScans(outs[1+len(carried):])
	}
	u.final = carried
	return u.stackScans(1+len(carried), nil, nil)
}

// mayEnd reports whether the loop can have iterations that change nothing: none of its results grows, and carried values
// keep their shapes.
func (u *unrolling) mayEnd(carried []*ir.Value) bool {
	for i := range u.scans {
		if u.n.Output(len(carried)+i) != nil {
			return false
		}
	}
	first := u.n.Inputs[2:]
	return slices.EqualFunc(first, u.body.Outputs[1:1+len(first)], selectable)
}

// both is the conjunction of two conditions, of which the first may be absent.
func (u *unrolling) both(a, b *ir.Value) *ir.Value {
	if a == nil {
		return b
	}
	return u.op("And", nil, a, b)
}

// selected is x if the condition holds, otherwise y.
func (u *unrolling) selected(condition, x, y *ir.Value) *ir.Value {
	out := u.value("Select", x.DType, x.Shape)
	u.node("Select", ir.InternalDomain, "Select", nil, []*ir.Value{condition, x, y}, []*ir.Value{out})
	return out
}

// tripLimit is the constant M, or a bound of it, -1 if the loop has none; ok is false if no bound of M is known.
func (u *unrolling) tripLimit() (int64, bool) {
	m := u.n.Input(0)
	switch {
	case m == nil:
		return -1, true
	case m.Const == nil && len(m.Elems) == 1:
		most, ok := m.Elems[0].Most(func(string) (int64, bool) { return 0, false })
		return max(most, 0), ok
	case m.Const == nil || m.Const.Len() != 1:
		return 0, false
	}
	return max(ir.Slice[int64](convert(m.Const, ir.Int64))[0], 0), true
}
