package steps

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// stagedModel has narrow and wide rows, each the mean of rows of the step before and of a row of an input. The executor
// copies the operands of both to the import area: narrow rows have more operands than direct steps may have, and the
// input of a wide row is not tagged. An rTask of a narrow row takes 64 of a vEU's 256 threads, one of a wide row all.
func stagedModel(t *testing.T, steps int) string {
	t.Helper()
	const narrow, narrowValues, wide, wideValues = 6, 24, 3, 120
	g := systemtest.NewModel("staged")
	g.Input("x", narrow, narrowValues)
	g.Input("u", wide, wideValues)
	g.Input("narrow_fed", narrow*steps, narrowValues)
	g.Input("wide_fed", wide*steps, wideValues)
	g.Output("y", narrow, narrowValues)
	g.Output("z", wide, wideValues)
	row := func(s, r int) string { return fmt.Sprintf("v%d_%d", s, r%narrow) }
	wideRow := func(s, r int) string { return fmt.Sprintf("w%d_%d", s, r%wide) }
	g.Split("x", systemtest.Names(narrow, func(r int) string { return row(0, r) }))
	g.Split("u", systemtest.Names(wide, func(r int) string { return wideRow(0, r) }))
	g.Split("narrow_fed", systemtest.Names(narrow*steps, func(k int) string { return fmt.Sprintf("a%d", k) }))
	g.Split("wide_fed", systemtest.Names(wide*steps, func(k int) string { return fmt.Sprintf("b%d", k) }))
	for s := range steps {
		for r := range narrow {
			g.Node("Mean", row(s+1, r), row(s, r), row(s, r+1), row(s, r+2), row(s, r+3),
				fmt.Sprintf("a%d", s*narrow+r))
		}
		for r := range wide {
			g.Node("Mean", wideRow(s+1, r), wideRow(s, r), wideRow(s, r+1), fmt.Sprintf("b%d", s*wide+r))
		}
	}
	g.Concat("y", systemtest.Names(narrow, func(r int) string { return row(steps, r) }))
	g.Concat("z", systemtest.Names(wide, func(r int) string { return wideRow(steps, r) }))
	return g.Write(t)
}

// mixedSteps counts the steps of wide rows in a plan's text that come next on their vEU behind one of a narrow row, run
// in resident mode, and take tagged data that another vEU made.
func mixedSteps(plan string) int {
	instance := map[string]string{} // by rOperator
	count, last := 0, ""
	for _, line := range strings.Split(plan, "\n") {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "op "):
			instance[words[1]] = words[len(words)-1]
		case strings.HasPrefix(line, "veu "):
			last = ""
		case strings.Contains(line, " wave "):
			op, _, _ := strings.Cut(words[0], ".")
			mixed := strings.Contains(instance[op], "map_staged_THREADS256") &&
				strings.Contains(last, "map_staged_THREADS64")
			if mixed && strings.Contains(line, " follow ") && strings.Contains(line, " resident") {
				count++
			}
			last = instance[op]
		}
	}
	return count
}

// Where steps with fewer threads than the vEU and steps with all of them follow each other, no thread reads operands
// before others have brought them, or after others have brought those of the next step: in any order of threads, with
// vEUs and warps held up at random.
func TestStagedSteps(t *testing.T) {
	t.Parallel()
	systemtest.NeedCxx(t)
	tmp := t.TempDir()
	o := driver.CompileOptions{Target: driver.TargetEmu, Plan: "rprogram", Debug: true}
	o.Path, o.Out, o.Dump = stagedModel(t, 8), filepath.Join(tmp, "lib"), filepath.Join(tmp, "dump")
	if _, err := driver.Compile(&driver.Job{}, o); err != nil {
		t.Fatal(err)
	}
	plans, err := filepath.Glob(filepath.Join(o.Dump, "*.rprog"))
	if err != nil || len(plans) != 1 {
		t.Fatal(plans, err)
	}
	text, err := os.ReadFile(plans[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := mixedSteps(string(text)); n < 4 {
		t.Errorf("%d steps of all threads behind one of few threads, want some:\n%s", n, text)
	}
	for seed := range uint64(6) {
		v := commands.VerifyOptions{Model: o.Path, RandomSeed: seed, Samples: 2, Repeat: 3}
		v.Path, v.Engine, v.EmuSeed, v.Delays, v.Waves = o.Out, engine.Emu, seed, seed, seed == 5
		if r, err := commands.Verify(&driver.Job{}, v); err != nil || !r.OK {
			t.Errorf("seed %d: %+v, %v", seed, r, err)
		}
	}
}

// stagedBarriers are the barriers around an rTask whose operands the executor brings.
var stagedBarriers = []struct{ what, old, new string }{
	{
		"between bringing operands and reading them",
		"      detail::block_barrier(threads_);\n    }\n  }\n  delay(Pause::kRTask",
		"    }\n  }\n  delay(Pause::kRTask",
	},
	{
		"between reading operands and bringing the next ones",
		"    settle<1>();  // the rTask has no copies", "    cp_async_wait<1>();  // the rTask has no copies",
	},
}

// plantStagedFault builds the model's program without the given barrier, and returns the library's folder.
func plantStagedFault(t *testing.T, cxx *toolchain.Cxx, model, old, new string, flags ...string) string {
	t.Helper()
	o := driver.CompileOptions{Target: driver.TargetEmu, Plan: "rprogram", Emit: driver.EmitSources}
	o.Path, o.Out = model, filepath.Join(t.TempDir(), "lib")
	if _, err := driver.Compile(&driver.Job{}, o); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(o.Out, "staged.cu")
	text, err := os.ReadFile(path)
	if err != nil || bytes.Count(text, []byte(old)) != 1 {
		t.Fatalf("%s has %q %d times, want once; %v", path, old, bytes.Count(text, []byte(old)), err)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(new), 1), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := cxx.BuildLibrary(t.Context(), o.Out, "staged", flags...); err != nil {
		t.Fatal(err)
	}
	return o.Out
}

// Each of these barriers is needed: without it some order of threads gives wrong results.
func TestStagedFaults(t *testing.T) {
	t.Parallel()
	cxx := systemtest.NeedCxx(t)
	model := stagedModel(t, 8)
	for _, c := range stagedBarriers {
		dir := plantStagedFault(t, cxx, model, c.old, c.new, "-O0")
		shows := false
		for seed := uint64(1); seed <= 8 && !shows; seed++ {
			v := commands.VerifyOptions{Model: model, RandomSeed: 1, Samples: 1}
			v.Path, v.Engine, v.EmuSeed = dir, engine.Emu, seed
			_, err := commands.Verify(&driver.Job{}, v)
			shows = err != nil
		}
		if !shows {
			t.Errorf("without the barrier %s everything is right", c.what)
		}
	}
}

// ThreadSanitizer knows of no order but the barriers': it finds nothing in the program, and the accesses that a missing
// barrier leaves without order.
func TestStagedStepsUnderThreadSanitizer(t *testing.T) {
	t.Parallel()
	cxx := systemtest.NeedCxx(t)
	systemtest.NeedThreadSanitizer(t, cxx)
	model := stagedModel(t, 3)
	v := commands.VerifyOptions{RandomSeed: 1, Samples: 2}
	v.Path, v.Engine, v.Sanitize, v.Plan = model, engine.Emu, true, "rprogram"
	if _, err := commands.Verify(&driver.Job{}, v); err != nil {
		t.Error(err)
	}
	c := stagedBarriers[0]
	v.Path, v.Model, v.Plan = plantStagedFault(t, cxx, model, c.old, c.new, "-O0", "-fsanitize=thread", "-g1"), model, ""
	_, err := commands.Verify(&driver.Job{}, v)
	for _, want := range []string{"data race", "import_", "compute_rtask"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without the barrier %s: the report lacks %q: %v", c.what, want, err)
		}
	}
}
