package codegen

import (
	"encoding/binary"
	"testing"
)

// A wave's launch has no block beyond the last vEU it uses, and no thread that none of its rTasks needs;
// each of its blocks runs the wave's steps of its vEU.
func TestWaveLaunches(t *testing.T) {
	s := newStencilPlan(t, 4, 3, 64) // stages of 64, 128, 64 threads
	p := s.plan.Segments[0].Program
	last := len(p.Steps[3]) - 1
	p.Steps[3][last].Waits = nil
	p.Steps[1] = append(p.Steps[1], p.Steps[3][last]) // the last wave leaves vEU 3 alone
	p.Steps[3] = p.Steps[3][:last]
	wide := dispatches(s.plan, 0, usedVEUs(p))
	want := []launch{{grid: 4, threads: 128}, {grid: 4, threads: 64}, {grid: 4, threads: 128}, {grid: 3, threads: 64}}
	if len(wide) != len(want) {
		t.Fatalf("%d launches, want the rProgram's and %d waves", len(wide), p.Waves)
	}
	for i, d := range wide {
		if d.grid != want[i].grid || d.threads != want[i].threads || d.overlap != (i > 1) {
			t.Errorf("launch %d is %+v, want %+v", i, d.launch, want[i])
		}
	}
	steps := 0
	for v, mine := range p.Steps {
		for i, d := range wide[1:] {
			n := 0
			for _, st := range mine {
				if int(st.Wave) == i {
					n++
				}
			}
			if v >= d.grid {
				if n > 0 {
					t.Errorf("wave %d has no block for vEU %d", i, v)
				}
				continue
			}
			first, end := binary.LittleEndian.Uint32(d.ranges[8*v:]), binary.LittleEndian.Uint32(d.ranges[8*v+4:])
			if int(end-first) != n || n > 0 && int(first) != steps {
				t.Errorf("wave %d, vEU %d runs %d … %d, want %d steps from %d", i, v, first, end, n, steps)
			}
			steps += n
		}
	}
}
