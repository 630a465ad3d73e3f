package schedule

import (
	"slices"
	"testing"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// inWords are the buffers that travel in tagged words.
func inWords(plan *vdevice.Plan) []int {
	var out []int
	for _, s := range plan.Segments {
		for id := range plan.Graph.Buffers {
			if s.Program.CarryOf(id).HasTags() {
				out = append(out, id)
			}
		}
	}
	return out
}

// With plan rows all rows travel in tagged words that some rTask makes and all readers can poll, in other plans none.
func TestRowsTravelInWords(t *testing.T) {
	const ops = 6 // buffers 1 to 6 are their rows, and the last of them is the output
	for _, c := range []struct {
		what   string
		change func(*roperator.Graph)
		want   []int
	}{
		{"all of them", func(*roperator.Graph) {}, []int{1, 2, 3, 4, 5}},
		{"a reader that cannot poll", func(g *roperator.Graph) {
			g.Ops[3].Candidates = slices.DeleteFunc(g.Ops[3].Candidates, func(c *roperator.Candidate) bool {
				return slices.Contains(c.Polls, 1) // the row that it reads pointwise, buffer 2
			})
		}, []int{1, 3, 4, 5}},
		{"a writer that cannot store words", func(g *roperator.Graph) {
			g.Ops[2].Candidates = slices.DeleteFunc(g.Ops[2].Candidates, func(c *roperator.Candidate) bool {
				return len(c.Gives) > 0
			})
		}, []int{1, 2, 4, 5}},
		{"a reader that can poll one of two rows", func(g *roperator.Graph) {
			g.Ops[3].Candidates = slices.DeleteFunc(g.Ops[3].Candidates, func(c *roperator.Candidate) bool {
				return len(c.Polls) > 1
			})
		}, []int{1, 5}},
		{"a state", func(g *roperator.Graph) { g.Buffers[4].State = true }, []int{1, 2, 3, 5}},
	} {
		spec := deviceOf(t, "h200")
		for _, kind := range []string{"rows", PlanRProgram, PlanWaves, PlanMixed} {
			g := vdevicetest.Rows(ops, 256, 16)
			c.change(g)
			plan := mustSchedule(t, g, spec, Options{Plan: kind})
			if err := vdevice.Verify(plan); err != nil {
				t.Fatalf("%s, %s: %v", c.what, kind, err)
			}
			want := c.want
			if kind != "rows" {
				want = nil
			}
			if got := inWords(plan); !slices.Equal(got, want) {
				t.Errorf("%s, %s: buffers %v travel in words, want %v", c.what, kind, got, want)
			}
		}
	}
}
