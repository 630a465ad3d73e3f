package difftest

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// TestStepsAfterManyInferences runs inferences around those at which numbers of 32 bits wrap to 0. The steps take
// tagged words in three ways: through the import area (steps with many operands), by the threads that compute with them
// (direct steps), and from slots in shared memory (near steps, in clusters).
func TestStepsAfterManyInferences(t *testing.T) {
	t.Parallel()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	spec, err := device.Find("emu4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, kind string
		c          *Case
		old, new   string // a change of the source that makes results wrong only if the steps are of the case's kind
	}{
		{"resident", "rprogram", exchangeCase(t, 4, 40, 6), "to[wide * i] = static_cast<uint32_t>(v[k][0]);",
			"to[wide * i] = 0;"},
		{"direct", "rprogram", neighboursCase(t, 4, 40, 6), "give_word(here.to[k], tag, y[k])",
			"give_word(here.to[k], tag, y[k] + 1)"},
		{"near", "clusters-4", exchangeCase(t, 4, 64, 6), "around, bits[0], bits[1]", "around, bits[1], bits[0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			plan := verifiedPlan(t, c.c, spec, c.kind)
			for _, right := range []bool{true, false} {
				dir := t.TempDir()
				if err := codegen.Emit(plan, codegen.Options{Name: "wrap", Version: "test", Model: "wrap"},
					codegen.Dir(dir)); err != nil {
					t.Fatal(err)
				}
				if !right {
					replace(t, filepath.Join(dir, "wrap.cu"), c.old, c.new)
				}
				if _, err := cxx.BuildLibrary(t.Context(), dir, "wrap", "-O0", "-w"); err != nil {
					t.Fatal(err)
				}
				for _, before := range []uint64{0, 1<<31 - 3, 1<<32 - 3, 1<<32/7 - 3} {
					opt := runner.Options{Mode: runner.RProgram,
						Env: []string{fmt.Sprintf("RAMMER_LAUNCHES_BEFORE=%d", before)}}
					lib, err := runner.Open(t.Context(), filepath.Join(dir, "libwrap.so"), opt)
					if err != nil {
						t.Fatal(err)
					}
					for range 3 {
						out, err := runTwice(lib, c.c)
						if err != nil {
							t.Fatal(err)
						}
						if v := Judge(c.c, Result{Outputs: out}); (v.Failure == nil) != right {
							t.Errorf("after %d inferences: %v, want that it is right: %t", before, v.Failure, right)
						}
					}
					if err := lib.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}
