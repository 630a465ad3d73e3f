package vdevice

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/roperator"
)

// TestManyWordsTakeLonger: the more tagged words an rTask takes, the later it begins: each step of a chain waits for the
// last word of the whole state, through global memory or inside a cluster.
func TestManyWordsTakeLonger(t *testing.T) {
	const steps, tasks, words = 5, 4, 16 // a state has four values for each rTask
	for _, x := range []struct {
		cluster int
		edge    func(*device.Cost) float64
	}{
		{0, func(c *device.Cost) float64 { return c.Tagged }},
		{tasks, func(c *device.Cost) float64 { return c.Cluster }},
	} {
		_, p := exchange(t, 1, steps, tasks, 0, x.cluster)
		if x.cluster > 0 {
			PlaceSlots(p, 64)
		}
		p.Spec.Cost.TaggedRoot = 100
		tl, err := simulate(p, func(Task) float64 { return 1000 })
		if err != nil {
			t.Fatal(err)
		}
		c := &p.Spec.Cost
		want := steps*(c.Step+1000) + (steps-1)*(x.edge(c)+100*(math.Sqrt(words)-1))
		if math.Abs(tl.Makespan-want) > 1e-6 {
			t.Errorf("clusters of %d: %v ns, want %v", x.cluster, tl.Makespan, want)
		}
	}
}

// TestWordsOfSmallBuffers: tagged words of buffers whose lengths are no multiples of a line lie apart.
func TestWordsOfSmallBuffers(t *testing.T) {
	g := &roperator.Graph{}
	p := &Program{}
	for i, n := range []int64{5, 1, 16, 17, 31} {
		g.Buffers = append(g.Buffers, &roperator.Buffer{ID: i, Elems: n})
		p.Carry = append(p.Carry, Tagged)
	}
	plan := &Plan{Graph: g, Segments: []Segment{{Kind: RProgram, Program: p}}}
	plan.layoutWords()
	end := int64(0)
	for i, b := range g.Buffers {
		if at := plan.Words[i]; at < end || at%16 != 0 {
			t.Errorf("the words of buffer %d are at %d, want a line behind %d", i, at, end)
		}
		end = plan.Words[i] + b.Elems
	}
	if plan.WordsLen < end {
		t.Errorf("the plan has %d words, want %d", plan.WordsLen, end)
	}
}

// tagFaults are changes to a plan with tagged data, and what Verify must say then.
var tagFaults = []struct {
	name string
	do   func(*Plan, *Program)
	id   string
	want string
}{
	{"how too few buffers travel", func(_ *Plan, p *Program) { p.Carry = p.Carry[:1] }, badPlan, "says how 1 buffers travel"},
	{"tagged by two segments", func(plan *Plan, p *Program) {
		none := make([]int, len(p.Pick))
		for i := range none {
			none[i] = -1
		}
		plan.Segments = append(plan.Segments, Segment{Kind: RProgram, Program: &Program{
			Spec: p.Spec, Ops: p.Ops, Pick: none, Steps: make([][]Step, 1), Carry: p.Carry,
		}})
	}, badCarry, "is tagged by segment 0 and by segment 1"},
	{"elements that are no words", func(plan *Plan, _ *Program) { plan.Graph.Buffers[1].DType = ir.Float64 }, badCarry, "cannot be tagged"},
	{"an input", func(plan *Plan, _ *Program) { plan.Graph.Buffers[1].Kind = roperator.Input }, badCarry, "cannot be tagged"},
	{"an output without a plain copy", func(_ *Plan, p *Program) { p.Carry[1] = Tagged }, badCarry, "is an output and has no plain copy"},
	{"a write that is no export", func(_ *Plan, p *Program) { p.Candidate(4).Exports = nil }, badCarry, "writes it otherwise"},
	{"a write that is none of the exports", func(_ *Plan, p *Program) { p.Candidate(4).Exports[0].Index = -1 }, badCarry,
		"writes it otherwise"},
	{"a read of what has no plain copy", func(plan *Plan, p *Program) {
		plan.Graph.Buffers[1].Kind, p.Carry[1] = roperator.Arena, Tagged
		p.Candidate(4).Imports = nil
	}, badCarry, "has no plain copy, which"},
	{"words of too few buffers", func(plan *Plan, _ *Program) { plan.Words = plan.Words[:1] }, badPlan, "tagged words for 1 buffers"},
	{"words that no buffer needs", func(plan *Plan, _ *Program) { plan.WordsLen = 1<<63 - 1 }, badCarry, "tagged words, all its buffers take"},
	{"a million words", func(plan *Plan, _ *Program) { plan.WordsLen = 1 << 20 }, badCarry, "tagged words, all its buffers take"},
	{"words out of range", func(plan *Plan, _ *Program) { plan.Words[1] = plan.WordsLen }, badCarry, "want them inside"},
	{"words of two buffers", func(plan *Plan, _ *Program) { plan.Words[2] = plan.Words[1] }, badCarry, "shares tagged words"},
	{"an edge left out", func(_ *Plan, p *Program) {
		s := &p.Steps[0][3]
		s.SetIn(EdgeTagged, s.InOf(EdgeTagged)[1:]...)
	}, unordered, "but does not follow it"},
	{"an edge from too early a step", func(_ *Plan, p *Program) { p.Steps[0][3].InOf(EdgeTagged)[0].Order-- }, unordered, "but does not follow it"},
	{"an edge inside a wave", func(_ *Plan, p *Program) {
		for v := range p.Steps {
			p.Steps[v][3].Wave = p.Steps[v][2].Wave
		}
	}, unordered, "but is in no later wave"},
	{"words that are written twice", func(_ *Plan, p *Program) {
		a, b := p.Candidate(8), p.Candidate(6) // of one chain
		a.Writes, a.Exports = b.Writes, b.Exports
	}, unordered, "has written in the same launch"},
}

func TestPlantedTagFaults(t *testing.T) {
	for _, c := range tagFaults {
		t.Run(c.name, func(t *testing.T) {
			plan, p := exchange(t, 2, 6, 4, 0, 0)
			if err := Verify(laidOut(plan)); err != nil {
				t.Fatalf("before: %v", err)
			}
			c.do(plan, p)
			err := Verify(plan)
			wantIDs(t, err, c.id)
			if !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("want %q, got %v", c.want, err)
			}
		})
	}
}
