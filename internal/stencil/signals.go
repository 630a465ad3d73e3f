package stencil

import (
	"testing"

	"github.com/rammerc/rammerc/vdevice"
)

// BothSignals has every step of a stencil publish itself in its flag and in a counter of its stage. The steps of vEUs
// with even numbers wait for the counter, the others for flags.
func BothSignals(t testing.TB, veus, stages, tile int) *Model {
	s := New(t, veus, stages, tile)
	p := s.Plan.Segments[0].Program
	p.Counters = stages - 1
	for veu, steps := range p.Steps {
		for st := range steps {
			if st < stages-1 {
				steps[st].Out = append(steps[st].Out, vdevice.Meeting(vdevice.EdgeCounter, int32(st)))
			}
			if st > 0 {
				steps[st].In = AllFlags(veus, veu, st-1)
			}
			if st > 0 && veu%2 == 0 {
				steps[st].In = []vdevice.Edge{vdevice.Meeting(vdevice.EdgeCounter, int32(st-1))}
			}
		}
	}
	if err := vdevice.Verify(s.Plan); err != nil {
		t.Fatal(err)
	}
	return s
}

// AllFlags are the waits of a vEU's step for a step of all other vEUs.
func AllFlags(veus, veu, order int) []vdevice.Edge {
	var in []vdevice.Edge
	for other := range int32(veus) {
		if int(other) != veu {
			in = append(in, vdevice.Edge{Kind: vdevice.EdgeFlag, At: vdevice.At{VEU: other, Order: int32(order)}})
		}
	}
	return in
}

// Streamed has stages with and without streamed weights, of different numbers of threads.
func Streamed(t testing.TB, veus, stages, tile int) *Model {
	t.Helper()
	return of(t, veus, stages, tile, func(stage int) string {
		if stage%3 == 2 {
			return "test_stencil"
		}
		return "test_stencil_streamed"
	})
}
