package programs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/schema"
	"github.com/rammerc/rammerc/vdevice"
)

// needGPU skips tests that run emitted programs on a GPU where there is none.
func needGPU(t *testing.T) *toolchain.NVCC {
	t.Helper()
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		t.Skip(err)
	}
	if _, err := os.Stat("/dev/nvidia0"); err != nil {
		t.Skip("no GPU: ", err)
	}
	return nvcc
}

// gpuArch is the architecture of the GPU at hand.
func gpuArch(t *testing.T) string {
	out, err := exec.Command("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader").Output()
	if err != nil {
		t.Skip("nvidia-smi: ", err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return "sm_" + strings.ReplaceAll(strings.TrimSpace(line), ".", "")
}

func buildGPU(t *testing.T, nvcc *toolchain.NVCC, dir, arch string, flags ...string) string {
	t.Helper()
	if _, err := nvcc.BuildLibrary(t.Context(), dir, "stencil", []string{arch}, flags...); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "libstencil.so")
}

func TestGPUProgram(t *testing.T) {
	t.Parallel()
	nvcc := needGPU(t)
	s := stencil.New(t, 100, 12, 256)
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	lib := buildGPU(t, nvcc, dir, gpuArch(t))
	x := stencil.Bytes(stencil.Input(100 * 256))
	for _, mode := range []runner.Mode{runner.RProgram, runner.Waves} {
		for _, onDevice := range []bool{false, true} {
			l := systemtest.OpenLib(t, lib, runner.Options{Mode: mode, OnDevice: onDevice})
			for range 5 {
				if n := s.Mismatches(t, l); n > 0 {
					t.Errorf("%s, on device %t: %d elements are wrong", l.Launch.Mode, onDevice, n)
				}
			}
			if n, err := l.Repeat([][]byte{x}, 1000, nil); err != nil || n != 0 {
				t.Errorf("%s: %d of 1000 runs differ, %v", l.Launch.Mode, n, err)
			}
			ms, err := l.Bench([][]byte{x}, 20, 200)
			if err != nil {
				t.Fatal(err)
			}
			sort.Float64s(ms)
			t.Logf("%s, on device %t: %.4f ms (median), %.4f (least) for %d dependent stages", l.Launch.Mode, onDevice,
				ms[len(ms)/2], ms[0], s.Stages)
		}
	}
	captured(t, nvcc, dir, lib, stencil.Input(100*256), s.Expect(stencil.Input(100*256)))
}

// captured runs a user's program that captures inferences into a CUDA graph of its own.
func captured(t *testing.T, nvcc *toolchain.NVCC, dir, lib string, x, want []float32) {
	t.Helper()
	for name, data := range map[string][]float32{"x": x, "want": want} {
		if err := os.WriteFile(filepath.Join(dir, name), stencil.Bytes(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	source, err := filepath.Abs("testdata/capture.cu")
	if err != nil {
		t.Fatal(err)
	}
	systemtest.Command(t, dir, nvcc.Path, "-std=c++20", "-I.", source, lib, "-Xlinker", "-rpath,"+dir, "-o", "capture")
	if out := systemtest.Command(t, dir, "./capture"); out != "0 failures\n" {
		t.Error(out)
	}
	if tool, err := exec.LookPath("compute-sanitizer"); err == nil {
		for _, check := range []string{"memcheck", "racecheck", "synccheck"} {
			t.Run(check, func(t *testing.T) {
				t.Parallel()
				systemtest.Command(t, dir, tool, "--tool", check, "--error-exitcode", "9", "./capture")
			})
		}
	}
}

// Counters beside flags, and random sleeps in a debug build.
func TestGPUCounters(t *testing.T) {
	t.Parallel()
	nvcc := needGPU(t)
	for name, c := range map[string]struct {
		flags  []string
		delays uint64
		runs   int
	}{"release": {nil, 0, 5000}, "delays": {[]string{"-DRT_DEBUG"}, 9, 2000}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stencil.New(t, 100, 12, 256)
			s.Count(2)
			lib := buildGPU(t, nvcc, systemtest.EmitStencil(t, s, codegen.Options{}), gpuArch(t), c.flags...)
			l := systemtest.OpenLib(t, lib, runner.Options{Mode: runner.RProgram, OnDevice: true, Delays: c.delays})
			if n := s.Mismatches(t, l); n > 0 {
				t.Errorf("%d elements are wrong", n)
			}
			if n, err := l.Repeat([][]byte{stencil.Bytes(stencil.Input(100 * 256))}, c.runs, nil); err != nil || n != 0 {
				t.Errorf("%d runs differ, %v", n, err)
			}
		})
	}
}

// Several contexts in flight on streams of their own; without a GPU only the compiler's part is tested.
func TestGPUContexts(t *testing.T) {
	t.Parallel()
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		t.Skip(err)
	}
	s := stencil.New(t, 60, 12, 256)
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	_, noGPU := os.Stat("/dev/nvidia0")
	arch := "sm_90"
	if noGPU == nil {
		arch = gpuArch(t)
	}
	lib := buildGPU(t, nvcc, dir, arch)
	x := stencil.Input(60 * 256)
	for name, data := range map[string][]float32{"x": x, "want": s.Expect(x)} {
		if err := os.WriteFile(filepath.Join(dir, name), stencil.Bytes(data), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	source, err := filepath.Abs("testdata/contexts.cu")
	if err != nil {
		t.Fatal(err)
	}
	if noGPU != nil {
		systemtest.Command(t, dir, nvcc.Path, "-std=c++20", "-I.", "-c", source, "-o", "contexts.o")
		t.Log("compiled; there is no GPU to run it")
		return
	}
	systemtest.Command(t, dir, nvcc.Path, "-std=c++20", "-I.", source, lib, "-Xlinker", "-rpath,"+dir, "-o", "contexts")
	if out := systemtest.Command(t, dir, "./contexts"); out != "0 failures\n" {
		t.Error(out)
	}
}

// Launches on several streams: put there one by one, captured by the context and captured by the caller.
func TestGPUParallel(t *testing.T) {
	t.Parallel()
	nvcc := needGPU(t)
	s := stencil.Forking(t, 40, 256)
	s.Fork()
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	lib := buildGPU(t, nvcc, dir, gpuArch(t))
	x := stencil.Input(40 * 256)
	for _, onDevice := range []bool{false, true} {
		l := systemtest.OpenLib(t, lib, runner.Options{OnDevice: onDevice})
		for range 5 {
			if n := s.ForkMismatches(t, l); n > 0 {
				t.Errorf("on device %t: %d elements are wrong", onDevice, n)
			}
		}
		if n, err := l.Repeat([][]byte{stencil.Bytes(x)}, 2000, nil); err != nil || n != 0 {
			t.Errorf("%d of 2000 runs differ, %v", n, err)
		}
	}
	want := x
	for _, stage := range []int{0, 1, 3, 4} {
		want = s.ExpectStage(want, stage)
	}
	captured(t, nvcc, dir, lib, x, want)
}

// needGPUAlone skips while other processes use the GPU too: at times the driver ends their work together with that of a
// process that traps (bench/results/h200-neighbours.json). Tests that call it do not run in parallel with others.
func needGPUAlone(t *testing.T) *toolchain.NVCC {
	t.Helper()
	nvcc := needGPU(t)
	out, err := exec.Command("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader").Output()
	if err != nil {
		t.Skip("nvidia-smi: ", err)
	}
	if pids := strings.Fields(string(out)); len(pids) > 0 {
		t.Skip("this test traps, and other processes use the GPU: ", pids)
	}
	return nvcc
}

// The debug build reports a wait that never ends, of all that wait the one at the earliest step.
func TestGPUDeadlock(t *testing.T) {
	nvcc := needGPUAlone(t)
	s := stencil.New(t, 4, 7, 256)
	for order := 3; order < 7; order++ {
		s.Plan.Segments[0].Program.Steps[2][order].Out = nil
	}
	lib := buildGPU(t, nvcc, systemtest.EmitStencil(t, s, codegen.Options{}), gpuArch(t), "-DRT_DEBUG")
	l := systemtest.OpenLib(t, lib, runner.Options{WatchdogNS: uint64(time.Second / 2)})
	_, err := l.Run([][]byte{stencil.Bytes(stencil.Input(1024))})
	var status *runner.StatusError
	if !errors.As(err, &status) || status.Code != schema.StatusStuck ||
		!strings.Contains(status.Text, "waits for vEU 2, step 3") ||
		!strings.Contains(status.Text, "node_4") {
		t.Errorf("got %v", err)
	}
}

// A library for another GPU does not open.
func TestGPUAnother(t *testing.T) {
	t.Parallel()
	nvcc := needGPU(t)
	other := "sm_80"
	if gpuArch(t) == other {
		other = "sm_90"
	}
	lib := buildGPU(t, nvcc, systemtest.EmitStencil(t, stencil.New(t, 2, 2, 64), codegen.Options{}), other)
	_, err := runner.Open(t.Context(), lib, runner.Options{})
	var status *runner.StatusError
	if !errors.As(err, &status) || status.Code != schema.StatusDeviceUnfit ||
		!strings.Contains(status.Text, strings.TrimPrefix(other, "sm_")) {
		t.Errorf("got %v", err)
	}
}

// Neighbouring tiles are on different vEUs in every stage, so a wave that reads before the one before it
// has ended shows; with fewer stages than waves some launches have nothing to do for most vEUs.
func TestGPUWavesOverlap(t *testing.T) {
	t.Parallel()
	nvcc := needGPU(t)
	s := stencil.New(t, 120, 30, 64)
	s.Plan.Segments[0].Kind = vdevice.Waves
	l := systemtest.OpenLib(t, buildGPU(t, nvcc, systemtest.EmitStencil(t, s, codegen.Options{}), gpuArch(t)), runner.Options{OnDevice: true})
	x := stencil.Bytes(stencil.Input(120 * 64))
	for range 3 {
		if n := s.Mismatches(t, l); n > 0 {
			t.Errorf("%d elements are wrong", n)
		}
	}
	if n, err := l.Repeat([][]byte{x}, 2000, nil); err != nil || n != 0 {
		t.Errorf("%d of 2000 runs differ, %v", n, err)
	}
	ms, err := l.Bench([][]byte{x}, 20, 200)
	if err != nil {
		t.Fatal(err)
	}
	sort.Float64s(ms)
	t.Logf("%.4f ms (median) for %d waves", ms[len(ms)/2], s.Stages)
}
