package vdevice

import (
	"math"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// Blocks find room on multiprocessors that the launch before leaves free, or beside its blocks.
func TestRoomBeside(t *testing.T) {
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	half := spec.SharedBeside(2)
	for _, x := range []struct {
		name      string
		before, r Room
		want      bool
	}{
		{"small ones", Room{132, 4096, 8192}, Room{132, 4096, 8192}, true},
		{"two halves", Room{132, half, 8192}, Room{132, half, 8192}, true},
		{"more than two halves", Room{132, half, 8192}, Room{132, half + 128, 8192}, false},
		{"too many registers", Room{132, 4096, 40000}, Room{132, 4096, 30000}, false},
		{"multiprocessors are free", Room{60, half, 40000}, Room{72, half + 128, 40000}, true},
		{"two of the launch before share a multiprocessor", Room{200, half/2 - 2048, 8192}, Room{132, half, 8192}, true},
		{"so that there is too little left", Room{200, half, 8192}, Room{132, half, 8192}, false},
		{"not enough are", Room{60, half, 40000}, Room{73, half + 128, 40000}, false},
	} {
		if got := x.r.Beside(spec, x.before); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}

// A launch that finds no room begins later by as much as the device says.
func TestNoRoomIsSlower(t *testing.T) {
	spec := testSpec(t, 2)
	spec.Cost.NoRoom, spec.Cost.PDL = 300, spec.Cost.Node/2
	p := naive(spec, vdevicetest.Layers(4, 8, 4, 2, 2, false), 1, true)
	if p.Waves < 2 {
		t.Fatalf("%d waves", p.Waves)
	}
	cost := func(Task) float64 { return 1000 }
	makespan := func() float64 {
		tl, err := simulateWaves(p, cost)
		if err != nil {
			t.Fatal(err)
		}
		return tl.Makespan
	}
	beside := makespan()
	for w := range p.Waves {
		p.Alone = append(p.Alone, int32(w))
	}
	late := 0
	rooms := p.rooms()
	for w := 1; w < p.Waves; w++ {
		if !rooms[w].Beside(spec, rooms[w-1]) {
			late++
		}
	}
	if late == 0 {
		t.Fatal("blocks that are alone find room beside each other")
	}
	if got, want := makespan(), beside+float64(late)*300; math.Abs(got-want) > 1e-6 {
		t.Errorf("%v, want %v: %d launches find no room", got, want, late)
	}
}
