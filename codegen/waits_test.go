package codegen

import (
	"testing"

	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// bothSignals has every step of a stencil publish itself in its flag and in a counter of its stage. The steps of vEUs
// with even numbers wait for the counter, the others for flags.
func bothSignals(t *testing.T, veus, stages, tile int) *stencilPlan {
	s := newStencilPlan(t, veus, stages, tile)
	p := s.plan.Segments[0].Program
	p.Counters = stages - 1
	for veu, steps := range p.Steps {
		for st := range steps {
			if st < stages-1 {
				steps[st].Out = append(steps[st].Out, vdevice.Meeting(vdevice.EdgeCounter, int32(st)))
			}
			if st > 0 {
				steps[st].In = allFlags(veus, veu, st-1)
			}
			if st > 0 && veu%2 == 0 {
				steps[st].In = []vdevice.Edge{vdevice.Meeting(vdevice.EdgeCounter, int32(st-1))}
			}
		}
	}
	if err := vdevice.Verify(s.plan); err != nil {
		t.Fatal(err)
	}
	return s
}

// allFlags are the waits of a vEU's step for a step of all other vEUs.
func allFlags(veus, veu, order int) []vdevice.Edge {
	var in []vdevice.Edge
	for other := range int32(veus) {
		if int(other) != veu {
			in = append(in, vdevice.Edge{Kind: vdevice.EdgeFlag, At: vdevice.At{VEU: other, Order: int32(order)}})
		}
	}
	return in
}

// TestFlagBesideCounter: a step that publishes itself in both ways is complete for those who wait in either.
func TestFlagBesideCounter(t *testing.T) {
	t.Parallel()
	s := bothSignals(t, 6, 5, 64)
	lib := buildEmulated(t, emitStencil(t, s, Options{}), "stencil")
	for seed := uint64(1); seed <= 5; seed++ {
		l := openLib(t, lib, runner.Options{Seed: seed})
		for range 3 {
			if n := s.mismatches(t, l); n > 0 || l.Launch.Mode != "rprogram" {
				t.Fatalf("%d elements are wrong, it runs as %s", n, l.Launch.Mode)
			}
		}
	}
}

// TestManyWaits: a step waits for more others than are staged in shared memory. Every step waits for all other vEUs; if
// it missed those behind the staged ones, some of the tiles beside its own would not be there yet.
func TestManyWaits(t *testing.T) {
	t.Parallel()
	const veus = schema.StagedWaits + 8
	s := newStencilPlan(t, veus, 6, 32)
	p := s.plan.Segments[0].Program
	for veu, steps := range p.Steps {
		for st := 1; st < len(steps); st++ {
			steps[st].In = allFlags(veus, veu, st-1)
		}
	}
	if err := vdevice.Verify(s.plan); err != nil {
		t.Fatal(err)
	}
	lib := buildEmulated(t, emitStencil(t, s, Options{}), "stencil", "-DRT_DEBUG")
	for seed := uint64(1); seed <= 4; seed++ {
		if n := s.mismatches(t, openLib(t, lib, runner.Options{Seed: seed, Delays: seed})); n > 0 {
			t.Fatalf("%d elements are wrong", n)
		}
	}
}
