package dynamic

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/schedule"
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

// detectorEnd is the part of detectorText behind the classes.
const detectorEnd = `  %far = ReduceMax(%b) {keepdims = 0}
  %step = Add(%far, %unit)
  %class = Cast(%l) {to = 1}
  %offset = Mul(%class, %step)
  %column = Unsqueeze(%offset, %one)
  %moved = Add(%b, %column)
  %batch = Unsqueeze(%moved, %zero)
  %row = Unsqueeze(%s, %zero)
  %mark = Unsqueeze(%row, %zero)
  %selected = NonMaxSuppression(%batch, %mark, %all, %overlap)
  %last = Gather(%selected, %two) {axis = 1}
  %places = Squeeze(%last, %one)
  %keep = Slice(%places, %zero, %few, %zero)
  %y = Gather(%b, %keep)
  %z = Gather(%s, %keep)
  %w = Gather(%l, %keep)
  return %y, %z, %w
}
`

// detectorText is what exporters write behind a detector: the best boxes of each class among those with enough score, all
// of them together, moved apart by their classes for one NonMaxSuppression, and the first few of what is left.
func detectorText(classes int) string {
	b := &strings.Builder{}
	b.WriteString(`graph "detector" (%boxes: float32[60,4], %logits: float32[60,4], %t: float32[]) {
  %zero = const int64[1] {0}
  %one = const int64[1] {1}
  %two = const int64[1] {2}
  %flat = const int64[1] {-1}
  %most = const int64[1] {10}
  %few = const int64[1] {12}
  %all = const int64[1] {9223372036854775807}
  %overlap = const float32[1] {0.5}
  %begin = const int64[] {0}
  %unit = const float32[] {1}
  %scores = Softmax(%logits)
`)
	var parts [3][]string
	for c := 1; c < classes; c++ {
		fmt.Fprintf(b, strings.ReplaceAll(`  %%c@ = const int64[] {%d}
  %%s@ = Gather(%%scores, %%c@) {axis = 1}
  %%m@ = Greater(%%s@, %%t)
  %%n@ = NonZero(%%m@)
  %%at@ = Reshape(%%n@, %%flat)
  %%found@ = Gather(%%s@, %%at@)
  %%box@ = Gather(%%boxes, %%at@)
  %%shape@ = Shape(%%found@)
  %%number@ = Gather(%%shape@, %%begin)
  %%row@ = Unsqueeze(%%number@, %%zero)
  %%both@ = Concat(%%most, %%row@) {axis = 0}
  %%least@ = ReduceMin(%%both@) {keepdims = 0}
  %%k@ = Reshape(%%least@, %%flat)
  %%v@: invalid?, %%i@ = TopK(%%found@, %%k@)
  %%b@ = Gather(%%box@, %%i@)
  %%extent@ = Shape(%%v@)
  %%l@ = ConstantOfShape(%%extent@) {value = int64[1] {%d}}
`, "@", fmt.Sprint(c)), c, c)
		for i, name := range []string{"b", "v", "l"} {
			parts[i] = append(parts[i], "%"+name+strconv.Itoa(c))
		}
	}
	for i, name := range []string{"b", "s", "l"} {
		fmt.Fprintf(b, "  %%%s = Concat(%s) {axis = 0}\n", name, strings.Join(parts[i], ", "))
	}
	b.WriteString(detectorEnd)
	return b.String()
}

// One library finds nothing, some and all; its results have the extents and elements of the evaluator's.
func TestFoundExtents(t *testing.T) {
	findsAsEvaluator(t, foundText, schedule.PlanAuto, []float32{0, 2, -2, 0.9, -0.5, 2})
}

func TestDetector(t *testing.T) {
	findsAsEvaluator(t, detectorText(4), schedule.PlanAuto, []float32{0.3, 1, 0.2, 0, 0.35})
}

// findsAsEvaluator compares the library of a graph with the evaluator, for several values of the input t.
func findsAsEvaluator(t *testing.T, text, plan string, thresholds []float32) {
	t.Helper()
	systemtest.NeedCxx(t)
	model := systemtest.Inferred(t, text)
	c := driver.CompileOptions{Out: filepath.Join(t.TempDir(), "lib"), Target: driver.TargetEmu, Emit: driver.EmitLibrary}
	c.Path, c.Plan = model, plan
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
		for i, threshold := range thresholds {
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

// regionsText looks at found boxes as exporters of detectors write it: an If that returns nothing where there are no
// boxes, windows of an image at the boxes that are left, and a list of boxes of which some are changed.
const regionsText = `graph "regions" (%x: float32[1,4,8,8], %boxes: float32[1,40,4], %scores: float32[1,1,40], %t: float32[]) {
  %zero = const int64[1] {0}
  %one = const int64[1] {1}
  %two = const int64[1] {2}
  %nothing = const int64[] {0}
  %zeros = const int64[1,4] {0, 0, 0, 0}
  %most = const int64[1] {30}
  %overlap = const float32[1] {0.4}
  %t.one = Reshape(%t, %one)
  %selected = NonMaxSuppression(%boxes, %scores, %most, %overlap, %t.one)
  %last = Gather(%selected, %two) {axis = 1}
  %at = Squeeze(%last, %one)
  %table = Squeeze(%boxes, %zero)
  %taken = Gather(%table, %at)
  %shape = Shape(%taken)
  %count = ReduceProd(%shape) {keepdims = 0}
  %empty = Equal(%count, %nothing)
  %kept = If(%empty) {then_branch = graph "then" () {
      %none = const int64[0] {}
      return %none
    }, else_branch = graph "else" () {
      %column: float32[unk__8] = ReduceMax(%taken, %one) {keepdims = 0}
      %wide: bool[unk__8] = Greater(%column, %t)
      %places: int64[1,unk__9] = NonZero(%wide)
      %list: int64[unk__9] = Squeeze(%places, %zero)
      return %list
    }}
  %left = Gather(%taken, %kept)
  %batch = Mul(%kept, %zero)
  %windows = RoiAlign(%x, %left, %batch) {output_height = 2, output_width = 3}
  %rows = Unsqueeze(%kept, %one)
  %indices = Add(%rows, %zeros)
  %twice = Add(%left, %left)
  %changed = ScatterElements(%taken, %indices, %twice) {axis = 0}
  return %left, %windows, %changed
}
`

// An If that returns nothing under a condition is the beginning of what its other branch finds.
func TestRegions(t *testing.T) {
	findsAsEvaluator(t, regionsText, schedule.PlanAuto, []float32{-3, 0.5, 9, 1, -3})
}

// uniqueText finds what differs among numbers with equal ones, zeros of both signs and NaNs, among slices along an axis,
// and among bools, in the order of the elements and in that of their first ones.
const uniqueText = `graph "unique" (%x: float32[24], %m: int64[5,3,2], %t: float32[]) {
  %k = const float32[] {3}
  %zero = const float32[] {0}
  %two = const int64[] {2}
  %more = Add(%x, %t)
  %scaled = Mul(%more, %k)
  %a0 = Round(%scaled)
  %high = Greater(%x, %zero)
  %nan = Div(%zero, %zero)
  %odd = Greater(%a0, %k)
  %a = Where(%odd, %nan, %a0)
  %y: invalid?, %i: invalid?, %v: invalid?, %c = Unique(%a)
  %y2: invalid?, %i2: invalid?, %v2: invalid?, %c2 = Unique(%a) {sorted = 0}
  %b = Mod(%m, %two)
  %y3: invalid?, %i3: invalid?, %v3: invalid?, %c3 = Unique(%b) {axis = 0}
  %y4: invalid?, %i4: invalid?, %v4: invalid?, %c4 = Unique(%b) {axis = -1, sorted = 0}
  %y5 = Unique(%high)
  return %y, %i, %v, %c, %y2, %i2, %v2, %c2, %y3, %i3, %v3, %c3, %y4, %i4, %v4, %c4, %y5
}
`

func TestUnique(t *testing.T) {
	t.Parallel()
	findsAsEvaluator(t, uniqueText, schedule.PlanAuto, []float32{0, 0.5, 1.2, 9, -9, float32(math.NaN())})
}
