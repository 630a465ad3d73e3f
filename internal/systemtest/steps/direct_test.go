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
)

// sparseModel is rows that are made from rows of the step before, step by step, each a node of its own: what
// vEUs hand each other is little, and travels in words. Rows of an odd length leave threads without
// elements. Five steps are of one kind, and make a run; the sixth has three operands, of which one is a single element.
func sparseModel(t *testing.T, rows, values, steps int) string {
	t.Helper()
	g := systemtest.NewModel("sparse")
	g.Input("x", rows, values)
	g.Input("scale", 1, 1)
	g.Output("y", rows, values)
	at := func(s, r int) string { return fmt.Sprintf("v%d_%d", s, r%rows) }
	g.Split("x", systemtest.Names(rows, func(r int) string { return at(0, r) }))
	for s := range steps {
		scale := fmt.Sprintf("scale_%d", s)
		last := "scale"
		if s > 0 {
			last = fmt.Sprintf("scale_%d", s-1)
		}
		g.Node("Tanh", scale, last)
		for r := range rows {
			op, in := "Mean", []string{at(s, r), at(s, r+1)}
			if s%6 == 5 {
				op, in = "Max", append(in, scale)
			}
			g.Node(op, at(s+1, r), in...)
		}
	}
	g.Concat("y", systemtest.Names(rows, func(r int) string { return at(steps, r) }))
	return g.Write(t)
}

// Direct steps in any order of threads, with vEUs and warps held up at random; in waves there are none.
func TestDirectSteps(t *testing.T) {
	t.Parallel()
	systemtest.NeedCxx(t)
	for _, values := range []int{40, 250} { // the warp that fetches has elements of its own, or not
		o := driver.CompileOptions{Out: filepath.Join(t.TempDir(), "lib"), Target: driver.TargetEmu, Plan: "rprogram",
			Debug: true}
		o.Path = sparseModel(t, 6, values, 7)
		if _, err := driver.Compile(&driver.Job{}, o); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(6) {
			v := commands.VerifyOptions{Model: o.Path, RandomSeed: seed, Samples: 2, Repeat: 3}
			v.Path, v.Engine, v.EmuSeed, v.Delays, v.Waves = o.Out, engine.Emu, seed, seed, seed == 5
			if r, err := commands.Verify(&driver.Job{}, v); err != nil || !r.OK {
				t.Errorf("rows of %d, seed %d: %+v, %v", values, seed, r, err)
			}
		}
	}
}

func TestDirectStepsUnderThreadSanitizer(t *testing.T) {
	t.Parallel()
	systemtest.NeedThreadSanitizer(t, systemtest.NeedCxx(t))
	v := commands.VerifyOptions{RandomSeed: 1, Samples: 2}
	v.Path, v.Engine, v.Sanitize, v.Plan = sparseModel(t, 5, 250, 4), engine.Emu, true, "rprogram"
	if _, err := commands.Verify(&driver.Job{}, v); err != nil {
		t.Error(err)
	}
}

// What is missing in direct steps shows: words that never come are reported, and where those who compute do not wait
// for descriptors, or the warp that fetches them not until they are used, threads find those of another step.
func TestDirectFaults(t *testing.T) {
	t.Parallel()
	cxx := systemtest.NeedCxx(t)
	model := sparseModel(t, 6, 40, 10)
	for _, c := range []struct {
		old, new string
		want     []string
	}{
		{
			"if (tid_ < here.count) give_word(", "if (tid_ < here.count && veu_ != 1) give_word(",
			[]string{"segment 0, vEU ", " step ", "waits for tagged word ", "expected tag 1, seen 0", "ONNX nodes: v"},
		},
		{"detail::wait_for_fetched(i % 2, meeting<K>());", ";", nil},
		{"detail::wait_for_used(k % 2, both);", ";", nil},
	} {
		o := driver.CompileOptions{Out: filepath.Join(t.TempDir(), "lib"), Target: driver.TargetEmu, Plan: "rprogram",
			Emit: driver.EmitSources}
		o.Path = model
		if _, err := driver.Compile(&driver.Job{}, o); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(o.Out, "sparse.cu")
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(c.old)) {
			t.Fatalf("%s has no %q to change; %v", path, c.old, err)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(c.old), []byte(c.new)), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := cxx.BuildLibrary(t.Context(), o.Out, "sparse", "-O0"); err != nil {
			t.Fatal(err)
		}
		shows := false
		for seed := uint64(1); seed <= 8 && !shows; seed++ {
			v := commands.VerifyOptions{Model: model, RandomSeed: 1, Samples: 1}
			v.Path, v.Engine, v.EmuSeed = o.Out, engine.Emu, seed
			_, err := commands.Verify(&driver.Job{}, v)
			shows = err != nil
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: the report lacks %q: %v", c.new, want, err)
				}
			}
		}
		if !shows {
			t.Errorf("without %q everything is right", c.old)
		}
	}
}
