package dynamic

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// otherExtentsText has branches whose results differ in extents: in one that has nothing to do with the other, in a sum,
// in two axes of which one has no elements, and in numbers. What follows reads them as they are.
const otherExtentsText = `graph "branches" (%x: float32[n,8], %y: float32[m,8], %t: float32[], %w: float32[8,8]) {
  %zero = const float32[] {0}
  %rows = const int64[1] {0}
  %c = Greater(%t, %zero)
  %none = const float32[0,1,8] {}
  %list = const float32[3] {1, 2, 3}
  %longer = const float32[5] {5, 6, 7, 8, 9}
  %a: invalid?, %b: invalid?, %d: invalid?, %e = If(%c) {then_branch = graph "then" () {
      %p: float32[n,8] = MatMul(%x, %w)
      %both: float32[n+m,8] = Concat(%x, %y) {axis = 0}
      return %p, %both, %none, %list
    }, else_branch = graph "else" () {
      %q: float32[m,8] = Tanh(%y)
      %one = const int64[1] {0}
      %inner: bool[] = Less(%t, %zero)
      %k: float32[n,8] = If(%inner) {then_branch = graph "less" () {
          %u: float32[n,8] = Neg(%x)
          return %u
        }, else_branch = graph "equal" () {
          return %x
        }}
      %more: float32[1,m,8] = Unsqueeze(%y, %one)
      return %q, %k, %more, %longer
    }}
  %z = Sigmoid(%a)
  %s = ReduceSum(%b, %rows) {keepdims = 0}
  return %z, %b, %s, %d, %e
}
`

// Results of branches have the extents that the branch of the run gives them, in one launch and in waves.
func TestBranchesOfOtherExtents(t *testing.T) {
	systemtest.NeedCxx(t)
	t.Parallel()
	runsAs(t, systemtest.Inferred(t, otherExtentsText), []string{"n=1..6", "m=1..9"}, func(ports []engine.Port, i int) engine.Tensors {
		dims := map[string]int64{"n": int64(i%6 + 1), "m": int64(i*5%9 + 1)}
		in := randomOf(ports, dims, i)
		in["t"] = ir.FromSlice(ir.Float32, []float32{float32(i%3 - 1)})
		return in
	})
}

// A decoder that was merged of two runs either branch, as an input says: the one for the first tokens, which takes empty
// caches, and the one for those behind them. The branch for the first tokens fits no mask of past tokens.
func TestMergedBranches(t *testing.T) {
	systemtest.NeedCxx(t)
	t.Parallel()
	dims := []string{"batch_size=1..2", "past_sequence_length=0..20", "sequence_length=1..4"}
	runsAs(t, "../../../testdata/models/decoders/merged.onnx", dims, func(ports []engine.Port, i int) engine.Tensors {
		cached := i%3 > 0
		past := int64(0)
		if cached {
			past = int64(i * 7 % 21)
		}
		extents := map[string]int64{"batch_size": int64(i%2 + 1), "past_sequence_length": past,
			"sequence_length": int64(i%4 + 1)}
		in := randomOf(ports, extents, i)
		in["use_cache_branch"] = ir.FromSlice(ir.Bool, []bool{cached}, 1)
		return in
	})
}

// randomOf draws inputs of the given extents.
func randomOf(ports []engine.Port, extents map[string]int64, seed int) engine.Tensors {
	return engine.RandomInputsAt(ports, uint64(seed), 2, extents)
}

// runsAs compiles a model once and compares runs with the evaluator's, of inputs that draw makes for the number of a run.
func runsAs(t *testing.T, model string, dims []string, draw func(ports []engine.Port, i int) engine.Tensors) {
	t.Helper()
	c := driver.CompileOptions{Out: filepath.Join(t.TempDir(), "lib"), Target: driver.TargetEmu, Emit: driver.EmitLibrary}
	c.Path, c.Dims, c.Plan = model, dims, "rprogram"
	built, err := driver.Compile(&driver.Job{}, c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := driver.LoadOpen(&driver.Job{}, c.ModelOptions)
	if err != nil {
		t.Fatal(err)
	}
	ports, _ := c.Ports(m.Graph)
	for _, mode := range []runner.Mode{runner.RProgram, runner.Waves} {
		lib, err := engine.OpenLibrary(built.Library, runner.Options{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 7 {
			in := draw(ports, i)
			want, err := eval.Run(m.Graph, in, eval.Options{})
			if err != nil {
				t.Fatal(fmt.Sprint(i), err)
			}
			got, err := lib.Run(in)
			if err != nil {
				t.Fatal(fmt.Sprint(i), err)
			}
			sameFound(t, m.Graph, got, want)
		}
		if err := lib.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
