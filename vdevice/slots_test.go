package vdevice

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// exchange is a program of vdevicetest.Exchange: rTask t of chain c is on vEU c·tasks + t + shift.
func exchange(t testing.TB, chains, steps, tasks, shift, cluster int) (*Plan, *Program) {
	t.Helper()
	g := vdevicetest.Exchange(chains, steps, int64(4*tasks), int64(tasks))
	spec := testSpec(t, 8)
	spec.Clusters = device.Clusters{Of2: 4, Of4: 2, Of8: 1}
	b := NewBuilder(spec, g)
	for s := range steps {
		for c := range chains {
			op := int32(s*chains + c)
			b.Pick(op, 0)
			for i := range tasks {
				task := Task{op, int32(i)}
				if s > 0 {
					b.After(EdgeTagged, task, b.Front(allTasks(op-int32(chains), tasks)))
				}
				b.Append(task, int32((c*tasks+i+shift)%8))
			}
		}
	}
	for c := range chains {
		b.Carry(1+c, TaggedAndPlain, len(g.Buffers))
	}
	p := b.Program()
	p.Cluster = cluster
	return &Plan{Spec: spec, Graph: g, Pick: p.Pick, Segments: []Segment{{Kind: RProgram, Program: p}}}, p
}

func allTasks(op int32, n int) []Task {
	out := make([]Task, n)
	for i := range out {
		out[i] = Task{op, int32(i)}
	}
	return out
}

func laidOut(plan *Plan) *Plan {
	LayoutArena(plan)
	return plan
}

// Two steps of a state find room beside each other, and no third: who exports a step knows that all have
// imported the one before the last.
func TestSlotsAreUsedTwice(t *testing.T) {
	plan, p := exchange(t, 2, 20, 4, 0, 4)
	PlaceSlots(p, 1000)
	if err := Verify(laidOut(plan)); err != nil {
		t.Fatal(err)
	}
	if got, want := len(p.Slots), 2*4*19; got != want {
		t.Errorf("%d slots, want %d", got, want)
	}
	if got := p.SlotWords(); got != 2*16 {
		t.Errorf("%d words, want two steps of 16", got)
	}
	if len(p.Polled()) != 0 && p.Polled()[1] {
		t.Error("something is taken from global memory")
	}
	with, err := simulate(p, func(Task) float64 { return 1000 })
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.Cost.Cluster = p.Spec.Cost.Tagged / 10
	near, err := simulate(p, func(Task) float64 { return 1000 })
	if err != nil || near.Makespan >= with.Makespan {
		t.Errorf("near edges take %v, others %v, %v", near.Makespan, with.Makespan, err)
	}
}

// What crosses clusters, or finds no room, goes through global memory.
func TestSlotsWhereTheyCanBe(t *testing.T) {
	for _, c := range []struct{ shift, cluster, words, slots int }{
		{0, 4, 1000, 2 * 4 * 9}, {2, 4, 1000, 0}, {2, 8, 1000, 2 * 4 * 9}, {0, 2, 1000, 0}, {0, 4, 15, 0},
		{0, 4, 16, 2 * 4 * 5},
	} {
		plan, p := exchange(t, 2, 10, 4, c.shift, c.cluster)
		PlaceSlots(p, c.words)
		if err := Verify(laidOut(plan)); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if len(p.Slots) != c.slots || p.Polled()[1] != (c.slots < 72) {
			t.Errorf("%+v: %d slots", c, len(p.Slots))
		}
	}
}

func TestSlotsInText(t *testing.T) {
	plan, p := exchange(t, 2, 6, 4, 0, 4)
	PlaceSlots(p, 1000)
	text := FormatPlan(laidOut(plan))
	back, err := ParsePlan("x.rprog", text, plan.Graph, plan.Spec)
	if err != nil {
		t.Fatal(err)
	}
	q := back.Segments[0].Program
	if d := cmp.Diff(p.Slots, q.Slots); d != "" || q.Cluster != 4 {
		t.Errorf("clusters of %d: %s", q.Cluster, d)
	}
	if err := Verify(back); err != nil {
		t.Error(err)
	}
}

func TestPlantedSlotFaults(t *testing.T) {
	for _, f := range []struct {
		name string
		do   func(*Plan, *Program)
		want string
	}{
		{"used too early", func(_ *Plan, p *Program) {
			for i := range p.Slots {
				p.Slots[i].At = 0
			}
		}, "words that may still hold"},
		{"overlap by four", func(_ *Plan, p *Program) { p.Slots[1].At = p.Slots[0].At + 12 },
			"words that may still hold"},
		{"a gate too early", func(_ *Plan, p *Program) {
			for i := range p.Slots {
				p.Slots[i].Gate = 0
			}
		}, "still waits there"},
		{"no such gate", func(_ *Plan, p *Program) { p.Slots[0].Gate = schema.Gates }, "with gate 8"},
		{"at no multiple of four words", func(_ *Plan, p *Program) { p.Slots[0].At += 2 }, "out of range"},
		{"beyond the end of its buffer", func(plan *Plan, p *Program) {
			p.Slots[0].Hi = plan.Graph.Buffers[p.Slots[0].Buf].Elems + 4
		}, "out of range"},
		{"no such import", func(_ *Plan, p *Program) { p.Slots[0].Hi-- }, "not for something that it imports"},
		{"from another cluster", func(_ *Plan, p *Program) { p.Cluster = 2 }, "from its own cluster"},
		{"no such clusters", func(_ *Plan, p *Program) { p.Cluster = 3 }, "none of that size"},
		{"too many clusters", func(plan *Plan, _ *Program) { plan.Spec.Clusters.Of4 = 1 }, "has 1 such clusters"},
		{"not an rProgram", func(plan *Plan, _ *Program) { plan.Segments[0].Kind = Waves }, "no rProgram"},
		{"slots without clusters", func(_ *Plan, p *Program) { p.Cluster = 0 }, "clusters of 0"},
		{"out of order", func(_ *Plan, p *Program) { p.Slots[0], p.Slots[1] = p.Slots[1], p.Slots[0] }, "out of order"},
		{"nobody's", func(_ *Plan, p *Program) { p.Slots[0].VEU = -1 }, "not there"},
		{"far away", func(_ *Plan, p *Program) { p.Slots[0].At = 1 << 30 }, "out of range"},
		{"too large", func(_ *Plan, p *Program) { p.Slots[0].At = 1 << 20 }, "bytes of shared memory"},
	} {
		t.Run(f.name, func(t *testing.T) {
			plan, p := exchange(t, 2, 6, 4, 0, 4)
			PlaceSlots(p, 1000)
			laidOut(plan)
			f.do(plan, p)
			if err := Verify(plan); err == nil || !strings.Contains(fmt.Sprint(err), f.want) {
				t.Errorf("want %q, got %v", f.want, err)
			}
		})
	}
}

// importsCame reports whether all slots that an rTask imports from on a vEU hold its data, and the last one's gate; words
// says which slot's data a word holds.
func importsCame(p *Program, veu int32, task Task, words map[int32]int) (came bool, gate int32) {
	c := p.Candidate(task.Op)
	came, gate = true, -1
	for i := range c.Imports {
		for _, run := range c.Imports[i].AppendRuns(nil, int(task.Index)) {
			for e := run.Elem; e < run.Elem+run.Count; e++ {
				if k := p.FindSlot(veu, int32(c.Imports[i].Access.View.Buf.ID), e); k >= 0 {
					s := &p.Slots[k]
					came = came && words[s.At+int32(e-s.Lo)] == k+1
					gate = s.Gate
				}
			}
		}
	}
	return came, gate
}

// runs carries the program out in a random order, word by word, and reports whether everybody gets what
// he imports, and no word comes through a gate at which its vEU waits for others.
func runs(p *Program, r *rand.Rand) bool {
	words := make([]map[int32]int, len(p.Steps)) // per vEU: which slot's data a word holds
	for v := range words {
		words[v] = map[int32]int{}
	}
	phases := p.GatePhases()
	passed := make([][schema.Gates]int32, len(p.Steps)) // per vEU and gate: steps that have taken something through it
	next := make([]int, len(p.Steps))
	imported := make([]bool, len(p.Steps))
	left := p.Len()
	var parts []roperator.Run
	early := false
	for idle := 0; left > 0 && !early; {
		v := r.IntN(len(p.Steps))
		if next[v] == len(p.Steps[v]) {
			continue
		}
		task := p.Steps[v][next[v]].Task
		c := p.Candidate(task.Op)
		if !imported[v] {
			there, gate := importsCame(p, int32(v), task, words[v])
			if imported[v] = there; there {
				idle = 0
				if gate >= 0 {
					passed[v][gate]++
				}
			} else if idle++; idle > 2000 {
				return false
			}
			continue
		}
		for i := range c.Exports {
			buf := int32(c.Exports[i].Access.View.Buf.ID)
			parts = c.Exports[i].AppendRuns(parts[:0], int(task.Index))
			for _, run := range parts {
				p.EachSlot(int32(v), buf, run.Elem, run.Elem+run.Count, func(k int) {
					s := &p.Slots[k]
					for e := max(run.Elem, s.Lo); e < min(run.Elem+run.Count, s.Hi); e++ {
						words[s.VEU][s.At+int32(e-s.Lo)] = k + 1
					}
					early = early || passed[s.VEU][s.Gate] < phases[k]
				})
			}
		}
		imported[v] = false
		next[v]++
		left--
	}
	return !early
}

// What Verify lets pass never loses a word, in whatever order vEUs go on; what it refuses often does.
func TestVerifySlotsAgreesWithRuns(t *testing.T) {
	refused, lost := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 6))
		plan, p := exchange(t, 1+int(seed%2), 8, 4, 0, 4)
		PlaceSlots(p, 1000)
		for range r.IntN(3) {
			p.Slots[r.IntN(len(p.Slots))].At = int32(4 * r.IntN(12))
		}
		if r.IntN(4) == 0 { // a step takes a gate that may not be free
			veu, from, to := int32(r.IntN(len(p.Steps))), int32(r.IntN(3)), int32(r.IntN(3))
			for i := range p.Slots {
				if s := &p.Slots[i]; s.VEU == veu && s.Gate == from {
					s.Gate = to
				}
			}
		}
		err := Verify(laidOut(plan))
		ok := true
		for range 30 {
			ok = ok && runs(p, r)
		}
		switch {
		case err == nil && !ok:
			t.Fatalf("seed %d: Verify passes, but somebody waits for ever", seed)
		case err != nil:
			wantIDs(t, err, badCluster)
			refused++
			if !ok {
				lost++
			}
		}
	}
	if refused < 10 || lost < refused/2 {
		t.Errorf("%d programs were refused, %d of them lose words", refused, lost)
	}
}
