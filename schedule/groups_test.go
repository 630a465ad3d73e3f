package schedule

import (
	"slices"
	"testing"

	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// Two kinds of tiles of warp groups have too few registers in one kernel. So in an rProgram a wave takes longer behind one
// with tiles of another kind; where it is launched by itself it does not.
func TestWarpGroupsOfEarlierWaves(t *testing.T) {
	g := chain(2, 1)
	for i, name := range []string{"one", "other"} {
		inst := *vdevicetest.Instance(256, 0, 168)
		kernel := *inst.Kernel
		kernel.Name, kernel.OnlyArch = name, 90
		inst.Kernel = &kernel
		g.Ops[i].Candidates[0].Inst = &inst
	}
	spec := deviceOf(t, "h200")
	choices, err := admit(g, spec, model.New(spec, g))
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
