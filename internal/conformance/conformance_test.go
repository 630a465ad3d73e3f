package conformance

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/precision"
)

var update = flag.Bool("update", false, "write the lists of expected results and docs/CONFORMANCE.md")

const (
	expectedEval = "testdata/expected_eval.txt"
	expectedEmu  = "testdata/expected_emu.txt"
	document     = "../../docs/CONFORMANCE.md"
)

func suiteCases(t *testing.T) []Case {
	t.Helper()
	root := os.Getenv(TestsVariable)
	if root == "" {
		t.Skip(TestsVariable + " does not name the folder of ONNX's backend tests")
	}
	cases, err := Discover(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// check compares results with the list in file, or with -update writes the list.
func check(t *testing.T, engine, file string, results []Result) {
	t.Helper()
	t.Log("\n" + Summary(engine, results))
	for _, r := range results {
		if r.Status == Fail {
			t.Errorf("%s: %s", r.Name, r.Detail)
		}
	}
	if *update {
		if err := os.WriteFile(file, FormatExpected(results), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	changes, err := CompareExpected(file, results)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		t.Error(c)
	}
	if len(changes) > 0 {
		t.Logf("if that is right: go test ./internal/conformance -update")
	}
}

func TestEvaluator(t *testing.T) {
	check(t, "eval", expectedEval, RunEval(suiteCases(t)))
}

func TestEmulator(t *testing.T) {
	cases := suiteCases(t)
	if _, err := toolchain.FindCxx(""); err != nil {
		t.Skip(err)
	}
	results, err := Run(context.Background(), "emu", cases, Options{Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "emu", expectedEmu, results)
}

// multiplying matches tests of operators that multiply, of which the precision changes results.
var multiplying = regexp.MustCompile(`^test_(matmul_[234]d|gemm_|basic_conv_|conv_with|convtranspose)`)

// TestHalf runs tests of operators that multiply with values stored in float16: they pass within limits that follow from
// its unit roundoff.
func TestHalf(t *testing.T) {
	cases := suiteCases(t)
	if _, err := toolchain.FindCxx(""); err != nil {
		t.Skip(err)
	}
	cases = slices.DeleteFunc(cases, func(c Case) bool { return !multiplying.MatchString(c.Name) })
	results, err := Run(context.Background(), "emu", cases, Options{Progress: t.Logf, Precision: precision.FP16})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Status == Fail {
			t.Errorf("%s: %s", r.Name, r.Detail)
		}
	}
}

func readList(t *testing.T, file string) []Result {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	list, err := ParseExpected(data)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if !bytes.Equal(FormatExpected(list), data) {
		t.Errorf("%s is not as FormatExpected writes it", file)
	}
	return list
}

// TestDocument must run last, because the document is made of the lists, which other tests write with -update.
func TestDocument(t *testing.T) {
	evaluated, compiled := readList(t, expectedEval), readList(t, expectedEmu)
	for _, r := range append(evaluated, compiled...) {
		if r.Status == Fail || r.Status == Skip && r.Reason == "" {
			t.Errorf("%s is expected to %s", r.Name, r.outcome())
		}
	}
	want := Document(evaluated, compiled)
	if *update {
		if err := os.WriteFile(document, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(document); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is out of date (%v); write it with go test ./internal/conformance -update", document, err)
	}
}

// TestHarness gives both engines four tests: a right one, one that expects a wrong output, one with an input that has
// to be bound, and one that uses what rammerc leaves out.
func TestHarness(t *testing.T) {
	root := t.TempDir()
	for _, c := range harnessCases() {
		c.write(t, filepath.Join(root, "node", c.name))
	}
	if err := os.MkdirAll(filepath.Join(root, "simple"), 0o777); err != nil {
		t.Fatal(err)
	}
	cases, err := Discover(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range []string{"eval", "emu"} {
		if _, err := toolchain.FindCxx(""); engine == "emu" && err != nil {
			t.Skip(err)
		}
		results, err := Run(context.Background(), engine, cases, Options{Shards: 1, Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range harnessCases() {
			want := c.want
			if engine == "emu" && c.wantCompiled != "" {
				want = c.wantCompiled
			}
			if got := results[i].outcome(); got != want {
				t.Errorf("%s, %s: %s (%s), want %s", engine, c.name, got, results[i].Detail, want)
			}
		}
		last := strings.Split(strings.TrimSpace(Summary(engine, results)), "\n")
		if got, want := last[len(last)-1], "conformance "+engine+": 2 passed, 2 failed, 2 skipped"; got != want {
			t.Errorf("last line %q, want %q", got, want)
		}
	}
}
