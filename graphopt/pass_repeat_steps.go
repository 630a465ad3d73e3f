package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// repeatSteps cuts long recurrences into periods, and makes one period the body of a loop of the program
// (ir/ops_repeat.go). So neither the program nor its compilation depends on the number of steps:
//
//	LSTM of 20,060 steps    RepeatBegin · LSTM of 128 steps · RepeatEnd, 156 turns; then an LSTM of the last 92 steps
//
// Later passes write out the steps of a period as those of any short recurrence. Recurrences that need nothing of each
// other but what the same step makes share a loop, so that layers and directions run side by side.
//
// Requires: constants folded. Leaves: LSTM, GRU, RNN, Scan and Loop of maxSteps steps or less, those whose number of
// steps is not known, and those in nested graphs. Loops that end by a computed condition, and those that carry values
// whose shapes change, stay too.
func repeatSteps(c *Context, g *ir.Graph) (bool, error) {
	if g != c.Root {
		return false, nil
	}
	p := &periods{c: c, g: g, made: map[*ir.Value]divided{}}
	for _, n := range g.Nodes {
		list := p.recurrencesOf(n)
		if list == nil {
			p.nodes = append(p.nodes, n)
			continue
		}
		m := &periodMaker{newMaker(g, c.names, n)}
		for _, s := range list {
			p.divide(m, s)
		}
		p.results(m, n, list)
		p.nodes = append(p.nodes, m.nodes...)
	}
	if len(p.loops) == 0 {
		return false, nil
	}
	for _, l := range p.loops {
		p.nodes = append(p.nodes, l.begin, l.end)
	}
	g.Nodes = p.nodes
	if err := ir.TopoSort(g); err != nil {
		panic("BUG: " + err.Error())
	}
	return true, nil
}

const (
	// maxSteps is how many steps a recurrence may have that is written out whole.
	maxSteps = 256
	// A turn costs a few launches, which a longer period spreads over more steps; but the program and the time to
	// compile it grow with the period.
	minPeriod, maxPeriod = 64, 128
)

// periodOf is the number of steps of a period: the most of which the recurrence is a multiple, or else the most.
func periodOf(steps int64) int64 {
	for p := int64(maxPeriod); p >= minPeriod; p-- {
		if steps%p == 0 {
			return p
		}
	}
	return maxPeriod
}

// along is a value that a recurrence walks along an axis, from the end to the beginning if reverse is set. Of what a
// recurrence makes there is no value yet; wanted says that somebody needs it.
type along struct {
	v       *ir.Value
	axis    int
	reverse bool
	wanted  bool
}

// stepping is a recurrence of one direction.
type stepping struct {
	steps  int64
	states []*ir.Value // before the first step
	in     []along
	rows   []along
	others []*ir.Value // what it reads beside these, which is the same in all steps
	// body makes nodes for so many of the steps, of which the first of the sequence has the number first. States and
	// parts of in become the next states and parts of rows.
	body func(m *periodMaker, first *ir.Value, steps int64, states, in []*ir.Value) (next, rows []*ir.Value)

	last []*ir.Value // the states behind the last step, once it is divided
	made []divided   // of rows, once it is divided
}

// reverse reports that the recurrence begins with the last step of its sequences.
func (s *stepping) reverse() bool { return len(s.in) > 0 && s.in[0].reverse }

// divided is what a recurrence makes along its steps: in a turn of its loop, behind the loop, and in all.
type divided struct {
	loop                *loop
	row                 along
	inside, rest, whole *ir.Value
}

// periods divides the recurrences of a graph.
type periods struct {
	c     *Context
	g     *ir.Graph
	nodes []*ir.Node
	loops []*loop
	made  map[*ir.Value]divided // by the values of the graph that are the whole
}

// divide puts a recurrence into a loop of periods, and its other steps behind it.
func (p *periods) divide(m *periodMaker, s *stepping) {
	l := p.loopFor(m, s)
	in, restIn := make([]*ir.Value, len(s.in)), make([]*ir.Value, len(s.in))
	for i, a := range s.in {
		if d, ok := p.chained(a, l); ok {
			in[i] = m.shapedLike(d.inside, a, l.period)
			if l.rest > 0 {
				restIn[i] = m.shapedLike(d.rest, a, l.rest)
			}
			continue
		}
		in[i] = l.scan(m, a)
		if l.rest > 0 {
			restIn[i] = m.restOf(a, l)
		}
	}
	states := make([]*ir.Value, len(s.states))
	for i, v := range s.states {
		states[i] = l.carry(m, v)
	}
	next, rows := s.body(m, l.first(m, s.reverse()), l.period, states, in)
	for _, v := range next {
		s.last = append(s.last, l.leave(m, v))
	}
	var rest []*ir.Value
	if l.rest > 0 {
		first := l.trips * l.period
		if s.reverse() {
			first = 0
		}
		s.last, rest = s.body(m, m.number(first), l.rest, s.last, restIn)
	}
	for i, a := range s.rows {
		d := divided{loop: l, row: a}
		if a.wanted {
			d.inside, d.whole = rows[i], l.collect(m, rows[i], a)
			if l.rest > 0 {
				d.rest = rest[i]
				d.whole = m.joined(a, d.whole, d.rest)
			}
		}
		s.made = append(s.made, d)
	}
	l.assemble()
}

// loop is a loop that is being made.
type loop struct {
	number, trips, period, rest int64
	begin, end                  *ir.Node
	turn                        *ir.Value
	carried, scanned            ends // of begin
	left, collected             ends // of end
}

// ends are inputs and outputs of a node that begins or ends a loop, and how those are cut or joined that are.
type ends struct {
	in, out       []*ir.Value
	axes, reverse []int64
}

func (e *ends) add(m *periodMaker, what string, v *ir.Value, end *ir.Node) *ir.Value {
	out := m.value(what, ir.Invalid, nil)
	out.Def = end
	e.in, e.out = append(e.in, v), append(e.out, out)
	return out
}

func (e *ends) along(a along) {
	e.axes = append(e.axes, int64(a.axis))
	e.reverse = append(e.reverse, map[bool]int64{true: 1}[a.reverse])
}

// loopFor finds a loop for a recurrence: one with as many steps on whose results it does not depend, or else a new
// one.
func (p *periods) loopFor(m *periodMaker, s *stepping) *loop {
	for _, l := range slices.Backward(p.loops) {
		if l.trips*l.period+l.rest == s.steps && !p.needs(s, l) {
			return l
		}
	}
	period := periodOf(s.steps)
	l := &loop{number: int64(len(p.loops)), trips: s.steps / period, period: period, rest: s.steps % period}
	l.turn = m.value("turn", ir.Int64, ir.Shape{})
	l.begin = &ir.Node{Op: "RepeatBegin", Domain: ir.InternalDomain, Name: m.base + ".begin", Origins: m.origins}
	l.end = &ir.Node{Op: "RepeatEnd", Domain: ir.InternalDomain, Name: m.base + ".end", Origins: m.origins}
	l.turn.Def = l.begin
	p.loops = append(p.loops, l)
	return l
}

// needs reports that a recurrence depends on results of a loop, other than by walking along what it makes.
func (p *periods) needs(s *stepping, l *loop) bool {
	values := append(slices.Clone(s.states), s.others...)
	for _, a := range s.in {
		if _, ok := p.chained(a, l); !ok {
			values = append(values, a.v)
		}
	}
	seen := map[*ir.Node]bool{}
	for len(values) > 0 {
		v := values[len(values)-1]
		values = values[:len(values)-1]
		if v == nil || v.Def == nil || seen[v.Def] {
			continue
		}
		if v.Def == l.end {
			return true
		}
		seen[v.Def] = true
		values = append(values, v.Def.Inputs...)
		for _, g := range v.Def.Subgraphs() {
			ir.EachGraph(g, func(g *ir.Graph) {
				for _, n := range g.Nodes {
					values = append(values, n.Inputs...)
				}
				values = append(values, g.Outputs...)
			})
		}
	}
	return false
}

// chained reports that a is what a recurrence in loop l makes, step by step, or that in another shape with the same
// axis.
func (p *periods) chained(a along, l *loop) (divided, bool) {
	for v := a.v; v != nil; v = v.Def.Inputs[0] {
		if d, ok := p.made[v]; ok {
			return d, d.loop == l && d.inside != nil && d.row.reverse == a.reverse &&
				sameAxis(v, d.row.axis, a.v, a.axis)
		}
		if v.Def == nil || !slices.Contains([]string{"Squeeze", "Unsqueeze", "Reshape", "Flatten", "Identity"},
			v.Def.Op) ||
			v.Def.Domain != "" {
			break
		}
	}
	return divided{}, false
}

// sameAxis reports that two values with the same elements in the same order have the same axis at places i and j: as
// many elements before it, along it and behind it.
func sameAxis(v *ir.Value, i int, w *ir.Value, j int) bool {
	a, okA := v.Shape.Consts()
	b, okB := w.Shape.Consts()
	return okA && okB && a[i] == b[j] && ir.Count(a[:i]) == ir.Count(b[:j]) && ir.Count(a[i+1:]) == ir.Count(b[j+1:])
}

// carry begins the turns with v, and returns what a turn begins with.
func (l *loop) carry(m *periodMaker, v *ir.Value) *ir.Value {
	return l.carried.add(m, "carried", v, l.begin)
}

// leave says what a turn leaves to the next one, and returns what the last turn leaves. Values are left in the order
// in which they are carried.
func (l *loop) leave(m *periodMaker, v *ir.Value) *ir.Value { return l.left.add(m, "last", v, l.end) }

// scan returns the part of a for a turn.
func (l *loop) scan(m *periodMaker, a along) *ir.Value {
	v := a.v
	if l.rest > 0 {
		from := int64(0)
		if a.reverse {
			from = l.rest
		}
		v = m.slice(v, a.axis, from, from+l.trips*l.period)
	}
	l.scanned.along(a)
	return l.scanned.add(m, "chunk", v, l.begin)
}

// collect joins v of all turns.
func (l *loop) collect(m *periodMaker, v *ir.Value, a along) *ir.Value {
	l.collected.along(a)
	return l.collected.add(m, "all", v, l.end)
}

// first is the number of the first step of a turn's part of a sequence.
func (l *loop) first(m *periodMaker, reverse bool) *ir.Value {
	if !reverse {
		return m.op("Mul", nil, l.turn, m.number(l.period))
	}
	return m.op("Sub", nil, m.number(l.rest+(l.trips-1)*l.period), m.op("Mul", nil, l.turn, m.number(l.period)))
}

// assemble writes what has been collected into the nodes at both ends.
func (l *loop) assemble() {
	attrs := func(carried int, e *ends) ir.Attrs {
		return ir.Attrs{
			"loop": ir.IntAttr(l.number), "trips": ir.IntAttr(l.trips), "carried": ir.IntAttr(int64(carried)),
			"axes": ir.IntsAttr(e.axes...), "reverse": ir.IntsAttr(e.reverse...),
		}
	}
	l.begin.Inputs = slices.Concat(l.carried.in, l.scanned.in)
	l.begin.Outputs = slices.Concat([]*ir.Value{l.turn}, l.carried.out, l.scanned.out)
	l.begin.Attrs = attrs(len(l.carried.in), &l.scanned)
	l.end.Inputs = slices.Concat([]*ir.Value{l.turn}, l.left.in, l.collected.in)
	l.end.Outputs = slices.Concat(l.left.out, l.collected.out)
	l.end.Attrs = attrs(len(l.left.in), &l.collected)
}

// periodMaker makes nodes whose types inference computes after the pass.
type periodMaker struct{ *maker }

func (m *periodMaker) op(op string, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	out := m.value(op, ir.Invalid, nil)
	m.node(op, "", op, attrs, in, []*ir.Value{out})
	return out
}

func (m *periodMaker) number(n int64) *ir.Value {
	return m.constant("number", ir.FromSlice(ir.Int64, []int64{n}))
}

func (m *periodMaker) list(n ...int64) *ir.Value {
	return m.constant("list", ir.FromSlice(ir.Int64, n, int64(len(n))))
}

// slice is the part [from, to) of v along an axis.
func (m *periodMaker) slice(v *ir.Value, axis int, from, to int64) *ir.Value {
	return m.op("Slice", nil, v, m.list(from), m.list(to), m.list(int64(axis)))
}

// restOf is the part of a that no turn of a loop has.
func (m *periodMaker) restOf(a along, l *loop) *ir.Value {
	if a.reverse {
		return m.slice(a.v, a.axis, 0, l.rest)
	}
	return m.slice(a.v, a.axis, l.trips*l.period, l.trips*l.period+l.rest)
}

// joined is what the turns of a loop have made and what was made behind it, which is the front if a is reversed.
func (m *periodMaker) joined(a along, whole, rest *ir.Value) *ir.Value {
	parts := []*ir.Value{whole, rest}
	if a.reverse {
		slices.Reverse(parts)
	}
	return m.op("Concat", axisAttr(a.axis), parts...)
}

// shapedLike is v in the shape of a part of a, of so many steps.
func (m *periodMaker) shapedLike(v *ir.Value, a along, steps int64) *ir.Value {
	dims := slices.Clone(a.v.Shape.MustConsts())
	dims[a.axis] = steps
	return m.op("Reshape", nil, v, m.list(dims...))
}
