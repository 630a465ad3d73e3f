package vdevice

import (
	"fmt"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
)

// Ids of what Verify finds.
const (
	badPlan        = "bad-plan"         // the plan does not fit its graph
	missingRTask   = "missing-rtask"    // an rTask is nowhere
	repeatedRTask  = "repeated-rtask"   // an rTask is in two places
	badWait        = "bad-wait"         // a wait for nothing, for oneself, out of order, or without signal
	badCluster     = "bad-cluster"      // clusters that the device has not, or data that are not safe in them
	badCounter     = "bad-counter"      // a counter that is not there, without additions or without waiters
	badJump        = "bad-jump"         // conditions that are not known where they are tested, or steps that must be run
	waitCycle      = "wait-cycle"       // the program would never end
	badWave        = "bad-wave"         // waves decrease, or the launch-per-wave form would be wrong
	unordered      = "unordered-access" // two accesses of which one writes, in no order or the wrong one
	doesNotFit     = "does-not-fit"     // threads, shared memory, registers or number of vEUs
	badNode        = "bad-node"         // launches of one rOperator each that are not, or streams
	badArena       = "bad-arena"        // placement of buffers
	badMode        = "bad-mode"         // a step that must not be run in the mode that it has
	badCarry       = "bad-carry"        // tagged data that somebody cannot have, or that are not one program's
	arenaUnordered = "arena-reuse"      // a buffer's bytes are used again before its last access
)

// Verify checks a plan without sampling, from nothing but the boxes that candidates state and the program text. It
// checks that
//
//   - every rTask of every rOperator is there once;
//   - of two accesses to overlapping boxes, of which one writes, the one that the rOperator graph puts first happens
//     first: by program order, by edges or by launch boundaries. The same goes for accesses to buffers that share bytes
//     of the arena;
//   - edges are not circular, and each kind of edge is used as its row of edgeRows allows;
//   - every program is also right when it runs wave by wave;
//   - all vEUs fit on the device at once;
//   - loops may be repeated (verify_repeats.go).
//
// Findings name rTasks and ONNX nodes.
func Verify(plan *Plan) error { return (&verifier{plan: plan}).all() }

// all runs the checks. Each group of checks relies on those before it.
func (v *verifier) all() error {
	if !v.shape() {
		return v.l.Err()
	}
	v.programs()
	v.complete()
	if v.l.Errors() == 0 {
		v.fits()
		v.extents()
	}
	for k := range edgeRows {
		edgeRows[k].whole(v)
	}
	if v.l.Errors() > 0 || !v.relate() {
		return v.l.Err()
	}
	v.memory()
	v.arena()
	if v.l.Errors() == 0 {
		v.repeats()
	}
	return v.l.Err()
}

type verifier struct {
	plan   *Plan
	l      diag.List
	lanes  int      // most of any segment
	at     [][]At   // per rOperator, per rTask: where it is, order -1 for rTasks not found; once related, its place
	seg    []int32  // per rOperator: its segment, -1 for none
	orders []*order // per segment
	found  findings
}

// shape checks that the plan can be walked at all.
func (v *verifier) shape() bool {
	ops, bad := v.plan.Graph.Ops, false
	report := func(format string, args ...any) {
		bad = true
		v.l.Add(&diag.Diagnostic{ID: badPlan, Message: fmt.Sprintf(format, args...)})
	}
	if len(v.plan.Pick) != len(ops) {
		report("the plan picks candidates for %d rOperators, the graph has %d", len(v.plan.Pick), len(ops))
		return false
	}
	for i, s := range v.plan.Segments {
		p := s.Program
		if int(s.Kind) >= len(segmentKinds) {
			report("segment %d is of an unknown kind", i)
			continue
		}
		if s.Loop < 0 || s.Loop > len(v.plan.Graph.Loops) {
			report("segment %d is part of loop %d, the graph has %d", i, s.Loop, len(v.plan.Graph.Loops))
			continue
		}
		if len(p.Pick) != len(ops) || len(p.Ops) != len(ops) {
			report("segment %d picks candidates for %d rOperators, the graph has %d", i, len(p.Pick), len(ops))
			continue
		}
		for id, c := range p.Pick {
			if c < -1 || c >= len(ops[id].Candidates) || p.Ops[id] != ops[id] {
				report("segment %d picks candidate %d of rOperator %d, which is not there", i, c, id)
			}
		}
		if p.Waves < 0 || p.Waves > p.Len() {
			report("segment %d has %d waves for %d steps", i, p.Waves, p.Len())
		}
		for k := range edgeRows {
			if n := edgeRows[k].meetings(p); n < 0 || n > p.Len() {
				report("segment %d has %d %ss for %d steps", i, n, edgeRows[k].name, p.Len())
			}
		}
	}
	if bad {
		return false
	}
	for _, s := range v.plan.Segments {
		v.ends(s.Program)
		v.knownModes(s.Program)
	}
	return v.l.Errors() == 0
}

// programs checks what concerns one step or one program alone, and finds where each rTask is.
func (v *verifier) programs() {
	v.at = make([][]At, len(v.plan.Graph.Ops))
	v.seg = make([]int32, len(v.plan.Graph.Ops))
	for i := range v.seg {
		v.seg[i] = -1
	}
	for i, s := range v.plan.Segments {
		v.claim(i, s.Program)
		v.locate(i, s.Program)
		v.missing(i, s.Program)
		for k := range edgeRows {
			edgeRows[k].form(v, i, s)
		}
		v.enoughVEUs(i, s)
		if v.l.Errors() == 0 {
			v.modes(i, s)
		}
	}
}

// claim notes which segment each rOperator is in.
func (v *verifier) claim(segment int, p *Program) {
	for id, c := range p.Pick {
		if c < 0 {
			continue
		}
		if v.seg[id] >= 0 {
			v.l.Add(v.opDiag(repeatedRTask, int32(id), "it is in segment %d and in segment %d", v.seg[id], segment))
			continue
		}
		if c != v.plan.Pick[id] {
			v.l.Add(v.opDiag(badPlan, int32(id), "segment %d uses candidate %d, the plan says %d", segment, c,
				v.plan.Pick[id]))
		}
		v.seg[id] = int32(segment)
		v.at[id] = make([]At, p.Candidate(int32(id)).Tasks)
		for t := range v.at[id] {
			v.at[id][t].Order = -1
		}
	}
}

// locate fills in where each rTask is.
func (v *verifier) locate(segment int, p *Program) {
	for veu, steps := range p.Steps {
		for o := range steps {
			s, here := &steps[o], At{int32(veu), int32(o)}
			op := s.Task.Op
			if op < 0 || int(op) >= len(v.at) || p.Pick[op] < 0 || v.seg[op] != int32(segment) ||
				s.Task.Index < 0 || int(s.Task.Index) >= len(v.at[op]) {
				v.l.Add(&diag.Diagnostic{ID: badPlan,
					Message: fmt.Sprintf("segment %d, %v runs rTask %d of rOperator %d, which is not there", segment,
						here, s.Task.Index, op)})
				continue
			}
			if at := &v.at[op][s.Task.Index]; at.Order < 0 {
				*at = here
			} else {
				v.l.Add(v.opDiag(repeatedRTask, op, "rTask %d is at %v and again at %v", s.Task.Index, *at, here))
			}
		}
	}
}

// missing reports rTasks of picked rOperators that no step runs, one finding an rOperator.
func (v *verifier) missing(segment int, p *Program) {
	for id, c := range p.Pick {
		if c < 0 || v.seg[id] != int32(segment) {
			continue
		}
		n, first := 0, 0
		for t, at := range v.at[id] {
			if at.Order < 0 {
				if n == 0 {
					first = t
				}
				n++
			}
		}
		if n > 0 {
			v.l.Add(v.opDiag(missingRTask, int32(id), "%d of its %d rTasks are in no step, the first is rTask %d", n,
				len(v.at[id]), first))
		}
	}
}

// complete reports rOperators of the graph that no segment has.
func (v *verifier) complete() {
	for id, s := range v.seg {
		if s < 0 {
			v.l.Add(v.opDiag(missingRTask, int32(id), "it is in no segment"))
		}
	}
}

// relate computes happens-before of every segment, and the places of rTasks.
func (v *verifier) relate() bool {
	v.lanes = 1
	v.orders = make([]*order, len(v.plan.Segments))
	for i, s := range v.plan.Segments {
		h, cycle := newOrder(s.Program, s.Kind)
		if cycle != nil {
			v.l.Add(cycleDiag(s.Program, cycle))
		}
		v.orders[i] = h
		if h != nil {
			v.lanes = max(v.lanes, h.lanes())
		}
	}
	if v.l.Errors() > 0 {
		return false
	}
	toLanes(v.at, v.seg, v.orders)
	for i, h := range v.orders {
		for k := range edgeRows {
			edgeRows[k].related(v, i, h)
		}
	}
	return true
}

func cycleDiag(p *Program, cycle []At) *diag.Diagnostic {
	parts := make([]string, 0, len(cycle)+1)
	for _, at := range append(append([]At{}, cycle...), cycle[0]) {
		parts = append(parts, stepName(p, at))
	}
	return &diag.Diagnostic{ID: waitCycle, Message: "steps wait for each other in a circle: " +
		strings.Join(parts, " waits for a step of the vEU of ")}
}

// stepName is how findings speak of a step.
func stepName(p *Program, at At) string {
	t := p.Steps[at.VEU][at.Order].Task
	if t.Op < 0 || int(t.Op) >= len(p.Ops) {
		return fmt.Sprintf("the step at %v", at)
	}
	return fmt.Sprintf("rTask %d of %s at %v", t.Index, opName(p.Ops[t.Op]), at)
}

// opName is how findings speak of an rOperator: its name, and the ONNX nodes it comes from.
func opName(op *roperator.ROperator) string {
	var nodes []string
	for _, o := range op.Origins {
		if o.Name != op.Name {
			nodes = append(nodes, o.Name)
		}
	}
	if len(nodes) == 0 {
		return fmt.Sprintf("%q", op.Name)
	}
	return fmt.Sprintf("%q (ONNX nodes %s)", op.Name, strings.Join(nodes, ", "))
}

// String is prog[vEU][order].
func (a At) String() string { return fmt.Sprintf("prog[%d][%d]", a.VEU, a.Order) }

func (v *verifier) problem(id, format string, args ...any) *diag.Diagnostic {
	return &diag.Diagnostic{ID: id, Message: fmt.Sprintf(format, args...)}
}

func (v *verifier) opDiag(id string, op int32, format string, args ...any) *diag.Diagnostic {
	o := v.plan.Graph.Ops[op]
	return &diag.Diagnostic{ID: id, Node: o.Name, Op: o.Kind, Message: fmt.Sprintf(format, args...)}
}

// findings joins findings of one kind between the same two rOperators over the same buffer.
type findings struct {
	index map[findingKey]int
	list  []finding
}

type findingKey struct {
	id, what  string
	from, to  int32 // rOperators
	buf, buf2 int32
}

type finding struct {
	key   findingKey
	text  string // of the first
	count int
}

func (f *findings) add(k findingKey, text func() string) {
	if f.index == nil {
		f.index = map[findingKey]int{}
	}
	i, ok := f.index[k]
	if !ok {
		i = len(f.list)
		f.index[k] = i
		f.list = append(f.list, finding{key: k, text: text()})
	}
	f.list[i].count++
}

// flush reports what was found, in the order of the later rOperators.
func (v *verifier) flush() {
	list := v.found.list
	sort.SliceStable(list, func(i, j int) bool { return list[i].key.to < list[j].key.to })
	for _, f := range list {
		text := f.text
		if f.count > 1 {
			text += fmt.Sprintf(" (and %d more such)", f.count-1)
		}
		v.l.Add(v.opDiag(f.key.id, f.key.to, "%s", text))
	}
	v.found = findings{}
}
