package vdevice

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// withDummies adds a kind of edge and a mode of steps to the tables for the time of a test: nothing but the two rows.
func withDummies(t *testing.T) (EdgeKind, StepMode) {
	t.Helper()
	edges, modes := edgeRows, modeRows
	t.Cleanup(func() { edgeRows, modeRows = edges, modes })
	kind, mode := EdgeKind(len(edges)), StepMode(len(modes))
	edgeRows = append(edges[:len(edges):len(edges)], tokenRow(kind))
	modeRows = append(modes[:len(modes):len(modes)], eagerRow())
	return kind, mode
}

// relay has three rTasks that each need the one before, on three vEUs, joined by edges of a kind.
func relay(t *testing.T, kind EdgeKind) (*Plan, *Program) {
	t.Helper()
	g := vdevicetest.Layers(3, 4, 4, 4, 4, false)
	b := NewBuilder(testSpec(t, 3), g)
	for op := range int32(3) {
		b.Pick(op, 0)
		if op > 0 {
			b.After(kind, Task{op, 0}, b.Front([]Task{{op - 1, 0}}))
		}
		b.Append(Task{op, 0}, op)
	}
	p := b.Program()
	return planOf(g, p), p
}

// A kind of edge is its row and its own file: the Builder makes such edges, they print and parse, Verify knows what
// they order and when they are legal, Simulate what they cost, and the encoder what the tables say of them.
func TestDummyEdgeKind(t *testing.T) {
	kind, _ := withDummies(t)
	plan, p := relay(t, kind)
	if err := Verify(plan); err != nil {
		t.Fatal(err)
	}

	text := string(FormatPlan(plan))
	for _, want := range []string{"\n1.0 wave 1 awaits 0:0 hands #", "\n2.0 wave 2 awaits 1:0 #"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	roundTrip(t, plan)

	tl, err := simulate(p, func(Task) float64 { return 1000 })
	if err != nil {
		t.Fatal(err)
	}
	end := 0.0
	for op := range 3 {
		if op > 0 {
			end = p.Spec.StartTime(0, end+tokenTime, 1)
		}
		if end += p.Spec.Cost.Step + 1000; tl.End[op][0] != end {
			t.Errorf("rTask of rOperator %d ends at %v, want %v", op, tl.End[op][0], end)
		}
	}
	if s := plan.Stats(); s.Waits != 2 || s.Waiting != 2 {
		t.Errorf("%d steps wait for %d", s.Waiting, s.Waits)
	}

	e := NewEncoder(p, 3, noAddresses{})
	var row schema.Step
	x := e.Step(At{1, 0}, &row)
	if d := cmp.Diff([]schema.Wait{{VEU: tokenMark, Order: 0}}, x.Waits); d != "" || !row.Signal {
		t.Errorf("signal %v, waits %s", row.Signal, d)
	}

	for _, c := range []struct {
		name, id string
		do       func(p *Program)
	}{
		{"an edge left out", unordered, func(p *Program) { p.Steps[2][0].SetIn(kind) }},
		{"a token taken twice", "bad-token", func(p *Program) { p.Steps[2][0].SetIn(kind, Edge{kind, At{0, 0}}) }},
		{"an edge to nowhere", "bad-token", func(p *Program) { p.Steps[2][0].SetIn(kind, Edge{kind, At{0, 7}}) }},
		{"a circle", waitCycle, func(p *Program) { p.Steps[0][0].SetIn(kind, Edge{kind, At{2, 0}}) }},
	} {
		plan, p := relay(t, kind)
		c.do(p)
		if err := Verify(plan); err == nil {
			t.Errorf("%s passes", c.name)
		} else {
			wantIDs(t, err, c.id)
		}
	}
}

// A mode of steps is its row and its own file.
func TestDummyStepMode(t *testing.T) {
	_, mode := withDummies(t)
	plan, p := relay(t, EdgeFlag)
	p.Steps[2][0].Mode = mode
	if err := Verify(plan); err != nil {
		t.Fatal(err)
	}
	if text := string(FormatPlan(plan)); !strings.Contains(text, "\n2.0 wave 2 wait 1:0 eager #") {
		t.Errorf("the mode is not in\n%s", text)
	}
	roundTrip(t, plan)
	if _, err := simulate(p, func(Task) float64 { return 1 }); err != nil {
		t.Error(err)
	}
	var row schema.Step
	NewEncoder(p, 3, noAddresses{}).Step(At{2, 0}, &row)
	if row.Direct != 101 || row.Run != 0 {
		t.Errorf("the row is %+v", row)
	}
	p.Steps[1][0].Mode = mode
	if err := Verify(plan); !strings.Contains(fmt.Sprint(err), "prog[1][0] must not be eager: it announces itself") {
		t.Errorf("got %v", err)
	}
	p.Steps[1][0].Mode, plan.Segments[0].Kind = ModePlain, Waves
	if err := Verify(plan); !strings.Contains(fmt.Sprint(err), "must not have eager steps") {
		t.Errorf("got %v", err)
	}
}

// roundTrip prints a plan and reads it back.
func roundTrip(t *testing.T, plan *Plan) {
	t.Helper()
	text := FormatPlan(plan)
	back, err := ParsePlan("x.rprog", text, plan.Graph, plan.Spec)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	sameOp := cmp.Comparer(func(a, b *roperator.ROperator) bool { return a == b })
	sameGraph := cmp.Comparer(func(a, b *roperator.Graph) bool { return a == b })
	if d := cmp.Diff(plan, back, sameOp, sameGraph, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s", d)
	}
	if err := Verify(back); err != nil {
		t.Error(err)
	}
}
