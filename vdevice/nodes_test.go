package vdevice

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// randomNodes launches g's rOperators in a random order that their accesses allow, on random streams,
// with every dependency that a direct comparison of all boxes asks for.
func randomNodes(spec *device.Spec, g *roperator.Graph, streams int, seed uint64) *Program {
	r := rand.New(rand.NewPCG(seed, 5))
	var all []access
	for id, op := range g.Ops {
		a := access{task: Task{Op: int32(id)}}
		for i := range op.Candidates[0].Tasks {
			a.reads, a.writes = op.Candidates[0].AppendReads(a.reads, i), op.Candidates[0].AppendWrites(a.writes, i)
		}
		all = append(all, a)
	}
	left, index := make([]int, len(all)), make([]int32, len(all))
	for j := range all {
		for i := range j {
			if all[i].conflicts(&all[j]) {
				left[j]++
			}
		}
	}
	var ready []int
	for j, n := range left {
		if n == 0 {
			ready = append(ready, j)
		}
	}
	var launches []Launch
	var deps [][]int32
	for len(ready) > 0 {
		k := r.IntN(len(ready))
		op := ready[k]
		ready = slices.Delete(ready, k, k+1)
		index[op] = int32(len(launches))
		launches = append(launches, Launch{Op: int32(op), Node: Node{Stream: int32(r.IntN(streams))}})
		var mine []int32
		for i := range op {
			if all[i].conflicts(&all[op]) {
				mine = append(mine, index[i])
			}
		}
		deps = append(deps, mine)
		for j := op + 1; j < len(all); j++ {
			if all[op].conflicts(&all[j]) {
				if left[j]--; left[j] == 0 {
					ready = append(ready, j)
				}
			}
		}
	}
	Reduce(launches, deps)
	return NodeProgram(spec, g, Parallel, launches)
}

func parallelPlan(g *roperator.Graph, p *Program) *Plan {
	plan := &Plan{Spec: p.Spec, Graph: g, Pick: p.Pick, Segments: []Segment{{Kind: Parallel, Program: p}}}
	LayoutArena(plan)
	return plan
}

// nodeReach is happens-before of launches by definition.
func nodeReach(p *Program) [][]bool {
	out := make([][]bool, p.Waves)
	last := map[int32]int32{}
	for w, n := range p.Nodes {
		out[w] = make([]bool, p.Waves)
		before := n.After
		if x, ok := last[n.Stream]; ok {
			before = append(slices.Clone(before), x)
		}
		for _, x := range before {
			out[w][x] = true
			for y, b := range out[x] {
				out[w][y] = out[w][y] || b
			}
		}
		last[n.Stream] = int32(w)
	}
	return out
}

func legalNodes(p *Program) bool {
	before := nodeReach(p)
	type part struct {
		access
		wave int32
	}
	var all []part
	for _, steps := range p.Steps {
		for _, s := range steps {
			c := p.Candidate(s.Task.Op)
			all = append(all, part{access{s.Task, c.AppendReads(nil, int(s.Task.Index)),
				c.AppendWrites(nil, int(s.Task.Index))}, s.Wave})
		}
	}
	for i := range all {
		for j := range all {
			if all[i].task.Op < all[j].task.Op && all[i].conflicts(&all[j].access) &&
				!before[all[j].wave][all[i].wave] {
				return false
			}
		}
	}
	return true
}

// Verify agrees with the definition on launches that wait for all they need, and on such that do not; no
// wait is left that others imply.
func TestNodesAgreeWithDefinition(t *testing.T) {
	dropped, needed := 0, 0
	for seed := range uint64(60) {
		g := vdevicetest.Random(seed, 9)
		p := randomNodes(testSpec(t, 2), g, 1+int(seed%4), seed)
		plan := parallelPlan(g, p)
		if err := Verify(plan); err != nil || !legalNodes(p) {
			t.Fatalf("seed %d: legal is %v, Verify says %v", seed, legalNodes(p), err)
		}
		for w := range p.Nodes {
			for k := range p.Nodes[w].After {
				full := p.Nodes[w].After
				p.Nodes[w].After = slices.Delete(slices.Clone(full), k, k+1)
				LayoutArena(plan)
				want := legalNodes(p)
				if err := Verify(plan); (err == nil) != want {
					t.Fatalf("seed %d, node %d without %d: legal is %v, Verify says %v", seed, w, full[k], want, err)
				} else if err != nil {
					wantIDs(t, err, unordered)
				}
				if dropped++; !want {
					needed++
				}
				p.Nodes[w].After = full
			}
		}
	}
	if dropped < 50 || needed != dropped {
		t.Errorf("%d of %d waits are needed", needed, dropped)
	}
}

// Buffers share bytes only where the launches order all accesses of one before all of the other.
func TestArenaOfNodes(t *testing.T) {
	shared, apart := 0, 0
	for seed := range uint64(40) {
		g := vdevicetest.Random(seed, 12)
		p := randomNodes(testSpec(t, 2), g, 3, seed)
		plan := parallelPlan(g, p)
		before, users := nodeReach(p), map[int][]int32{}
		for _, steps := range p.Steps {
			for _, s := range steps {
				for _, b := range arenaBuffers(p.Candidate(s.Task.Op)) {
					users[b] = append(users[b], s.Wave)
				}
			}
		}
		all := func(a, b int) bool {
			for _, x := range users[a] {
				for _, y := range users[b] {
					if !before[y][x] {
						return false
					}
				}
			}
			return true
		}
		for i, a := range g.Buffers {
			for j, b := range g.Buffers[:i] {
				if plan.Arena[i] < 0 || plan.Arena[j] < 0 {
					continue
				}
				if plan.Arena[i] >= plan.Arena[j]+b.Bytes() || plan.Arena[j] >= plan.Arena[i]+a.Bytes() {
					apart++
					continue
				}
				shared++
				if !all(i, j) && !all(j, i) {
					t.Fatalf("seed %d: buffers %d and %d share bytes", seed, i, j)
				}
			}
		}
	}
	if shared < 20 || apart < 20 {
		t.Errorf("%d pairs share bytes, %d do not", shared, apart)
	}
}

// A buffer of one stream put onto a buffer of another, which nothing orders, is found.
func TestArenaAcrossStreams(t *testing.T) {
	m := vdevicetest.New("streams")
	var launches []Launch
	for s := range int32(2) {
		in := m.Buffer(roperator.Input, 4)
		mid, out := m.Buffer(roperator.Arena, 4), m.Buffer(roperator.Output, 4)
		m.Op(m.Candidate(1, 1, []roperator.Access{vdevicetest.Whole(in)}, []roperator.Access{vdevicetest.Whole(mid)}))
		m.Op(m.Candidate(1, 1, []roperator.Access{vdevicetest.Whole(mid)}, []roperator.Access{vdevicetest.Whole(out)}))
		launches = append(launches, Launch{Op: 2 * s, Node: Node{Stream: s}},
			Launch{Op: 2*s + 1, Node: Node{Stream: s}})
	}
	plan := parallelPlan(m.G, NodeProgram(testSpec(t, 2), m.G, Parallel, launches))
	if err := Verify(plan); err != nil || plan.Arena[1] == plan.Arena[4] {
		t.Fatalf("buffers at %d and %d, %v", plan.Arena[1], plan.Arena[4], err)
	}
	plan.Arena[4] = plan.Arena[1]
	wantIDs(t, Verify(plan), arenaUnordered)
	plan.Segments[0].Program.Nodes[2].After = []int32{1}
	if err := Verify(plan); err != nil {
		t.Errorf("the second stream waits for the first: %v", err)
	}
}

func TestPlantedNodeFaults(t *testing.T) {
	g := vdevicetest.Layers(4, 8, 8, 4, 4, false)
	for _, f := range []struct {
		name string
		do   func(*Segment)
		want string
	}{
		{"two rOperators in a launch", func(s *Segment) {
			for v := range s.Program.Steps {
				for o := range s.Program.Steps[v] {
					s.Program.Steps[v][o].Wave = min(s.Program.Steps[v][o].Wave, 2)
				}
			}
		}, badNode},
		{"nodes of waves", func(s *Segment) { s.Kind = Waves }, badNode},
		{"too few nodes", func(s *Segment) { s.Program.Nodes = s.Program.Nodes[:3] }, badNode},
		{"no nodes", func(s *Segment) { s.Program.Nodes = nil }, badNode},
		{"another stream's vEUs", func(s *Segment) { s.Program.Nodes[0].Stream = 1 }, badNode},
		{"stream out of range", func(s *Segment) { s.Program.Nodes[0].Stream = 1 << 20 }, badNode},
		{"negative stream", func(s *Segment) { s.Program.Nodes[0].Stream = -1 }, badNode},
		{"after itself", func(s *Segment) { s.Program.Nodes[2].After = []int32{2} }, badNode},
		{"after its own stream", func(s *Segment) { s.Program.Nodes[2].After = []int32{0} }, badNode},
		{"waits of steps", func(s *Segment) {
			s.Program.Steps[1][1].SetIn(EdgeFlag, flags(At{0, 0})...)
			s.Program.Steps[0][0].SetOut(EdgeFlag, Edge{Kind: EdgeFlag})
		}, badNode},
		{"too many vEUs", func(s *Segment) { s.Program.Steps = append(s.Program.Steps, nil) }, doesNotFit},
		{"too many vEUs in one stream", func(s *Segment) { s.Kind, s.Program.Nodes = LaunchSequence, nil }, doesNotFit},
		{"unknown kind", func(s *Segment) { s.Kind = 9 }, badPlan},
	} {
		t.Run(f.name, func(t *testing.T) {
			var launches []Launch
			for i, stream := range []int32{0, 1, 0, 1} {
				launches = append(launches, Launch{Op: int32(i), Node: Node{Stream: stream}})
			}
			Reduce(launches, [][]int32{nil, {0}, {1}, {2}})
			plan := parallelPlan(g, NodeProgram(testSpec(t, 4), g, Parallel, launches))
			if err := Verify(plan); err != nil {
				t.Fatalf("before: %v", err)
			}
			f.do(&plan.Segments[0])
			wantIDs(t, Verify(plan), f.want)
		})
	}
}

// A Graph segment is its launches one after another: what is in it needs no waits, and it takes what its
// waves would.
func TestGraphSegment(t *testing.T) {
	g := vdevicetest.Random(4, 12)
	spec := testSpec(t, 3)
	var launches []Launch
	for id := range g.Ops {
		launches = append(launches, Launch{Op: int32(id)})
	}
	p := NodeProgram(spec, g, LaunchSequence, launches)
	plan := &Plan{Spec: spec, Graph: g, Pick: p.Pick, Segments: []Segment{{Kind: LaunchSequence, Program: p}}}
	LayoutArena(plan)
	if err := Verify(plan); err != nil {
		t.Fatal(err)
	}
	cost := randomCost(4)
	spec.Cost.Node, spec.Cost.PDL = 700, 300
	waves, err := simulateWaves(p, cost)
	if err != nil {
		t.Fatal(err)
	}
	overlapping, err := PlanTime(plan, cost)
	if err != nil || overlapping != spec.Cost.Node+waves.Makespan {
		t.Errorf("%v ns, %v; want a launch and %v", overlapping, err, waves.Makespan)
	}
	plan.Segments[0].Serial = true
	serial, err := PlanTime(plan, cost)
	if want := float64(len(g.Ops)-1) * 400; err != nil || math.Abs(serial-overlapping-want) > 1e-6 {
		t.Errorf("without overlap it takes %v more, want %v; %v", serial-overlapping, want, err)
	}
}

func TestNodeText(t *testing.T) {
	for seed := range uint64(10) {
		g := vdevicetest.Random(seed, 9)
		plan := parallelPlan(g, randomNodes(testSpec(t, 2), g, 3, seed))
		plan.Segments[0].Serial = seed%2 == 0
		text := FormatPlan(plan)
		back, err := ParsePlan("x.rprog", text, g, plan.Spec)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if again := FormatPlan(back); string(again) != string(text) {
			t.Fatalf("seed %d: printed\n%s\nread back\n%s", seed, text, again)
		}
		if err := Verify(back); err != nil || back.Segments[0].Serial != plan.Segments[0].Serial {
			t.Errorf("seed %d: serial %v, %v", seed, back.Segments[0].Serial, err)
		}
		if n := back.Stats(); n.Streams != plan.Segments[0].Streams() || n.Launches != len(g.Ops) {
			t.Errorf("seed %d: %+v", seed, n)
		}
	}
	g := vdevicetest.Layers(2, 4, 4, 4, 4, false)
	plan := parallelPlan(g, NodeProgram(testSpec(t, 2), g, Parallel,
		[]Launch{{Op: 0}, {Op: 1, Node: Node{Stream: 1, After: []int32{0}}}}))
	good := string(FormatPlan(plan))
	for _, c := range []struct{ old, new, want string }{
		{"node 1", "node 2", "node 2 comes where node 1 is due"},
		{"after 0", "after", "after names no node"},
		{"after 0", "behind 0", "want after"},
		{"stream 1", "stream 2", "out of range"},
		{"waves 2", "waves 2 parallel", "want the end of the line"},
		{"segment parallel veus 4", "segment waves veus 2", "a waves segment has no nodes"},
		{"segment parallel", "segment many", "want one of rprogram, waves, graph, parallel"},
		{"veus 4", "veus 5", "out of range"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if _, err := ParsePlan("x", []byte(text), g, plan.Spec); err == nil || !strings.Contains(err.Error(), c.want) ||
			text == good {
			t.Errorf("%s: want %q, got %v", fmt.Sprintf("%s → %s", c.old, c.new), c.want, err)
		}
	}
}

// Launches in waves may have several blocks for each vEU of the device, each of which takes longer by a part of the time
// in which the other one keeps the multiprocessor busy. An rProgram may not, since its blocks must be on the device all
// at once.
func TestCrowdedLaunches(t *testing.T) {
	m := vdevicetest.New("crowded")
	c := m.Candidate(6, 0, nil, nil)
	m.Op(c)
	spec := *testSpec(t, 3)
	spec.Cost.Beside = 0.75
	plan := func(kind SegmentKind, blocks int) *Plan {
		b := NewBuilder(spec.Crowd(blocks), m.G)
		b.Pick(0, 0)
		for i := range int32(6) {
			b.Append(Task{Op: 0, Index: i}, i%int32(3*blocks))
		}
		plan := &Plan{Spec: &spec, Graph: m.G, Pick: []int{0}, Segments: []Segment{{Kind: kind, Program: b.Program()}}}
		LayoutArena(plan)
		return plan
	}
	if err := Verify(plan(Waves, 2)); err != nil {
		t.Error(err)
	}
	if Verify(plan(RProgram, 2)) == nil {
		t.Error("an rProgram of twice as many vEUs as there are is taken for legal")
	}
	const task = 10_000.0
	cost := func(Task) float64 { return task }
	for _, x := range []struct {
		blocks int
		busy   float64 // part of the time
		want   float64
	}{
		{1, 0.4, 2 * (task + spec.Cost.Step)},
		{2, 0.4, (1+0.75*0.4)*task + spec.Cost.Step},
		{2, 0.9, 2*0.9*task + spec.Cost.Step}, // as long as both keep it busy
	} {
		c.Work = roperator.Work{Flops: x.busy * task * spec.Cost.FlopsPerSM}
		tl, err := SimulateSegment(plan(Waves, x.blocks).Segments[0], cost)
		if err != nil || math.Abs(tl.Makespan-x.want) > 1e-6*x.want {
			t.Errorf("%d blocks on an SM, busy for %v: %v ns, %v, want %v", x.blocks, x.busy, tl.Makespan, err, x.want)
		}
	}
	c.Work = roperator.Work{}
	full := spec
	full.Registers = 1024
	if f := Crowding(full.Crowd(2), c, task, 6); f != 2 {
		t.Errorf("two blocks that have no room beside each other take %v times as long, want 2", f)
	}
	if _, err := ParsePlan("x", FormatPlan(plan(Waves, 2)), m.G, &spec); err != nil {
		t.Error(err)
	}
}
