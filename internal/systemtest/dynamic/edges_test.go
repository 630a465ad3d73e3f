package dynamic

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/ir"
)

// noRowsText has operators whose operands may have no rows, over which some of them reduce.
const noRowsText = `graph "rows" (%x: float32[n,6], %z: float32[m,6], %w: float32[6,5], %q: float32[2,6]) {
  %rows = const int64[1] {0}
  %axis = const int64[] {0}
  %none = const float32[] {0}
  %p = MatMul(%x, %w)
  %s = Softmax(%p)
  %sum = ReduceSum(%x, %rows) {keepdims = 0}
  %most = ReduceMax(%x, %rows)
  %least = ReduceMin(%x, %rows)
  %product = ReduceProd(%x, %rows)
  %square = ReduceSumSquare(%x, %rows)
  %long = ReduceL1(%x, %rows)
  %both = Concat(%x, %z) {axis = 0}
  %up = CumSum(%x, %axis)
  %far = Transpose(%x) {perm = [1, 0]}
  %scores = MatMul(%q, %far)
  %shares = Softmax(%scores)
  %mixed = MatMul(%shares, %x)
  %above = Greater(%x, %none)
  %places = NonZero(%above)
  %kinds = Shape(%both)
  %e = Add(%x, %sum)
  return %s, %sum, %most, %least, %product, %square, %long, %both, %up, %mixed, %places, %kinds, %e
}
`

// Where an extent is 0, results are what the evaluator's are: sums of nothing are 0, the largest of nothing is −∞.
func TestNoRows(t *testing.T) {
	systemtest.NeedCxx(t)
	t.Parallel()
	runsAs(t, systemtest.Inferred(t, noRowsText), []string{"n=0..4", "m=0..3"}, func(ports []engine.Port, i int) engine.Tensors {
		return randomOf(ports, map[string]int64{"n": []int64{0, 4, 0, 1, 3, 0, 2}[i], "m": []int64{0, 0, 3, 1, 2, 1, 0}[i]}, i)
	})
}

// predicatesText decides by comparisons with what may be no number: an If, one inside of it, and a Loop that goes on.
const predicatesText = `graph "predicates" (%x: float32[4], %t: float32[]) {
  %zero = const float32[] {0}
  %five = const int64[] {5}
  %yes = const bool[] {true}
  %c = Greater(%t, %zero)
  %not = Not(%c)
  %y: invalid?, %z = If(%c) {then_branch = graph "then" () {
      %a: float32[4] = Exp(%x)
      return %a, %x
    }, else_branch = graph "else" () {
      %same: bool[] = Equal(%t, %t)
      %b: float32[4] = If(%same) {then_branch = graph "number" () {
          %n: float32[4] = Neg(%x)
          return %n
        }, else_branch = graph "none" () {
          %d: float32[4] = Tanh(%x)
          return %d
        }}
      return %x, %b
    }}
  %runs = Loop(%five, %yes, %x) {body = graph "body" (%i: int64[], %on: bool[], %v: float32[4]) {
      %more: float32[4] = Add(%v, %t)
      %go: bool[] = Less(%t, %zero)
      return %go, %more
    }}
  return %y, %z, %runs, %not
}
`

// Comparisons with NaN are false, and so are branches taken and loops ended.
func TestPredicatesOfNaN(t *testing.T) {
	nan := float32(math.NaN())
	findsAsEvaluator(t, predicatesText, "rprogram", []float32{nan, 1, -1, nan, float32(math.Inf(1)), float32(math.Inf(-1)), 0})
}

// Extents that a program does not take are an error that names the input, its axis, the value and the range, and the next
// run is right again.
func TestExtentsOutOfRange(t *testing.T) {
	systemtest.NeedCxx(t)
	t.Parallel()
	model := systemtest.Inferred(t, `graph "g" (%x: float32[n,2], %y: float32[k,2]) {
  %a = Add(%x, %x)
  %b = Exp(%y)
  return %a, %b
}
`)
	for _, dims := range [][]string{{"n=2..5", "k=1,3"}, {"n=2..5", "k=1..3"}} {
		lib := openedLibrary(t, model, dims)
		for _, c := range []struct {
			n, k int64
			want []string
		}{
			{1, 1, []string{"x", "1", "2"}}, {6, 1, []string{"x", "6", "5"}}, {2, 4, []string{"y", "4", "3"}},
			{0, 1, []string{"x", "0", "2"}}, {3, 3, nil},
		} {
			in := engine.Tensors{"x": ir.NewTensor(ir.Float32, c.n, 2), "y": ir.NewTensor(ir.Float32, c.k, 2)}
			_, err := lib.Run(in)
			text := fmt.Sprint(err)
			if (err == nil) != (c.want == nil) {
				t.Errorf("%v, n=%d k=%d: %v", dims, c.n, c.k, err)
			}
			for _, w := range c.want {
				if !strings.Contains(text, w) {
					t.Errorf("%v, n=%d k=%d: %q does not say %s", dims, c.n, c.k, text, w)
				}
			}
		}
	}
}

// openedLibrary compiles a model and opens its library.
func openedLibrary(t *testing.T, model string, dims []string) *engine.Library {
	t.Helper()
	c := driver.CompileOptions{Out: t.TempDir() + "/lib", Target: driver.TargetEmu, Emit: driver.EmitLibrary}
	c.Path, c.Dims = model, dims
	built, err := driver.Compile(&driver.Job{}, c)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := engine.OpenLibrary(built.Library, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lib.Close() })
	return lib
}
