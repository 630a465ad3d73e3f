package schedule

import (
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// Every kind of plan under every policy is legal, and its simulated time lies between what no schedule of its rTasks
// can be faster than and the time of all rTasks one after another.
func TestSimulatedTimeHasBounds(t *testing.T) {
	for i, ops := range []int{1, 10, 100, 400} {
		g := vdevicetest.Random(uint64(100+i), ops)
		for _, name := range []string{"emu4", "h200"} {
			spec := deviceOf(t, name)
			everyOption(spec, func(o Options) { checkBounds(t, g, spec, o) })
		}
	}
}

// The same for graphs of ten thousand rOperators, for every policy and for kinds of plan that others are made of.
func TestLargeGraphs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	g, spec := vdevicetest.Random(7, 10_000), deviceOf(t, "h200")
	for _, kind := range []string{PlanCriticalPath, "nimble", "opara"} {
		checkBounds(t, g, spec, Options{Plan: kind})
	}
	for _, p := range Policies() {
		checkBounds(t, g, spec, Options{Plan: PlanMixed, Policy: p.Name})
	}
}

func checkBounds(t *testing.T, g *roperator.Graph, spec *device.Spec, o Options) {
	t.Helper()
	costs := model.New(spec, g)
	plan := mustSchedule(t, g, spec, o)
	if err := vdevice.Verify(plan); err != nil {
		t.Fatalf("%d rOperators on %s with %+v: %v", len(g.Ops), spec.Name, o, err)
	}
	took, least, most := planTime(t, g, plan, costs), lowerBound(g, plan, costs), serialTime(g, plan, costs)
	if took < least || took > most {
		t.Errorf("%d rOperators on %s with %+v: %.0f ns, want between %.0f and %.0f", len(g.Ops), spec.Name, o, took,
			least, most)
	}
}

// Where Algorithm 1 joins all waves, its plan is the rProgram of these waves: auto makes only one of the two.
func TestJoinedWavesAreTheRProgram(t *testing.T) {
	spec := deviceOf(t, "h200")
	joined := 0
	for seed := range uint64(20) {
		g := vdevicetest.Random(seed, 12)
		plan := mustSchedule(t, g, spec, Options{Plan: "mixed-4"})
		if !inOneRProgram(plan) {
			continue
		}
		joined++
		if other := mustSchedule(t, g, spec, Options{Plan: PlanRProgram}); string(vdevice.FormatPlan(plan)) !=
			string(vdevice.FormatPlan(other)) {
			t.Errorf("seed %d: the plans differ:\n%s\n%s", seed, vdevice.FormatPlan(plan), vdevice.FormatPlan(other))
		}
	}
	if joined < 5 {
		t.Errorf("only %d graphs were joined", joined)
	}
}

// The plan critical-path is never slower in simulation than Algorithm 1, than the rProgram of its waves, and than the
// same for other policies.
func TestCriticalPathIsNoSlower(t *testing.T) {
	graphs := map[string]*roperator.Graph{
		"dense": vdevicetest.Layers(12, 64, 64, 8, 8, true), "recurrent": vdevicetest.Recurrent(4, 20, 64, 8),
		"chains": chain(30, 5),
	}
	for seed := range uint64(15) {
		graphs["random"+string(rune('a'+seed))] = vdevicetest.Random(seed, 40)
	}
	faster := 0
	for of, g := range graphs {
		for _, name := range []string{"emu4", "h200"} {
			spec := deviceOf(t, name)
			costs := model.New(spec, g)
			took := planTime(t, g, mustSchedule(t, g, spec, Options{Plan: PlanCriticalPath}), costs)
			better := true
			for _, kind := range []string{PlanMixed, PlanRProgram} {
				other := planTime(t, g, mustSchedule(t, g, spec, Options{Plan: kind}), costs)
				if took > other {
					t.Errorf("%s on %s: critical-path takes %.0f ns, %s %.0f", of, name, took, kind, other)
				}
				better = better && took < other
			}
			if better {
				faster++
			}
		}
	}
	if faster < len(graphs)/2 {
		t.Errorf("critical-path is faster for %d of %d graphs", faster, 2*len(graphs))
	}
}

func planTime(t *testing.T, g *roperator.Graph, plan *vdevice.Plan, costs profiler.Costs) float64 {
	t.Helper()
	ns, err := vdevice.PlanTime(plan, func(x vdevice.Task) float64 {
		return costs.TaskTime(g.Ops[x.Op].Candidates[plan.Pick[x.Op]])
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// lowerBound is the larger one of two times: of the longest chain of rTasks that depend on each other, and of all work
// if the vEUs share it evenly.
func lowerBound(g *roperator.Graph, plan *vdevice.Plan, costs profiler.Costs) float64 {
	cache := newTileCache(len(g.Ops))
	ops := newOpGraph(g)
	end := make([][]float64, len(g.Ops))
	longest, work := 0.0, 0.0
	for id, op := range g.Ops {
		c := op.Candidates[plan.Pick[id]]
		var preds []producer
		for _, p := range ops.preds[id] {
			preds = append(preds, producer{p, g.Ops[p].Candidates[plan.Pick[p]]})
		}
		d := findDeps(g, cache, preds, c, nil)
		time := costs.TaskTime(c) + plan.Spec.Cost.Step
		work += time * float64(c.Tasks)
		inputs := make([]float64, len(d.sets)) // when they are complete
		for s := range d.sets {
			for _, x := range d.sets[s].tasks {
				inputs[s] = max(inputs[s], end[x.Op][x.Index])
			}
		}
		end[id] = make([]float64, c.Tasks)
		for task := range end[id] {
			for _, s := range d.combos[d.of[task]] {
				end[id][task] = max(end[id][task], inputs[s])
			}
			end[id][task] += time
			longest = max(longest, end[id][task])
		}
	}
	veus := plan.Spec.VEUs()
	for _, s := range plan.Segments { // launches may have more blocks than that
		veus = max(veus, s.Program.Spec.VEUs())
	}
	return max(longest, work/float64(veus))
}

// serialTime is what all rTasks take one after another, each with its dispatch and its edges, and with all launches.
func serialTime(g *roperator.Graph, plan *vdevice.Plan, costs profiler.Costs) float64 {
	cost := &plan.Spec.Cost
	sum := 0.0
	for _, s := range plan.Segments {
		sum += cost.Launch + cost.Node*float64(s.Program.Waves)
		for _, steps := range s.Program.Steps {
			for i := range steps {
				sum += costs.TaskTime(g.Ops[steps[i].Task.Op].Candidates[plan.Pick[steps[i].Task.Op]]) + cost.Step
				if len(steps[i].In) > 0 {
					sum += max(cost.Hop, cost.Tagged, cost.Counter, cost.Cluster) +
						cost.WaitEach*float64(steps[i].Polls())
				}
			}
		}
	}
	return sum
}
