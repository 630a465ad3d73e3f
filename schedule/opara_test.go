package schedule

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

func TestStreams(t *testing.T) {
	for _, c := range []struct {
		name  string
		preds [][]int32
		want  string
	}{
		{"a chain is one stream", [][]int32{nil, {0}, {1}, {2}}, "[0 0 0 0]"},
		{"roots start streams", [][]int32{nil, nil, nil}, "[0 1 2]"},
		{"the first successor goes on, others branch off", [][]int32{nil, {0}, {0}, {0}}, "[0 0 1 2]"},
		{"a join goes on with the first branch", [][]int32{nil, {0}, {0}, {1, 2}}, "[0 0 1 0]"},
		{"streams that have ended before serve again", [][]int32{nil, {0}, {0}, {1, 2}, {3}, {3}}, "[0 0 1 0 0 1]"},
		{"but not such as may still run", [][]int32{nil, {0}, {0}, {1}, {3}, {3}}, "[0 0 1 0 0 2]"},
	} {
		if got := fmt.Sprint(streamsOf(c.preds, true)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// What is on a stream is ordered anyway, so streams never keep apart what may run side by side.
func TestStreamsOrderNothing(t *testing.T) {
	for seed := range uint64(40) {
		ops := newOpGraph(vdevicetest.Random(seed, 30))
		streams, before := streamsOf(ops.preds, true), newReach(ops.preds)
		last := map[int32]int32{}
		for v, s := range streams {
			if x, ok := last[s]; ok && !before.has(int32(v), x) {
				t.Fatalf("seed %d: rOperators %d and %d are on stream %d, but nothing else orders them", seed, x, v, s)
			}
			last[s] = int32(v)
		}
	}
}

func TestLaunchOrder(t *testing.T) {
	memory, arithmetic := true, false
	for _, c := range []struct {
		name  string
		nodes []oparaNode
		preds [][]int32
		want  string
	}{
		{"least demand first", []oparaNode{{memory, 0.5, 1}, {memory, 0.1, 1}, {memory, 0.3, 1}}, make([][]int32, 3),
			"[1 2 0]"},
		{
			"memory-bound and compute-bound take turns",
			[]oparaNode{{memory, 1, 1}, {memory, 2, 1}, {arithmetic, 3, 1}, {arithmetic, 4, 1}}, make([][]int32, 4),
			"[0 2 1 3]",
		},
		{
			"one kind goes on alone when the other runs out",
			[]oparaNode{{arithmetic, 1, 1}, {arithmetic, 2, 1}, {memory, 9, 1}, {arithmetic, 3, 1}}, make([][]int32, 4),
			"[2 0 1 3]",
		},
		{"of equals the longest way ahead", []oparaNode{{memory, 1, 5}, {memory, 1, 9}}, make([][]int32, 2), "[1 0]"},
		{"dependencies come first", []oparaNode{{memory, 9, 1}, {memory, 1, 1}}, [][]int32{nil, {0}}, "[0 1]"},
	} {
		if got := fmt.Sprint(launchOrder(c.nodes, c.preds)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for seed := range uint64(20) {
		ops := newOpGraph(vdevicetest.Random(seed, 30))
		nodes := make([]oparaNode, len(ops.preds))
		for i := range nodes {
			nodes[i] = oparaNode{i*7%3 == 0, float64(i * 5 % 7), 0}
		}
		order := launchOrder(nodes, ops.preds)
		at := map[int32]int{}
		for i, v := range order {
			at[v] = i
		}
		for v, ps := range ops.preds {
			for _, p := range ps {
				if at[int32(v)] < at[p] {
					t.Fatalf("seed %d: %d is launched before %d, which it needs", seed, v, p)
				}
			}
		}
		if len(at) != len(nodes) {
			t.Errorf("seed %d: %d launches of %d rOperators", seed, len(at), len(nodes))
		}
	}
}

// Chains side by side are streams side by side: the plan takes no longer than its longest chain, while in
// sequence they add up. Launches ask for no more blocks than there are rTasks.
func TestParallelPlan(t *testing.T) {
	g, spec := chain(6, 3), deviceOf(t, "h200")
	parallel := mustSchedule(t, g, spec, Options{Plan: PlanParallel})
	graph := mustSchedule(t, g, spec, Options{Plan: PlanGraph})
	one := mustSchedule(t, chain(6, 1), spec, Options{Plan: PlanGraph})
	if s := parallel.Stats(); s.Streams != 3 || s.Launches != 18 || s.Segments != 1 {
		t.Errorf("%+v", s)
	}
	for _, n := range parallel.Segments[0].Program.Nodes {
		if len(n.After) > 0 {
			t.Errorf("independent chains wait for each other: %+v", n)
		}
	}
	cost := func(vdevice.Task) float64 { return 1000 }
	p, _ := vdevice.PlanTime(parallel, cost)
	q, _ := vdevice.PlanTime(graph, cost)
	r, _ := vdevice.PlanTime(one, cost)
	if p != r || q < 2.5*p {
		t.Errorf("three chains take %.0f ns side by side, %.0f in sequence, one takes %.0f", p, q, r)
	}
	for v, steps := range graph.Segments[0].Program.Steps {
		if v > 0 && len(steps) > 0 {
			t.Errorf("rOperators of one rTask are on vEU %d", v)
		}
	}
}

// RammerBase is the graph without overlap.
func TestBaseIsSerial(t *testing.T) {
	g, spec := vdevicetest.Random(3, 20), deviceOf(t, "h200")
	base := mustSchedule(t, g, spec, Options{Plan: PlanBase})
	graph := mustSchedule(t, g, spec, Options{Plan: PlanGraph})
	if !base.Segments[0].Serial || graph.Segments[0].Serial || base.Segments[0].Kind != vdevice.LaunchSequence {
		t.Errorf("base is %v, graph %v", base.Segments[0].Kind, graph.Segments[0].Kind)
	}
	base.Segments[0].Serial = false
	if string(vdevice.FormatPlan(base)) != string(vdevice.FormatPlan(graph)) {
		t.Error("they differ in more than overlap")
	}
}

// The plans to try are different, legal and no more than asked for; the first is what auto makes.
func TestCandidates(t *testing.T) {
	g, spec := vdevicetest.Random(5, 40), deviceOf(t, "h200")
	costs := model.New(spec, g)
	all, err := Proposals(g, spec, costs, Options{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	texts := map[string]bool{}
	for _, c := range all {
		names = append(names, c.Kind)
		if err := vdevice.Verify(c.Plan); err != nil {
			t.Errorf("%s: %v", c.Kind, err)
		}
		if texts[string(vdevice.FormatPlan(c.Plan))] {
			t.Errorf("%s is there twice", c.Kind)
		}
		texts[string(vdevice.FormatPlan(c.Plan))] = true
		if c.Modelled <= 0 {
			t.Errorf("%s is modelled to take %v ns", c.Kind, c.Modelled)
		}
	}
	if !texts[string(vdevice.FormatPlan(mustSchedule(t, g, spec, Options{})))] || len(all) < 4 {
		t.Errorf("only %v", names)
	}
	if first := vdevice.FormatPlan(all[0].Plan); string(first) != string(vdevice.FormatPlan(mustSchedule(t, g, spec,
		Options{}))) {
		t.Errorf("%s comes first, which is not what auto makes", names[0])
	}
	if few, err := Proposals(g, spec, costs, Options{}, 3); err != nil || len(few) != 3 {
		t.Errorf("%d plans of at most 3, %v", len(few), err)
	}
	if only, err := Proposals(g, spec, costs, Options{Plan: PlanWaves}, 8); err != nil || len(only) != 1 ||
		only[0].Kind != PlanWaves {
		t.Errorf("%v, %v", only, err)
	}
	for _, c := range all {
		if c.Modelled > unlikely*all[0].Modelled {
			t.Errorf("%s is proposed, which is to take %v ns instead of %v", c.Kind, c.Modelled, all[0].Modelled)
		}
	}
}

// Streams are tried where rOperators can run side by side, and not where each depends on the one before.
func TestStreamsAreTriedWhereGraphsBranch(t *testing.T) {
	spec := deviceOf(t, "h200")
	for _, c := range []struct {
		g       *roperator.Graph
		streams bool
	}{{vdevicetest.Random(5, 40), true}, {vdevicetest.Layers(12, 64, 64, 8, 8, false), false}} {
		all, err := Proposals(c.g, spec, model.New(spec, c.g), Options{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		has := slices.ContainsFunc(all, func(p Proposal) bool { return p.Kind == "nimble" })
		if has != c.streams {
			t.Errorf("%d rOperators: a plan with streams is proposed: %v, want %v", len(c.g.Ops), has, c.streams)
		}
	}
}

// Dearer launches make Algorithm 1 merge more waves.
func TestDearerLaunchesMergeMore(t *testing.T) {
	g, spec := vdevicetest.Layers(12, 64, 64, 8, 8, false), deviceOf(t, "h200")
	p, err := newPlanner(g, spec, model.New(spec, g), Policies()[0])
	if err != nil {
		t.Fatal(err)
	}
	launches := func(weight float64) int { return mixed(weight)(p).Stats().Launches }
	if few, many := launches(100), launches(0.01); few != 1 || many != 12 {
		t.Errorf("%d launches where they are dear, %d where they are cheap", few, many)
	}
}
