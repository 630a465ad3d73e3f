package vdevice

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
)

func testSpec(t testing.TB, veus int) *device.Spec {
	t.Helper()
	s, err := device.Find("emu4")
	if err != nil {
		t.Fatal(err)
	}
	s.SMs = veus
	return s
}

// naive schedules g at random, with every wait that a direct comparison of all boxes asks for.
func naive(spec *device.Spec, g *roperator.Graph, seed uint64, waves bool) *Program {
	r := rand.New(rand.NewPCG(seed, 2))
	b := NewBuilder(spec, g)
	var done []access
	for id, op := range g.Ops {
		b.Pick(int32(id), r.IntN(len(op.Candidates)))
		if waves && r.IntN(2) == 0 {
			b.NextWave()
		}
		var mine []access
		c := b.p.Candidate(int32(id))
		for _, i := range r.Perm(c.Tasks) {
			t := Task{int32(id), int32(i)}
			a := access{t, c.AppendReads(nil, i), c.AppendWrites(nil, i)}
			var preds []Task
			for j := range done {
				if done[j].conflicts(&a) {
					preds = append(preds, done[j].task)
				}
			}
			b.Wait(t, preds)
			b.Append(t, int32(r.IntN(spec.VEUs())))
			mine = append(mine, a)
		}
		done = append(done, mine...)
	}
	return b.Program()
}

// access is what an rTask reads and writes.
type access struct {
	task          Task
	reads, writes []roperator.Box
}

func (a *access) conflicts(b *access) bool {
	return overlap(a.writes, b.reads) || overlap(a.writes, b.writes) || overlap(a.reads, b.writes)
}

func overlap(a, b []roperator.Box) bool {
	for i := range a {
		for j := range b {
			if a[i].Overlaps(&b[j]) {
				return true
			}
		}
	}
	return false
}

func planOf(g *roperator.Graph, p *Program) *Plan {
	plan := &Plan{Spec: p.Spec, Graph: g, Pick: p.Pick, Segments: []Segment{{Kind: RProgram, Program: p}}}
	LayoutArena(plan)
	return plan
}

// reach is happens-before by definition: reach[x][y] says that y starts after x has ended.
func reach(p *Program, kind SegmentKind) map[At]map[At]bool {
	var all []At
	for v, steps := range p.Steps {
		for o := range steps {
			all = append(all, At{int32(v), int32(o)})
		}
	}
	next := map[At][]At{}
	additions := p.Contributors(EdgeCounter)
	for _, y := range all {
		if y.Order > 0 {
			x := At{y.VEU, y.Order - 1}
			next[x] = append(next[x], y)
		}
		if kind == RProgram {
			for _, w := range p.Steps[y.VEU][y.Order].InOf(EdgeFlag) {
				next[w.At] = append(next[w.At], y)
			}
			for _, c := range p.Steps[y.VEU][y.Order].InOf(EdgeCounter) {
				for _, x := range additions[c.Number()] {
					next[x] = append(next[x], y)
				}
			}
			continue
		}
		for _, x := range all {
			if p.Steps[x.VEU][x.Order].Wave < p.Steps[y.VEU][y.Order].Wave {
				next[x] = append(next[x], y)
			}
		}
	}
	out := map[At]map[At]bool{}
	for _, x := range all {
		seen := map[At]bool{}
		stack := append([]At{}, next[x]...)
		for len(stack) > 0 {
			y := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if !seen[y] {
				seen[y] = true
				stack = append(stack, next[y]...)
			}
		}
		out[x] = seen
	}
	return out
}

// legal is the memory part of Verify by definition.
func legal(p *Program) bool {
	var all []access
	at := map[Task]At{}
	for v, steps := range p.Steps {
		for o := range steps {
			t := steps[o].Task
			c := p.Candidate(t.Op)
			at[t] = At{int32(v), int32(o)}
			all = append(all, access{t, c.AppendReads(nil, int(t.Index)), c.AppendWrites(nil, int(t.Index))})
		}
	}
	byWaits, byWaves := reach(p, RProgram), reach(p, Waves)
	for i := range all {
		for j := range all {
			x, y := at[all[i].task], at[all[j].task]
			if all[i].task.Op < all[j].task.Op && all[i].conflicts(&all[j]) && !(byWaits[x][y] && byWaves[x][y]) {
				return false
			}
		}
	}
	return true
}

func wantIDs(t *testing.T, err error, ids ...string) {
	t.Helper()
	got := map[string]bool{}
	for _, d := range diag.All(err) {
		got[d.ID] = true
	}
	for _, id := range ids {
		if !got[id] {
			t.Errorf("want a finding %s, got: %v", id, err)
		}
	}
}

func clone(p *Program) *Program {
	c := *p
	c.Steps = make([][]Step, len(p.Steps))
	for v, steps := range p.Steps {
		c.Steps[v] = append([]Step{}, steps...)
		for o := range steps {
			c.Steps[v][o].In, c.Steps[v][o].Out = slices.Clone(steps[o].In), slices.Clone(steps[o].Out)
		}
	}
	return &c
}

// resignal makes those steps signal that others wait for.
func resignal(p *Program) {
	for _, steps := range p.Steps {
		for o := range steps {
			steps[o].SetOut(EdgeFlag)
		}
	}
	for _, steps := range p.Steps {
		for o := range steps {
			for _, w := range steps[o].InOf(EdgeFlag) {
				p.Steps[w.VEU][w.Order].SetOut(EdgeFlag, Edge{Kind: EdgeFlag})
			}
		}
	}
}

// verifyProgram verifies a program alone, as the only segment of a plan in which no buffers share bytes or words.
func verifyProgram(p *Program, g *roperator.Graph) error {
	plan := &Plan{Spec: p.Spec, Graph: g, Pick: p.Pick, Segments: []Segment{{Kind: RProgram, Program: p}}}
	for _, b := range g.Buffers {
		at := int64(-1)
		if b.Kind == roperator.Arena {
			at = plan.ArenaLen
			plan.ArenaLen += alignUp(b.Bytes())
		}
		plan.Arena = append(plan.Arena, at)
		plan.Words = append(plan.Words, plan.WordsLen)
		plan.WordsLen += b.Elems
	}
	return Verify(plan)
}

// simulate runs a program as an rProgram, simulateWaves with one launch for each wave.
func simulate(p *Program, cost func(Task) float64) (*Timeline, error) {
	return SimulateSegment(Segment{Kind: RProgram, Program: p}, cost)
}

func simulateWaves(p *Program, cost func(Task) float64) (*Timeline, error) {
	return SimulateSegment(Segment{Kind: Waves, Program: p}, cost)
}

// flags are edges by flags from the steps at the given places, which are sorted by vEU.
func flags(from ...At) []Edge {
	out := make([]Edge, len(from))
	for i, at := range from {
		out[i] = Edge{EdgeFlag, at}
	}
	return out
}
