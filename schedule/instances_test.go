package schedule

import (
	"slices"
	"testing"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// ownInstances is a chain of rOperators, each of which has an rKernel instance of its own and, but for the first, also the
// first one's, which takes that many times as long.
func ownInstances(ops int, common float64) (*roperator.Graph, table) {
	m, costs := vdevicetest.New("instances"), table{}
	g := vdevicetest.Grid{Shape: []int64{8}, Tile: []int64{1}}
	in := m.Buffer(roperator.Input, 8)
	for op := range ops {
		kind := roperator.Arena
		if op == ops-1 {
			kind = roperator.Output
		}
		out := m.Buffer(kind, 8)
		var cs []*roperator.Candidate
		for _, shared := range slices.Compact([]int{1024, 1024 + 16*op}) {
			c := m.Candidate(8, 0, []roperator.Access{vdevicetest.Whole(in)}, []roperator.Access{g.Of(out)})
			c.Inst = vdevicetest.Instance(256, shared, 64)
			costs[c] = 50_000
			if op > 0 && shared == 1024 {
				costs[c] *= common
			}
			cs = append(cs, c)
		}
		m.Op(cs...)
		in = out
	}
	return m.G, costs
}

// A plan with many rKernel instances does without as many as are too many, as long as neither the program nor an rOperator
// takes much longer.
func TestInstancesThatGainNothingAreGivenUp(t *testing.T) {
	const ops = enough + 7
	for _, c := range []struct {
		name   string
		common float64
		most   int // bodies that are left at most
		least  int
	}{
		{"all that are too many", 1.0001, enough, enough},
		{"as many as the program's time allows", 1.02, ops - 1, enough + 1},
		{"none that an rOperator needs", 1.05, ops, ops},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, costs := ownInstances(ops, c.common)
			spec := deviceOf(t, "h200")
			plan, err := Schedule(g, spec, costs, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := vdevice.Verify(plan); err != nil {
				t.Error(err)
			}
			if n := plan.Bodies(); n > c.most || n < c.least {
				t.Errorf("%d bodies, want %d … %d", n, c.least, c.most)
			}
			all, own := ownInstances(ops, 2)
			with, err := Schedule(all, spec, own, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if n := with.Bodies(); n != ops {
				t.Errorf("%d bodies where no other instance will do, want %d", n, ops)
			}
			if now, before := Time(plan, costs), Time(with, own); now > (1+spared)*before {
				t.Errorf("the program takes %.0f ns instead of %.0f", now, before)
			}
		})
	}
}
