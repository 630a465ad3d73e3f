package vdevice

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// Buffers that share bytes are ordered by definition: every access of one before every of the other,
// both by waits and by waves. Inputs and outputs are not in the arena.
func TestArenaByDefinition(t *testing.T) {
	plain := testSpec(t, 3)
	small := *plain
	small.L2Bytes = 1 // nothing fits, so freed bytes are used again as soon as possible
	arenaByDefinition(t, plain)
	arenaByDefinition(t, &small)
}

func arenaByDefinition(t *testing.T, spec *device.Spec) {
	t.Helper()
	shared, pairs := 0, 0
	for seed := range uint64(15) {
		g := vdevicetest.Random(seed, 12)
		p := naive(spec, g, seed, true)
		plan := planOf(g, p)
		users := map[int][]At{}
		for v, steps := range p.Steps {
			for o := range steps {
				for _, b := range arenaBuffers(p.Candidate(steps[o].Task.Op)) {
					users[b] = append(users[b], At{int32(v), int32(o)})
				}
			}
		}
		byWaits, byWaves := reach(p, RProgram), reach(p, Waves)
		all := func(a, b int) bool {
			for _, x := range users[a] {
				for _, y := range users[b] {
					if !byWaits[x][y] || !byWaves[x][y] {
						return false
					}
				}
			}
			return true
		}
		for i, a := range g.Buffers {
			if (plan.Arena[i] >= 0) != (a.Kind == roperator.Arena && len(users[i]) > 0) {
				t.Fatalf("seed %d: buffer %d of kind %v is at %d", seed, i, a.Kind, plan.Arena[i])
			}
			if plan.Arena[i]%ArenaAlign != 0 && plan.Arena[i] >= 0 || plan.Arena[i]+a.Bytes() > plan.ArenaLen {
				t.Fatalf("seed %d: buffer %d is at %d of %d", seed, i, plan.Arena[i], plan.ArenaLen)
			}
			for j := range i {
				b := g.Buffers[j]
				if plan.Arena[i] < 0 || plan.Arena[j] < 0 {
					continue
				}
				pairs++
				if plan.Arena[i] >= plan.Arena[j]+b.Bytes() || plan.Arena[j] >= plan.Arena[i]+a.Bytes() {
					continue
				}
				shared++
				if !all(i, j) && !all(j, i) {
					t.Fatalf("seed %d: buffers %d and %d share bytes", seed, i, j)
				}
			}
		}
	}
	if shared == 0 || shared == pairs {
		t.Errorf("%d of %d pairs share bytes", shared, pairs)
	}
}

// Moving any buffer onto another is found unless the definition allows it.
func TestVerifyFindsArenaFaults(t *testing.T) {
	found, allowed := 0, 0
	for seed := range uint64(12) {
		g := vdevicetest.Random(seed, 10)
		plan := planOf(g, naive(testSpec(t, 2), g, seed, true))
		l := newLayout(plan)
		good := append([]int64{}, plan.Arena...)
		for i := range good {
			for j := range good {
				if good[i] < 0 || good[j] < 0 || i == j {
					continue
				}
				copy(plan.Arena, good)
				plan.Arena[i] = good[j]
				if plan.Arena[i]+g.Buffers[i].Bytes() > plan.ArenaLen {
					continue
				}
				want := true
				for k := range good {
					if good[k] >= 0 && k != i && plan.Arena[i] < good[k]+g.Buffers[k].Bytes() &&
						good[k] < plan.Arena[i]+g.Buffers[i].Bytes() {
						want = want && (l.lives[i].before(&l.lives[k]) || l.lives[k].before(&l.lives[i]))
					}
				}
				if err := Verify(plan); (err == nil) != want {
					t.Fatalf("seed %d: buffer %d at the place of %d: want legal %v, got %v", seed, i, j, want, err)
				}
				if want {
					allowed++
				} else {
					found++
				}
			}
		}
	}
	if found < 50 || allowed < 5 {
		t.Errorf("%d faults and %d legal moves are too few", found, allowed)
	}
}

// A chain needs two buffers at a time, whatever its length.
func TestArenaOfChainIsSmall(t *testing.T) {
	size := func(layers int) int64 {
		g := vdevicetest.Layers(layers, 32, 32, 32, 32, true)
		return planOf(g, naive(testSpec(t, 2), g, 1, true)).ArenaLen
	}
	if a, b := size(4), size(20); a != b || a != 2*32*32*4 {
		t.Errorf("4 layers take %d bytes, 20 take %d; want 2 buffers", a, b)
	}
}

// Across launches everything is ordered, so waits do not matter for reuse.
func TestArenaAcrossSegments(t *testing.T) {
	g := vdevicetest.Layers(6, 16, 16, 4, 4, false)
	spec := testSpec(t, 4)
	plan := &Plan{Spec: spec, Graph: g, Pick: make([]int, len(g.Ops))}
	for op := range g.Ops {
		b := NewBuilder(spec, g)
		b.Pick(int32(op), 0)
		for i := range g.Ops[op].Candidates[0].Tasks {
			b.Append(Task{int32(op), int32(i)}, int32(i%4))
		}
		plan.Segments = append(plan.Segments, Segment{Kind: Waves, Program: b.Program()})
	}
	LayoutArena(plan)
	if err := Verify(plan); err != nil {
		t.Fatal(err)
	}
	if want := int64(2 * 16 * 16 * 4); plan.ArenaLen != want {
		t.Errorf("arena has %d bytes, want %d", plan.ArenaLen, want)
	}
	plan.Arena[1], plan.Arena[2] = 0, 0
	wantIDs(t, Verify(plan), arenaUnordered)
}

// TestRestOfSharedBytes: where a small buffer has taken a part of a large one's bytes, the rest is still the large
// one's. Both are vEU 0's; a buffer of vEU 1, which waits for nothing, must not take the rest.
func TestRestOfSharedBytes(t *testing.T) {
	m := vdevicetest.New("rest")
	whole := func(b roperator.View) []roperator.Access { return []roperator.Access{vdevicetest.Whole(b)} }
	large, middle, small := m.Buffer(roperator.Arena, 256), m.Buffer(roperator.Arena, 16), m.Buffer(roperator.Arena, 16)
	other, a, b := m.Buffer(roperator.Arena, 16), m.Buffer(roperator.Output, 16), m.Buffer(roperator.Output, 16)
	m.Op(m.Candidate(1, 1, nil, whole(large)))
	m.Op(m.Candidate(1, 1, whole(large), whole(middle)))
	m.Op(m.Candidate(1, 1, whole(middle), whole(small)))
	m.Op(m.Candidate(1, 1, whole(small), whole(a)))
	m.Op(m.Candidate(1, 1, nil, whole(other)))
	m.Op(m.Candidate(1, 1, whole(other), whole(b)))
	build := NewBuilder(testSpec(t, 2), m.G)
	for op, veu := range []int32{0, 0, 0, 0, 1, 1} {
		build.NextWave()
		build.Pick(int32(op), 0)
		build.Append(Task{int32(op), 0}, veu)
	}
	plan := planOf(m.G, build.Program())
	plan.ArenaLen = 4096
	for at, id := range map[int64]string{2048: "", 512: arenaUnordered} {
		copy(plan.Arena, []int64{0, 3072, 0, at})
		err := Verify(plan)
		if id == "" && err != nil {
			t.Fatal(err)
		}
		if id != "" {
			wantIDs(t, err, id)
		}
	}
}

// TestArenaOfSuccessors: what a later segment still reads is not succeeded in an earlier one.
func TestArenaOfSuccessors(t *testing.T) {
	m := vdevicetest.New("successors")
	const n = 256
	whole := func(b roperator.View) []roperator.Access { return []roperator.Access{vdevicetest.Whole(b)} }
	long, small, next := m.Buffer(roperator.Arena, n), m.Buffer(roperator.Arena, 16), m.Buffer(roperator.Arena, 16)
	out := m.Buffer(roperator.Output, n)
	m.Op(m.Candidate(1, 1, nil, whole(long)))
	m.Op(m.Candidate(1, 1, nil, whole(small)))
	m.Op(m.Candidate(1, 1, whole(small), whole(next)))
	m.Op(m.Candidate(1, 1, append(whole(long), whole(next)...), whole(out)))
	for _, cut := range []int{2, 4} { // rOperators of the first segment
		plan := &Plan{Spec: testSpec(t, 2), Graph: m.G, Pick: make([]int, 4)}
		order := []int32{0, 1, 2, 3}
		for _, ops := range [][]int32{order[:cut], order[cut:]} {
			b := NewBuilder(plan.Spec, m.G)
			for _, op := range ops {
				b.NextWave()
				b.Pick(op, 0)
				b.Append(Task{op, 0}, 0)
			}
			if len(ops) > 0 {
				plan.Segments = append(plan.Segments, Segment{Kind: Waves, Program: b.Program()})
			}
		}
		LayoutArena(plan)
		if err := Verify(plan); err != nil {
			t.Fatal(err)
		}
		for i, c := range []struct {
			what string
			at   []int64
		}{
			{"small takes bytes of long", []int64{0, 256, 2048}}, {"next takes bytes of long", []int64{0, 2048, 256}},
		} {
			copy(plan.Arena, c.at)
			plan.ArenaLen = 4096
			wantIDs(t, Verify(plan), arenaUnordered)
			if text := Verify(plan).Error(); i == 0 && cut == 2 && !strings.Contains(text, "until segment 1") {
				t.Errorf("%s: %v", c.what, text)
			}
		}
	}
}

// Of the places that are free a buffer takes the one that was in use last. A larger one takes several that lie side by
// side, and grows the arena where there is too little.
func TestRecentlyFreedBytes(t *testing.T) {
	in := func(first, last int32, start, end int) life {
		return life{use: use{firstSeg: first, lastSeg: last}, start: start, end: end}
	}
	// Buffers 0 to 2 are in use together, 1 for the shortest time and 0 to the end.
	lives := []life{
		in(0, 9, 0, 90), in(0, 1, 1, 10), in(0, 2, 2, 20), in(3, 4, 30, 40), in(5, 6, 50, 60), in(7, 8, 70, 80),
	}
	var r reused
	for _, c := range []struct {
		id         int
		size, want int64
		why        string
	}{
		{0, 256, 0, "the arena is empty"}, {1, 256, 256, "it grows"}, {2, 256, 512, "it grows"},
		{3, 256, 512, "buffer 2 was in use last"},
		{4, 512, 256, "the places of 1 and 3 lie side by side"},
		{5, 1024, 256, "the free bytes at the end do not suffice, and the arena grows there"},
	} {
		if got := r.place(lives, c.id, c.size); got != c.want {
			t.Errorf("buffer %d is at %d, want %d: %s", c.id, got, c.want, c.why)
		}
	}
}
