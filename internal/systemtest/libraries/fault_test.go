package libraries

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/schema"
)

// plantMissingWait drops the waits of one step for its neighbours' tiles.
func plantMissingWait(s *stencil.Model) {
	for _, steps := range s.Plan.Segments[0].Program.Steps {
		for i := range steps {
			steps[i].In = nil
		}
	}
}

func TestMissingWaitShows(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 4, 7, 256)
	plantMissingWait(s)
	lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil")
	for seed := uint64(1); seed <= 20; seed++ {
		if s.Mismatches(t, systemtest.OpenLib(t, lib, runner.Options{Seed: seed})) > 0 {
			return
		}
	}
	t.Error("a program without waits gave right results with twenty seeds")
}

// sanitized runs the program in dir under ThreadSanitizer, with its threads in the order of seed, and returns what that
// found, or "".
func sanitized(t *testing.T, s *stencil.Model, dir string, seed uint64) string {
	flags := []string{"-fsanitize=thread", "-g1"}
	lib := systemtest.BuildEmulated(t, dir, "stencil", flags...)
	env := []string{"TSAN_OPTIONS=halt_on_error=0 exitcode=66"}
	l, err := runner.Open(t.Context(), lib, runner.Options{Flags: flags, Env: env, Seed: seed})
	if err != nil {
		if strings.Contains(err.Error(), "ThreadSanitizer: unexpected memory mapping") ||
			strings.Contains(err.Error(), "-ltsan") {
			t.Skip("ThreadSanitizer does not run here: " + err.Error())
		}
		t.Fatal(err)
	}
	_, err = l.Run([][]byte{stencil.Bytes(stencil.Input(s.VEUs * s.Tile))})
	if cerr := l.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// ThreadSanitizer keeps the latest four accesses to eight bytes. Where others come between the two of a race, it does not
// see that race, and neither does it where threads happen to follow each other. So all tests look for one in several
// orders of threads: in correct programs in `orders`, and in others until one shows, in at most mostOrders.
const orders, mostOrders = 5, 50

// someSanitized are the programs that a run of all tests builds under ThreadSanitizer, which takes long: the first one,
// unless $RAMMER_SANITIZE asks for all.
func someSanitized[P any](programs []P) []P {
	if os.Getenv("RAMMER_SANITIZE") == "all" {
		return programs
	}
	return programs[:1]
}

// TestThreadSanitizer runs correct programs. What is missing in the order of memory accesses shows here.
func TestThreadSanitizer(t *testing.T) {
	t.Parallel()
	flags, counters := stencil.New(t, 3, 4, 64), stencil.New(t, 3, 4, 64)
	counters.Count(2)
	for _, c := range someSanitized([]struct {
		what string
		s    *stencil.Model
	}{
		{"a program with both signals", stencil.BothSignals(t, 4, 4, 64)},
		{"a program", flags},
		{"a program with counters", counters},
		{"a program in a cluster", stencil.Given(t, 4, 3, 64, 4)},
	}) {
		dir := systemtest.EmitStencil(t, c.s, codegen.Options{})
		for seed := uint64(1); seed <= orders; seed++ {
			if report := sanitized(t, c.s, dir, seed); report != "" {
				t.Fatalf("%s is correct, but it is not clean: %s", c.what, report)
			}
		}
	}
}

// TestThreadSanitizerFindsRaces runs programs that leave out an order between threads.
func TestThreadSanitizerFindsRaces(t *testing.T) {
	t.Parallel()
	findsRace := func(s *stencil.Model, dir string) bool {
		for seed := uint64(1); seed <= mostOrders; seed++ {
			if strings.Contains(sanitized(t, s, dir, seed), "data race") {
				return true
			}
		}
		return false
	}
	s := stencil.New(t, 3, 4, 64)
	s.Count(2)
	plantMissingWait(s)
	if !findsRace(s, systemtest.EmitStencil(t, s, codegen.Options{})) {
		t.Error("a missing wait was not reported")
	}
	for _, x := range someSanitized(weakened(t)) {
		dir := systemtest.EmitStencil(t, x.s, codegen.Options{})
		systemtest.ReplaceIn(t, filepath.Join(dir, "stencil.cu"), x.old, x.with)
		if !findsRace(x.s, dir) {
			t.Errorf("%s was not reported", x.what)
		}
	}
}

// weakening is a program and a change to its sources that leaves out an order between threads.
type weakening struct {
	what      string
	s         *stencil.Model
	old, with string
}

func weakened(t *testing.T) []weakening {
	counted := stencil.New(t, 3, 4, 64)
	counted.Count(2)
	both := stencil.BothSignals(t, 4, 4, 64)
	return []weakening{
		{"both signals without their fence", both, "    detail::fence_acq_rel_gpu();  // one for both\n", ""},
		{"publishing without release", stencil.New(t, 3, 4, 64), "detail::store_release_gpu(flag", "detail::store_relaxed_gpu(flag"},
		{"counting without release", counted, "detail::add_release_gpu(counter)", "detail::add_relaxed_gpu(counter)"},
		{"a missing barrier inside an rTask", stencil.New(t, 3, 4, 64), "    t.sync();\n", ""},
		{"a wait that does not acquire", stencil.New(t, 3, 4, 64), "detail::load_acquire_gpu(flag)",
			"detail::load_relaxed_gpu(flag)"},
	}
}

func TestDeadlockIsReported(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 4, 7, 256)
	for order := 3; order < 7; order++ { // a later signal would do for an earlier one
		s.Plan.Segments[0].Program.Steps[2][order].Out = nil
	}
	lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil")
	l := systemtest.OpenLib(t, lib, runner.Options{})
	_, err := l.Run([][]byte{stencil.Bytes(stencil.Input(1024))})
	var status *runner.StatusError
	if !errors.As(err, &status) || status.Code != schema.StatusStuck {
		t.Fatalf("got %v, want stuck", err)
	}
	for _, want := range []string{"segment 0", "waits for vEU 2, step 3", "expected flag 4, seen 3",
		"ONNX nodes: node_4"} {
		if !strings.Contains(status.Text, want) {
			t.Errorf("the report lacks %q: %s", want, status.Text)
		}
	}
}

// Random sleeps change no result of a correct program; builds that cannot sleep say so.
func TestDelays(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 4, 6, 64)
	s.Count(2)
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	lib := systemtest.BuildEmulated(t, dir, "stencil", "-DRT_DEBUG")
	for _, mode := range []runner.Mode{runner.RProgram, runner.Waves} {
		l := systemtest.OpenLib(t, lib, runner.Options{Mode: mode, Delays: 3})
		if n := s.Mismatches(t, l); n > 0 {
			t.Errorf("mode %s: %d elements are wrong", l.Launch.Mode, n)
		}
		if n, err := l.Repeat([][]byte{stencil.Bytes(stencil.Input(256))}, 20, nil); err != nil || n != 0 {
			t.Errorf("mode %s: %d of 20 runs differ, %v", l.Launch.Mode, n, err)
		}
	}
	_, err := runner.Open(t.Context(), systemtest.BuildEmulated(t, dir, "stencil"), runner.Options{Delays: 3})
	var status *runner.StatusError
	if !errors.As(err, &status) || status.Code != schema.StatusBadArgument ||
		!strings.Contains(status.Text, "debug builds") {
		t.Errorf("got %v, want delays refused", err)
	}
}

// An addition left out never lets those go on who wait for the counter.
func TestMissingAdditionIsReported(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 4, 7, 256)
	s.Count(1)
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	// In the tables the step still counts among those to wait for: what is left out is the addition.
	systemtest.ReplaceIn(t, filepath.Join(dir, "stencil.cu"), "detail::add_release_gpu(counter)",
		"if (!(veu_ == 2 && order == 3)) detail::add_release_gpu(counter)")
	l := systemtest.OpenLib(t, systemtest.BuildEmulated(t, dir, "stencil"), runner.Options{})
	for range 2 {
		_, err := l.Run([][]byte{stencil.Bytes(stencil.Input(1024))})
		var status *runner.StatusError
		if !errors.As(err, &status) || status.Code != schema.StatusStuck {
			t.Fatalf("got %v, want stuck", err)
		}
		for _, want := range []string{"waits for counter 3 of 4 additions", "expected 4, seen 3",
			"ONNX nodes: node_4"} {
			if !strings.Contains(status.Text, want) {
				t.Errorf("the report lacks %q: %s", want, status.Text)
			}
		}
	}
}

// A barrier that only some threads of an rTask reach must be reported too.
func TestDivergentBarrierIsReported(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 2, 2, 64)
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	systemtest.ReplaceIn(t, filepath.Join(dir, "stencil.cu"), "    t.sync();\n", "    if (t.tid != 5) t.sync();\n")
	l := systemtest.OpenLib(t, systemtest.BuildEmulated(t, dir, "stencil"), runner.Options{})
	_, err := l.Run([][]byte{stencil.Bytes(stencil.Input(128))})
	if err == nil || !strings.Contains(err.Error(), "threads wait at barrier") {
		t.Errorf("got %v", err)
	}
}

func TestOversizedGrid(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 8, 3, 64)
	lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil")
	_, err := runner.Open(t.Context(), lib, runner.Options{Mode: runner.RProgram, MaxBlocks: 7})
	var status *runner.StatusError
	if !errors.As(err, &status) || status.Code != schema.StatusNotResident ||
		!strings.Contains(status.Text, "8 vEUs, the device holds 7") {
		t.Errorf("got %v, want not resident", err)
	}
	l := systemtest.OpenLib(t, lib, runner.Options{MaxBlocks: 7})
	if l.Launch.Mode != "waves" || !strings.Contains(l.Launch.Reason, "8 vEUs") {
		t.Errorf("the fall-back says %+v", l.Launch)
	}
	if n := s.Mismatches(t, l); n > 0 {
		t.Errorf("in waves %d elements are wrong", n)
	}
}

// Somebody else is on the device: fewer blocks than its occupancy promises find room.
func TestTakenDevice(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 8, 4, 64)
	s.Count(2)
	lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil")
	x := [][]byte{stencil.Bytes(stencil.Input(512))}
	for _, c := range []struct {
		env  []string
		want string
	}{
		{[]string{"RAMMER_EMU_ROOM=5"}, "the device refused the rProgram: there is room for 5 of 8 blocks"},
		{[]string{"RAMMER_EMU_ROOM=5", "RAMMER_EMU_COOPERATIVE=0"},
			"of the rProgram's 8 vEUs only 5 were on the device at once"},
		{[]string{"RAMMER_EMU_ROOM=7", "RAMMER_EMU_COOPERATIVE=0"},
			"of the rProgram's 8 vEUs only 7 were on the device at once"},
	} {
		l := systemtest.OpenLib(t, lib, runner.Options{Env: c.env})
		if l.Launch.Mode != "rprogram" {
			t.Errorf("%v: before the first run it runs as %+v", c.env, l.Launch)
		}
		for range 3 {
			if n := s.Mismatches(t, l); n > 0 {
				t.Errorf("%v: %d elements are wrong", c.env, n)
			}
			if l.Launch.Mode != "waves" || l.Launch.Reason != c.want {
				t.Errorf("%v: it runs as %+v, want reason %q", c.env, l.Launch, c.want)
			}
		}
		l = systemtest.OpenLib(t, lib, runner.Options{Env: c.env, Mode: runner.RProgram})
		for range 2 {
			_, err := l.Run(x)
			var status *runner.StatusError
			if !errors.As(err, &status) || status.Code != schema.StatusNotResident {
				t.Errorf("%v: got %v, want not resident", c.env, err)
			}
		}
	}
	// The guard lets them pass when all come.
	l := systemtest.OpenLib(t, lib, runner.Options{Env: []string{"RAMMER_EMU_COOPERATIVE=0"}})
	for range 3 {
		if n := s.Mismatches(t, l); n > 0 || l.Launch.Mode != "rprogram" {
			t.Errorf("guarded: %d elements are wrong, it runs as %+v", n, l.Launch)
		}
	}
}

func TestWeightsFile(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 2, 2, 64)
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	lib := systemtest.BuildEmulated(t, dir, "stencil")
	good, err := os.ReadFile(filepath.Join(dir, "stencil.weights"))
	if err != nil {
		t.Fatal(err)
	}
	s.Coef[7] = 3 // another model of the same sizes
	other, err := os.ReadFile(filepath.Join(systemtest.EmitStencil(t, s, codegen.Options{}), "stencil.weights"))
	if err != nil {
		t.Fatal(err)
	}
	larger, err := os.ReadFile(filepath.Join(systemtest.EmitStencil(t, stencil.New(t, 2, 3, 128), codegen.Options{}), "stencil.weights"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte{}, good...)
	flipped[300] ^= 1
	for _, c := range []struct {
		name string
		data []byte
		code int
		want string
	}{
		{"other", other, schema.StatusWeightsMismatch, "belongs to another program"},
		{"larger", larger, schema.StatusWeightsMismatch, "its sizes differ"},
		{"flipped", flipped, schema.StatusWeightsMismatch, "is damaged"},
		{"short", good[:len(good)-20], schema.StatusWeightsMismatch, "is cut short"},
		{"empty", nil, schema.StatusWeightsMismatch, "is not a weights file"},
		{"foreign", []byte(strings.Repeat("hello ", 100)), schema.StatusWeightsMismatch, "is not a weights file"},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, c.data, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := runner.Open(t.Context(), lib, runner.Options{Weights: path})
		var status *runner.StatusError
		if !errors.As(err, &status) || status.Code != c.code || !strings.Contains(status.Text, c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir, "/dev/zero"} {
		_, err := runner.Open(t.Context(), lib, runner.Options{Weights: path})
		if err == nil || !strings.Contains(err.Error(), "is not a regular file") {
			t.Errorf("%s: got %v", path, err)
		}
	}
	_, err = runner.Open(t.Context(), lib, runner.Options{Weights: filepath.Join(dir, "none")})
	var status *runner.StatusError
	if !errors.As(err, &status) || status.Code != schema.StatusWeightsMissing {
		t.Errorf("no file: got %v", err)
	}
}

func TestCrashIsReported(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 2, 2, 64)
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	systemtest.ReplaceIn(t, filepath.Join(dir, "stencil.cu"), "    t.sync();\n", "    t.sync();\n    *(volatile int*)8 = 1;\n")
	l := systemtest.OpenLib(t, systemtest.BuildEmulated(t, dir, "stencil"), runner.Options{})
	_, err := l.Run([][]byte{stencil.Bytes(stencil.Input(128))})
	var crash *runner.Crash
	if !errors.As(err, &crash) || !strings.Contains(crash.State, "segmentation fault") {
		t.Errorf("got %v, want a crash", err)
	}
}
