package graphopt

import (
	"slices"
	"strings"

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
	at := turns{alive: alive, keep: keep, carried: slices.Clone(u.n.Inputs[min(2, len(u.n.Inputs)):])}
	if slices.Contains(at.carried, nil) {
		return false
	}
	u.scans = make([][]*ir.Value, len(u.body.Outputs)-1-len(at.carried))
	for i := int64(0); at.keep && (trips < 0 || i < trips); i++ {
		if at.alive == nil && !u.countsTurns() {
			at, ok = u.turn(at, i)
		} else if ok = trips >= 0 && u.mayEnd(at.carried); ok {
			at, ok = u.perhaps(at, i, trips)
			i = trips
		}
		if !ok {
			return false
		}
	}
	u.final = at.carried
	return u.stackScans(1+len(at.carried), nil, nil)
}

// turns is what iterations leave: the carried values, and whether another one follows.
type turns struct {
	carried []*ir.Value
	alive   *ir.Value // nil if keep says it
	keep    bool
}

// turn writes out iteration i, which is one of the loop's.
func (u *unrolling) turn(at turns, i int64) (turns, bool) {
	in := []*ir.Value{u.scalar(ir.FromSlice(ir.Int64, []int64{i})), u.scalar(ir.FromSlice(ir.Bool, []bool{true}))}
	outs, ok := u.run(append(in, at.carried...))
	if !ok {
		return at, false
	}
	next := turns{carried: outs[1 : 1+len(at.carried)]}
	if next.keep, ok = uniformBool(outs[0]); !ok {
		next.keep, next.alive = true, outs[0]
	}
	u.pushScans(outs[1+len(at.carried):])
	return next, true
}

// perhaps writes out iterations i to end-1 behind those that have left at, if there are any: all of them are one branch,
// which is taken if the loop has not ended.
func (u *unrolling) perhaps(at turns, i, end int64) (turns, bool) {
	begins := u.begins(at.alive, i)
	if begins == nil {
		return u.block(at, i, end)
	}
	next, ok := u.block(at, i, end)
	if !ok {
		return at, false
	}
	return u.either(begins, next, at, end-i == 1 && u.size < fewNodes), true
}

// either is what next has left if the condition holds, and otherwise what at has left, in which case the loop has ended.
// With joined the condition behind both is there sooner, but what next computes it from is always needed.
func (u *unrolling) either(begins *ir.Value, next, at turns, joined bool) turns {
	out := turns{carried: make([]*ir.Value, len(at.carried)), keep: next.keep}
	for k, v := range next.carried {
		out.carried[k] = u.selected(begins, v, at.carried[k])
	}
	switch {
	case next.alive != nil && joined:
		out.alive = u.truth("And", begins, u.single(next.alive))
	case next.alive != nil:
		out.alive = u.selected(begins, u.single(next.alive), begins)
	case at.alive != nil:
		out.alive = begins
	}
	return out
}

// ahead writes out iterations i to end-1, of which the first is one of the loop's, such that none waits for a condition:
// each goes on with what the one before it has computed, whether or not the loop had ended then. What the loop leaves is
// selected behind them.
func (u *unrolling) ahead(at turns, i, end int64) (turns, bool) {
	at, ok := u.turn(at, i)
	computed := at
	for i++; ok && at.keep && i < end; i++ {
		begins := u.begins(at.alive, i)
		if computed, ok = u.turn(turns{carried: computed.carried}, i); !ok {
			break
		}
		if begins == nil {
			at = computed
		} else {
			at = u.either(begins, computed, at, true)
		}
	}
	return at, ok
}

// runsAhead reports whether iterations behind the loop's end may be computed: the body has few nodes, and all of them
// have results for any operands. An index or a divisor might be none.
func (u *unrolling) runsAhead() bool {
	return u.size < fewNodes && !slices.ContainsFunc(u.body.Nodes, func(n *ir.Node) bool { return !takesAll(n) })
}

// takesAll reports whether a node has a result for any elements of its operands.
func takesAll(n *ir.Node) bool {
	integers := func(v *ir.Value) bool { return v == nil || v.DType.IsInt() }
	switch {
	case n.Is("Div"), n.Is("Mod"), n.Is("Pow"):
		return !integers(n.Outputs[0])
	case n.Is("Cast"):
		return !integers(n.Outputs[0]) || integers(n.Inputs[0])
	case n.Is("BitShift"), n.Domain != "":
		return false
	}
	return isElementwise(n) || n.Is("MatMul") || n.Is("Gemm") || strings.HasPrefix(n.Op, "Reduce")
}

// block writes out iterations i to end-1, of which the first is one of the loop's. Those behind it are decided in groups,
// and groups of groups in the same way, so a loop that ends early costs few tests, however long it may be.
func (u *unrolling) block(at turns, i, end int64) (turns, bool) {
	if end-i == 1 {
		return u.turn(at, i)
	}
	group := int64(1)
	for (end-i-1)/turnsOfGroup >= group {
		group *= turnsOfGroup
	}
	if group == 1 && u.runsAhead() {
		return u.ahead(at, i, end)
	}
	at, ok := u.block(at, i, i+group)
	for i += group; ok && at.keep && i < end; i += group {
		at, ok = u.perhaps(at, i, i+min(group, end-i))
	}
	return at, ok
}

const (
	turnsOfGroup = 8
	// A condition that one step joins to those before it is there sooner than one that is selected, but then what it is
	// computed from is needed in all iterations of the group. In a body of few nodes that matters less.
	fewNodes = 16
)

// begins is the condition under which iteration i is one of the loop's, if those before it have left alive; nil if it is.
func (u *unrolling) begins(alive *ir.Value, i int64) *ir.Value {
	if alive != nil {
		alive = u.single(alive)
	}
	if !u.countsTurns() {
		return alive
	}
	number := u.scalar(ir.FromSlice(ir.Int64, []int64{i}))
	less := u.truth("Less", number, u.op("Reshape", nil, u.n.Inputs[0], u.list()))
	if alive == nil {
		return less
	}
	return u.truth("And", alive, less)
}

// countsTurns reports whether the loop runs as often as a value says that is computed.
func (u *unrolling) countsTurns() bool {
	m := u.n.Input(0)
	return m != nil && m.Const == nil
}

// single is a condition without dims.
func (u *unrolling) single(condition *ir.Value) *ir.Value {
	if condition.Shape != nil && len(condition.Shape) == 0 {
		return condition
	}
	return u.truth("Reshape", condition, u.list())
}

// truth adds a node that computes one bool.
func (u *unrolling) truth(op string, in ...*ir.Value) *ir.Value {
	out := u.op(op, nil, in...)
	out.DType, out.Shape = ir.Bool, ir.Dims()
	return out
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
