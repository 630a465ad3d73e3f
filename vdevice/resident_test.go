package vdevice

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What makes a step more than an exchange of words ends a row of direct ones.
func TestDirectSteps(t *testing.T) {
	const steps = 6
	for _, c := range []struct {
		name   string
		change func(p *Program)
		want   []int32
	}{
		{"all but the first, which imports nothing tagged", func(*Program) {}, []int32{0, 5, 4, 3, 2, 1}},
		{"a wait", func(p *Program) { p.Steps[0][3].SetIn(EdgeFlag, Flags(At{1, 0})...) }, []int32{0, 2, 1, 0, 2, 1}},
		{"a counter that is waited for", func(p *Program) { p.Steps[0][3].SetIn(EdgeCounter, Meeting(EdgeCounter, 0)) }, []int32{0, 2, 1, 0, 2, 1}},
		{"a signal", func(p *Program) { p.Steps[0][3].SetOut(EdgeFlag, Edge{Kind: EdgeFlag}) }, []int32{0, 2, 1, 0, 2, 1}},
		{"an addition", func(p *Program) { p.Steps[0][5].SetOut(EdgeCounter, Meeting(EdgeCounter, 0)) }, []int32{0, 4, 3, 2, 1, 0}},
		{"results in plain memory, too", func(p *Program) { p.Carry[1] = TaggedAndPlain }, []int32{0, 0, 0, 0, 0, 0}},
		{"no tags", func(p *Program) { p.Carry[1] = Plain }, []int32{0, 0, 0, 0, 0, 0}},
		{"words in slots", func(p *Program) { p.Cluster = 4; PlaceSlots(p, 1000) }, []int32{0, 0, 0, 0, 0, 0}},
		{"an rTask whose operand is in several places", func(p *Program) {
			imports := p.Candidate(3).Imports
			imports[0].Pitch = []int64{16, 2}
		}, []int32{0, 2, 1, 0, 2, 1}},
	} {
		_, p := exchange(t, 1, steps, 4, 0, 0)
		p.Carry[1] = Tagged
		c.change(p)
		if diff := cmp.Diff(c.want, p.Direct(0, []int32{6, 5, 4, 3, 2, 1})); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}

	_, p := exchange(t, 1, steps, 4, 0, 0)
	p.Carry[1] = Tagged
	if diff := cmp.Diff([]int32{0, 2, 1, 2, 1, 0}, p.Direct(0, []int32{3, 2, 1, 2, 1, 0})); diff != "" {
		t.Errorf("across runs:\n%s", diff)
	}
}
