package dynamic

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/ir"
)

// recogniserText reads text of any width: convolutions slide along it, and a GRU walks along what they find, in both
// directions. How long that is, is no product of the width.
const recogniserText = `graph "recogniser" (%x: float32[batch,1,8,width], %k: float32[6,1,3,3], %w: float32[2,12,6], %r: float32[2,12,4]) {
  %low = Conv(%x, %k) {pads = [1, 1, 1, 1], strides = [2, 2]}
  %sharp = Relu(%low)
  %rows = MaxPool(%sharp) {kernel_shape = [4, 1], strides = [4, 1]}
  %two = const int64[1] {2}
  %flat = Squeeze(%rows, %two)
  %steps = Transpose(%flat) {perm = [2, 0, 1]}
  %y = GRU(%steps, %w, %r) {hidden_size = 4, direction = "bidirectional"}
  return %y
}
`

// builtRight is a library that agrees with the evaluator on random inputs.
func builtRight(t *testing.T, c driver.CompileOptions) *driver.Compiled {
	t.Helper()
	built, err := driver.Compile(&driver.Job{}, c)
	if err != nil {
		t.Fatal(err)
	}
	o := commands.VerifyOptions{Model: c.Path, Samples: 20, RandomSeed: 3}
	o.Path = c.Out
	if r, err := commands.Verify(&driver.Job{}, o); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
	return built
}

// Where no program can be general, each combination of the extents of lists has a program of its own in the library.
func TestProgramsApart(t *testing.T) {
	systemtest.NeedCxx(t)
	t.Parallel()
	model, dir := systemtest.Inferred(t, recogniserText), filepath.Join(t.TempDir(), "lib")
	c := driver.CompileOptions{Out: dir, Target: driver.TargetEmu, Emit: driver.EmitLibrary}
	c.Path, c.Dims = model, []string{"batch=1,2", "width=5..20"}
	if _, err := driver.Compile(&driver.Job{}, c); err == nil || !strings.Contains(err.Error(), "dynamic-") {
		t.Errorf("width=5..20: %v, want dynamic-…", err)
	}
	c.Dims[1] = "width=5,8,20"
	built := builtRight(t, c)
	want := []string{"batch=1 width=5", "batch=1 width=8", "batch=2 width=5", "batch=2 width=8", "batch=1 width=20",
		"batch=2 width=20"}
	c.Out = ""
	if r, err := commands.Check(&driver.Job{}, c); err != nil || !slices.Equal(r.Programs, want) {
		t.Errorf("check: %+v, %v", r, err)
	}
	for _, name := range want {
		o := commands.RunOptions{Random: true}
		o.Path, o.Dims = dir, strings.Fields(name)
		if r, err := commands.Run(&driver.Job{}, o); err != nil || r.Program != name {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	l, err := engine.OpenLibrary(built.Library, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	others := [][]int64{{6, 1, 3, 3}, {2, 12, 6}, {2, 12, 4}}
	if err := l.SetDims(append([][]int64{{1, 1, 8, 9}}, others...)); err == nil ||
		!strings.Contains(err.Error(), "input x, axis 3: the extent is 9, want width=5,8,20") {
		t.Errorf("width=9: %v", err)
	}
	for width, length := range map[int64]int64{5: 3, 8: 4, 20: 10} {
		err := l.SetDims(append([][]int64{{2, 1, 8, width}}, others...))
		if err != nil || !slices.Equal(l.Outputs[0].Dims, []int64{length, 2, 2, 4}) {
			t.Errorf("width=%d: %+v, %v", width, l.Outputs, err)
		}
	}
}

// peaksText finds the places of an image of any width at which a convolution is above a threshold, and the best of them.
const peaksText = `graph "peaks" (%x: float32[1,1,8,width], %k: float32[1,1,3,3], %t: float32[]) {
  %zero = const int64[1] {0}
  %three = const int64[1] {3}
  %low = Conv(%x, %k) {pads = [1, 1, 1, 1], strides = [2, 2]}
  %mask = Greater(%low, %t)
  %places = NonZero(%mask)
  %tuples = Transpose(%places)
  %values = GatherND(%low, %tuples)
  %first = Slice(%values, %zero, %three)
  return %low, %places, %values, %first
}
`

// Programs of one combination of extents each may find others, which have another bound in each. A run after one of
// another program sees nothing of what that has found.
func TestFoundApart(t *testing.T) {
	systemtest.NeedCxx(t)
	t.Parallel()
	model, dir := systemtest.Inferred(t, peaksText), filepath.Join(t.TempDir(), "lib")
	c := driver.CompileOptions{Out: dir, Target: driver.TargetEmu, Emit: driver.EmitLibrary}
	c.Path, c.Dims = model, []string{"width=1,6,20"}
	built := builtRight(t, c)
	c.Out = ""
	r, err := commands.Check(&driver.Job{}, c)
	if err != nil || !slices.Equal(r.Programs, []string{"width=1", "width=6", "width=20"}) || len(r.Found) == 0 {
		t.Errorf("check: %+v, %v", r, err)
	}
	l, err := engine.OpenLibrary(built.Library, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	kernel, above := make([]float32, 9), []float32{0.5}
	kernel[4] = 1 // so the result is the input at every second place
	for _, width := range []int64{20, 1, 6, 20} {
		x := make([]float32, 8*width)
		for i := range x {
			x[i] = float32((i/int(width)/2 + i%int(width)/2) % 2)
		}
		got, err := l.Run(engine.Tensors{
			"x": ir.FromSlice(ir.Float32, x, 1, 1, 8, width), "k": ir.FromSlice(ir.Float32, kernel, 1, 1, 3, 3),
			"t": ir.FromSlice(ir.Float32, above),
		})
		columns := (width + 1) / 2
		if err != nil {
			t.Fatal(err)
		}
		want := 2 * columns
		if got["low"].Dims[3] != columns || got["places"].Dims[1] != want || got["values"].Dims[0] != want ||
			got["first"].Dims[0] != min(want, 3) {
			t.Errorf("width=%d: %v, want %d places", width, got, want)
		}
	}
}
