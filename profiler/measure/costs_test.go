package measure

import (
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/roperator"
)

// emptyBase is a database without entries, and the keys of a machine.
func emptyBase(t *testing.T) (*db.DB, *Keys) {
	t.Helper()
	base, err := db.Open(filepath.Join(t.TempDir(), "m"), "")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := NewKeys(db.Machine{GPU: "g"}, testKernels())
	if err != nil {
		t.Fatal(err)
	}
	return base, keys
}

// Measured candidates cost what was measured, others what the model says on the same scale.
func TestCosts(t *testing.T) {
	base, keys := emptyBase(t)
	g := scaleGraph(t, [][2]int{{10, none}, {20, none}, {25, none}})
	c := g.Ops[0].Candidates
	key, err := keys.Of(g, c[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := base.Append(db.Entry{Key: key, Times: db.Times{Wave: 240, Cold: 250, DRAM: 400}}); err != nil {
		t.Fatal(err)
	}
	for streamed, want := range map[bool]float64{false: 250, true: 400} {
		costs, err := NewCosts(g, flat{}, base, keys, streamed, nil)
		if err != nil {
			t.Fatal(err)
		}
		if costs.Enough() {
			t.Error("one of three candidates is enough")
		}
		if got := costs.TaskTime(c[1]); got != want || !costs.Measured(c[1]) {
			t.Errorf("measured: %v, want %v", got, want)
		}
		if got := costs.TaskTime(c[0]); got != want || costs.Measured(c[0]) {
			t.Errorf("modelled as 100, which is %v on the scale of what was measured: %v", want, got)
		}
		factor := func(x *roperator.Candidate) float64 { return float64(x.Tasks) }
		costs = costs.InPrograms(factor, func(*roperator.Candidate) float64 { return 0.5 })
		if got := costs.Prediction().TaskTime(c[1]); got != want/2 {
			t.Errorf("predicted in programs: %v, want half of %v", got, want)
		}
		if got := costs.TaskTime(c[1]); got != want*float64(c[1].Tasks) {
			t.Errorf("in programs it takes %d times as long: %v", c[1].Tasks, got)
		}
	}
}

// byTasks says that rTasks cost 1000 ns for each of the candidate's.
type byTasks struct{}

func (byTasks) TaskTime(c *roperator.Candidate) float64 { return 1000 * float64(c.Tasks) }

// What was measured of an instance on other shapes says how far the model is off for this one: the nearest shapes count
// most, and other machines not at all.
func TestNeighbours(t *testing.T) {
	base, keys := emptyBase(t)
	g := scaleGraph(t, [][2]int{{10, none}, {20, none}})
	c := g.Ops[0].Candidates // of 10 and 5 rTasks
	key, err := keys.Of(g, c[0])
	if err != nil {
		t.Fatal(err)
	}
	entry := func(args, gpu string, tasks int, cold float64) db.Entry {
		k := key
		k.Args, k.GPU = args, gpu
		return db.Entry{Key: k, Tasks: tasks, Times: db.Times{Cold: cold}}
	}
	if err := base.Append(entry("a", "g", 10, 20000), entry("b", "g", 1000, 8000000),
		entry("c", "another", 10, 1)); err != nil {
		t.Fatal(err)
	}
	costs, err := NewCosts(g, byTasks{}, base, keys, false,
		func(e *db.Entry, _ bool) float64 { return 1000 * float64(e.Tasks) })
	if err != nil {
		t.Fatal(err)
	}
	if got := costs.TaskTime(c[0]); got < 20000 || got > 21000 || costs.Measured(c[0]) {
		t.Errorf("%v ns: the same work was measured to take twice the modelled 10000, and a hundred times as much eight times", got)
	}
	if got := costs.TaskTime(c[1]); got != 5000 {
		t.Errorf("another instance takes %v, want the modelled 5000", got)
	}
}
