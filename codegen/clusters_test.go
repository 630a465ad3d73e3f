package codegen

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// givenPlan has the stages of the stencil hand their tiles over as tagged data, from stage to stage in a
// buffer of its own; a tile stays on its vEU, and vEUs are in clusters, unless cluster is 0.
func givenPlan(t testing.TB, veus, stages, tile, cluster int) *stencilPlan {
	t.Helper()
	s := newStencilPlan(t, veus, 1, tile)
	s.stages = stages
	spec := s.plan.Spec
	spec.Shared, spec.SharedPerVEU, spec.Registers = 1<<16, 1<<16, 1<<16
	spec.Clusters = device.Clusters{Of4: veus / 4, Of8: veus / 8}
	g, kernel := s.plan.Graph, testKernel(t, "test_stencil_given")
	g.Buffers = g.Buffers[:3] // x, y, coef
	from := g.Buffers[0]
	g.Ops = nil
	for st := range stages {
		to := g.Buffers[1]
		if st < stages-1 {
			b := *g.Buffers[0]
			b.ID, b.Name, b.Kind, b.Index = len(g.Buffers), "state", roperator.Arena, -1
			to = &b
			g.Buffers = append(g.Buffers, to)
		}
		op := s.stage(kernel, st, from, to, g.Buffers[2])
		s.stage3(op.Candidates[0])
		g.Ops = append(g.Ops, op)
		from = to
	}
	b := vdevice.NewBuilder(spec, g)
	for st := range stages {
		b.Pick(int32(st), 0)
		for k := range veus {
			task := vdevice.Task{Op: int32(st), Index: int32(k)}
			if st > 0 {
				var near []vdevice.Task
				for d := -1; d <= 1; d++ {
					near = append(near, vdevice.Task{Op: int32(st - 1), Index: int32((k + d + veus) % veus)})
				}
				b.After(vdevice.EdgeTagged, task, b.Front(near))
			}
			b.Append(task, int32(k))
		}
	}
	for buf := 3; buf < len(g.Buffers); buf++ {
		b.Carry(buf, vdevice.Tagged, len(g.Buffers))
	}
	p := b.Program()
	if p.Cluster = cluster; cluster > 0 {
		vdevice.PlaceSlots(p, 1000)
	}
	s.plan.Pick, s.plan.Segments = p.Pick, []vdevice.Segment{{Kind: vdevice.RProgram, Program: p}}
	vdevice.LayoutArena(s.plan)
	if err := vdevice.Verify(s.plan); err != nil {
		t.Fatal(err)
	}
	return s
}

// stage3 makes a candidate of stage import its tile and the neighbours', and export its own.
func (s *stencilPlan) stage3(c *roperator.Candidate) {
	view := c.Reads[0].View
	c.Reads = nil
	tiles, tile := int64(s.veus), int64(s.tile)
	for d := range int64(3) {
		a := roperator.Access{View: view, Box: func(task int, lo, hi []int64) {
			k := (int64(task) + d - 1 + tiles) % tiles
			lo[0], hi[0] = k*tile, (k+1)*tile
		}}
		c.Reads = append(c.Reads, a)
		c.Imports = append(c.Imports, roperator.Staged{Access: a, Index: int(d), At: d * tile, Pitch: []int64{1}})
	}
	c.Args = c.Args[2:] // it is told of no places
	c.Exports = []roperator.Staged{{Access: c.Writes[0], Pitch: []int64{1}}}
}

// In one cluster all words are in shared memory; of several, those at the ends go the long way.
func TestClusters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		veus, cluster int
		flags         []string
	}{{4, 4, nil}, {8, 8, []string{"-DRT_DEBUG"}}, {8, 4, nil}} {
		s := givenPlan(t, c.veus, 9, 64, c.cluster)
		p := s.plan.Segments[0].Program
		if all := 3 * c.veus * 8; len(p.Slots) != all && c.veus == c.cluster || len(p.Slots) == 0 ||
			len(p.Slots) > all {
			t.Errorf("%+v: %d slots", c, len(p.Slots))
		}
		lib := buildEmulated(t, emitStencil(t, s, Options{}), "stencil", append([]string{"-O1"}, c.flags...)...)
		for seed := uint64(1); seed <= 3; seed++ {
			opt := runner.Options{Seed: seed}
			if c.flags != nil {
				opt.Delays = seed
			}
			l := openLib(t, lib, opt)
			for range 4 {
				if n := s.mismatches(t, l); n > 0 {
					t.Errorf("%+v, seed %d: %d elements are wrong", c, seed, n)
				}
			}
			opt.Mode = runner.Waves
			if n := s.mismatches(t, openLib(t, lib, opt)); n > 0 {
				t.Errorf("%+v, seed %d in waves: %d elements are wrong", c, seed, n)
			}
		}
		l := openLib(t, lib, runner.Options{MaxBlocks: c.cluster - 1})
		if n := s.mismatches(t, l); n > 0 || l.Launch.Mode != "waves" ||
			!strings.Contains(l.Launch.Reason, "in clusters of") {
			t.Errorf("%+v on a device without room for it: %+v, %d elements are wrong", c, l.Launch, n)
		}
	}
}

// Words that are used again too early, which the emulator sees, and words that never come.
func TestClusterFaults(t *testing.T) {
	t.Parallel()
	s := givenPlan(t, 8, 9, 64, 8)
	p := s.plan.Segments[0].Program
	for i := range p.Slots {
		p.Slots[i].At %= 3 * 64 // one set of words instead of two
	}
	lib := buildEmulated(t, emitStencil(t, s, Options{}), "stencil")
	failed := 0
	for seed := uint64(1); seed <= 20 && failed == 0; seed++ {
		_, err := openLib(t, lib, runner.Options{Seed: seed}).Run([][]byte{floatBytes(testInput(512))})
		var status *runner.StatusError
		if errors.As(err, &status) && strings.Contains(status.Text, "is used again before it has been taken") {
			failed++
		} else if err != nil {
			t.Fatalf("got %v, want a word that is used again too early", err)
		}
	}
	if failed == 0 {
		t.Error("no word was used too early with twenty seeds")
	}
	s = givenPlan(t, 4, 5, 64, 4)
	s.plan.Segments[0].Program.Slots[0].Gate = 7
	if err := vdevice.Verify(s.plan); err == nil || !strings.Contains(err.Error(), "takes slots through gates") {
		t.Errorf("a step that takes slots through two gates: got %v", err)
	}
	s = givenPlan(t, 4, 5, 64, 4)
	dir := emitStencil(t, s, Options{})
	replaceIn(t, filepath.Join(dir, "cudaemu", "cluster.h"), "if ((ranks >> rank & 1) == 0) continue;",
		"if ((ranks >> rank & 1) == 0 || rank == 2) continue;")
	_, err := openLib(t, buildEmulated(t, dir, "stencil"), runner.Options{}).Run([][]byte{floatBytes(testInput(256))})
	var status *runner.StatusError
	if !errors.As(err, &status) || status.Code != schema.StatusStuck ||
		!strings.Contains(status.Text, "vEU 2, step 1 waits for word") {
		t.Errorf("got %v, want stuck", err)
	} else if !strings.Contains(status.Text, "ONNX nodes: node_") {
		t.Errorf("got %v, want the step's nodes", err)
	}
}

func TestGPUClusters(t *testing.T) {
	t.Parallel()
	nvcc := needGPU(t)
	arch := gpuArch(t)
	if arch < "sm_90" {
		t.Skip("no clusters on ", arch)
	}
	for _, cluster := range []int{4, 8} {
		for name, c := range map[string]struct {
			flags  []string
			delays uint64
			runs   int
		}{"release": {nil, 0, 5000}, "delays": {[]string{"-DRT_DEBUG"}, 4, 1000}} {
			t.Run(fmt.Sprint(name, " ", cluster), func(t *testing.T) {
				t.Parallel()
				s := givenPlan(t, 64, 40, 64, cluster)
				lib := buildGPU(t, nvcc, emitStencil(t, s, Options{}), arch, c.flags...)
				l := openLib(t, lib, runner.Options{Mode: runner.RProgram, OnDevice: true, Delays: c.delays})
				if n := s.mismatches(t, l); n > 0 {
					t.Errorf("%d elements are wrong", n)
				}
				if n, err := l.Repeat([][]byte{floatBytes(testInput(64 * 64))}, c.runs, nil); err != nil || n != 0 {
					t.Errorf("%d runs differ, %v", n, err)
				}
				if n := s.mismatches(t, openLib(t, lib, runner.Options{Mode: runner.Waves, OnDevice: true})); n > 0 {
					t.Errorf("in waves %d elements are wrong", n)
				}
			})
		}
	}
}
