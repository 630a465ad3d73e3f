package vdevice

import (
	"testing"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// A chain of pointwise maps needs one buffer, whatever its length, and a residual block needs what its branch reads
// and one more.
func TestInPlaceChains(t *testing.T) {
	const bytes = 16 * 16 * 4
	g := vdevicetest.Grid{Shape: []int64{16, 16}, Tile: []int64{4, 16}}
	build := func(op func(m *vdevicetest.Maker, x, y roperator.View)) *Plan {
		m := vdevicetest.New("chain")
		x := m.Buffer(roperator.Input, 16, 16)
		for range 6 {
			y := m.Buffer(roperator.Arena, 16, 16)
			op(m, x, y)
			x = y
		}
		out := m.Buffer(roperator.Output, 16, 16)
		m.Op(m.Candidate(g.Tasks(), 1, []roperator.Access{vdevicetest.Whole(x)}, []roperator.Access{g.Of(out)}))
		plan := planOf(m.G, naive(testSpec(t, 2), m.G, 1, true))
		if err := Verify(plan); err != nil {
			t.Fatal(err)
		}
		return plan
	}
	pointwise := func(v roperator.View) []roperator.Access { return roperator.Pointwise([]roperator.Access{g.Of(v)}) }

	maps := build(func(m *vdevicetest.Maker, x, y roperator.View) {
		m.Op(m.Candidate(g.Tasks(), 1, pointwise(x), []roperator.Access{g.Of(y)}))
	})
	if s := maps.Stats(); s.ArenaBytes != bytes || s.InPlace != 5 {
		t.Errorf("a chain of maps takes %d bytes, %d results in place; want %d bytes, 5 in place", s.ArenaBytes,
			s.InPlace, bytes)
	}

	blocks := build(func(m *vdevicetest.Maker, x, y roperator.View) {
		h := m.Buffer(roperator.Arena, 16, 16)
		m.Op(m.Candidate(g.Tasks(), 1, []roperator.Access{vdevicetest.Whole(x)}, []roperator.Access{g.Of(h)}))
		m.Op(m.Candidate(g.Tasks(), 1, append(pointwise(x), vdevicetest.Whole(h)), []roperator.Access{g.Of(y)}))
	})
	if s := blocks.Stats(); s.ArenaBytes != 2*bytes || s.InPlace != 5 {
		t.Errorf("residual blocks take %d bytes, %d results in place; want %d bytes, 5 in place", s.ArenaBytes, s.InPlace,
			2*bytes)
	}

	halo := build(func(m *vdevicetest.Maker, x, y roperator.View) {
		m.Op(m.Candidate(g.Tasks(), 1, append(pointwise(x), g.Halo(x, 1, 1)), []roperator.Access{g.Of(y)}))
	})
	if s := halo.Stats(); s.ArenaBytes < 2*bytes || s.InPlace != 0 {
		t.Errorf("maps that read neighbours too take %d bytes, %d results in place; want none", s.ArenaBytes, s.InPlace)
	}
}

// Two buffers share bytes where all accesses of one come before all of the other, by waits and by waves. Of buffers that
// replace each other in one place that holds for accesses to the same elements, but for those of one rTask.
func TestInPlaceByDefinition(t *testing.T) {
	placed := 0
	for seed := range uint64(40) {
		g := vdevicetest.Pointwise(seed, 12)
		p := naive(testSpec(t, 3), g, seed, true)
		plan := planOf(g, p)
		if err := Verify(plan); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		placed += plan.Stats().InPlace
		byWaits, byWaves := reach(p, RProgram), reach(p, Waves)
		line := make([]int, len(g.Buffers)) // of each buffer: the first of those that replace each other
		for i := range line {
			line[i] = i
		}
		for _, x := range plan.inheritances() {
			if plan.Arena[x.operand] == plan.Arena[x.result] {
				line[x.result] = line[x.operand]
			}
		}
		fits := func(a, b int) bool {
			same := line[a] == line[b]
			for _, x := range accessesOf(p, a) {
				for _, y := range accessesOf(p, b) {
					if same && (x.at == y.at || !x.box.Overlaps(&y.box)) {
						continue
					}
					if !byWaits[x.at][y.at] || !byWaves[x.at][y.at] {
						return false
					}
				}
			}
			return true
		}
		for i, a := range g.Buffers {
			for j := range i {
				b := g.Buffers[j]
				if plan.Arena[i] < 0 || plan.Arena[j] < 0 || plan.Arena[i] >= plan.Arena[j]+b.Bytes() ||
					plan.Arena[j] >= plan.Arena[i]+a.Bytes() {
					continue
				}
				if !fits(i, j) && !fits(j, i) {
					t.Fatalf("seed %d: buffers %d and %d share bytes", seed, i, j)
				}
			}
		}
	}
	if placed < 20 {
		t.Errorf("only %d results are in place", placed)
	}
}

// accessed is a box of a buffer that a step accesses; the number of the buffer is left out.
type accessed struct {
	at  At
	box roperator.Box
}

func accessesOf(p *Program, buf int) []accessed {
	var out []accessed
	for v, steps := range p.Steps {
		for o := range steps {
			s := steps[o].Task
			c := p.Candidate(s.Op)
			for _, b := range append(c.AppendReads(nil, int(s.Index)), c.AppendWrites(nil, int(s.Index))...) {
				if int(b.Buf) == buf {
					b.Buf = 0
					out = append(out, accessed{At{int32(v), int32(o)}, b})
				}
			}
		}
	}
	return out
}

// A result in the place of an operand that somebody else may still need is found, and one beside its operand's place.
func TestVerifyFindsInPlaceFaults(t *testing.T) {
	m := vdevicetest.New("faults")
	g := vdevicetest.Grid{Shape: []int64{16, 16}, Tile: []int64{4, 16}}
	add := func(out roperator.View, reads ...roperator.Access) roperator.View {
		m.Op(m.Candidate(g.Tasks(), 1, reads, []roperator.Access{g.Of(out)}))
		return out
	}
	pointwise := func(v roperator.View) roperator.Access { return roperator.Pointwise([]roperator.Access{g.Of(v)})[0] }
	x := m.Buffer(roperator.Input, 16, 16)
	y := add(m.Buffer(roperator.Arena, 16, 16), vdevicetest.Whole(x))
	z := add(m.Buffer(roperator.Arena, 16, 16), pointwise(y))
	u := add(m.Buffer(roperator.Arena, 16, 16), pointwise(y))
	add(m.Buffer(roperator.Output, 16, 16), pointwise(z), pointwise(u))
	plan := planOf(m.G, naive(testSpec(t, 2), m.G, 1, true))
	if err := Verify(plan); err != nil {
		t.Fatal(err)
	}
	at := func(b roperator.View) *int64 { return &plan.Arena[b.Buf.ID] }
	if *at(y) == *at(z) {
		t.Error("a result is in the place of an operand that is read once more")
	}
	*at(z) = *at(y)
	wantIDs(t, Verify(plan), arenaUnordered)
	*at(z), *at(u) = 4*16*16*4, *at(y)+256
	plan.ArenaLen = 5 * 16 * 16 * 4
	wantIDs(t, Verify(plan), arenaUnordered)
}
