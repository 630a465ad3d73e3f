package commands

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/precision"
)

// foundText selects elements by a mask in the ways that exporters write, and computes with what it has found: rows, their
// best ones, a mean and a softmax over them, slices and joins of them, and the best boxes.
const foundText = `graph "found" (%x: float32[40,8], %t: float32[], %boxes: float32[1,40,4], %scores: float32[1,2,40]) {
  %zero = const int64[1] {0}
  %one = const int64[1] {1}
  %two = const int64[1] {2}
  %five = const int64[1] {5}
  %seven = const int64[1] {7}
  %begin = const int64[] {0}
  %step = const int64[] {1}
  %overlap = const float32[1] {0.3}
  %column = Slice(%x, %zero, %one, %one)
  %flat = Squeeze(%column, %one)
  %mask = Greater(%flat, %t)
  %rows = Compress(%x, %mask) {axis = 0}
  %where = NonZero(%mask)
  %all = Greater(%x, %t)
  %places = NonZero(%all)
  %tuples = Transpose(%places)
  %elements = GatherND(%x, %tuples)
  %relu = Relu(%elements)
  %marked = ScatterND(%x, %tuples, %relu) {reduction = "add"}
  %picks = Transpose(%where)
  %doubled = Add(%rows, %rows)
  %expert = ScatterND(%x, %picks, %doubled)
  %mean = ReduceMean(%rows, %zero) {keepdims = 0}
  %sum = ReduceSum(%rows, %zero) {keepdims = 1}
  %share = Softmax(%rows) {axis = 0}
  %shape = Shape(%rows)
  %n = Gather(%shape, %begin)
  %list = Range(%begin, %n, %step)
  %n.float = Cast(%n) {to = 1}
  %scaled = Mul(%rows, %n.float)
  %n.one = Reshape(%n, %one)
  %k = Min(%n.one, %five)
  %keys = Slice(%rows, %zero, %one, %one)
  %key = Squeeze(%keys, %one)
  %best: invalid?, %best.at = TopK(%key, %k)
  %best.rows = Gather(%rows, %best.at)
  %first = Slice(%rows, %one, %seven, %zero)
  %joined = Concat(%rows, %first, %x) {axis = 0}
  %limit = Reshape(%five, %one)
  %t.one = Reshape(%t, %one)
  %selected = NonMaxSuppression(%boxes, %scores, %limit, %overlap, %t.one)
  %selected.last = Gather(%selected, %two) {axis = 1}
  %selected.at = Squeeze(%selected.last, %one)
  %table = Squeeze(%boxes, %zero)
  %taken = Gather(%table, %selected.at)
  return %rows, %where, %relu, %marked, %expert, %mean, %sum, %share, %list, %scaled, %best, %best.rows, %first, %joined, %selected, %taken, %n
}
`

// One library finds nothing, some and all; its results have the extents and elements of the evaluator's.
func TestFoundExtents(t *testing.T) {
	needCxx(t)
	model := inferred(t, foundText)
	c := driver.CompileOptions{Out: filepath.Join(t.TempDir(), "lib"), Target: driver.TargetEmu, Emit: driver.EmitLibrary}
	c.Path = model
	built, err := driver.Compile(&driver.Job{}, c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := driver.Load(&driver.Job{}, driver.ModelOptions{Path: model}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []runner.Mode{runner.RProgram, runner.Waves} {
		lib, err := engine.OpenLibrary(built.Library, runner.Options{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		for i, threshold := range []float32{0, 2, -2, 0.9, -0.5, 2} {
			in := engine.RandomInputs(engine.GraphPorts(m.Graph.Inputs), uint64(i), 1)
			in["t"] = ir.FromSlice(ir.Float32, []float32{threshold})
			want, err := eval.Run(m.Graph, in, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := lib.Run(in)
			if err != nil {
				t.Fatal(err)
			}
			sameFound(t, m.Graph, got, want)
		}
		if err := lib.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// sameFound compares outputs, whose extents must be those of the evaluator's.
func sameFound(t *testing.T, g *ir.Graph, got, want engine.Tensors) {
	t.Helper()
	for _, p := range engine.GraphPorts(g.Outputs) {
		x, y := got[p.Name], want[p.Name]
		if x == nil || !slices.Equal(x.Dims, y.Dims) {
			t.Errorf("%s: %v, want dims %v", p.Name, x, y.Dims)
			continue
		}
		if d := tolerance.Compare(p.Name, x, y); !d.Within(tolerance.LimitIn(precision.FP32, p.DType)) {
			t.Errorf("%s: %+v", p.Name, d)
		}
	}
}
