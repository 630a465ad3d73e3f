package codegen

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// layout is the plan with the numbers and places of the emitted program. Only candidates that the plan has chosen are in
// it; rOperators and rKernel instances are numbered from 0 on, and constants have their places in the weights file.
type layout struct {
	plan    *vdevice.Plan
	opt     Options
	sources fs.FS     // where the instances' sources are
	hash    uint64    // of the weights file, known once it is written
	parts   []*layout // of a program that several plans share: their layouts
	part    bool      // shares such a program, and has no C interface of its own
	owner   *layout   // of variants and special programs: the layout whose weights file is theirs, too

	specials []*layout // of a general program: its special programs, the smallest first, and that of the prompt
	prompt   bool      // is the program of the prompt
	shared   *layout   // of a general program with others beside it: that of the program that all of them share
	packed   []byte    // of a special program: its tables, packed
	packedAt int64     // where they stand among the tables of the file

	ops       []usedOp
	opIndex   map[int32]int // rOperator ID → index in ops
	instances []instance    // by Key
	functors  []functorStruct

	consts      []*roperator.Buffer // in the order of the weights file
	constAt     map[int]int64       // Buffer.ID → offset
	weightBytes int64

	segments   []segmentTables
	tableBytes int64
	lines      int      // of the step arrays of all segments
	kernels    []kernel // of the program
	kernelOf   func(vdevice.Needs) int
	rings      vdevice.Ring // of the program's
	staging    staging

	inputs, outputs []port
	live            liveSizes // of the program

	tensorMaps  []schema.TiledMatrix
	callerMaps  int                          // how many of them are of the caller's matrices
	tensorMapOf map[rkernels.TiledMatrix]int // index in tensorMaps
}

type usedOp struct {
	op       *roperator.ROperator
	cand     *roperator.Candidate
	key      string // of its instance
	instance int    // index in layout.instances
	row      int    // index in the instance's array of arguments
}

type instance struct {
	inst  *rkernels.Instance
	alias string // C++ name
	label string // the name in reports
	ops   []int  // indices in layout.ops
}

type functorStruct struct {
	*functor.Functor
	name  string
	notes []string
}

type port struct {
	roperator.Port
	space string // C++ enumerator
	bytes int64
}

func newLayout(plan *vdevice.Plan, opt Options, kernels fs.FS) (*layout, error) {
	l, err := beginLayout(plan, opt, kernels)
	if err != nil {
		return nil, err
	}
	if opt.beside() {
		return l, l.addSpecials()
	}
	return l, l.finish([]*layout{l})
}

// beginLayout collects what the plan uses. Instances and functors get their numbers later, in finish, since several
// models may share them.
func beginLayout(plan *vdevice.Plan, opt Options, kernels fs.FS) (*layout, error) {
	l := &layout{plan: plan, opt: opt, sources: kernels, opIndex: map[int32]int{}, constAt: map[int]int64{}}
	g := plan.Graph
	if n := len(g.Inputs) + len(g.Outputs); n >= schema.MaxSpaces-schema.FirstPortSpace {
		return nil, problem("too-many-ports", "the model has %d inputs and outputs, a program takes %d at most",
			n, schema.MaxSpaces-schema.FirstPortSpace-1)
	}
	l.collectOps()
	l.collectConstants(l.ops)
	l.namePorts()
	l.collectTensorMaps()
	return l, nil
}

// file is the layout that the weights file is written from.
func (l *layout) file() *layout {
	if l.owner != nil {
		return l.owner
	}
	return l
}

// finish makes the program tables, with the numbers that instances have in the program of the given layouts.
func (l *layout) finish(program []*layout) error {
	l.functors, l.live = distinctFunctors(program), sizesOf(program)
	l.useInstances(distinctInstances(program))
	l.useKernels(program)
	for i := range l.plan.Segments {
		if err := l.addSegment(i); err != nil {
			return err
		}
	}
	return nil
}

func (l *layout) collectOps() {
	for _, seg := range l.plan.Segments {
		for id, pick := range seg.Program.Pick {
			if pick < 0 {
				continue
			}
			if _, twice := l.opIndex[int32(id)]; twice {
				panic(fmt.Sprintf("BUG: rOperator %d is in two segments", id))
			}
			op := l.plan.Graph.Ops[id]
			l.opIndex[int32(id)] = len(l.ops)
			c := op.Candidates[pick]
			l.ops = append(l.ops, usedOp{op: op, cand: c, key: c.Inst.Key()})
			l.addStaging(c)
		}
	}
}

// distinctInstances lists the distinct instances that the layouts' rOperators use, in order, with a C++
// name each.
func distinctInstances(ls []*layout) []instance {
	byKey := map[string]*rkernels.Instance{}
	users := map[string][]*roperator.ROperator{}
	for _, l := range ls {
		for _, u := range l.ops {
			byKey[u.key], users[u.key] = u.cand.Inst, append(users[u.key], u.op)
		}
	}
	sorted := make([]*rkernels.Instance, 0, len(byKey))
	for _, in := range byKey {
		sorted = append(sorted, in)
	}
	slices.SortFunc(sorted, func(a, b *rkernels.Instance) int { return strings.Compare(instanceText(a), instanceText(b)) })
	names, labels := map[string]int{}, map[string]int{}
	out := make([]instance, len(sorted))
	for i, in := range sorted {
		out[i] = instance{
			inst: in, alias: unique(names, instanceName(in, users[in.Key()])), label: unique(labels, instanceLabel(in)),
		}
	}
	return out
}

// useInstances tells each rOperator the number of its instance, and which row of that instance's arguments is its own.
func (l *layout) useInstances(instances []instance) {
	l.instances = slices.Clone(instances)
	at := map[string]int{}
	for i, in := range instances {
		at[in.inst.Key()] = i
	}
	for i := range l.ops {
		k := at[l.ops[i].key]
		l.ops[i].instance = k
		l.ops[i].row = len(l.instances[k].ops)
		l.instances[k].ops = append(l.instances[k].ops, i)
	}
}

// distinctFunctors lists the functors of all instances, each once. Equal functors of several rOperators are one, and
// its notes are those of all of them.
func distinctFunctors(ls []*layout) []functorStruct {
	var out []functorStruct
	at, users := map[string]int{}, map[string]int{}
	for _, c := range candidatesByInstance(ls) {
		for _, f := range c.Inst.Functors() {
			users[f.Key()]++
			k, ok := at[f.Key()]
			if !ok {
				k = len(out)
				at[f.Key()] = k
				out = append(out, functorStruct{Functor: f})
			}
			if note := FunctorNote(f); note != "" && !slices.Contains(out[k].notes, note) {
				out[k].notes = append(out[k].notes, note)
			}
		}
	}
	taken := map[string]int{}
	for i := range out {
		out[i].name = unique(taken, functorName(out[i].Functor, users[out[i].Key()] > 1))
	}
	return out
}

// candidatesByInstance lists the chosen candidates in the order of their instances.
func candidatesByInstance(ls []*layout) []*roperator.Candidate {
	byKey := map[string][]*roperator.Candidate{}
	for _, l := range ls {
		for _, u := range l.ops {
			byKey[u.key] = append(byKey[u.key], u.cand)
		}
	}
	var out []*roperator.Candidate
	for _, in := range distinctInstances(ls) {
		out = append(out, byKey[in.inst.Key()]...)
	}
	return out
}

func (l *layout) functorType(f *functor.Functor) string {
	for _, g := range l.functors {
		if g.Key() == f.Key() {
			return "functors::" + g.name
		}
	}
	panic("BUG: functor of no instance")
}

// collectConstants gives each constant that the candidates of ops refer to its place in the weights file.
func (l *layout) collectConstants(ops []usedOp) {
	used := map[int]bool{}
	for _, u := range ops {
		u.cand.Refs(func(id int) { used[id] = true })
		for i := range u.cand.Imports {
			used[u.cand.Imports[i].Access.View.Buf.ID] = true
		}
	}
	at := int64(0)
	for _, b := range l.plan.Graph.Buffers {
		if b.Kind != roperator.Const || !used[b.ID] {
			continue
		}
		l.consts = append(l.consts, b)
		l.constAt[b.ID] = at
		at = alignUp(at+b.Bytes(), schema.ConstantAlign)
	}
	l.weightBytes = at
}

func (l *layout) namePorts() {
	taken := map[string]int{}
	name := func(prefix string, ps []roperator.Port) []port {
		out := make([]port, len(ps))
		for i, p := range ps {
			b := l.plan.Graph.Buffers[p.Buffer]
			space := unique(taken, joinParts(prefix, identifierPart(p.Name, portPart)))
			out[i] = port{Port: p, space: space, bytes: b.Bytes()}
		}
		return out
	}
	l.inputs = name("in", l.plan.Graph.Inputs)
	l.outputs = name("out", l.plan.Graph.Outputs)
}

// unique returns name, with a number behind it if it was returned before.
func unique(taken map[string]int, name string) string {
	taken[name]++
	if n := taken[name]; n > 1 {
		return unique(taken, fmt.Sprintf("%s_%d", name, n))
	}
	return name
}

func (l *layout) steps() int {
	n := 0
	for _, s := range l.segments {
		n += s.stepCount
	}
	return n
}

// spaces is how many address spaces the program has.
func (l *layout) spaces() int {
	n := l.mapSpace() + min(1, l.callerMaps)
	for _, p := range l.parts {
		n = max(n, p.spaces())
	}
	return n
}

func alignUp(n, to int64) int64 { return (n + to - 1) / to * to }
