package onnxgo_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/owulveryck/onnx-go/backend"
	"github.com/owulveryck/onnx-go/backend/testbackend"
	_ "github.com/owulveryck/onnx-go/backend/testbackend/onnx" // registers the tests
	"github.com/owulveryck/onnx-go/backend/x/gorgonnx"

	"github.com/rammerc/rammerc/interop/onnxgo"
)

// opset is the version that onnx-go's tests ask for; the files say 9 or less, and no operator among them has changed
// since in what the tests try.
const opset = 9

// results are the numbers of tests by outcome.
type results struct{ passed, skipped, failed []string }

// try runs onnx-go's tests on a back end, in a test of their own, whose failures are not ours.
func try(t *testing.T, tests []func() *testbackend.TestCase,
	make func(*testbackend.TestCase) backend.ComputationBackend) (r results) {
	t.Helper()
	for _, test := range tests {
		tc := test()
		ok := testing.RunTests(func(string, string) (bool, error) { return true, nil },
			[]testing.InternalTest{{Name: tc.GetInfo(), F: tc.RunTest(make(tc), false)}})
		switch {
		case tc.Skipped:
			r.skipped = append(r.skipped, tc.GetInfo())
		case !ok || tc.Failed:
			r.failed = append(r.failed, tc.GetInfo())
		default:
			r.passed = append(r.passed, tc.GetInfo())
		}
	}
	return r
}

func all() []func() *testbackend.TestCase {
	tests := testbackend.GetAllRegisteredTests()
	slices.SortFunc(tests, func(a, b func() *testbackend.TestCase) int { return cmp.Compare(a().GetInfo(), b().GetInfo()) })
	return tests
}

// onnx-go's tests pass on this back end where they pass on Gorgonia's, and beyond: with the model as onnx-go decodes it,
// and more of them with the file at hand.
func TestConformance(t *testing.T) {
	tests := all()
	ours := func(more func(*testbackend.TestCase) onnxgo.Option) results {
		return try(t, tests, func(tc *testbackend.TestCase) backend.ComputationBackend {
			b := onnxgo.New(onnxgo.Engine(onnxgo.Evaluator), more(tc))
			t.Cleanup(func() { b.Close() })
			return b
		})
	}
	decoded := ours(func(*testbackend.TestCase) onnxgo.Option { return onnxgo.Opset(opset) })
	file := ours(func(tc *testbackend.TestCase) onnxgo.Option { return onnxgo.Model(tc.ModelB) })
	theirs := try(t, tests, func(*testbackend.TestCase) backend.ComputationBackend { return gorgonnx.NewGraph() })
	for _, r := range []struct {
		what string
		results
	}{{"decoded by onnx-go", decoded}, {"with the file", file}, {"Gorgonia's back end", theirs}} {
		t.Logf("%s: passed %d, skipped %d, failed %d of %d", r.what, len(r.passed), len(r.skipped), len(r.failed),
			len(tests))
	}
	t.Logf("with the file failed: %q", file.failed)
	t.Logf("with the file skipped: %q", file.skipped)
	claim := fmt.Sprintf("%d of them pass on Gorgonia's, %d on this one as onnx-go decodes them, and %d with the files",
		len(theirs.passed), len(decoded.passed), len(file.passed))
	if text, err := os.ReadFile("README.md"); err != nil ||
		!strings.Contains(strings.Join(strings.Fields(string(text)), " "), claim) {
		t.Errorf("README.md does not say: %s (%v)", claim, err)
	}
	for _, name := range theirs.passed {
		if !slices.Contains(decoded.passed, name) || !slices.Contains(file.passed, name) {
			t.Errorf("%s passes on Gorgonia's back end and not on this one", name)
		}
	}
	if len(decoded.passed) <= len(theirs.passed) || len(file.passed) < len(decoded.passed) {
		t.Errorf("%d tests pass, %d with the files, and %d on Gorgonia's back end", len(decoded.passed),
			len(file.passed),
			len(theirs.passed))
	}
}
