package vdevice

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// useKernel makes all rTasks of a graph ones of an rKernel with some more properties.
func useKernel(g *roperator.Graph, change func(*rkernels.Kernel)) {
	for _, op := range g.Ops {
		for _, c := range op.Candidates {
			kernel, inst := *c.Inst.Kernel, *c.Inst
			change(&kernel)
			inst.Kernel = &kernel
			c.Inst = &inst
		}
	}
}

// setModes gives every step of a program a mode and makes each vEU's steps one run.
func setModes(p *Program, mode func(o int) StepMode) {
	for _, steps := range p.Steps {
		for o := range steps {
			steps[o].Mode, steps[o].Joined = mode(o), o > 0
		}
	}
}

// directPlan has a run of a resident step and five direct ones on each of four vEUs.
func directPlan(t testing.TB, cluster int) (*Plan, *Program) {
	t.Helper()
	plan, p := exchange(t, 1, 6, 4, 0, cluster)
	useKernel(plan.Graph, func(k *rkernels.Kernel) { k.Resident, k.Direct = true, 4 })
	plan.Graph.Buffers[1].Kind = roperator.Arena
	p.Carry[1] = Tagged
	setModes(p, func(o int) StepMode {
		if o == 0 {
			return ModeResident
		}
		return ModeDirect
	})
	return plan, p
}

// nearPlan has near steps on four vEUs of one cluster: at each step, every vEU makes a row of all rows of the step
// before.
func nearPlan(t testing.TB) (*Plan, *Program) {
	t.Helper()
	const rows, steps, width = 4, 5, 16
	m := vdevicetest.New("rows")
	in, state := m.Buffer(roperator.Input, width), m.Buffer(roperator.Arena, steps, rows, width)
	g := vdevicetest.Grid{Shape: []int64{1, rows, width}, Tile: []int64{1, 1, width}}
	for s := range int64(steps) {
		reads := []roperator.Access{vdevicetest.Whole(in)}
		imports := []roperator.Staged{{Access: reads[0], Pitch: []int64{1}}}
		if s > 0 {
			reads, imports = nil, nil
			for k := range int64(rows) {
				a := vdevicetest.Whole(state.Slice(0, s-1, 1).Slice(1, k, 1))
				reads = append(reads, a)
				imports = append(imports, roperator.Staged{Access: a, Index: int(k), At: k * width,
					Pitch: []int64{width, width, 1}})
			}
		}
		write := g.Of(state.Slice(0, s, 1))
		c := m.Candidate(rows, 1, reads, []roperator.Access{write})
		c.Imports, c.Exports = imports, []roperator.Staged{{Access: write, Pitch: []int64{width, width, 1}}}
		m.Op(c)
	}
	useKernel(m.G, func(k *rkernels.Kernel) { k.Resident, k.Near = true, true })
	spec := testSpec(t, 4)
	spec.Clusters = device.Clusters{Of4: 1}
	b := NewBuilder(spec, m.G)
	for s := range int32(steps) {
		b.Pick(s, 0)
		for v := range int32(rows) {
			if s > 0 {
				b.After(EdgeTagged, Task{s, v}, b.Front(allTasks(s-1, rows)))
			}
			b.Append(Task{s, v}, v)
		}
	}
	b.Carry(1, Tagged, len(m.G.Buffers))
	p := b.Program()
	p.Cluster = 4
	PlaceSlots(p, 1000)
	setModes(p, func(int) StepMode { return ModeNear })
	return &Plan{Spec: spec, Graph: m.G, Pick: p.Pick, Segments: []Segment{{Kind: RProgram, Program: p}}}, p
}

// plainPlan has plain steps.
func plainPlan(t testing.TB) (*Plan, *Program) { return exchange(t, 1, 6, 4, 0, 0) }

// Every rule of every mode: a program that breaks it is refused, and the finding names the step.
//
// Long: a table of cases, each with the few lines that break a rule.
func TestModeRules(t *testing.T) {
	direct := func(t testing.TB) (*Plan, *Program) { return directPlan(t, 0) }
	for _, c := range []struct {
		name   string
		plan   func(testing.TB) (*Plan, *Program)
		change func(p *Program)
		want   string
	}{
		{"an unknown mode", plainPlan, func(p *Program) { p.Steps[0][0].Mode = 99 }, "has mode 99"},
		{"plain, of an rKernel that has runs only", direct, func(p *Program) { p.Steps[0][5].Mode = ModePlain },
			"runs in runs only"},
		{"resident, of an rKernel that keeps nothing", plainPlan,
			func(p *Program) { p.Steps[0][2].Mode = ModeResident },
			"prog[0][2] must not be resident: its rKernel keeps nothing"},
		{"direct, of such an rKernel", plainPlan, func(p *Program) { p.Steps[0][2].Mode = ModeDirect },
			"prog[0][2] must not be direct: its rKernel keeps nothing"},
		{"near, of such an rKernel", plainPlan, func(p *Program) { p.Steps[0][2].Mode = ModeNear },
			"prog[0][2] must not be near: its rKernel keeps nothing"},
		{"joined at the start", direct, func(p *Program) { p.Steps[0][0].Joined = true }, "no step before it"},
		{"joined to another rTask's block", direct, func(p *Program) {
			for id := range p.Ops {
				p.Candidate(int32(id)).Resident = p.Candidate(0).Exports[0].Access.View.Buf
			}
			a, b := &p.Steps[0][5].Task, &p.Steps[1][5].Task
			*a, *b = *b, *a
		}, "another block of the constant"},
		{"joined to another constant", direct, func(p *Program) {
			p.Candidate(3).Resident = p.Candidate(0).Exports[0].Access.View.Buf
		}, "keeps another constant"},
		{"joined to another instance", direct, func(p *Program) {
			other := *vdevicetest.Instance(64, 1024, 64)
			other.Kernel = p.Candidate(3).Inst.Kernel
			p.Candidate(3).Inst = &other
		}, "has another instance"},
		{"plain and joined", plainPlan, func(p *Program) { p.Steps[0][1].Joined = true }, "must not be joined"},

		{"direct with a wait", direct, func(p *Program) {
			p.Steps[0][3].In = append(flags(At{1, 2}), p.Steps[0][3].InOf(EdgeTagged)...)
			p.Steps[1][2].Mode, p.Steps[1][2].Out = ModeResident, []Edge{{Kind: EdgeFlag}}
		}, "prog[0][3] must not be direct: it waits"},
		{"direct with a counter", direct, func(p *Program) {
			p.Counters = 1
			p.Steps[0][3].SetIn(EdgeCounter, Meeting(EdgeCounter, 0))
			p.Steps[1][2].Mode, p.Steps[1][2].Out = ModeResident, []Edge{Meeting(EdgeCounter, 0)}
		}, "prog[0][3] must not be direct: it waits"},
		{"direct with a signal", direct, func(p *Program) {
			p.Steps[0][3].Mode = ModeResident
			p.Steps[0][3].In = append(flags(At{1, 2}), p.Steps[0][3].InOf(EdgeTagged)...)
			p.Steps[1][2].Out = []Edge{{Kind: EdgeFlag}}
		}, "prog[1][2] must not be direct: other steps wait"},
		{"direct in waves", direct, nil, "no rProgram"},
		{"direct with a plain copy of its result", direct, func(p *Program) { p.Carry[1] = TaggedAndPlain },
			"a result does not become"},
		{"direct with an operand in memory", direct, func(p *Program) { p.Steps[0][0].Mode = ModeDirect },
			"an operand is no single row"},
		{"direct with an operand in pieces", direct, func(p *Program) {
			p.Candidate(3).Imports[0].Pitch = []int64{16, 2}
		}, "an operand is no single row"},
		{"direct with a read of its own", direct, func(p *Program) {
			c := p.Candidate(3)
			c.Reads = append(c.Reads, p.Candidate(0).Reads[0])
		}, "reads or writes memory by itself"},
		{"direct of an rKernel without a direct form", direct, func(p *Program) {
			useKernel(&roperator.Graph{Ops: p.Ops}, func(k *rkernels.Kernel) { k.Direct = 0 })
		}, "no direct form"},
		{"direct with slots", func(t testing.TB) (*Plan, *Program) {
			plan, p := directPlan(t, 4)
			PlaceSlots(p, 1000)
			return plan, p
		}, func(*Program) {}, "must not have direct steps: words travel in slots"},

		{"near of an rKernel without a near form", nearPlan, func(p *Program) {
			useKernel(&roperator.Graph{Ops: p.Ops}, func(k *rkernels.Kernel) { k.Near = false })
		}, "no near form"},
		{"near without slots", nearPlan, func(p *Program) { p.Slots = nil }, "no words travel in slots"},
		{"near with a wait", nearPlan, func(p *Program) {
			p.Steps[0][3].In = append(flags(At{1, 2}), p.Steps[0][3].InOf(EdgeTagged)...)
			p.Steps[1][2].Out = []Edge{{Kind: EdgeFlag}}
		}, "prog[0][3] must not be near: it waits"},
		{"near with a signal", nearPlan, func(p *Program) {
			p.Steps[0][3].In = append(flags(At{1, 2}), p.Steps[0][3].InOf(EdgeTagged)...)
			p.Steps[1][2].Out = []Edge{{Kind: EdgeFlag}}
		}, "prog[1][2] must not be near: other steps wait"},
		{"near with operands of several lengths", nearPlan, func(p *Program) {
			p.Candidate(0).Imports[0].Access.View.Shape = []int64{8}
		}, "result does not go to rows"},
		{"near with an operand that the program writes", nearPlan, func(p *Program) {
			p.Candidate(0).Writes = append(p.Candidate(0).Writes, p.Candidate(0).Reads[0])
		}, "an operand is no row"},
		{"near with an operand in pieces", nearPlan, func(p *Program) {
			p.Candidate(0).Imports[0].Access.View.Strides = []int64{2}
		}, "an operand is no row"},
		{"near with a result in pieces", nearPlan, func(p *Program) {
			p.Candidate(3).Exports[0].At = 4
		}, "result does not go to rows"},
		{"near with a result for other clusters", nearPlan, func(p *Program) {
			p.Slots = p.Slots[:len(p.Slots)-4]
		}, "an operand is no row"},
		{"slots that share a part of their words", nearPlan, func(p *Program) { p.Slots[0].At += 4 },
			"slots differ in length, or share some of their words"},
		{"slots of several lengths", nearPlan, func(p *Program) { p.Slots[len(p.Slots)-1].Hi += 4 },
			"slots differ in length"},
		{"a step that fills a part of a slot", nearPlan, func(p *Program) {
			c := p.Candidate(0)
			c.Imports[0].Access.View.Shape = []int64{8}
			whole := c.Exports[0].Access.Box
			c.Exports[0].Access.Box = func(task int, lo, hi []int64) {
				whole(task, lo, hi)
				hi[2] -= 8
			}
		}, "fills a part of a slot"},
		{"a step that takes from slots and is not near", nearPlan,
			func(p *Program) { p.Steps[2][3].Mode = ModeResident }, "words could cross warps: rTask 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, p := c.plan(t)
			LayoutArena(plan)
			if c.name != "direct with slots" {
				if err := Verify(plan); err != nil {
					t.Fatalf("before: %v", err)
				}
			}
			if c.change == nil {
				plan.Segments[0].Kind = Waves
			} else {
				c.change(p)
			}
			v := &verifier{plan: plan}
			if v.shape(); v.l.Errors() == 0 {
				v.modes(0, plan.Segments[0])
			}
			if err := v.l.Err(); !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("want %q, got %v", c.want, err)
			}
		})
	}
}

// Slots whose words partly coincide are refused: warp 0 of one step would store what warp 1 of another takes.
func TestSlotsMustCoincide(t *testing.T) {
	_, p := nearPlan(t)
	if !p.slotsCoincide() {
		t.Fatal("the slots of a near program do not coincide")
	}
	p.Slots[0].At += 4
	if p.slotsCoincide() {
		t.Error("slots may share a part of their words")
	}
	p.Slots[0].At -= 4
	p.Slots[0].Hi -= 2
	if p.slotsCoincide() {
		t.Error("slots may differ in length")
	}
}

// What the program tables say of runs: how many steps from each one on are one run, and how many have its mode.
func TestModesAreEncoded(t *testing.T) {
	_, p := directPlan(t, 0)
	p.Steps[0][3].Mode = ModeResident
	p.Steps[1][4].Joined = false
	e := NewEncoder(p, 4, noAddresses{})
	got := func(veu int32) (runs, direct []uint32) {
		for o := range p.Steps[veu] {
			var row schema.Step
			e.Step(At{veu, int32(o)}, &row)
			runs, direct = append(runs, row.Run), append(direct, row.Direct)
		}
		return runs, direct
	}
	for veu, want := range map[int32][2][]uint32{
		0: {{6, 5, 4, 3, 2, 1}, {0, 2, 1, 0, 2, 1}},
		1: {{4, 3, 2, 1, 2, 1}, {0, 3, 2, 1, 2, 1}},
		2: {{6, 5, 4, 3, 2, 1}, {0, 5, 4, 3, 2, 1}},
	} {
		runs, direct := got(veu)
		if d := cmp.Diff(want, [2][]uint32{runs, direct}); d != "" {
			t.Errorf("vEU %d: %s", veu, d)
		}
	}

	_, p = nearPlan(t)
	e = NewEncoder(p, 4, noAddresses{})
	var row schema.Step
	first := e.Step(At{2, 0}, &row) // one operand, in memory
	if row.Near != 5|1<<schema.NearPlainShift || len(first.Exports) < 2 || first.Exports[1].Kind != schema.KeptMove {
		t.Errorf("the first step has near %#x and exports %+v", row.Near, first.Exports)
	}
	row = schema.Step{}
	if x := e.Step(At{2, 3}, &row); row.Near != 2 || len(x.Imports) != 4 || x.Exports[0].Ranks != 15 {
		t.Errorf("a later step has near %#x, imports %+v and exports %+v", row.Near, x.Imports, x.Exports)
	}
	if got, want := e.SharedWords(), p.SlotWords()+schema.KeptParts*16; got != want {
		t.Errorf("%d words of shared memory, want %d", got, want)
	}
}

// Plans with all modes and edges are read back as they were printed.
func TestAllModesInText(t *testing.T) {
	direct, _ := directPlan(t, 0)
	near, _ := nearPlan(t)
	counted, _ := counted(t)
	counted.Segments[0].Program.Alone = []int32{0, 2}
	for _, plan := range []*Plan{direct, near, counted} {
		LayoutArena(plan)
		if err := Verify(plan); err != nil {
			t.Fatal(err)
		}
		roundTrip(t, plan)
	}
}
