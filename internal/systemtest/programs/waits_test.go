package programs

import (
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// TestFlagBesideCounter: a step that publishes itself in both ways is complete for those who wait in either.
func TestFlagBesideCounter(t *testing.T) {
	t.Parallel()
	s := stencil.BothSignals(t, 6, 5, 64)
	lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil")
	for seed := uint64(1); seed <= 5; seed++ {
		l := systemtest.OpenLib(t, lib, runner.Options{Seed: seed})
		for range 3 {
			if n := s.Mismatches(t, l); n > 0 || l.Launch.Mode != "rprogram" {
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
	s := stencil.New(t, veus, 6, 32)
	p := s.Plan.Segments[0].Program
	for veu, steps := range p.Steps {
		for st := 1; st < len(steps); st++ {
			steps[st].In = stencil.AllFlags(veus, veu, st-1)
		}
	}
	if err := vdevice.Verify(s.Plan); err != nil {
		t.Fatal(err)
	}
	lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil", "-DRT_DEBUG")
	for seed := uint64(1); seed <= 4; seed++ {
		if n := s.Mismatches(t, systemtest.OpenLib(t, lib, runner.Options{Seed: seed, Delays: seed})); n > 0 {
			t.Fatalf("%d elements are wrong", n)
		}
	}
}
