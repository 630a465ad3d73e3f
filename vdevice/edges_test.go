package vdevice

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// Ends of edges that lead nowhere, or that steps do not have, are refused before anything relies on them.
func TestPlantedEdgeFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(p *Program)
		id   string
		want string
	}{
		{"an unknown kind", func(p *Program) { p.Steps[0][1].In = []Edge{{Kind: 77}} }, badWait,
			"kind 77, which steps do not have there"},
		{"a kind without ends", func(p *Program) { p.Steps[0][1].In = []Edge{{EdgeLaunch, At{1, 0}}} }, badWait,
			"kind 0, which steps do not have"},
		{"an announcement that steps do not make", func(p *Program) { p.Steps[0][1].Out = []Edge{{Kind: EdgeTagged}} },
			badWait, "kind 3, which steps do not have"},
		{"a signal to a step", func(p *Program) { p.Steps[0][1].Out = []Edge{{EdgeFlag, At{1, 1}}} }, badWait,
			"but names a step"},
		{"a counter with an order", func(p *Program) { p.Steps[0][1].In = []Edge{{EdgeCounter, At{0, 1}}} }, badCounter,
			"which is not there"},
		{"kinds out of order", func(p *Program) {
			p.Steps[0][1].In = []Edge{Meeting(EdgeCounter, 0), {EdgeFlag, At{1, 0}}}
		}, badWait, "out of order"},
		{"two counters to add to", func(p *Program) {
			p.Steps[0][0].Out = []Edge{Meeting(EdgeCounter, 0), Meeting(EdgeCounter, 1)}
		}, badCounter, "adds to 2 counters"},
		{"a tagged edge to nowhere", func(p *Program) { p.Steps[0][1].SetIn(EdgeTagged, Edge{EdgeTagged, At{9, 0}}) },
			badWait, "which is not there"},
		{"a tagged edge from its own vEU", func(p *Program) { p.Steps[0][1].SetIn(EdgeTagged, Edge{EdgeTagged, At{0, 0}}) }, badWait, "on its own vEU"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, p := counted(t)
			c.do(p)
			err := Verify(plan)
			wantIDs(t, err, c.id)
			if !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("want %q, got %v", c.want, err)
			}
		})
	}
}

// Launches may be alone on a multiprocessor where launches overlap and nothing streams weights.
func TestAloneRules(t *testing.T) {
	graph := func(stream bool) *Plan {
		m := vdevicetest.New("alone")
		mid, out := m.Buffer(roperator.Arena, 4), m.Buffer(roperator.Output, 4)
		a := m.Candidate(1, 1, nil, []roperator.Access{vdevicetest.Whole(mid)})
		b := m.Candidate(1, 1, []roperator.Access{vdevicetest.Whole(mid)}, []roperator.Access{vdevicetest.Whole(out)})
		if stream {
			m.Stream(b, 1024, 256)
		}
		m.Op(a)
		m.Op(b)
		p := NodeProgram(testSpec(t, 2), m.G, LaunchSequence, []Launch{{Op: 0}, {Op: 1}})
		plan := &Plan{Spec: p.Spec, Graph: m.G, Pick: p.Pick, Segments: []Segment{{Kind: LaunchSequence, Program: p}}}
		LayoutArena(plan)
		return plan
	}
	for _, c := range []struct {
		name   string
		stream bool
		do     func(*Segment)
		want   string
	}{
		{"legal", false, func(s *Segment) { s.Program.Alone = []int32{0, 1} }, ""},
		{"one that streams nothing", true, func(s *Segment) { s.Program.Alone = []int32{0} }, ""},
		{"one that streams", true, func(s *Segment) { s.Program.Alone = []int32{1} },
			"streams weights, but its launch is alone"},
		{"serial", false, func(s *Segment) { s.Program.Alone, s.Serial = []int32{0}, true }, "do not overlap"},
		{"several streams", false, func(s *Segment) {
			s.Program.Alone, s.Kind, s.Program.Nodes = []int32{0}, Parallel, make([]Node, 2)
		}, "do not overlap"},
		{"unknown wave", false, func(s *Segment) { s.Program.Alone = []int32{2} }, "want waves that are there"},
		{"out of order", false, func(s *Segment) { s.Program.Alone = []int32{1, 0} }, "ascending"},
	} {
		plan := graph(c.stream)
		c.do(&plan.Segments[0])
		err := Verify(plan)
		if c.want == "" && err != nil || c.want != "" && !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: want %q, got %v", c.name, c.want, err)
		}
	}
}

// The rows of the tables are whole: each kind and mode says what it is, and words of the text form are there once.
func TestRowsAreWhole(t *testing.T) {
	words := map[string]bool{"joined": true}
	once := func(word string) {
		if word != "" && words[word] {
			t.Errorf("%q is the word of two rows", word)
		}
		words[word] = true
	}
	for k := range edgeRows {
		r := &edgeRows[k]
		if r.name == "" || r.doc == "" || r.finding == "" || r.header == "" || r.edgeRules == nil {
			t.Errorf("row %d lacks something: %+v", k, r)
		}
		once(r.in)
		once(r.out)
	}
	for m := range modeRows {
		r := &modeRows[m]
		if r.name == "" || r.doc == "" || r.header == "" || r.modeRules == nil {
			t.Errorf("row %d lacks something: %+v", m, r)
		}
		once(r.name)
	}
}
