package programs

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// In one cluster all words are in shared memory; of several, those at the ends go the long way.
func TestClusters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		veus, cluster int
		flags         []string
	}{{4, 4, nil}, {8, 8, []string{"-DRT_DEBUG"}}, {8, 4, nil}} {
		s := stencil.Given(t, c.veus, 9, 64, c.cluster)
		p := s.Plan.Segments[0].Program
		if all := 3 * c.veus * 8; len(p.Slots) != all && c.veus == c.cluster || len(p.Slots) == 0 ||
			len(p.Slots) > all {
			t.Errorf("%+v: %d slots", c, len(p.Slots))
		}
		lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil", append([]string{"-O1"}, c.flags...)...)
		for seed := uint64(1); seed <= 3; seed++ {
			opt := runner.Options{Seed: seed}
			if c.flags != nil {
				opt.Delays = seed
			}
			l := systemtest.OpenLib(t, lib, opt)
			for range 4 {
				if n := s.Mismatches(t, l); n > 0 {
					t.Errorf("%+v, seed %d: %d elements are wrong", c, seed, n)
				}
			}
			opt.Mode = runner.Waves
			if n := s.Mismatches(t, systemtest.OpenLib(t, lib, opt)); n > 0 {
				t.Errorf("%+v, seed %d in waves: %d elements are wrong", c, seed, n)
			}
		}
		l := systemtest.OpenLib(t, lib, runner.Options{MaxBlocks: c.cluster - 1})
		if n := s.Mismatches(t, l); n > 0 || l.Launch.Mode != "waves" ||
			!strings.Contains(l.Launch.Reason, "in clusters of") {
			t.Errorf("%+v on a device without room for it: %+v, %d elements are wrong", c, l.Launch, n)
		}
	}
}

// Words that are used again too early, which the emulator sees, and words that never come.
func TestClusterFaults(t *testing.T) {
	t.Parallel()
	s := stencil.Given(t, 8, 9, 64, 8)
	p := s.Plan.Segments[0].Program
	for i := range p.Slots {
		p.Slots[i].At %= 3 * 64 // one set of words instead of two
	}
	lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil")
	failed := 0
	for seed := uint64(1); seed <= 20 && failed == 0; seed++ {
		_, err := systemtest.OpenLib(t, lib, runner.Options{Seed: seed}).Run([][]byte{stencil.Bytes(stencil.Input(512))})
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
	s = stencil.Given(t, 4, 5, 64, 4)
	s.Plan.Segments[0].Program.Slots[0].Gate = 7
	if err := vdevice.Verify(s.Plan); err == nil || !strings.Contains(err.Error(), "takes slots through gates") {
		t.Errorf("a step that takes slots through two gates: got %v", err)
	}
	s = stencil.Given(t, 4, 5, 64, 4)
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	systemtest.ReplaceIn(t, filepath.Join(dir, "cudaemu", "cluster.h"), "if ((ranks >> rank & 1) == 0) continue;",
		"if ((ranks >> rank & 1) == 0 || rank == 2) continue;")
	_, err := systemtest.OpenLib(t, systemtest.BuildEmulated(t, dir, "stencil"), runner.Options{}).Run([][]byte{stencil.Bytes(stencil.Input(256))})
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
				s := stencil.Given(t, 64, 40, 64, cluster)
				lib := buildGPU(t, nvcc, systemtest.EmitStencil(t, s, codegen.Options{}), arch, c.flags...)
				l := systemtest.OpenLib(t, lib, runner.Options{Mode: runner.RProgram, OnDevice: true, Delays: c.delays})
				if n := s.Mismatches(t, l); n > 0 {
					t.Errorf("%d elements are wrong", n)
				}
				if n, err := l.Repeat([][]byte{stencil.Bytes(stencil.Input(64 * 64))}, c.runs, nil); err != nil || n != 0 {
					t.Errorf("%d runs differ, %v", n, err)
				}
				if n := s.Mismatches(t, systemtest.OpenLib(t, lib, runner.Options{Mode: runner.Waves, OnDevice: true})); n > 0 {
					t.Errorf("in waves %d elements are wrong", n)
				}
			})
		}
	}
}
