package schedule

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

func deviceOf(t testing.TB, name string) *device.Spec {
	t.Helper()
	s, err := device.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustSchedule(t testing.TB, g *roperator.Graph, spec *device.Spec, opt Options) *vdevice.Plan {
	t.Helper()
	plan, err := Schedule(g, spec, model.New(spec, g), opt)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// everyOption calls f with each kind of plan for the device, and with the other policies for those kinds that are made
// of waves and of nothing else: others choose from these, or from what does not depend on the policy.
func everyOption(spec *device.Spec, f func(Options)) {
	for i, p := range Policies() {
		for _, k := range PlansFor(spec) {
			if i == 0 || k == PlanRProgram || k == PlanWaves || k == PlanMixed {
				f(Options{Policy: p.Name, Plan: k})
			}
		}
	}
}

func TestPlansAreLegal(t *testing.T) {
	for seed := range uint64(25) {
		g := vdevicetest.Random(seed, 25)
		if err := roperator.Verify(g); err != nil {
			t.Fatalf("seed %d makes a bad graph: %v", seed, err)
		}
		for _, name := range []string{"emu4", "h200"} {
			everyOption(deviceOf(t, name), func(o Options) {
				if err := vdevice.Verify(mustSchedule(t, g, deviceOf(t, name), o)); err != nil {
					t.Fatalf("seed %d on %s with %+v: %v", seed, name, o, err)
				}
			})
		}
	}
}

func TestTypicalNetworks(t *testing.T) {
	for name, g := range map[string]*roperator.Graph{
		"local":     vdevicetest.Layers(20, 64, 64, 8, 8, false),
		"dense":     vdevicetest.Layers(20, 64, 64, 8, 8, true),
		"recurrent": vdevicetest.Recurrent(4, 20, 64, 8),
	} {
		for _, d := range device.All() {
			everyOption(d, func(o Options) {
				plan := mustSchedule(t, g, d, o)
				if err := vdevice.Verify(plan); err != nil {
					t.Fatalf("%s on %s with %+v: %v", name, d.Name, o, err)
				}
			})
		}
	}
}

// The same arguments give the same bytes, however many processors there are.
func TestDeterminism(t *testing.T) {
	text := func() []byte {
		var b bytes.Buffer
		for seed := range uint64(5) {
			everyOption(deviceOf(t, "h200"), func(o Options) {
				b.Write(vdevice.FormatPlan(mustSchedule(t, vdevicetest.Random(seed, 30), deviceOf(t, "h200"), o)))
			})
		}
		return b.Bytes()
	}
	first := text()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if !bytes.Equal(first, text()) {
		t.Error("two runs differ")
	}
}

// Nothing is sampled: one wait missing among many thousand rTasks is found.
func TestOneFaultInALargeProgram(t *testing.T) {
	g := vdevicetest.Layers(30, 256, 256, 16, 8, false)
	plan := mustSchedule(t, g, deviceOf(t, "h200"), Options{Plan: PlanRProgram})
	p := plan.Segments[0].Program
	if err := vdevice.Verify(plan); err != nil || p.Len() < 15_000 {
		t.Fatalf("%d steps: %v", p.Len(), err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for tried := 0; tried < 4; {
		steps := p.Steps[r.IntN(len(p.Steps))]
		s := &steps[r.IntN(len(steps))]
		if len(s.InOf(vdevice.EdgeFlag)) == 0 {
			continue
		}
		tried++
		waits := slices.Clone(s.InOf(vdevice.EdgeFlag))
		w := r.IntN(len(waits))
		s.SetIn(vdevice.EdgeFlag, slices.Delete(slices.Clone(waits), w, w+1)...)
		resignal(p)
		err := vdevice.Verify(plan)
		if ds := diag.All(err); len(ds) == 0 || ds[0].ID != "unordered-access" {
			t.Errorf("rTask %v without a wait for %v: %v", s.Task, waits[w], err)
		}
		s.SetIn(vdevice.EdgeFlag, waits...)
	}
}

// RammerBase runs one rOperator after another.
func TestBase(t *testing.T) {
	g := vdevicetest.Random(3, 20)
	plan := mustSchedule(t, g, deviceOf(t, "h200"), Options{Plan: PlanBase})
	if err := vdevice.Verify(plan); err != nil {
		t.Fatal(err)
	}
	if s := plan.Stats(); s.Launches != len(g.Ops) || s.RPrograms != 0 {
		t.Errorf("%d rOperators, but\n%v", len(g.Ops), s)
	}
}

// Every wait that the policy's programs keep is needed: its intersection of regions finds no more
// dependencies than there are, and the builder leaves no wait that others imply.
func TestNoWaitIsInVain(t *testing.T) {
	tried := 0
	for seed := range uint64(8) {
		g := vdevicetest.Random(seed, 10)
		plan := mustSchedule(t, g, deviceOf(t, "emu4"), Options{Plan: PlanRProgram})
		p := plan.Segments[0].Program
		for v, steps := range p.Steps {
			for o := range steps {
				waits := slices.Clone(steps[o].InOf(vdevice.EdgeFlag))
				for w := range waits {
					steps[o].SetIn(vdevice.EdgeFlag, slices.Delete(slices.Clone(waits), w, w+1)...)
					resignal(p)
					if vdevice.Verify(plan) == nil {
						t.Fatalf("seed %d: prog[%d][%d] waits for %v in vain", seed, v, o, waits[w])
					}
					tried++
				}
				steps[o].SetIn(vdevice.EdgeFlag, waits...)
			}
		}
	}
	if tried < 30 {
		t.Errorf("only %d waits were tried", tried)
	}
}

func resignal(p *vdevice.Program) {
	for _, steps := range p.Steps {
		for o := range steps {
			steps[o].SetOut(vdevice.EdgeFlag)
		}
	}
	for _, steps := range p.Steps {
		for o := range steps {
			for _, w := range steps[o].InOf(vdevice.EdgeFlag) {
				p.Steps[w.VEU][w.Order].SetOut(vdevice.EdgeFlag, vdevice.Edge{Kind: vdevice.EdgeFlag})
			}
		}
	}
}

// What Algorithm 1 chooses is not slower, by the simulator, than either extreme.
func TestAutoIsBest(t *testing.T) {
	for name, g := range map[string]*roperator.Graph{
		"dense": vdevicetest.Layers(12, 64, 64, 8, 8, true), "recurrent": vdevicetest.Recurrent(4, 20, 64, 8),
		"chains": chain(30, 5),
	} {
		spec := deviceOf(t, "h200")
		costs := model.New(spec, g)
		times := map[string]float64{}
		for _, kind := range PlansFor(spec) {
			plan := mustSchedule(t, g, spec, Options{Plan: kind})
			ns, err := vdevice.PlanTime(plan, func(x vdevice.Task) float64 {
				return costs.TaskTime(g.Ops[x.Op].Candidates[plan.Pick[x.Op]])
			})
			if err != nil {
				t.Fatal(err)
			}
			times[kind] = ns
		}
		if best := min(times[PlanRProgram], times[PlanWaves]); times[PlanAuto] > 1.05*best {
			t.Errorf("%s: auto takes %.0f ns, the better extreme %.0f", name, times[PlanAuto], best)
		}
	}
}

// The placer keeps time as the simulator does, except that it counts waits which elision removes and
// not that an rTask with several inputs waits for more flags at once.
func TestPlacerTimeBoundsSimulation(t *testing.T) {
	for seed := range uint64(20) {
		g := vdevicetest.Random(seed, 20)
		spec := deviceOf(t, "emu4")
		costs := model.New(spec, g)
		choices, _, err := admit(g, spec, costs)
		if err != nil {
			t.Fatal(err)
		}
		s := newScheduler(g, spec, newOpGraph(g), choices)
		cur := s.newCurrent(vdevice.RProgram)
		for _, w := range s.ops.wavefronts() {
			s.commit(cur, s.scheduleWave(w, cur, cur.placer))
		}
		p := s.build(cur.group, make([]int, len(g.Ops)))
		segment := vdevice.Segment{Kind: vdevice.RProgram, Program: p}
		cost := func(x vdevice.Task) float64 { return costs.TaskTime(p.Candidate(x.Op)) }
		tl, err := vdevice.SimulateSegment(segment, cost)
		if err != nil {
			t.Fatal(err)
		}
		if want := cur.placer.makespan(); tl.Makespan > 1.01*want || tl.Makespan < 0.5*want {
			t.Errorf("seed %d: simulated %v ns, the placer has %v", seed, tl.Makespan, want)
		}
	}
}

func TestMisfits(t *testing.T) {
	m := vdevicetest.New("misfit")
	for _, need := range [][3]int{{512, 0, 32}, {128, 1 << 20, 32}, {128, 0, 32}} {
		c := oneOp(m, 4, 1)
		for _, x := range c {
			x.Inst = vdevicetest.Instance(need[0], need[1], need[2])
		}
	}
	spec := deviceOf(t, "emu4")
	_, err := Schedule(m.G, spec, model.New(spec, m.G), Options{})
	ds := diag.All(err)
	if len(ds) != 2 || ds[0].Node != "op0_node" || ds[1].Node != "op1_node" ||
		!strings.Contains(ds[0].Message, "512 threads") {
		t.Errorf("want op0 and op1 reported, got %v", err)
	}
}

// A candidate with few threads and many registers cannot share a kernel with one of many threads; a
// plan must leave one of them out.
func TestThreadsBoundRegisters(t *testing.T) {
	m := vdevicetest.New("registers")
	costs := table{}
	for range 2 {
		c := oneOp(m, 4, 1)
		c[0].Inst, c[1].Inst = vdevicetest.Instance(1024, 0, 64), vdevicetest.Instance(256, 0, 200)
		costs[c[0]], costs[c[1]] = 500, 100
	}
	last := oneOp(m, 4, 1)
	for _, c := range last {
		c.Inst = vdevicetest.Instance(256, 0, 200)
		costs[c] = 100
	}
	spec := deviceOf(t, "h200")
	plan, err := Schedule(m.G, spec, costs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := vdevice.Verify(plan); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(plan.Pick[:2]); got != "[1 1]" {
		t.Errorf("picked %s, want the candidates of 256 threads", got)
	}
}

func TestUnknownOptions(t *testing.T) {
	g := chain(1, 1)
	spec := deviceOf(t, "emu4")
	for _, o := range []Options{{Policy: "best"}, {Plan: "grape"}} {
		_, err := Schedule(g, spec, model.New(spec, g), o)
		if ds := diag.All(err); len(ds) != 1 || !strings.Contains(ds[0].Help, "wave") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestEmptyGraph(t *testing.T) {
	everyOption(deviceOf(t, "emu4"), func(o Options) {
		plan := mustSchedule(t, &roperator.Graph{Name: "empty"}, deviceOf(t, "emu4"), o)
		if err := vdevice.Verify(plan); err != nil || len(plan.Segments) != 0 {
			t.Errorf("%+v: %d segments, %v", o, len(plan.Segments), err)
		}
	})
}

// deps agree with a comparison of every pair of rTasks.
func TestDepsAgreeWithDefinition(t *testing.T) {
	for seed := range uint64(12) {
		g := vdevicetest.Random(seed, 12)
		cache := newTileCache(len(g.Ops))
		var preds []producer
		for id, op := range g.Ops {
			c := op.Candidates[0]
			d := findDeps(g, cache, preds, c, nil)
			for task := range c.Tasks {
				got := map[vdevice.Task]bool{}
				for _, s := range d.combos[d.of[task]] {
					for _, x := range d.sets[s].tasks {
						got[x] = true
					}
				}
				for _, p := range preds {
					for i := range p.c.Tasks {
						x := vdevice.Task{Op: p.op, Index: int32(i)}
						if want := conflict(p.c, i, c, task); got[x] != want {
							t.Fatalf("seed %d: rTask %d of op%d depends on %v: %v, want %v", seed, task, id, x,
								got[x], want)
						}
					}
				}
			}
			preds = append(preds, producer{int32(id), c})
		}
	}
}

func conflict(a *roperator.Candidate, i int, b *roperator.Candidate, j int) bool {
	ar, aw := a.AppendReads(nil, i), a.AppendWrites(nil, i)
	br, bw := b.AppendReads(nil, j), b.AppendWrites(nil, j)
	any := func(x, y []roperator.Box) bool {
		for i := range x {
			for j := range y {
				if x[i].Overlaps(&y[j]) {
					return true
				}
			}
		}
		return false
	}
	return any(aw, br) || any(aw, bw) || any(ar, bw)
}
