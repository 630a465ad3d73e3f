package codegen

import (
	"slices"
	"testing"

	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/vdevice"
)

// A wave's launch has no block beyond the last vEU it uses, and no thread that none of its rTasks needs;
// each of its blocks runs the wave's steps of its vEU.
func TestWaveLaunches(t *testing.T) {
	s := stencil.New(t, 4, 3, 64) // stages of 64, 128, 64 threads
	p := s.Plan.Segments[0].Program
	last := len(p.Steps[3]) - 1
	p.Steps[3][last].In = nil
	p.Steps[1] = append(p.Steps[1], p.Steps[3][last]) // the last wave leaves vEU 3 alone
	p.Steps[3] = p.Steps[3][:last]
	wide := dispatches(s.Plan, 0, usedVEUs(p))
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
			first, end := d.ranges[v].First, d.ranges[v].Last
			if int(end-first) != n || n > 0 && int(first) != steps {
				t.Errorf("wave %d, vEU %d runs %d … %d, want %d steps from %d", i, v, first, end, n, steps)
			}
			steps += n
		}
	}
}

// A launch whose blocks run one step each of one rOperator says so, and at which distances they stand.
func TestRegularLaunches(t *testing.T) {
	s := stencil.New(t, 4, 3, 64)
	p := s.Plan.Segments[0].Program
	for i, d := range dispatches(s.Plan, 0, usedVEUs(p))[1:] {
		op, ok := d.only(p)
		if first, stride := d.strideOf(); !ok || int(op) != i || int(first) != i || stride != 3 {
			t.Errorf("wave %d: rOperator %d, steps from %d in strides of %d, %v", i, op, first, stride, ok)
		}
	}
	p.Steps[3] = p.Steps[3][1:] // its other steps stand one earlier
	d := dispatches(s.Plan, 0, usedVEUs(p))[2]
	if op, ok := d.only(p); !ok || op != 1 {
		t.Errorf("where distances differ: rOperator %d, %v", op, ok)
	}
	if first, stride := d.strideOf(); stride != 0 {
		t.Errorf("steps from %d in strides of %d, want none", first, stride)
	}
	p.Steps[0][1].Wave = 0 // two steps on one vEU, and one vEU without
	for i, d := range dispatches(s.Plan, 0, usedVEUs(p))[1:3] {
		if _, ok := d.only(p); ok {
			t.Errorf("wave %d is not of one step a block", i)
		}
	}
	s = stencil.New(t, 4, 1, 64)
	p = s.Plan.Segments[0].Program
	p.Steps[2], p.Steps[3] = nil, append(p.Steps[3], p.Steps[2]...)
	if _, ok := dispatches(s.Plan, 0, usedVEUs(p))[1].only(p); ok {
		t.Error("blocks without and with several steps count as one step each")
	}
}

// What all blocks of a launch stream is said by a rule where there is one, and block by block it says the same.
func TestBlockStream(t *testing.T) {
	even := func(blocks int, at, stride, words, last uint32) []weightBlock {
		out := make([]weightBlock, blocks)
		for b := range out {
			out[b] = weightBlock{at: at + uint32(b)*stride, words: words, chunkWords: 64, chunks: (words + 63) / 64}
		}
		out[blocks-1].words = last
		return out
	}
	moved, short, none, coarse := even(4, 0, 512, 512, 512), even(4, 0, 512, 512, 512), even(4, 0, 512, 512, 512),
		even(4, 0, 512, 512, 512)
	moved[2].at++
	short[1].words--
	none[3].words = 0
	coarse[2].chunkWords = 32
	for _, c := range []struct {
		name   string
		blocks []weightBlock
		rule   bool
	}{
		{"one", even(1, 7, 0, 512, 512), true},
		{"equal", even(4, 7, 512, 512, 512), true},
		{"the same weights", even(3, 7, 0, 512, 512), true},
		{"backwards", even(3, 4096, ^uint32(511), 512, 512), true},
		{"a shorter last", even(4, 7, 512, 512, 100), true},
		{"moved", moved, false},
		{"a shorter one", short, false},
		{"nothing", none, false},
		{"other chunks", coarse, false},
		{"no streams", make([]weightBlock, 3), false},
	} {
		s := blockStreamOf(c.blocks)
		if (s.Words > 0) != c.rule {
			t.Errorf("%s: the rule is %+v", c.name, s)
		}
		for b, want := range c.blocks {
			got := weightBlock{at: s.At + uint32(b)*s.Stride, words: s.Words, chunkWords: s.ChunkWords,
				chunks: want.chunks}
			if uint32(b) == s.Last {
				got.words = s.LastWords
			}
			if c.rule && got != want {
				t.Errorf("%s: block %d streams %+v, want %+v", c.name, b, got, want)
			}
		}
	}
}

// Launches of waves whose blocks the plan wants alone on their multiprocessors say so, and no others.
func TestLaunchesAlone(t *testing.T) {
	s := stencil.New(t, 2, 4, 64)
	s.Plan.Segments[0].Kind = vdevice.Waves
	alone := []int32{2}
	p := s.Plan.Segments[0].Program
	p.Alone = alone
	for i, d := range dispatches(s.Plan, 0, usedVEUs(p)) {
		if want := slices.Contains(alone, int32(i)); d.alone != want {
			t.Errorf("launch %d: blocks alone %v, want %v", i, d.alone, want)
		}
	}
}
