package schedule

import (
	"fmt"
	"testing"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// table costs rTasks by their candidates.
type table map[*roperator.Candidate]float64

func (t table) TaskTime(c *roperator.Candidate) float64 { return t[c] }

// oneOp is a graph of independent rOperators, each with a fine and a coarse candidate.
func oneOp(m *vdevicetest.Maker, fine, coarse int64) [2]*roperator.Candidate {
	out := m.Buffer(roperator.Output, fine)
	var c [2]*roperator.Candidate
	for i, tasks := range []int64{fine, coarse} {
		g := vdevicetest.Grid{Shape: []int64{fine}, Tile: []int64{fine / tasks}}
		c[i] = m.Candidate(int(tasks), 0, nil, []roperator.Access{g.Of(out)})
	}
	m.Op(c[:]...)
	return c
}

// SelectRKernels: alone, the fine tiling is faster and the device not full; with many such rOperators
// in the wave the efficient one wins (paper §3.3).
func TestSelectRKernels(t *testing.T) {
	spec := deviceOf(t, "emu4")
	spec.Cost.Step = 0
	for _, c := range []struct{ ops, want int }{{1, 0}, {8, 1}} {
		m, costs := vdevicetest.New("select"), table{}
		for range c.ops {
			x := oneOp(m, 4, 1)
			costs[x[0]], costs[x[1]] = 100, 250
		}
		plan, err := Schedule(m.G, spec, costs, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for op, pick := range plan.Pick {
			if pick != c.want {
				t.Errorf("%d rOperators: picked %d for rOperator %d, want %d", c.ops, pick, op, c.want)
			}
		}
	}
}

// Beside the extremes, SelectRKernels finds candidates that share the device: four rOperators on eight
// vEUs want two rTasks each, neither eight nor one.
func TestCandidatesForAShareOfTheDevice(t *testing.T) {
	spec := deviceOf(t, "emu4")
	spec.Cost.Step, spec.SMs = 0, 8
	m, costs := vdevicetest.New("share"), table{}
	for range 4 {
		out := m.Buffer(roperator.Output, 8)
		var cs []*roperator.Candidate
		for _, c := range []struct {
			tasks int64
			time  float64
		}{{8, 100}, {2, 200}, {1, 390}} {
			g := vdevicetest.Grid{Shape: []int64{8}, Tile: []int64{8 / c.tasks}}
			cs = append(cs, m.Candidate(int(c.tasks), 0, nil, []roperator.Access{g.Of(out)}))
			costs[cs[len(cs)-1]] = c.time
		}
		m.Op(cs...)
	}
	plan, err := Schedule(m.G, spec, costs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(plan.Pick); got != "[1 1 1 1]" {
		t.Errorf("picked %s", got)
	}
}

// chain is a chain of rOperators of one rTask each, or of two chains side by side.
func chain(length, beside int) *roperator.Graph {
	m := vdevicetest.New("chain")
	for range beside {
		in := m.Buffer(roperator.Input, 8)
		for i := range length {
			kind := roperator.Arena
			if i == length-1 {
				kind = roperator.Output
			}
			out := m.Buffer(kind, 8)
			m.Op(m.Candidate(1, 1000, []roperator.Access{vdevicetest.Whole(in)},
				[]roperator.Access{vdevicetest.Whole(out)}))
			in = out
		}
	}
	return m.G
}

// Independent chains stay on a vEU each: no waits, and one rProgram since launches cost more.
func TestChainsStayOnTheirVEU(t *testing.T) {
	plan := mustSchedule(t, chain(6, 3), deviceOf(t, "emu4"), Options{})
	s := plan.Stats()
	if s.Segments != 1 || s.RPrograms != 1 || s.Waits != 0 || s.Longest != 6 {
		t.Errorf("want one rProgram without waits and 6 steps on each of 3 vEUs, got\n%v", s)
	}
}

// Algorithm 1 merges waves while a launch costs more than waiting in the program, and not otherwise.
func TestMergingFollowsCosts(t *testing.T) {
	g := vdevicetest.Layers(6, 16, 16, 4, 4, true)
	spec := deviceOf(t, "h200")
	launches := func(ns float64) { spec.Cost.Launch, spec.Cost.Node, spec.Cost.PDL = ns, ns, ns }
	launches(5000)
	spec.Cost.Hop, spec.Cost.WaitEach = 500, 0
	if s := mustSchedule(t, g, spec, Options{}).Stats(); s.Segments != 1 || s.RPrograms != 1 {
		t.Errorf("launches are dear, want one rProgram, got\n%v", s)
	}
	launches(500)
	spec.Cost.Hop = 5000
	if s := mustSchedule(t, g, spec, Options{}).Stats(); s.Segments != 1 || s.RPrograms != 0 || s.Launches != 6 {
		t.Errorf("waiting is dear, want one launch a wave, got\n%v", s)
	}
}

// A faster rKernel elsewhere does not push out the candidates that keep operands on chip: here it needs so many threads
// that those of the others have too few registers left.
func TestResidentCandidatesStay(t *testing.T) {
	m := vdevicetest.New("resident")
	costs := table{}
	for range 2 {
		c := oneOp(m, 4, 1)
		w := m.Buffer(roperator.Const, 64)
		c[1].Resident = w.Buf
		c[0].Inst, c[1].Inst = vdevicetest.Instance(256, 0, 64), vdevicetest.Instance(256, 0, 200)
		costs[c[0]], costs[c[1]] = 100, 100
	}
	last := oneOp(m, 4, 1)
	last[0].Inst, last[1].Inst = vdevicetest.Instance(256, 0, 64), vdevicetest.Instance(1024, 0, 64)
	costs[last[0]], costs[last[1]] = 5000, 100
	choices, _, err := admit(m.G, deviceOf(t, "h200"), costs)
	if err != nil {
		t.Fatal(err)
	}
	if n := residentChoices(choices); n != 2 {
		t.Errorf("%d candidates keep operands on chip, want 2", n)
	}
}

// Where values from other vEUs lie in shared memory, a candidate does not fit that needs all of it for itself.
func TestRoomBesideImports(t *testing.T) {
	spec := deviceOf(t, "a100")
	g := vdevicetest.Exchange(1, 2, 512, 4)
	for _, op := range g.Ops {
		plain := *op.Candidates[0]
		plain.Imports, plain.Exports = nil, nil
		op.Candidates = append(op.Candidates, &plain)
	}
	large := *g.Ops[0].Candidates[1]
	large.Inst = vdevicetest.Instance(256, spec.SharedBound()-schema.LeastShared, 64)
	g.Ops[0].Candidates = append(g.Ops[0].Candidates, &large)
	costs := table{}
	for _, op := range g.Ops {
		for _, c := range op.Candidates {
			costs[c] = 1e6
		}
	}
	costs[&large] = 1
	choices, _, err := admit(g, spec, costs)
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range choices[0] {
		if ch.needs.Shared == large.Inst.Shared() {
			t.Error("a candidate with all of the shared memory is kept beside imports")
		}
	}
}

// Large stages of weights take the shared memory from candidates that want it for themselves. They are done without where
// that is faster, unless an rOperator would no longer stream its weights.
func TestSmallerStages(t *testing.T) {
	for _, c := range []struct {
		name   string
		plain  bool // the other candidate of the rOperator with large stages streams nothing
		stages int  // bytes that the largest stage has then
	}{{"others stream", false, 8 << 10}, {"others do not", true, 48 << 10}} {
		t.Run(c.name, func(t *testing.T) {
			m, costs := vdevicetest.New("stages"), table{}
			large := oneOp(m, 4, 1)
			m.Stream(large[0], 48<<10, 48<<10)
			if !c.plain {
				m.Stream(large[1], 48<<10, 8<<10)
			}
			costs[large[0]], costs[large[1]] = 1e5, 1e5
			wants := oneOp(m, 4, 1)
			wants[0].Inst = vdevicetest.Instance(256, 180_000, 64)
			m.Stream(wants[0], 8<<10, 8<<10)
			m.Stream(wants[1], 8<<10, 8<<10)
			costs[wants[0]], costs[wants[1]] = 1e5, 2e5
			choices, _, err := admit(m.G, deviceOf(t, "h200"), costs)
			if err != nil {
				t.Fatal(err)
			}
			if steps := streamSteps(choices); steps[len(steps)-1] != c.stages {
				t.Errorf("stages have up to %d bytes, want %d", steps[len(steps)-1], c.stages)
			}
			if n := streamers(choices); n != 2 {
				t.Errorf("%d rOperators may stream their weights, want 2", n)
			}
		})
	}
}
