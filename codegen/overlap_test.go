package codegen

import (
	"slices"
	"testing"

	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// What overlaps follows from the kinds of segments: never what comes after a persistent launch, across streams or where
// the segment is serial.
func TestOverlap(t *testing.T) {
	s := stencil.Forking(t, 4, 64)
	s.Fork()
	parallel := s.Plan.Segments[0]
	var ops []vdevice.Launch
	for i := range int32(6) {
		ops = append(ops, vdevice.Launch{Op: i})
	}
	graph := vdevice.Segment{Kind: vdevice.LaunchSequence,
		Program: vdevice.NodeProgram(s.Plan.Spec, s.Plan.Graph, vdevice.LaunchSequence, ops)}
	serial, waves, rprogram := graph, graph, graph
	serial.Serial, waves.Kind, rprogram.Kind = true, vdevice.Waves, vdevice.RProgram
	for _, c := range []struct {
		before, seg vdevice.Segment
		want        string // of the launches
	}{
		{graph, graph, "yyyyyy"},
		{waves, graph, "yyyyyy"},
		{serial, waves, "yyyyyy"},
		{graph, serial, "nnnnnn"},
		{rprogram, waves, "nyyyyy"},
		{parallel, graph, "nyyyyy"},
		{graph, rprogram, "nnyyyyy"},
		{graph, parallel, "nynnyy"},
	} {
		plan := *s.Plan
		plan.Segments = []vdevice.Segment{c.before, c.seg}
		got := ""
		for _, d := range dispatches(&plan, 1, usedVEUs(c.seg.Program)) {
			if d.overlap {
				got += "y"
			} else {
				got += "n"
			}
		}
		if got != c.want {
			t.Errorf("%v after %v: launches overlap %s, want %s", c.seg.Kind, c.before.Kind, got, c.want)
		}
	}
	for _, c := range []struct {
		segments []vdevice.Segment
		want     bool
	}{
		{[]vdevice.Segment{graph}, true},
		{[]vdevice.Segment{waves, parallel}, true},
		{[]vdevice.Segment{serial}, false},
		{[]vdevice.Segment{graph, rprogram}, false}, // which may still run when the next inference begins
	} {
		d := dispatches(&vdevice.Plan{Segments: c.segments}, 0, usedVEUs(c.segments[0].Program))
		if d[0].overlap != c.want {
			t.Errorf("%d segments from %v: that the first launch overlaps is %t", len(c.segments), c.segments[0].Kind,
				d[0].overlap)
		}
	}
}

// TestEarlyStates checks that the first launch of an inference starts late if one behind it reads states early.
func TestEarlyStates(t *testing.T) {
	s := stencil.Forking(t, 4, 64)
	s.Fork()
	var ops []vdevice.Launch
	for i := range int32(6) {
		ops = append(ops, vdevice.Launch{Op: i})
	}
	program := vdevice.NodeProgram(s.Plan.Spec, s.Plan.Graph, vdevice.LaunchSequence, ops)
	early := *s.Plan
	early.Segments = []vdevice.Segment{{Kind: vdevice.Waves, Program: program}}
	early.Graph = &roperator.Graph{Ops: slices.Clone(s.Plan.Graph.Ops)}
	op := *early.Graph.Ops[1]
	op.Candidates = slices.Clone(op.Candidates)
	c := *op.Candidates[early.Pick[1]]
	c.EarlyStates = true
	op.Candidates[early.Pick[1]], early.Graph.Ops[1] = &c, &op
	if d := dispatches(&early, 0, usedVEUs(program)); d[0].overlap || !d[1].overlap {
		t.Error("a launch that reads states early may begin before the run that leaves them has ended")
	}
}
