package vdevice

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Builder makes a program by the two calls of Rammer §3.3: Append puts an rTask at the end of a vEU's sequence, and
// Wait makes one rTask wait for others. The Builder leaves out every wait that program order or an earlier wait
// implies, so that few steps have to signal:
//
//	prog[0]   A₀ ─── A₁ ──┐           B waits for A₁ only: A₀ comes before A₁ anyway.
//	prog[1]          B ◀──┘ ─── C     C knows what B knows, so it need not wait for A₁ again.
//
// Where several rTasks wait for the same large set of others, the set may get a counter (edge_counter_groups.go).
//
// A policy that misuses the Builder is a defect of the compiler, so the Builder panics: when an rTask is appended
// twice, or waits for one that has not been appended.
type Builder struct {
	p        *Program
	at       [][]At // per rOperator and rTask: its position; order -1 if it was not appended yet
	wave     int32  // the earliest wave for steps that are appended from now on
	pending  map[Task][]pendingEdge
	row      [][]int32               // [vEU][order]: the step's row of clocks
	sights   map[At]sight            // of steps with conditions (jumps.go)
	gates    map[rkernels.Ref]*Front // by condition: the rTasks that compute it
	jumping  bool
	clocks   *clocks
	need     []int32 // scratch: per vEU, order+1 of the last step to wait for
	needVEUs []int32
	fronts   []*Front // scratch
	groups   counterGroups
}

// Front is a set of appended rTasks to wait for, reduced to the last one on each vEU. To wait for the same Front again
// is cheap.
type Front struct {
	at   []At    // one per vEU
	join []int32 // the clock of a step that has waited for all of them; nil until somebody needs it
	// of are the conditions of that step, which only matter where the Front has steps with conditions.
	of []roperator.Condition

	group int32 // its number among the counterGroups; -1 for a set that is too small for a counter
}

// NewBuilder starts an empty program for rOperators of g on every vEU of spec.
func NewBuilder(spec *device.Spec, g *roperator.Graph) *Builder {
	n := spec.VEUs()
	b := &Builder{
		p:       &Program{Spec: spec, Ops: g.Ops, Pick: make([]int, len(g.Ops)), Steps: make([][]Step, n)},
		at:      make([][]At, len(g.Ops)),
		pending: map[Task][]pendingEdge{},
		row:     make([][]int32, n), clocks: newClocks(n), need: make([]int32, n),
		sights: map[At]sight{}, gates: map[rkernels.Ref]*Front{},
	}
	for i := range b.p.Pick {
		b.p.Pick[i] = -1
	}
	return b
}

// JumpOver says that vEUs jump over rTasks with conditions that do not hold: that the program is an rProgram. It comes
// before all steps.
func (b *Builder) JumpOver() { b.jumping = true }

// Pick takes the rOperator into the program, carried out by the given candidate. Its rTasks can be
// appended from then on.
func (b *Builder) Pick(op int32, candidate int) {
	if b.p.Pick[op] >= 0 {
		panic(fmt.Sprintf("BUG: rOperator %d picked twice", op))
	}
	b.p.Pick[op] = candidate
	b.at[op] = make([]At, b.p.Candidate(op).Tasks)
	for i := range b.at[op] {
		b.at[op][i].Order = -1
	}
}

// At is where an appended rTask is.
func (b *Builder) At(t Task) At { return b.at[t.Op][t.Index] }

// NextWave opens a wave. Where the program is launched wave by wave, steps that are appended from now on run after all
// steps that were appended before. Without NextWave a step is in the earliest wave that its edges allow.
func (b *Builder) NextWave() {
	if b.p.Waves > 0 {
		b.wave = int32(b.p.Waves)
	}
}

// Wait makes t, which is appended later, wait for all of tasks.
func (b *Builder) Wait(t Task, tasks []Task) { b.After(EdgeFlag, t, b.Front(tasks)) }

// After makes t, which is appended later, come after the Front's rTasks by edges of the given kind. Flags order
// everything that t and the Front's rTasks access. By tagged edges t only takes data that the Front's rTasks write in
// tagged words.
func (b *Builder) After(kind EdgeKind, t Task, f *Front) {
	if b.at[t.Op][t.Index].Order >= 0 {
		panic(fmt.Sprintf("BUG: %v comes after others by a %s, but was appended before", t, edgeRows[kind].name))
	}
	if len(f.at) > 0 {
		b.pending[t] = append(b.pending[t], pendingEdge{kind, f})
	}
}

// pendingEdge is a Front that an rTask which is not appended yet comes after.
type pendingEdge struct {
	kind  EdgeKind
	front *Front
}

// pendingOf appends the Fronts of one kind.
func pendingOf(out []*Front, all []pendingEdge, kind EdgeKind) []*Front {
	for _, e := range all {
		if e.kind == kind {
			out = append(out, e.front)
		}
	}
	return out
}

// Carry says how the data of a buffer travel.
func (b *Builder) Carry(buf int, c Carry, buffers int) {
	if b.p.Carry == nil {
		b.p.Carry = make([]Carry, buffers)
	}
	b.p.Carry[buf] = c
}

// Front reduces tasks to the last on each vEU.
func (b *Builder) Front(tasks []Task) *Front {
	for _, t := range tasks {
		at := b.at[t.Op][t.Index]
		if at.Order < 0 {
			panic(fmt.Sprintf("BUG: wait for %v, which was not appended", t))
		}
		b.require(at)
	}
	f := &Front{at: make([]At, 0, len(b.needVEUs))}
	for _, v := range b.needVEUs {
		f.at = append(f.at, At{v, b.need[v] - 1})
	}
	slices.SortFunc(f.at, func(a, b At) int { return int(a.VEU - b.VEU) })
	f.group = b.groups.of(f.at)
	b.forget()
	return f
}

func (b *Builder) require(at At) {
	if b.need[at.VEU] == 0 {
		b.needVEUs = append(b.needVEUs, at.VEU)
	}
	b.need[at.VEU] = max(b.need[at.VEU], at.Order+1)
}

func (b *Builder) forget() {
	for _, v := range b.needVEUs {
		b.need[v] = 0
	}
	b.needVEUs = b.needVEUs[:0]
}

// Append puts t at the end of the vEU's sequence, with the edges that were asked for.
func (b *Builder) Append(t Task, veu int32) {
	if b.at[t.Op][t.Index].Order >= 0 {
		panic(fmt.Sprintf("BUG: %v appended twice", t))
	}
	at := At{veu, int32(len(b.p.Steps[veu]))}
	step := Step{Task: t, Wave: b.wave}
	if at.Order > 0 {
		step.Wave = max(step.Wave, b.p.Steps[veu][at.Order-1].Wave)
	}
	x := b.enter(&step, at)
	last := len(x.rows) - 1
	if pending := b.pending[t]; len(pending) > 0 {
		delete(b.pending, t)
		for k := range edgeRows {
			if b.fronts = pendingOf(b.fronts[:0], pending, EdgeKind(k)); len(b.fronts) > 0 {
				x.rows[last] = b.connect(&step, EdgeKind(k), at, x.rows[last], x.conditions)
			}
		}
	}
	if len(x.conditions) > 0 {
		b.sights[at] = x
	}
	b.at[t.Op][t.Index] = at
	b.row[veu] = append(b.row[veu], x.row())
	b.p.Steps[veu] = append(b.p.Steps[veu], step)
	b.p.Waves = max(b.p.Waves, int(step.Wave)+1)
}

// enter is what the vEU knows at a step that goes to at, before its edges but behind its gates, which the step gets here.
func (b *Builder) enter(step *Step, at At) sight {
	before := sight{rows: []int32{0}}
	if at.Order > 0 {
		last := At{at.VEU, at.Order - 1}
		if x, ok := b.sights[last]; ok {
			before = x
		} else {
			before.rows[0] = b.row[at.VEU][last.Order]
		}
	}
	if !b.jumping {
		return before
	}
	x, first := before.enter(b.p.conditionsOf(step))
	b.fronts = b.fronts[:0]
	for _, c := range x.conditions[first:] {
		if f := b.gateOf(c); len(f.at) > 0 {
			b.fronts = append(b.fronts, f)
		}
	}
	if len(b.fronts) > 0 {
		x.pass(first, b.connect(step, EdgeGate, at, x.rows[first], x.conditions[:first]))
	}
	return x
}

// gateOf is the Front of the rTasks that compute a condition.
func (b *Builder) gateOf(c roperator.Condition) *Front {
	f, ok := b.gates[c.View.Ref()]
	if !ok {
		f = b.Front(b.p.testedBy(c))
		b.gates[c.View.Ref()] = f
	}
	return f
}

// knowledgeOf is the row of what a step with the given conditions learns from the completion of the one at at.
func (b *Builder) knowledgeOf(at At, conditions []roperator.Condition) int32 {
	if x, ok := b.sights[at]; ok {
		return x.learned(conditions)
	}
	return b.row[at.VEU][at.Order]
}

// connect gives the step, which goes to at and has the given conditions, its edges of one kind from b.fronts, and
// returns the vEU's clock after them. row is the clock before.
func (b *Builder) connect(step *Step, kind EdgeKind, at At, row int32, conditions []roperator.Condition) int32 {
	r := &edgeRows[kind]
	if r.knows == dataOnly {
		step.join(b.followed(at.VEU, kind, b.fronts, &step.Wave))
		return row
	}
	edges := b.reduce(at.VEU, row, kind, conditions)
	if len(edges) == 0 {
		return row
	}
	for _, e := range edges {
		producer := b.p.stepAt(e.At)
		if r.byFlag {
			producer.announce(Edge{Kind: EdgeFlag})
		} else if r.out != "" {
			producer.announce(Edge{Kind: kind})
		}
		step.Wave = max(step.Wave, producer.Wave+1)
	}
	step.join(edges)
	r.use(b, at, b.fronts)
	return b.advance(at.VEU, row, conditions)
}

// reduce lists, sorted by vEU, the edges from b.fronts that the vEU's clock and the other edges do not imply.
func (b *Builder) reduce(veu, row int32, kind EdgeKind, conditions []roperator.Condition) []Edge {
	knows := b.clocks.row(row)
	for _, f := range b.fronts {
		for _, at := range f.at {
			if at.VEU != veu && at.Order >= knows[at.VEU] {
				b.require(at)
			}
		}
	}
	var edges []Edge
	n := len(b.needVEUs)
	if n > 0 {
		edges = make([]Edge, 0, n)
		lo, hi := b.waveRange()
		for v, need := range b.need {
			if at := (At{int32(v), need - 1}); need > 0 && (lo == hi || !b.implied(at, conditions)) {
				edges = append(edges, Edge{kind, at})
			}
		}
	}
	b.forget()
	return edges
}

// followed lists the producers on other vEUs, of whom the step knows nothing but that the data are there, and raises
// the wave above that of all: in waves the data come from memory.
func (b *Builder) followed(veu int32, kind EdgeKind, fronts []*Front, wave *int32) []Edge {
	for _, f := range fronts {
		for _, at := range f.at {
			*wave = max(*wave, b.p.stepAt(at).Wave+1)
			if at.VEU != veu {
				b.require(at)
			}
		}
	}
	slices.Sort(b.needVEUs)
	out := make([]Edge, 0, len(b.needVEUs))
	for _, v := range b.needVEUs {
		out = append(out, Edge{kind, At{v, b.need[v] - 1}})
	}
	b.forget()
	return out
}

// waveRange is the lowest and the highest wave of the required steps.
func (b *Builder) waveRange() (lo, hi int32) {
	lo, hi = int32(b.p.Waves), -1
	for _, v := range b.needVEUs {
		w := b.p.Steps[v][b.need[v]-1].Wave
		lo, hi = min(lo, w), max(hi, w)
	}
	return lo, hi
}

// implied reports that another required step comes after the one at at, so that it is enough for a step with the given
// conditions to wait for the other one.
// A step that comes after one of another vEU is in a later wave, and comparing waves is cheaper than comparing clocks.
func (b *Builder) implied(at At, conditions []roperator.Condition) bool {
	wave := b.p.Steps[at.VEU][at.Order].Wave
	for _, v := range b.needVEUs {
		if v == at.VEU {
			continue
		}
		o := b.need[v] - 1
		other := b.knowledgeOf(At{v, o}, conditions)
		if b.p.Steps[v][o].Wave > wave && b.clocks.row(other)[at.VEU] > at.Order {
			return true
		}
	}
	return false
}

// advance makes the clock of a step with the given conditions that knows row and has waited for all of b.fronts. Nobody
// asks for the entry of the vEU itself, so that one need not be right.
func (b *Builder) advance(veu, row int32, conditions []roperator.Condition) int32 {
	row = b.clocks.copyOf(row)
	mine := b.clocks.row(row)
	for _, f := range b.fronts {
		b.joinFront(f, conditions)
		maxInto(mine, f.join)
	}
	mine[veu] = 0
	return row
}

func (b *Builder) joinFront(f *Front, conditions []roperator.Condition) {
	if f.join != nil && (len(b.sights) == 0 || sameList(f.of, conditions)) {
		return
	}
	f.join, f.of = make([]int32, len(b.need)), conditions
	for _, at := range f.at {
		maxInto(f.join, b.clocks.row(b.knowledgeOf(at, conditions)))
	}
	for _, at := range f.at {
		f.join[at.VEU] = max(f.join[at.VEU], at.Order+1)
	}
}

// Program ends the building and returns the program. Every rTask of every picked rOperator must have been appended;
// Verify checks that.
func (b *Builder) Program() *Program {
	if len(b.pending) > 0 {
		panic("BUG: edges of rTasks that were never appended")
	}
	for k := range edgeRows {
		edgeRows[k].settle(b)
	}
	return b.p
}
