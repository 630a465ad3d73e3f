package attacks

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/schedule"
)

// sanitized is a model and the flags with which it is compiled.
type sanitized struct {
	name  string
	model string
	flags []string
}

// sanitizedFew are the programs of TestSanitizers in a usual run: the kinds of segments, a ring, slots of clusters.
var sanitizedFew = []sanitized{
	{"digits_branchy-rprogram", "digits_branchy", []string{"--plan", "rprogram"}},
	{"digits_attention-parallel", "digits_attention", []string{"--plan", "parallel"}},
}

// sanitizedAll are all digits models with each kind of plan, in each precision, and with a range of batches.
func sanitizedAll(t *testing.T) []sanitized {
	spec, err := device.Find("emu4")
	if err != nil {
		t.Fatal(err)
	}
	var all []sanitized
	for _, model := range []string{"digits_attention", "digits_branchy", "digits_lstm"} {
		for _, plan := range schedule.PlansFor(spec) {
			all = append(all, sanitized{model + "-" + plan, model, []string{"--plan", plan}})
		}
		for _, precision := range []string{"strict", "tf32", "fp16", "bf16"} {
			all = append(all, sanitized{model + "-" + precision, model, []string{"--precision", precision}})
		}
		all = append(all, sanitized{model + "-range", model + "_dyn", []string{"--dim", "batch=1..3", "--typical", "auto"}},
			sanitized{model + "-debug", model, []string{"--plan", "rprogram", "--debug"}})
	}
	return all
}

// TestSanitizers uses emitted libraries as nobody should (testdata/abuse.cc), in programs that are built with
// AddressSanitizer and UndefinedBehaviorSanitizer. With RAMMER_SANITIZE=all in the environment these are all models and
// kinds of plans, otherwise a few.
func TestSanitizers(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: builds programs with sanitizers")
	}
	t.Parallel()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	exe := systemtest.Rammerc(t)
	cases := sanitizedFew
	if os.Getenv("RAMMER_SANITIZE") == "all" {
		cases = sanitizedAll(t)
	}
	others := t.TempDir()
	for _, model := range []string{"digits_branchy", "digits_lstm"} {
		emit(t, exe, "../../../testdata/models/"+model+".onnx", filepath.Join(others, model), "--plan", "waves")
	}
	programs := map[string]string{} // which case has a program first
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir, other := t.TempDir(), "digits_lstm"
			emit(t, exe, "../../../testdata/models/"+c.model+".onnx", dir, c.flags...)
			if strings.HasPrefix(c.model, other) {
				other = "digits_branchy"
			}
			program := contents(t, dir, "*.cu", "*.h", "*.weights") + fmt.Sprint(slices.Contains(c.flags, "--debug"))
			if first, known := programs[program]; known {
				t.Logf("the program is that of %s", first)
				return
			}
			programs[program] = c.name
			t.Parallel()
			c.abuse(t, cxx, dir, filepath.Join(others, other, other+".weights"))
		})
	}
}

// abuse builds the program of testdata/abuse.cc with the library in dir, and runs it. other is a file of weights of another
// model.
func (c *sanitized) abuse(t *testing.T, cxx *toolchain.Cxx, dir, other string) {
	source, err := filepath.Abs("testdata/abuse.cc")
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"-O0", "-g1", "-w", "-I.", "-DLIBRARY=" + c.model, "-fsanitize=address,undefined",
		"-fno-sanitize-recover=undefined"}
	if slices.Contains(c.flags, "--debug") {
		flags = append(flags, "-DRT_DEBUG")
	}
	if _, err := cxx.BuildProgram(t.Context(), dir, "abuse", []string{source}, flags...); err != nil {
		if strings.Contains(err.Error(), "-lasan") || strings.Contains(err.Error(), "-lubsan") {
			t.Skip("the sanitizers are not installed: ", err)
		}
		t.Fatal(err)
	}
	cmd := exec.Command("./abuse", c.model+".weights", other)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=1", "UBSAN_OPTIONS=print_stacktrace=1")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "clean\n" {
		t.Errorf("%v\n%.4000s", err, out)
	}
}

// contents is a hash of the names and contents of the files in dir that have one of the patterns. What is beside them, such
// as the folder of the emulator, is the same for all libraries.
func contents(t *testing.T, dir string, patterns ...string) string {
	t.Helper()
	h, count := sha256.New(), 0
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(h, "%s %d\n%s", filepath.Base(file), len(data), data)
			count++
		}
	}
	if count < len(patterns) {
		t.Fatalf("%s has %d files %v", dir, count, patterns)
	}
	return string(h.Sum(nil))
}

// emit writes the sources of a library into a folder.
func emit(t *testing.T, exe, model, dir string, flags ...string) {
	t.Helper()
	args := append([]string{"compile", model, "-q", "--offline", "--target", "emu", "--emit", "cu", "-o", dir}, flags...)
	if out, err := exec.Command(exe, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
