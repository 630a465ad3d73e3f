package vdevice

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// byteLoader is a loader by definition: every byte comes when the one before it is there and the one a
// ring's size before it has been taken.
type byteLoader struct {
	come, taken []float64 // per byte
}

func (l *byteLoader) ready(start float64, bytes int, rate float64, ring int) float64 {
	t := 0.0
	if n := len(l.come); n > 0 {
		t = l.come[n-1]
	}
	first := len(l.come)
	for i := range bytes {
		t += 1 / rate
		if x := first + i - ring; x >= first {
			t = max(t, start+float64(x-first+1)/rate)
		} else if x >= 0 {
			t = max(t, l.taken[x])
		}
		l.come = append(l.come, t)
	}
	return t
}

func (l *byteLoader) take(start, end float64, bytes int) {
	for i := range bytes {
		l.taken = append(l.taken, start+(end-start)*float64(i+1)/float64(bytes))
	}
}

func TestLoaderAgreesWithDefinition(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		ring, rate := 20+r.IntN(300), 0.2+r.Float64()
		var l Loader
		var slow byteLoader
		now := 0.0
		for step := range 30 {
			start, bytes := now+float64(r.IntN(3))*300*r.Float64(), 1+r.IntN(400)
			got := l.Ready(start, float64(bytes), rate, ring)
			want := slow.ready(start, bytes, rate, ring)
			if tolerance := 4/rate + 2; math.Abs(got-want) > tolerance {
				t.Fatalf("seed %d, step %d: ready at %v, want %v", seed, step, got, want)
			}
			end := max(start+20*r.Float64(), want)
			l.Take(start, end, want, float64(bytes))
			slow.take(start, end, bytes)
			now = end
		}
	}
}

// streamed is a chain of rOperators of one rTask each; every rTask streams so many bytes.
func streamed(ops int, bytes int64) *vdevicetest.Maker {
	m := vdevicetest.New("streamed")
	x := m.Buffer(roperator.Input, 1)
	for i := range ops {
		kind := roperator.Arena
		if i == ops-1 {
			kind = roperator.Output
		}
		y := m.Buffer(kind, 1)
		c := m.Candidate(1, 0, []roperator.Access{{View: x}}, []roperator.Access{{View: y}})
		m.Stream(c, bytes, 1024)
		m.Op(c)
		x = y
	}
	return m
}

// alternating runs the chain's rTasks on two vEUs in turn.
func alternating(spec *device.Spec, g *roperator.Graph) *Program {
	b := NewBuilder(spec, g)
	for id := range g.Ops {
		b.Pick(int32(id), 0)
		if id > 0 {
			b.Wait(Task{int32(id), 0}, []Task{{int32(id) - 1, 0}})
		}
		b.Append(Task{int32(id), 0}, int32(id%2))
	}
	return b.Program()
}

// While one vEU computes, the other's loader brings its next weights: with a ring for them the chain takes
// what its steps take, without one what its weights take.
func TestSimulateStreams(t *testing.T) {
	spec := testSpec(t, 2)
	spec.Cost.Hop, spec.Cost.Step, spec.Cost.Latency, spec.Cost.WaitEach = 10, 0, 100, 0
	spec.Cost.L2PerSM, spec.Cost.L2Total = 10, 1000
	const ops, bytes = 20, 64 << 10
	m := streamed(ops, bytes)
	cost := func(Task) float64 { return 2 * bytes / 10 }
	p := alternating(spec, m.G)
	line, err := simulate(p, cost)
	if err != nil {
		t.Fatal(err)
	}
	steps := ops*cost(Task{}) + (ops-1)*10
	if line.Makespan < steps || line.Makespan > steps+bytes/10+200 {
		t.Errorf("with a large ring %v ns, the steps alone take %v", line.Makespan, steps)
	}
	if err := Verify(planOf(m.G, p)); err != nil {
		t.Error(err)
	}
	waves, err := simulateWaves(p, cost)
	if err != nil || waves.Makespan < steps {
		t.Errorf("in waves %v ns, %v", waves.Makespan, err)
	}
	spec.Shared, spec.SharedPerVEU = 20<<10, 20<<10 // room for a few KB of weights
	small, err := simulate(p, func(Task) float64 { return 1 })
	if err != nil {
		t.Fatal(err)
	}
	if least := float64(ops*(bytes-20<<10)) / spec.LoadRate(1, 0); small.Makespan < least {
		t.Errorf("with a small ring %v ns, the weights that it does not hold take %v", small.Makespan, least)
	}
}

// A block that many rTasks take counts once among the weights: those of 2 MB fit in L2 and come at its rate, as 64 of
// such blocks do not.
func TestSharedBlocksCountOnce(t *testing.T) {
	const veus, tasks, block = 8, 64, 2 << 20
	spec := testSpec(t, veus)
	spec.Cost.Hop, spec.Cost.Step, spec.Cost.Latency = 10, 0, 100
	spec.Cost.L2PerSM, spec.Cost.L2Total, spec.Cost.DRAM = 10, 1000, 8
	spec.L2Bytes = 16 << 20
	took := func(share bool) float64 {
		m := vdevicetest.New("shared")
		c := m.Candidate(tasks, 0, nil, []roperator.Access{{View: m.Buffer(roperator.Output, 1)}})
		m.Stream(c, block, 1024)
		if own := c.Stream; share {
			c.Stream = func(int) (rkernels.Ref, int64) { return own(0) }
		}
		m.Op(c)
		b := NewBuilder(spec, m.G)
		b.Pick(0, 0)
		for task := range int32(tasks) {
			b.Append(Task{0, task}, task%veus)
		}
		line, err := simulate(b.Program(), func(Task) float64 { return 1 })
		if err != nil {
			t.Fatal(err)
		}
		return line.Makespan
	}
	fromL2, fromDRAM := took(true), took(false)
	bytes := float64(tasks / veus * block)
	if least := bytes / spec.LoadRate(1, 0); fromL2 < least || fromL2 > 1.01*least+200 {
		t.Errorf("with one block for all %v ns, L2 takes %v", fromL2, least)
	}
	if least := bytes / (8.0 / veus); fromDRAM < least {
		t.Errorf("with a block for each %v ns, DRAM takes %v", fromDRAM, least)
	}
}

// A plan's ring has two stages at least, and leaves launches that overlap room beside each other.
func TestRing(t *testing.T) {
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	m := streamed(4, 64<<10)
	p := alternating(spec, m.G)
	plan := planOf(m.G, p)
	kernel := func() Kernel {
		list := plan.Kernels()
		if len(list) != 1 {
			t.Fatalf("a plan of equal launches has the kernels %+v", list)
		}
		return list[0]
	}
	if r, k := plan.Ring(), kernel(); r.StageBytes < 1024 || k.Blocks != 1 || r.Shared != spec.SharedPerVEU ||
		k.Side > spec.Shared/2 {
		t.Errorf("an rProgram has the ring %+v and the kernel %+v", r, k)
	}
	plan.Segments[0].Kind = Waves
	if k := kernel(); k.Blocks < 2 || 2*(k.Side+spec.Shared-spec.SharedPerVEU) > spec.Shared {
		t.Errorf("waves have the kernel %+v", k)
	}
	reserved := spec.Shared - spec.SharedPerVEU
	if r := plan.Ring(); 2*(r.Alone+reserved) <= spec.Shared || r.Alone+reserved+kernel().Side+reserved > spec.Shared {
		t.Errorf("two blocks that should be alone fit beside each other, or none with a ring beside one: %+v", r)
	}
	registers := plan.Spec.Registers
	plan.Spec.Registers /= 4
	if r, k := plan.Ring(), kernel(); k.Blocks != 1 || k.Side != r.Shared {
		t.Errorf("launches whose blocks have no registers beside each other have the ring %+v", r)
	}
	plan.Spec.Registers = registers
	plan.Spec.Cost.PDL = plan.Spec.Cost.Node
	if r, k := plan.Ring(), kernel(); k.Blocks != 1 || k.Side != r.Shared || r.Alone != 0 {
		t.Errorf("launches that do not overlap have the ring %+v", r)
	}
	plain := vdevicetest.New("plain")
	y := plain.Buffer(roperator.Output, 1)
	plain.Op(plain.Candidate(1, 0, nil, []roperator.Access{{View: y}}))
	q := NewBuilder(spec, plain.G)
	q.Pick(0, 0)
	q.Append(Task{0, 0}, 0)
	if r := planOf(plain.G, q.Program()).Ring(); r.StageBytes != 0 {
		t.Errorf("without streamed weights there is the ring %+v", r)
	}
}

// Each kernel has two stages at least, in the part of shared memory that its launches may take: an rKernel that takes
// large units does not make the stages of other kernels large.
func TestRingOfEachKernel(t *testing.T) {
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	m := streamed(4, 96<<10)
	p := alternating(spec, m.G)
	for id := range p.Ops { // tiles with the units and registers of those of warp groups
		registers, step := 168, 32<<10
		if id%2 == 1 {
			registers, step = 80, 12<<10
		}
		p.Candidate(int32(id)).Inst = vdevicetest.StreamInstance(256, 72<<10, registers, step)
	}
	p.Waves = len(p.Ops) // a launch of each rOperator
	for _, steps := range p.Steps {
		for i := range steps {
			steps[i].Wave = steps[i].Task.Op
		}
	}
	plan := planOf(m.G, p)
	plan.Segments[0].Kind = Waves
	kernels := plan.Kernels()
	if len(kernels) != 2 {
		t.Fatalf("launches of different registers have the kernels %+v", kernels)
	}
	for _, k := range kernels {
		step := k.Needs.StreamStep
		if n := k.Needs.stages(k.Side, k.StageBytes); n < 2 || k.StageBytes < step || k.Chunk(step)%step != 0 {
			t.Errorf("a kernel for units of %d bytes has %d stages of %d bytes", step, n, k.StageBytes)
		}
	}
	if one, two := &kernels[0], &kernels[1]; one.Side != spec.SharedBound() || two.Side >= spec.SharedBound()/2+1024 ||
		one.StageBytes == two.StageBytes {
		t.Errorf("the kernels are %+v", kernels)
	}
}

// Tiles of warp groups have all of shared memory for their rings, unless two of their blocks share a multiprocessor.
func TestRingOfWarpGroups(t *testing.T) {
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	plan := planOf(streamed(1, 1024).G, alternating(spec, streamed(1, 1024).G))
	plan.Segments[0].Kind = Waves
	for _, c := range []struct {
		groups string
		crowds bool
		whole  bool
	}{{"", false, false}, {"x\n", false, true}, {"x\n", true, false}} {
		k := Kernel{KernelClass: KernelClass{Rings: true, Blocks: 2, WarpGroups: c.groups}, Crowds: c.crowds,
			Needs: Needs{Threads: 256, Shared: 72 << 10, Registers: 80, StreamStep: 12 << 10}}
		if plan.chooseRing(&k); (k.Side == spec.SharedBound()) != c.whole {
			t.Errorf("a ring of the groups %q in launches that crowd (%t) may take %d bytes", c.groups, c.crowds, k.Side)
		}
	}
}

// A ring has what is left of a block's shared memory beside its rTasks and the executor, in stages that hold a step.
func TestRingLeavesRoom(t *testing.T) {
	const stage = 16 << 10
	n := Needs{Threads: 256, Shared: 8 << 10, Registers: 64, StreamStep: 4 << 10}
	two := n.SharedBytes() + schema.ExecutorShared + 2*(stage+schema.StageBarrierBytes)
	for shared, want := range map[int]int{two: 2, two - 1: 1, two - stage: 1, schema.ExecutorShared: 0, 0: 0} {
		if got := n.stages(shared, stage); got != want {
			t.Errorf("%d bytes have %d stages, want %d", shared, got, want)
		}
	}
	for step, want := range map[int]int{1: 128, 128: 128, 130: 256, 16 << 10: 16 << 10} {
		if got := leastStage(step); got != want {
			t.Errorf("the smallest stage for %d bytes has %d, want %d", step, got, want)
		}
	}
}

func TestRingMustFit(t *testing.T) {
	spec := testSpec(t, 2)
	m := streamed(2, 64<<10)
	m.G.Ops[1].Candidates[0].Inst = vdevicetest.StreamInstance(128, 1024, 64, 64<<10)
	err := Verify(planOf(m.G, alternating(spec, m.G)))
	if err == nil || !strings.Contains(err.Error(), "bytes of shared memory") {
		t.Errorf("two stages of 64 KB fit a vEU of %d bytes: %v", spec.SharedBound(), err)
	}
	spec.Threads = 128
	m = streamed(2, 64<<10)
	if err := Verify(planOf(m.G, alternating(spec, m.G))); err == nil || !strings.Contains(err.Error(), "160 threads") {
		t.Errorf("the loader has no threads: %v", err)
	}
}
