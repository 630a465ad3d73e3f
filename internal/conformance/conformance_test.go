package conformance

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
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

// precisionShare is the part of the suite that runs in each precision in a normal test run: one in so many cases. The variable
// RAMMER_CONFORMANCE_SHARE sets it; make conformance runs all.
const precisionShare = 12

// shareOf draws a share of the cases from a seed.
func shareOf(t *testing.T, cases []Case, seed uint64) (some []Case) {
	t.Helper()
	share := precisionShare
	if text := os.Getenv("RAMMER_CONFORMANCE_SHARE"); text != "" {
		var err error
		if share, err = strconv.Atoi(text); err != nil || share < 1 {
			t.Fatalf("RAMMER_CONFORMANCE_SHARE is %q, want a number from 1 on", text)
		}
	}
	r := rand.New(rand.NewPCG(1, seed))
	for _, c := range cases {
		if r.IntN(share) == 0 {
			some = append(some, c)
		}
	}
	return some
}

// TestPrecisions runs the suite in every precision that is not the default. All results must be within bounds that follow
// from the precision (see bounder). Cases of which the program is the same as in the default precision, as that of most
// operators that neither multiply nor store anything, are not run again. A share of the cases is drawn from a seed, other
// cases for each precision.
func TestPrecisions(t *testing.T) {
	cases := suiteCases(t)
	if _, err := toolchain.FindCxx(""); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"strict", "tf32", "fp16", "bf16"} {
		t.Run(name, func(t *testing.T) {
			p, _ := precision.Parse(name)
			some := shareOf(t, cases, uint64(p))
			results, err := Run(context.Background(), "emu", some, Options{Progress: t.Logf, Precision: p})
			if err != nil {
				t.Fatal(err)
			}
			t.Log("\n" + Summary("emu", results))
			for _, r := range results {
				if r.Status == Fail {
					t.Errorf("%s: %s", r.Name, r.Detail)
				}
			}
		})
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

// TestHarness gives both engines tests that are right, one of them with an operand that a run reads and one with an input
// that has to be bound, tests that expect a wrong output, and tests of what rammerc leaves out.
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
		if got, want := last[len(last)-1], "conformance "+engine+": 3 passed, 2 failed, 2 skipped"; got != want {
			t.Errorf("last line %q, want %q", got, want)
		}
	}
}
