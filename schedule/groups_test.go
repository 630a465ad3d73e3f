package schedule

import (
	"slices"
	"testing"

	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// Two kinds of tiles of warp groups have too few registers in one kernel. So in an rProgram a wave takes longer behind one
// with tiles of another kind; where it is launched by itself it does not.
func TestWarpGroupsOfEarlierWaves(t *testing.T) {
	g := chain(2, 1)
	for i, name := range []string{"one", "other"} {
		g.Ops[i].Candidates[0].Inst = groupsInstance(name, 256, 168)
	}
	spec := deviceOf(t, "h200")
	choices, _, err := admit(g, spec, model.New(spec, g))
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[vdevice.SegmentKind]float64{vdevice.RProgram: groupsWait, vdevice.Waves: 1} {
		s := newScheduler(g, spec, newOpGraph(g), choices)
		cur := s.newCurrent(kind)
		waves := s.ops.wavefronts()
		first, _ := s.pick(waves[0], fastest)
		if got := s.groupsFactor(first, cur); got != 1 {
			t.Errorf("%v: the first wave takes %v times as long", kind, got)
		}
		s.commit(cur, s.scheduleWave(waves[0], cur, cur.placer))
		second, _ := s.pick(waves[1], fastest)
		if got := s.groupsFactor(second, cur); got != want {
			t.Errorf("%v: the second wave takes %v times as long, want %v", kind, got, want)
		}
	}
}

// groupsInstance is an instance of a kernel that multiplies by warp groups.
func groupsInstance(name string, threads, registers int) *rkernels.Instance {
	inst := *vdevicetest.Instance(threads, 0, registers)
	kernel := *inst.Kernel
	kernel.Name, kernel.OnlyArch = name, 90
	inst.Kernel = &kernel
	return &inst
}

// A tile of so many threads that these have no registers for another rOperator is for a launch of its own, in every kind
// of plan that has such launches, and for no rProgram. Where two rOperators share a launch neither has it.
func TestTilesOfLaunchesOfOne(t *testing.T) {
	spec := deviceOf(t, "h200")
	for _, c := range []struct {
		plan   string
		beside int
		taken  bool
	}{{PlanWaves, 1, true}, {PlanGraph, 1, true}, {PlanWaves, 2, false}, {PlanRProgram, 1, false}} {
		g, costs := chain(3, c.beside), table{}
		for _, op := range g.Ops {
			usual, tall := op.Candidates[0], *op.Candidates[0]
			usual.Inst = groupsInstance("usual", 256, 168)
			costs[usual] = 5000
			if op.ID%3 != 1 {
				continue
			}
			tall.Inst = groupsInstance("tall", 448, 128)
			op.Candidates = append(op.Candidates, &tall)
			costs[&tall] = 4000
		}
		plan, err := Schedule(g, spec, costs, Options{Plan: c.plan})
		if err != nil {
			t.Fatal(err)
		}
		if err := vdevice.Verify(plan); err != nil {
			t.Errorf("%s: %v", c.plan, err)
		}
		if taken := plan.Pick[1] == 1; taken != c.taken {
			t.Errorf("%s of %d chains: the rOperator has its tile of more threads: %t", c.plan, c.beside, taken)
		}
	}
}

// With groupsOfOne each rOperator that multiplies by warp groups keeps its fastest candidate in one of the selections, and
// nobody else does. One that does not multiply so has none.
func TestGroupsOfOne(t *testing.T) {
	candidate := func(onlyArch int) *choice {
		inst := *vdevicetest.Instance(256, 0, 168)
		kernel := *inst.Kernel
		kernel.OnlyArch = onlyArch
		inst.Kernel = &kernel
		return &choice{c: &roperator.Candidate{Inst: &inst}}
	}
	fast := []picked{{0, candidate(90)}, {1, candidate(0)}, {2, candidate(90)}}
	without := []picked{{0, candidate(0)}, fast[1], {2, candidate(0)}}
	got := groupsOfOne(fast, without)
	want := [][]picked{{fast[0], without[1], without[2]}, {without[0], without[1], fast[2]}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("groupsOfOne picks %v, want %v", got, want)
	}
}
