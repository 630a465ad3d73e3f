package programs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/vdevice"
)

// programConstant reads a constant of the emitted struct Program.
func programConstant(t *testing.T, dir, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "stencil.cu"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`\b` + name + ` = (\d+)`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("the program has no %s", name)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

func TestRingOnEmulator(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		tile, shared int
		chunks       int // at least so many a block
	}{
		{"block and ring", 512, 32 << 10, 1},
		{"block larger than the ring", 1536, 20 << 10, 3},
	} {
		s := stencil.Streamed(t, 4, 8, c.tile)
		s.Plan.Spec.Shared, s.Plan.Spec.SharedPerVEU = c.shared, c.shared
		dir := systemtest.EmitStencil(t, s, codegen.Options{})
		stage := programConstant(t, dir, "kStageBytes")
		if stage == 0 || 4*c.tile < (c.chunks-1)*stage+1 {
			t.Errorf("%s: stages have %d bytes, want blocks of %d bytes in %d chunks", c.name, stage, 4*c.tile,
				c.chunks)
		}
		lib := systemtest.BuildEmulated(t, dir, "stencil", "-O1")
		for seed := uint64(1); seed <= 3; seed++ {
			for _, mode := range []runner.Mode{runner.RProgram, runner.Waves} {
				l := systemtest.OpenLib(t, lib, runner.Options{Mode: mode, Seed: seed})
				for range 2 {
					if n := s.Mismatches(t, l); n > 0 {
						t.Errorf("%s, mode %s, seed %d: %d elements are wrong", c.name, l.Launch.Mode, seed, n)
					}
				}
			}
		}
	}
}

// Stages of several sizes, in an rProgram and in waves.
func TestRingOfLargeTiles(t *testing.T) {
	t.Parallel()
	s := stencil.Streamed(t, 3, 7, 1024)
	l := systemtest.OpenStencil(t, s, runner.Options{})
	for range 3 {
		if n := s.Mismatches(t, l); n > 0 {
			t.Errorf("%d elements are wrong", n)
		}
	}
	s.Plan.Segments[0].Kind = vdevice.Waves
	l = systemtest.OpenStencil(t, s, runner.Options{})
	if n := s.Mismatches(t, l); n > 0 {
		t.Errorf("in waves %d elements are wrong", n)
	}
}

// A program without streaming instances has neither ring nor loader.
func TestNoRing(t *testing.T) {
	t.Parallel()
	dir := systemtest.EmitStencil(t, stencil.New(t, 2, 2, 64), codegen.Options{})
	if n := programConstant(t, dir, "kStageBytes"); n != 0 {
		t.Errorf("stages of %d bytes for nothing", n)
	}
}

// ringFaults are planted into an emitted program, each behind an environment variable of its name.
var ringFaults = []struct{ name, old, new string }{
	{"NO_FULL_WAIT", "    detail::mbarrier_wait(full_ + next_.stage,",
		"    if (!FAULT) detail::mbarrier_wait(full_ + next_.stage,"},
	{"NO_FREE_WAIT", "      if (at.phase > 0) wait(", "      if (at.phase > 0 && !FAULT) wait("},
	{"FEW_CHUNKS", "      }\n      s.pop();\n", "      }\n      if (!FAULT || done > 0) s.pop();\n"},
	{"LATE_READ", "const float* coef = reinterpret_cast<const float*>(s.front());",
		"const float* coef = reinterpret_cast<const float*>(s.front());\n" +
			"      if (FAULT) { rt::Stream early = s; early.pop(); }"},
	{"NO_LOADER", "  for (uint32_t i = mine.first; i < mine.last;) {\n",
		"  for (uint32_t i = mine.first; i < mine.last && !FAULT;) {\n"},
}

// emitFaulty emits a program that streams, with the faults.
func emitFaulty(t *testing.T) (*stencil.Model, string) {
	t.Helper()
	s := stencil.Streamed(t, 2, 24, 256)
	s.Plan.Spec.Shared, s.Plan.Spec.SharedPerVEU = 14<<10, 14<<10
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	for _, f := range ringFaults {
		systemtest.ReplaceIn(t, filepath.Join(dir, "stencil.cu"), f.old,
			strings.ReplaceAll(f.new, "FAULT", fmt.Sprintf("std::getenv(%q)", f.name)))
	}
	return s, dir
}

// runFaulty runs the library once with the given fault, or none.
func runFaulty(t *testing.T, s *stencil.Model, lib, fault string, opt runner.Options) (wrong int, err error) {
	t.Helper()
	if fault != "" {
		opt.Env = append(slices.Clip(opt.Env), fault+"=1")
	}
	l, err := runner.Open(t.Context(), lib, opt)
	if err != nil {
		if strings.Contains(err.Error(), "ThreadSanitizer: unexpected memory mapping") ||
			strings.Contains(err.Error(), "-ltsan") {
			t.Skip("ThreadSanitizer does not run here: " + err.Error())
		}
		t.Fatal(err)
	}
	x := stencil.Input(s.VEUs * s.Tile)
	out, err := l.Run([][]byte{stencil.Bytes(x)})
	if cerr := l.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, err
	}
	want := s.Expect(x)
	for i, y := range stencil.Floats(out[0]) {
		if d := y - want[i]; !(d < 1e-5 && d > -1e-5) {
			wrong++
		}
	}
	return wrong, nil
}

func TestRingFaults(t *testing.T) {
	t.Parallel()
	s, dir := emitFaulty(t)
	lib := systemtest.BuildEmulated(t, dir, "stencil")
	for _, c := range []struct{ fault, want string }{
		{"NO_FULL_WAIT", ""}, {"NO_FREE_WAIT", ""}, {"LATE_READ", ""}, // wrong results will do
		{"FEW_CHUNKS", "does not take all chunks of its weights"},
		{"NO_LOADER", "step 0 waits for its weights in stage 0 of the ring: expected filling 1, seen 0; its rTask is "},
	} {
		shows := false
		for seed := uint64(1); seed <= 20 && !shows; seed++ {
			n, err := runFaulty(t, s, lib, c.fault, runner.Options{Seed: seed})
			shows = n > 0 || err != nil
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %d elements are wrong, %v; want %q", c.fault, n, err, c.want)
			}
		}
		if !shows {
			t.Errorf("%s: twenty seeds gave right results", c.fault)
		}
	}
	if n, err := runFaulty(t, s, lib, "", runner.Options{}); err != nil || n > 0 {
		t.Errorf("without faults %d elements are wrong, %v", n, err)
	}
}

func TestRingUnderThreadSanitizer(t *testing.T) {
	t.Parallel()
	opt := runner.Options{Env: []string{"TSAN_OPTIONS=halt_on_error=0 exitcode=66"},
		Flags: []string{"-fsanitize=thread", "-g1"}}
	s, dir := emitFaulty(t)
	lib := systemtest.BuildEmulated(t, dir, "stencil", opt.Flags...)
	if _, err := runFaulty(t, s, lib, "", opt); err != nil {
		t.Errorf("a correct program is not clean: %v", err)
	}
	// In some runs a thread is so far behind the loader that the emulator ends the program before there is a race.
	var err error
	for opt.Seed = 1; opt.Seed <= 20; opt.Seed++ {
		if _, err = runFaulty(t, s, lib, "NO_FULL_WAIT", opt); err != nil && strings.Contains(err.Error(), "data race") {
			return
		}
	}
	t.Errorf("a missing wait for a chunk was not reported as a race: %v", err)
}

// The three ways to fill a stage.
func TestRingCompilesForGPUs(t *testing.T) {
	t.Parallel()
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		t.Skip(err)
	}
	s := stencil.Streamed(t, 4, 6, 512)
	s.Plan.Spec.L2Bytes = 1 << 10 // its weights pass
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	b, err := nvcc.BuildLibrary(t.Context(), dir, "stencil", []string{"sm_75", "sm_80", "sm_90"})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range b.Kernels {
		if k.SpillStores > 0 {
			t.Errorf("%s: %+v", k.Name, k)
		}
	}
	for _, r := range b.Runs {
		if strings.Contains(r.Output, "warning") {
			t.Errorf("nvcc warns:\n%s", r.Output)
		}
	}
}

// A launch takes as many stages as it has chunks, of half a multiprocessor's shared memory; blocks that
// stream more than the whole holds take that.
func TestStages(t *testing.T) {
	t.Parallel()
	s := stencil.Streamed(t, 2, 4, 512)
	s.Plan.Segments[0].Kind = vdevice.Waves
	s.Plan.Spec.Shared, s.Plan.Spec.SharedPerVEU = 101<<10, 100<<10
	s.Plan.Spec.Cost.PDL, s.Plan.Spec.Cost.Node = 1, 2 // launches overlap
	s.Plan.Segments[0].Program.Alone = []int32{2}
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	side, all := programConstant(t, dir, "kSideBudget"), programConstant(t, dir, "kSharedBudget")
	if side >= all {
		t.Fatalf("launches that overlap have %d bytes, others %d", side, all)
	}
	source := filepath.Join(dir, "stencil.cu")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	checks := `
namespace {
using Layout = rt::SharedLayout<Kernel0>;
constexpr int kAll = Layout::stages(0, 1000, true), kSide = Layout::stages(0, kAll, false);
static_assert(Layout::stages(0, 1, false) == 1 && Layout::stages(0, 0, false) == 0);
static_assert(2 <= kSide && kSide < kAll && Layout::bytes(0, kAll) <= Program::kSharedBudget);
static_assert(Layout::bytes(0, kSide) <= Kernel0::kSideBudget && Layout::bytes(0, kSide + 1) > Kernel0::kSideBudget);
static_assert(Layout::stages(0, kAll + 1, false) == kAll && Layout::stages(0, kSide + 1, false) == kSide);
// Blocks that are alone find no room beside each other, but beside one with a ring.
constexpr size_t kAlone = Layout::alone(Layout::bytes(0, 0)), kReserved = 1 << 10, kRoom = 101 << 10;
static_assert(2 * (kAlone + kReserved) > kRoom && kAlone + kReserved + Kernel0::kSideBudget + kReserved <= kRoom);
static_assert(Layout::alone(kRoom) == kRoom);
}
`
	if err := os.WriteFile(source, append(text, checks...), 0o666); err != nil {
		t.Fatal(err)
	}
	systemtest.BuildEmulated(t, dir, "stencil")
}

// Weights leave L2 first in an rProgram that streams many more of them than L2 holds; blocks that several rTasks read
// count once.
func TestPassingWeights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind vdevice.SegmentKind
		l2   int64
		want bool
	}{
		{vdevice.RProgram, 3 << 10, true}, {vdevice.RProgram, 5 << 10, false}, {vdevice.Waves, 3 << 10, false},
	} {
		s := stencil.Streamed(t, 4, 8, 512) // six stages stream the same 8 KB
		s.Plan.Spec.L2Bytes, s.Plan.Segments[0].Kind = c.l2, c.kind
		text, err := os.ReadFile(filepath.Join(systemtest.EmitStencil(t, s, codegen.Options{}), "stencil.cu"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), fmt.Sprintf("kPassing = %v;", c.want)) {
			t.Errorf("%v, %d bytes of L2: want weights that pass: %v", c.kind, c.l2, c.want)
		}
	}
}
