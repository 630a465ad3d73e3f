package vdevice

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// branchGraph has five rOperators of one rTask each:
//
//	0: x            1: c            2: a = f(x) if c      3: b = g(a) if c      4: y = h(x, b)
//
// The last one is that of a Select, which is always run.
func branchGraph() *roperator.Graph {
	m := vdevicetest.New("branch")
	view := func() roperator.View { return m.Buffer(roperator.Arena, 4) }
	x, c, a, b, y := view(), view(), view(), view(), view()
	of := func(views ...roperator.View) (out []roperator.Access) {
		for _, v := range views {
			out = append(out, vdevicetest.Whole(v))
		}
		return out
	}
	op := func(reads, writes []roperator.Access, conditions ...roperator.Condition) {
		cand := m.Candidate(1, 1, reads, writes)
		cand.Conditions = conditions
		m.Op(cand)
	}
	onlyIf := roperator.Condition{View: c}
	op(nil, of(x))
	op(nil, of(c))
	op(of(x, c), of(a), onlyIf)
	op(of(a, c), of(b), onlyIf)
	op(of(x, b), of(y))
	return m.G
}

// branchPlan has each rOperator on a vEU of its own, but for 2 and 4, which are on the same one, or on two.
func branchPlan(t *testing.T, veus [5]int32) *Plan {
	t.Helper()
	g := branchGraph()
	b := NewBuilder(flagSpec(t, 5), g)
	b.JumpOver()
	preds := [][]Task{nil, nil, {{0, 0}, {1, 0}}, {{2, 0}, {1, 0}}, {{0, 0}, {3, 0}}}
	for op, before := range preds {
		b.Pick(int32(op), 0)
		task := Task{int32(op), 0}
		b.Wait(task, before)
		b.Append(task, veus[op])
	}
	return planOf(g, b.Program())
}

// A step without conditions learns nothing of what steps that may be jumped over have waited for: 4 waits for 0 itself,
// though 3 comes after 2 and 2 after 0. A step with the same condition learns it. Both regions wait for the condition
// alone before they test it.
func TestWhatJumpsHide(t *testing.T) {
	plan := branchPlan(t, [5]int32{0, 1, 2, 3, 4})
	if err := Verify(plan); err != nil {
		t.Fatal(err)
	}
	p := plan.Segments[0].Program
	for _, c := range []struct {
		op   int32
		kind EdgeKind
		want []At
	}{
		{2, EdgeGate, []At{{1, 0}}}, {2, EdgeFlag, []At{{0, 0}}}, {3, EdgeGate, []At{{1, 0}}}, {3, EdgeFlag, []At{{2, 0}}},
		{4, EdgeGate, nil}, {4, EdgeFlag, []At{{0, 0}, {3, 0}}},
	} {
		var got []At
		for _, e := range p.Steps[c.op][0].InOf(c.kind) {
			got = append(got, e.At)
		}
		if d := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("rOperator %d, kind %d: %s", c.op, c.kind, d)
		}
	}
	again, err := ParsePlan("x.rprog", FormatPlan(plan), plan.Graph, plan.Spec)
	if err != nil || string(FormatPlan(again)) != string(FormatPlan(plan)) {
		t.Errorf("the text form differs: %v", err)
	}
}

// Two steps of a region follow each other on a vEU: one jump leads over both, and only the first has gates.
func TestJumpsOfARegion(t *testing.T) {
	plan := branchPlan(t, [5]int32{0, 1, 2, 2, 2})
	if err := Verify(plan); err != nil {
		t.Fatal(err)
	}
	p := plan.Segments[0].Program
	if list := p.jumps(At{2, 0}); len(list) != 1 || list[0].steps != 2 || list[0].condition.Not {
		t.Errorf("the jumps of the first step are %+v", list)
	}
	if list := p.jumps(At{2, 1}); list != nil || len(p.Steps[2][1].InOf(EdgeGate)) > 0 {
		t.Errorf("the second step has jumps %+v or gates", list)
	}
	if in := p.Steps[2][2].InOf(EdgeFlag); len(in) != 1 || in[0].VEU != 0 {
		t.Errorf("the step behind the region waits for %+v, want the step of x", in)
	}
}

func TestVerifyFindsWrongJumps(t *testing.T) {
	for name, x := range map[string]struct {
		spoil func(plan *Plan)
		want  string
	}{
		"without its gate": {func(plan *Plan) {
			plan.Segments[0].Program.Steps[3][0].SetIn(EdgeGate)
		}, "tests a condition that rTask 0 of"},
		"behind another": {func(plan *Plan) {
			s := &plan.Segments[0].Program.Steps[4][0]
			s.SetIn(EdgeFlag, Edge{EdgeFlag, At{3, 0}})
		}, "no wait or program order puts it first"},
		"a gate of nothing": {func(plan *Plan) {
			plan.Segments[0].Program.Steps[4][0].SetIn(EdgeGate, Edge{EdgeGate, At{1, 0}})
		}, "is not the first step of a region"},
		"tags": {func(plan *Plan) {
			p := plan.Segments[0].Program
			p.Carry = make([]Carry, len(plan.Graph.Buffers))
			for i := range p.Carry {
				p.Carry[i] = TaggedAndPlain
			}
		}, "its results travel in tagged words"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := branchPlan(t, [5]int32{0, 1, 2, 3, 4})
			x.spoil(plan)
			if err := Verify(plan); err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("want %q, got %v", x.want, err)
			}
		})
	}
}

// The memory of x must not be given to somebody who only knows that the branch is over.
func TestArenaBehindAJump(t *testing.T) {
	plan := branchPlan(t, [5]int32{0, 1, 2, 3, 4})
	x, b := plan.Arena[0], plan.Arena[3]
	if x == b {
		t.Errorf("b lies where x lies, which 4 still reads")
	}
	plan.Arena[3] = x
	if err := Verify(plan); err == nil {
		t.Error("Verify finds nothing wrong with b in the place of x")
	}
}

// Successive waves with a condition in common are a branch, and those of them with a further one a branch inside of it,
// if there are enough of them: here 2 + 40 + 35 + 1 waves of which all but the first two and the last have the condition
// c, and the last 35 of these d, too. A wave in which one rTask has no condition is in no branch.
func TestBranchesOfWaves(t *testing.T) {
	for _, c := range []struct {
		inner  int  // waves with the second condition
		beside bool // something without conditions is in a wave of the first branch
		want   [][2]int
	}{
		{35, false, [][2]int{{2, 77}, {42, 77}}},
		{31, false, [][2]int{{2, 73}}},
		{35, true, [][2]int{{11, 77}, {42, 77}}},
	} {
		m := vdevicetest.New("branches")
		outer, inner := m.Buffer(roperator.Arena, 4), m.Buffer(roperator.Arena, 4)
		var launches []Launch
		add := func(conditions ...roperator.Condition) {
			out := m.Buffer(roperator.Arena, 4)
			cand := m.Candidate(1, 1, nil, []roperator.Access{vdevicetest.Whole(out)})
			cand.Conditions = conditions
			launches = append(launches, Launch{Op: int32(m.Op(cand).ID)})
		}
		first, second := roperator.Condition{View: outer}, roperator.Condition{View: inner, Not: true}
		add()
		add()
		for range 40 {
			add(first)
		}
		for range c.inner {
			add(first, second)
		}
		add()
		p := NodeProgram(flagSpec(t, 1), m.G, LaunchSequence, launches)
		if c.beside {
			p.Steps[0][10].Task.Op = 0
		}
		var got [][2]int
		for _, b := range p.Branches() {
			got = append(got, [2]int{b.First, b.Last})
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%d, %v: %s", c.inner, c.beside, d)
		}
	}
}
