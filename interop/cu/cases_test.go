package rammercu_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gorgonia.org/cu"
	"gorgonia.org/tensor"

	"github.com/rammerc/rammerc/internal/npy"
	"github.com/rammerc/rammerc/internal/testbuild"
	rammercu "github.com/rammerc/rammerc/interop/cu"
)

// testCase is a folder with a program, and tensors: cubin/ as `compile --emit cubin` writes it, library/ with the library
// of the same plan, in/ and out/ with NAME.npy for each input, and for each output as the evaluator has it.
type testCase struct{ name, folder string }

// made are the cases that tests have made on machines without GPUs: a model, and how it is compiled.
var made = []struct {
	name, model string
	flags       []string
}{
	{"rprogram", "digits_branchy", []string{"--plan", "rprogram"}},
	{"parallel", "digits_branchy", []string{"--plan", "parallel"}},
	{"waves", "digits_attention", []string{"--plan", "waves"}},
}

var (
	casesOnce sync.Once
	casesMade []testCase
	casesDir  string
	casesErr  string
)

func TestMain(m *testing.M) {
	testbuild.Main(m, testbuild.Unoptimised, func() {
		if casesDir != "" {
			os.RemoveAll(casesDir)
		}
	})
}

// cases are those in $RAMMER_CU_CASES, which run on the GPU at hand, or else some for the emulated driver.
func cases(t testing.TB) []testCase {
	t.Helper()
	casesOnce.Do(func() {
		if folder := os.Getenv("RAMMER_CU_CASES"); folder != "" {
			found, _ := filepath.Glob(filepath.Join(folder, "*", "cubin"))
			for _, f := range found {
				casesMade = append(casesMade, testCase{filepath.Base(filepath.Dir(f)), filepath.Dir(f)})
			}
			return
		}
		var err error
		if casesDir, err = os.MkdirTemp("", "rammercu-"); err != nil {
			casesErr = err.Error()
			return
		}
		makeCases()
	})
	if casesErr != "" || len(casesMade) == 0 {
		t.Fatal("there are no cases: ", casesErr)
	}
	return casesMade
}

func makeCases() {
	run := func(command string, args ...string) {
		if out, err := exec.Command(command, args...).CombinedOutput(); err != nil && casesErr == "" {
			casesErr = strings.Join(args, " ") + ": " + err.Error() + "\n" + string(out)
		}
	}
	compiler := filepath.Join(casesDir, "rammerc")
	run("go", "build", "-C", filepath.Join("..", ".."), "-o", compiler, "./cmd/rammerc")
	for _, m := range made {
		c := testCase{m.name, filepath.Join(casesDir, m.name)}
		model := filepath.Join("..", "..", "testdata", "models", m.model+".onnx")
		for _, emit := range [][2]string{{"cubin", "cubin"}, {"lib", "library"}} {
			run(compiler, append([]string{"compile", model, "-q", "--target", "emu", "--emit", emit[0], "-o",
				filepath.Join(c.folder, emit[1])}, m.flags...)...)
		}
		run(compiler, "run", model, "-q", "--engine", "eval", "--random", "1", "--save-inputs",
			filepath.Join(c.folder, "in"), "-o", filepath.Join(c.folder, "out"))
		casesMade = append(casesMade, c)
	}
}

// newContext is a context of the first device, until the test ends.
func newContext(t testing.TB) cu.Context {
	t.Helper()
	device, err := cu.GetDevice(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx := cu.NewContext(device, cu.SchedAuto)
	t.Cleanup(func() {
		if err := ctx.Close(); err != nil {
			t.Error(err)
		}
	})
	return ctx
}

// program loads a case's cubin.
func (c testCase) program(t testing.TB, ctx cu.Context) *rammercu.Program {
	t.Helper()
	p, err := rammercu.Load(ctx, filepath.Join(c.folder, "cubin"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// library opens a case's library; nil if it has none.
func (c testCase) library(t testing.TB, ctx cu.Context) *rammercu.Library {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(c.folder, "library", "lib*.so"))
	if len(found) == 0 {
		return nil
	}
	l, err := rammercu.OpenLibrary(ctx, found[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// tensors reads the tensors of "in" or "out", in the order of the ports.
func (c testCase) tensors(t testing.TB, side string, ports []rammercu.Tensor) []*tensor.Dense {
	t.Helper()
	var out []*tensor.Dense
	for _, p := range ports {
		// Gorgonia reads no .npy of int64.
		a, err := npy.ReadFile(filepath.Join(c.folder, side, p.Name+".npy"), nil)
		if err != nil {
			t.Fatal(err)
		}
		x := tensor.New(tensor.WithShape(shapeOf(p)...), tensor.WithBacking(a.Data))
		out = append(out, x)
	}
	return out
}

func shapeOf(p rammercu.Tensor) []int {
	shape := make([]int, len(p.Dims))
	for i, d := range p.Dims {
		shape[i] = int(d)
	}
	return shape
}

// limit is how far outputs may be from the evaluator's, as relative L2 error, where factors of float32 are rounded to 10
// bits of mantissa for tensor cores.
const limit = 4e-3

// checkNear compares an output of float32 with the evaluator's.
func checkNear(t testing.TB, what string, got, want *tensor.Dense) {
	t.Helper()
	g, w := got.Data().([]float32), want.Data().([]float32)
	if len(g) != len(w) {
		t.Fatalf("%s: %d elements, want %d", what, len(g), len(w))
	}
	var off, norm float64
	for i := range g {
		off += math.Pow(float64(g[i])-float64(w[i]), 2)
		norm += math.Pow(float64(w[i]), 2)
	}
	if r := math.Sqrt(off / norm); !(r <= limit) {
		t.Errorf("%s: relative L2 error %.3g, at most %g is allowed", what, r, limit)
	}
}

// checkEqual compares two outputs of float32 bit for bit.
func checkEqual(t testing.TB, what string, got, want *tensor.Dense) {
	t.Helper()
	g, w := got.Data().([]float32), want.Data().([]float32)
	for i := range w {
		if math.Float32bits(g[i]) != math.Float32bits(w[i]) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, g[i], w[i])
		}
	}
}
