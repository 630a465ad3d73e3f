package vdevice

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

func TestNaiveProgramsAreLegal(t *testing.T) {
	for seed := range uint64(60) {
		g := vdevicetest.Random(seed, 14)
		p := naive(testSpec(t, 1+int(seed%7)), g, seed, seed%2 == 0)
		if err := verifyProgram(p, g); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := Verify(planOf(g, p)); err != nil {
			t.Fatalf("seed %d with arena: %v", seed, err)
		}
	}
}

// Elision leaves necessary waits only, so Verify must miss each one that is taken out.
func TestEveryWaitIsNeeded(t *testing.T) {
	waits := 0
	for seed := range uint64(12) {
		g := vdevicetest.Random(seed, 10)
		p := naive(testSpec(t, 4), g, seed, false)
		for v, steps := range p.Steps {
			for o := range steps {
				for w := range steps[o].InOf(EdgeFlag) {
					q := clone(p)
					s := &q.Steps[v][o]
					s.SetIn(EdgeFlag, slices.Delete(slices.Clone(s.InOf(EdgeFlag)), w, w+1)...)
					resignal(q)
					err := verifyProgram(q, g)
					if err == nil {
						t.Fatalf("seed %d: prog[%d][%d] without wait %d passes", seed, v, o, w)
					}
					wantIDs(t, err, unordered)
					if !strings.Contains(err.Error(), "_node") {
						t.Fatalf("no ONNX node in %v", err)
					}
					waits++
				}
			}
		}
	}
	if waits < 100 {
		t.Errorf("only %d waits were tried", waits)
	}
}

// Verify agrees with the definition on programs that are right and on programs that are not.
func TestVerifyAgreesWithDefinition(t *testing.T) {
	right, wrong := 0, 0
	for seed := range uint64(150) {
		g := vdevicetest.Random(seed, 7)
		p := clone(naive(testSpec(t, 3), g, seed, seed%3 == 0))
		mutate(p, rand.New(rand.NewPCG(seed, 3)))
		if _, cycle := newOrder(p, RProgram); cycle != nil {
			wantIDs(t, verifyProgram(p, g), waitCycle)
			continue
		}
		want := legal(p)
		if err := verifyProgram(p, g); (err == nil) != want {
			t.Fatalf("seed %d: legal is %v, Verify says %v", seed, want, err)
		}
		if want {
			right++
		} else {
			wrong++
		}
	}
	if right < 20 || wrong < 20 {
		t.Errorf("%d right and %d wrong programs are too few of one kind", right, wrong)
	}
}

// mutate drops or moves a few waits, or exchanges two steps of a vEU.
func mutate(p *Program, r *rand.Rand) {
	for range r.IntN(3) {
		v := r.IntN(len(p.Steps))
		steps := p.Steps[v]
		if len(steps) < 2 {
			continue
		}
		i := r.IntN(len(steps) - 1)
		switch s := &steps[i]; {
		case r.IntN(3) == 0 && len(s.InOf(EdgeFlag)) > 0:
			s.SetIn(EdgeFlag, s.InOf(EdgeFlag)[1:]...)
		case r.IntN(2) == 0 && steps[i].Wave == steps[i+1].Wave && len(s.InOf(EdgeFlag))+
			len(steps[i+1].InOf(EdgeFlag)) == 0:
			steps[i].Task, steps[i+1].Task = steps[i+1].Task, steps[i].Task
		case len(s.InOf(EdgeFlag)) > 0:
			s.InOf(EdgeFlag)[0].Order = max(s.InOf(EdgeFlag)[0].Order-1, 0)
		}
	}
	resignal(p)
}

// plantedFaults are changes to a plan, and what Verify must find then.
var plantedFaults = []struct {
	name string
	do   func(*Plan, *Program)
	want string
}{
	{"duplicate rTask", func(_ *Plan, p *Program) {
		p.Steps[0] = append(p.Steps[0], Step{Task: p.Steps[1][0].Task, Wave: p.Steps[0][len(p.Steps[0])-1].Wave})
	}, repeatedRTask},
	{"missing rTask", func(_ *Plan, p *Program) { p.Steps[0] = p.Steps[0][:len(p.Steps[0])-1] }, missingRTask},
	{"unknown rTask", func(_ *Plan, p *Program) { p.Steps[0][0].Task.Index = 99 }, badPlan},
	{"unknown rOperator", func(_ *Plan, p *Program) { p.Steps[0][0].Task.Op = -7 }, badPlan},
	{"the rTask behind the last", func(_ *Plan, p *Program) {
		p.Steps[0][0].Task.Index = int32(p.Candidate(p.Steps[0][0].Task.Op).Tasks)
	}, badPlan},
	{"another candidate than the segment's", func(plan *Plan, _ *Program) { plan.Pick[0]++ }, badPlan},
	{"more waves than steps", func(_ *Plan, p *Program) { p.Waves = p.Len() + 1 }, badPlan},
	{"two waits for one vEU", func(_ *Plan, p *Program) {
		p.Steps[0][len(p.Steps[0])-1].SetIn(EdgeFlag, flags(At{1, 0}, At{1, 1})...)
		resignal(p)
	}, badWait},
	{"rOperator in no segment", func(_ *Plan, p *Program) { p.Pick[3] = -1 }, missingRTask},
	{"two segments", func(plan *Plan, p *Program) {
		plan.Segments = append(plan.Segments, Segment{Kind: RProgram, Program: p})
	}, repeatedRTask},
	{"wait for nothing", func(_ *Plan, p *Program) { p.Steps[0][0].SetIn(EdgeFlag, flags(At{1, 1 << 20})...) },
		badWait},
	{"wait for oneself", func(_ *Plan, p *Program) { p.Steps[0][1].SetIn(EdgeFlag, flags(At{0, 0})...) }, badWait},
	{"waits out of order", func(_ *Plan, p *Program) { p.Steps[0][1].SetIn(EdgeFlag, flags(At{2, 0}, At{1, 0})...) }, badWait},
	{"no signal", func(_ *Plan, p *Program) { p.Steps[firstWait(p).VEU][firstWait(p).Order].SetOut(EdgeFlag) },
		badWait},
	{"wave decreases", func(_ *Plan, p *Program) { p.Steps[0][0].Wave = int32(p.Waves - 1) }, badWave},
	{"wave unknown", func(_ *Plan, p *Program) { p.Steps[0][0].Wave = 1 << 30 }, badWave},
	{"all in one wave", func(_ *Plan, p *Program) {
		for _, steps := range p.Steps {
			for o := range steps {
				steps[o].Wave = 0
			}
		}
	}, badWave},
	{"too many vEUs", func(_ *Plan, p *Program) { p.Steps = append(p.Steps, nil) }, doesNotFit},
	{"circular waits", func(_ *Plan, p *Program) {
		w := firstWait(p)
		p.Steps[w.VEU][0].SetIn(EdgeFlag, flags(lastWaiter(p, w))...)
		resignal(p)
	}, waitCycle},
	{"arena overlap", func(plan *Plan, _ *Program) { plan.Arena[2] = plan.Arena[1] }, arenaUnordered},
	{"arena misaligned", func(plan *Plan, _ *Program) { plan.Arena[2] = 128 }, badArena},
	{"arena too short", func(plan *Plan, _ *Program) { plan.ArenaLen = 256 }, badArena},
	{"arena missing", func(plan *Plan, _ *Program) { plan.Arena[2] = -1 }, badArena},
	{"input in arena", func(plan *Plan, _ *Program) { plan.Arena[0] = 0 }, badArena},
}

func TestPlantedFaults(t *testing.T) {
	g := vdevicetest.Layers(4, 8, 8, 4, 4, false)
	spec := testSpec(t, 4)
	for _, f := range plantedFaults {
		t.Run(f.name, func(t *testing.T) {
			p := clone(naive(spec, g, 5, false))
			p.Pick = append([]int{}, p.Pick...)
			plan := planOf(g, p)
			plan.Pick = append([]int{}, p.Pick...)
			if err := Verify(plan); err != nil {
				t.Fatalf("before: %v", err)
			}
			f.do(plan, p)
			wantIDs(t, Verify(plan), f.want)
		})
	}
}

// TestFaultsOfLaunches: what a launch needs is found in its steps, but not where these are wrong.
func TestFaultsOfLaunches(t *testing.T) {
	g := vdevicetest.Layers(4, 8, 8, 4, 4, false)
	for _, f := range []struct {
		name string
		do   func(*Step)
		want string
	}{
		{"wave unknown", func(s *Step) { s.Wave = 1 << 30 }, badWave},
		{"unknown rOperator", func(s *Step) { s.Task.Op = -7 }, badPlan},
	} {
		t.Run(f.name, func(t *testing.T) {
			p := clone(naive(testSpec(t, 4), g, 5, false))
			plan := planOf(g, p)
			plan.Segments[0].Kind = Waves
			f.do(&p.Steps[0][0])
			wantIDs(t, Verify(plan), f.want)
		})
	}
}

// TestTaggedEdgesOrderNoMemory: a step that waits for one vEU by a flag and takes tagged words of another knows what the
// first has done, and nothing of the second.
func TestTaggedEdgesOrderNoMemory(t *testing.T) {
	m := vdevicetest.New("three")
	p := &Program{Spec: testSpec(t, 3), Steps: make([][]Step, 3), Waves: 1, Pick: make([]int, 3)}
	for v := range p.Steps {
		out := m.Buffer(roperator.Output, 4)
		m.Op(m.Candidate(1, 1, nil, []roperator.Access{vdevicetest.Whole(out)}))
		p.Steps[v] = []Step{{Task: Task{Op: int32(v)}}}
	}
	p.Ops = m.G.Ops
	p.Steps[0][0].Out = []Edge{{Kind: EdgeFlag}}
	p.Steps[2][0].In = []Edge{{EdgeFlag, At{0, 0}}, {EdgeTagged, At{1, 0}}}
	h, cycle := newOrder(p, RProgram)
	if cycle != nil {
		t.Fatal(cycle)
	}
	if flag, tagged := h.byWaits(At{2, 0}, 0), h.byWaits(At{2, 0}, 1); flag != 1 || tagged != 0 {
		t.Errorf("it knows %d steps by the flag and %d by the tagged words, want 1 and 0", flag, tagged)
	}
}

// TestWriteAfterRead: what overwrites a buffer waits for those that read what it had, not only for those that wrote it.
func TestWriteAfterRead(t *testing.T) {
	m := vdevicetest.New("again")
	state, out := m.Buffer(roperator.Arena, 4), m.Buffer(roperator.Output, 4)
	whole := func(b roperator.View) []roperator.Access { return []roperator.Access{vdevicetest.Whole(b)} }
	m.Op(m.Candidate(1, 1, nil, whole(state)))
	m.Op(m.Candidate(1, 1, whole(state), whole(out)))
	m.Op(m.Candidate(1, 1, nil, whole(state)))
	for _, c := range []struct {
		waitsFor int32 // of the two steps of the other vEU
		want     string
	}{{0, "write-after-read"}, {1, ""}} {
		p := &Program{Spec: testSpec(t, 2), Waves: 3, Pick: make([]int, 3), Ops: m.G.Ops, Steps: [][]Step{
			{{Task: Task{Op: 0}}, {Task: Task{Op: 1}, Wave: 1}},
			{{Task: Task{Op: 2}, Wave: 2}},
		}}
		p.Steps[1][0].SetIn(EdgeFlag, flags(At{0, c.waitsFor})...)
		resignal(p)
		err := verifyProgram(p, m.G)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("waiting for step %d: %v, want %q", c.waitsFor, err, c.want)
		}
	}
}

// firstWait is the first step that another waits for.
func firstWait(p *Program) At {
	for _, steps := range p.Steps {
		for o := range steps {
			if len(steps[o].InOf(EdgeFlag)) > 0 {
				return steps[o].InOf(EdgeFlag)[0].At
			}
		}
	}
	panic("no waits")
}

// lastWaiter is a step that waits for w.
func lastWaiter(p *Program, w At) At {
	var out At
	for v, steps := range p.Steps {
		for o := range steps {
			for _, x := range steps[o].InOf(EdgeFlag) {
				if x.At == w {
					out = At{int32(v), int32(o)}
				}
			}
		}
	}
	return out
}

func TestResources(t *testing.T) {
	for _, c := range []struct {
		threads, shared, registers int
		want                       string
	}{
		{256, 1024, 255, ""},
		{512, 1024, 64, "512 threads"},
		{256, 200_000, 64, "203072 bytes of shared memory"},
		{256, 128 << 10, 64, "134144 bytes of shared memory"}, // nothing is left to the executor
		{256, 1024, 256, "256 registers"},
	} {
		m := vdevicetest.New("r")
		out := m.Buffer(roperator.Output, 4)
		cand := m.Candidate(1, 1, nil, []roperator.Access{vdevicetest.Whole(out)})
		cand.Inst = vdevicetest.Instance(c.threads, c.shared, c.registers)
		m.Op(cand)
		p := naive(testSpec(t, 4), m.G, 1, false)
		err := verifyProgram(p, m.G)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	two := testSpec(t, 4)
	two.VEUsPerSM = 2
	if got := two.RegisterBound(256); got != 128 {
		t.Errorf("two vEUs of 256 threads leave %d registers a thread, want 128", got)
	}
}

// rTasks of one rOperator run in any order: they must not touch each other's results.
func TestDependentRTasks(t *testing.T) {
	m := vdevicetest.New("dependent")
	out := m.Buffer(roperator.Arena, 8)
	g := vdevicetest.Grid{Shape: []int64{8}, Tile: []int64{2}}
	m.Op(m.Candidate(4, 1, nil, []roperator.Access{vdevicetest.Whole(out)}))
	m.Op(m.Candidate(4, 1, []roperator.Access{g.Halo(out, 1)}, []roperator.Access{g.Of(out)}))
	err := verifyProgram(naive(testSpec(t, 1), m.G, 1, false), m.G)
	wantIDs(t, err, unordered)
	for _, want := range []string{`writes b0[0:8]`, `rTask 0 reads b0[0:3]`} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("want %q in %v", want, err)
		}
	}
}

// What the graph puts first must not be in a later segment.
func TestSegmentsInWrongOrder(t *testing.T) {
	g := vdevicetest.Layers(2, 4, 4, 2, 2, false)
	spec := testSpec(t, 2)
	plan := &Plan{Spec: spec, Graph: g, Pick: []int{0, 0}}
	for _, op := range []int32{1, 0} {
		b := NewBuilder(spec, g)
		b.Pick(op, 0)
		for i := range g.Ops[op].Candidates[0].Tasks {
			b.Append(Task{op, int32(i)}, int32(i%2))
		}
		plan.Segments = append(plan.Segments, Segment{Kind: RProgram, Program: b.Program()})
	}
	LayoutArena(plan)
	wantIDs(t, Verify(plan), unordered)
	plan.Segments[0], plan.Segments[1] = plan.Segments[1], plan.Segments[0]
	LayoutArena(plan)
	if err := Verify(plan); err != nil {
		t.Error(err)
	}
}
