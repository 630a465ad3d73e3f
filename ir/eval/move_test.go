package eval

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// counted0 has the elements 0, 1, 2, …, so that every element shows where it came from.
func counted0(dims ...int64) *ir.Tensor {
	v := make([]float32, ir.Count(dims))
	for i := range v {
		v[i] = float32(i)
	}
	return f32(v, dims...)
}

func ramp(n int64, v func(i int64) float32) *ir.Tensor {
	t := counted0(n)
	for i := range n {
		ir.Slice[float32](t)[i] = v(i)
	}
	return t
}

// TestSliceAll tries every start, end and step on an axis of five elements, and compares with Python's rules, but that
// starts are clamped to the axis.
func TestSliceAll(t *testing.T) {
	x := counted0(5)
	for start := int64(-7); start <= 7; start++ {
		for end := int64(-7); end <= 7; end++ {
			for _, step := range []int64{-3, -2, -1, 1, 2, 3} {
				var want []float32
				from, to := start, end
				if from < 0 {
					from += 5
				}
				if to < 0 {
					to += 5
				}
				if step > 0 {
					for i := max(from, 0); i < min(to, 5); i += step {
						want = append(want, float32(i))
					}
				} else {
					for i := min(max(from, 0), 4); i > max(to, -1); i += step {
						want = append(want, float32(i))
					}
				}
				got := apply1(t, "Slice", nil, x, i64(start), i64(end), i64(0), i64(step))
				near(t, fmt.Sprint(start, end, step), got, f32(want, int64(len(want))), 0)
			}
		}
	}
}

func TestSliceExtremes(t *testing.T) {
	x := counted0(2, 3)
	const big = 1<<63 - 1
	got := apply1(t, "Slice", nil, x, i64(0, -1), i64(big, -big-1), i64(-2, -1), i64(1, -1))
	near(t, "reversed", got, f32([]float32{2, 1, 0, 5, 4, 3}, 2, 3), 0)
}

func TestPadModes(t *testing.T) {
	x := counted0(4)
	for mode, want := range map[string][]float32{
		"constant": {9, 9, 9, 0, 1, 2, 3, 9, 9}, "edge": {0, 0, 0, 0, 1, 2, 3, 3, 3},
		"reflect": {3, 2, 1, 0, 1, 2, 3, 2, 1}, "wrap": {1, 2, 3, 0, 1, 2, 3, 0, 1},
	} {
		got := apply1(t, "Pad", ir.Attrs{"mode": ir.StringAttr(mode)}, x, i64(3, 2), f32([]float32{9}))
		near(t, mode, got, f32(want, 9), 0)
	}
	near(t, "cut", apply1(t, "Pad", nil, x, i64(-1, -2)), f32([]float32{1}, 1), 0)
	got := apply1(t, "Pad", nil, counted0(2, 2), i64(0, 1), nil, i64(-1))
	near(t, "one axis", got, f32([]float32{0, 1, 0, 2, 3, 0}, 2, 3), 0)
}

// TestTranspose moves every index as the permutation says, for all permutations of three axes.
func TestTranspose(t *testing.T) {
	x := counted0(2, 3, 4)
	for _, p := range [][]int64{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		got := apply1(t, "Transpose", ir.Attrs{"perm": ir.IntsAttr(p...)}, x)
		o := newOdometer(got.Dims, nil, nil)
		for _, v := range ir.Slice[float32](got) {
			var at [3]int64
			for i := range p {
				at[p[i]] = o.index[i]
			}
			if want := float32(at[0]*12 + at[1]*4 + at[2]); v != want {
				t.Fatalf("perm %v: element %v is %v, want %v", p, o.index, v, want)
			}
			o.next()
		}
	}
}

func TestReshapeForms(t *testing.T) {
	x := counted0(2, 3, 4)
	for _, c := range []struct {
		op    string
		attrs ir.Attrs
		arg   *ir.Tensor
		want  []int64
	}{
		{"Reshape", nil, i64(-1), []int64{24}},
		{"Reshape", nil, i64(0, -1), []int64{2, 12}},
		{"Reshape", nil, i64(4, 0, -1), []int64{4, 3, 2}},
		{"Flatten", nil, nil, []int64{2, 12}},
		{"Flatten", ir.Attrs{"axis": ir.IntAttr(0)}, nil, []int64{1, 24}},
		{"Flatten", ir.Attrs{"axis": ir.IntAttr(-1)}, nil, []int64{6, 4}},
		{"Unsqueeze", nil, i64(-1, 0), []int64{1, 2, 3, 4, 1}},
		{"Expand", nil, i64(2, 1, 1, 4), []int64{2, 2, 3, 4}},
	} {
		in := []*ir.Tensor{x}
		if c.arg != nil {
			in = append(in, c.arg)
		}
		if got := apply1(t, c.op, c.attrs, in...); !slices.Equal(got.Dims, c.want) {
			t.Errorf("%s %v: dims %v, want %v", c.op, c.attrs, got.Dims, c.want)
		}
	}
	empty := counted0(0, 3)
	got := apply1(t, "Reshape", ir.Attrs{"allowzero": ir.IntAttr(1)}, empty, i64(3, 0))
	if !slices.Equal(got.Dims, []int64{3, 0}) {
		t.Errorf("allowzero: dims %v", got.Dims)
	}
	thin := apply1(t, "Unsqueeze", nil, x, i64(1, 3))
	near(t, "Squeeze all", apply1(t, "Squeeze", nil, thin), x, 0)
	near(t, "Squeeze", apply1(t, "Squeeze", nil, thin, i64(-2, 1)), x, 0)
	near(t, "Shape", apply1(t, "Shape", ir.Attrs{"start": ir.IntAttr(-2), "end": ir.IntAttr(9)}, x), i64(3, 4), 0)
	near(t, "Size", apply1(t, "Size", nil, x), i64Scalar(24), 0)
}

func TestConcatSplit(t *testing.T) {
	x := counted0(3, 7, 2)
	axis := ir.Attrs{"axis": ir.IntAttr(-2)}
	parts := apply(t, "Split", axis, 3, x, i64(4, 0, 3))
	near(t, "Concat of Split", apply1(t, "Concat", axis, parts...), x, 0)
	parts = apply(t, "Split", ir.Attrs{"axis": ir.IntAttr(1), "num_outputs": ir.IntAttr(3)}, 3, x)
	for i, n := range []int64{3, 3, 1} {
		if parts[i].Dims[1] != n {
			t.Errorf("piece %d has dims %v, want %d", i, parts[i].Dims, n)
		}
	}
}

// TestGatherScatter checks that Gather reads back what Scatter has written, and that all other elements stay.
func TestGatherScatter(t *testing.T) {
	r := random(40)
	data, updates := normal(r, 4, 5, 3), normal(r, 2, 5, 3)
	index := ir.NewTensor(ir.Int64, 2, 5, 3)
	for i := range 15 { // two different rows for each place
		a := int64(r.IntN(4))
		ir.Slice[int64](index)[i], ir.Slice[int64](index)[15+i] = a, (a+1+int64(r.IntN(3)))%4-4
	}
	out := apply1(t, "ScatterElements", nil, data, index, updates)
	near(t, "elements", apply1(t, "GatherElements", nil, out, index), updates, 0)
	sum := apply1(t, "ScatterElements", ir.Attrs{"reduction": ir.StringAttr("add")}, data, index, updates)
	near(t, "added", apply1(t, "ReduceSum", nil, sum),
		apply1(t, "Add", nil, apply1(t, "ReduceSum", nil, data), apply1(t, "ReduceSum", nil, updates)), 1e-4)

	tuples := ir.FromSlice(ir.Int64, []int64{3, -1, 0, 2}, 2, 2)
	rows := normal(r, 2, 3)
	near(t, "tuples", apply1(t, "GatherND", nil, apply1(t, "ScatterND", nil, data, tuples, rows), tuples), rows, 0)
	if d := apply1(t, "Sub", nil, apply1(t, "ScatterND", nil, data, tuples, rows), data); countNonZero(d) != 6 {
		t.Errorf("ScatterND changed %d elements, want 6", countNonZero(d))
	}
	twice := ir.FromSlice(ir.Int64, []int64{1, 1}, 2, 1)
	for op, want := range map[string][]float32{"add": {1, 15}, "mul": {1, 48}, "max": {1, 6}, "min": {1, 2}} {
		got := apply1(t, "ScatterND", ir.Attrs{"reduction": ir.StringAttr(op)}, f32([]float32{1, 4}, 2), twice,
			f32([]float32{6, 2}, 2))
		if op == "add" {
			want[1] = 12
		}
		near(t, op, got, f32(want, 2), 0)
	}
}

func countNonZero(t *ir.Tensor) int {
	n := 0
	for _, v := range floats(t) {
		if v != 0 {
			n++
		}
	}
	return n
}

func TestGatherForms(t *testing.T) {
	x := counted0(2, 3, 2)
	idx := ir.FromSlice(ir.Int64, []int64{2, -3, 1, 1}, 2, 2)
	got := apply1(t, "Gather", ir.Attrs{"axis": ir.IntAttr(1)}, x, idx)
	near(t, "axis 1", got, f32([]float32{4, 5, 0, 1, 2, 3, 2, 3, 10, 11, 6, 7, 8, 9, 8, 9}, 2, 2, 2, 2), 0)
	batched := apply1(t, "GatherND", ir.Attrs{"batch_dims": ir.IntAttr(1)}, x,
		ir.FromSlice(ir.Int64, []int64{2, 0}, 2, 1))
	near(t, "batch_dims", batched, f32([]float32{4, 5, 6, 7}, 2, 2), 0)
	in := []*ir.Tensor{x, i64(3)}
	if _, err := Node(nodeOf("", "Gather", ir.Attrs{"axis": ir.IntAttr(1)}, 1, in), in); err == nil {
		t.Error("an index out of range gives no error")
	}
}

// TestBlocks checks that SpaceToDepth is the inverse of DepthToSpace in the mode DCR, and that CRD is DCR after a
// permutation of the channels.
func TestBlocks(t *testing.T) {
	x := counted0(2, 12, 3, 4)
	two := ir.Attrs{"blocksize": ir.IntAttr(2)}
	near(t, "there and back", apply1(t, "SpaceToDepth", two, apply1(t, "DepthToSpace", two, x)), x, 0)
	swapped := apply1(t, "Transpose", ir.Attrs{"perm": ir.IntsAttr(0, 2, 1, 3, 4)}, reshaped(x, []int64{2, 3, 4, 3, 4}))
	crd := ir.Attrs{"blocksize": ir.IntAttr(2), "mode": ir.StringAttr("CRD")}
	near(t, "CRD", apply1(t, "DepthToSpace", crd, x), apply1(t, "DepthToSpace", two, reshaped(swapped, x.Dims)), 0)
}

func TestTileRange(t *testing.T) {
	x := counted0(1, 3)
	near(t, "Tile", apply1(t, "Tile", nil, x, i64(2, 2)),
		apply1(t, "Concat", ir.Attrs{"axis": ir.IntAttr(0)}, apply1(t, "Concat", ir.Attrs{"axis": ir.IntAttr(1)}, x, x),
			apply1(t, "Concat", ir.Attrs{"axis": ir.IntAttr(1)}, x, x)), 0)
	near(t, "Range down", apply1(t, "Range", nil, i64Scalar(5), i64Scalar(-2), i64Scalar(-3)), i64(5, 2, -1), 0)
	near(t, "Range empty", apply1(t, "Range", nil, i64Scalar(5), i64Scalar(5), i64Scalar(1)), i64(), 0)
	near(t, "Range of floats", apply1(t, "Range", nil, f32([]float32{0}), f32([]float32{1}), f32([]float32{0.25})),
		f32([]float32{0, 0.25, 0.5, 0.75}, 4), 0)
	fill := ir.Attrs{"value": ir.TensorAttr(ir.FromSlice(ir.Int32, []int32{7}, 1))}
	near(t, "ConstantOfShape", apply1(t, "ConstantOfShape", fill, i64(2, 1)),
		ir.FromSlice(ir.Int32, []int32{7, 7}, 2, 1), 0)
}

func TestCumSum(t *testing.T) {
	x := f32([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	for _, c := range []struct {
		exclusive, reverse int64
		want               []float32
	}{
		{0, 0, []float32{1, 3, 6, 4, 9, 15}},
		{1, 0, []float32{0, 1, 3, 0, 4, 9}},
		{0, 1, []float32{6, 5, 3, 15, 11, 6}},
		{1, 1, []float32{5, 3, 0, 11, 6, 0}},
	} {
		attrs := ir.Attrs{"exclusive": ir.IntAttr(c.exclusive), "reverse": ir.IntAttr(c.reverse)}
		near(t, fmt.Sprint(c), apply1(t, "CumSum", attrs, x, i64Scalar(-1)), f32(c.want, 2, 3), 0)
	}
}

func TestTriluOneHot(t *testing.T) {
	x := ramp(9, func(i int64) float32 { return float32(i + 1) })
	x = reshaped(x, []int64{3, 3})
	lower := ir.Attrs{"upper": ir.IntAttr(0)}
	for k := int64(-4); k <= 4; k++ {
		up, down := apply1(t, "Trilu", nil, x, i64Scalar(k)), apply1(t, "Trilu", lower, x, i64Scalar(k-1))
		near(t, "the triangles add up", apply1(t, "Add", nil, up, down), x, 0)
	}
	near(t, "upper", apply1(t, "Trilu", nil, x), f32([]float32{1, 2, 3, 0, 5, 6, 0, 0, 9}, 3, 3), 0)
	hot := apply1(t, "OneHot", ir.Attrs{"axis": ir.IntAttr(0)}, i64(2, -3, 5), i64Scalar(3), f32([]float32{-1, 1}, 2))
	near(t, "OneHot", hot, f32([]float32{-1, 1, -1, -1, -1, -1, 1, -1, -1}, 3, 3), 0)
}

func TestTopK(t *testing.T) {
	x := f32([]float32{3, 1, 3, 2, 5, 5, 0, 4}, 2, 4)
	got := apply(t, "TopK", nil, 2, x, i64(3))
	near(t, "largest", got[0], f32([]float32{3, 3, 2, 5, 5, 4}, 2, 3), 0)
	near(t, "their places", got[1], ir.FromSlice(ir.Int64, []int64{0, 2, 3, 0, 1, 3}, 2, 3), 0)
	got = apply(t, "TopK", ir.Attrs{"largest": ir.IntAttr(0), "axis": ir.IntAttr(0)}, 2, x, i64(1))
	near(t, "smallest", got[0], f32([]float32{3, 1, 0, 2}, 1, 4), 0)
	near(t, "their places", got[1], ir.FromSlice(ir.Int64, []int64{0, 0, 1, 0}, 1, 4), 0)
}

// TestView checks that each operator that a window can express equals a View.
func TestView(t *testing.T) {
	x := counted0(3, 4)
	v := func(offset int64, shape, strides []int64) *ir.Tensor {
		return applyIn(t, ir.InternalDomain, "View", ir.Attrs{
			"offset": ir.IntAttr(offset), "shape": ir.IntsAttr(shape...), "strides": ir.IntsAttr(strides...),
		}, 1, x)[0]
	}
	near(t, "transposed", v(0, []int64{4, 3}, []int64{1, 4}), apply1(t, "Transpose", nil, x), 0)
	near(t, "reversed", v(11, []int64{3, 4}, []int64{-4, -1}),
		apply1(t, "Slice", nil, x, i64(-1, -1), i64(-9, -9), i64(0, 1), i64(-1, -1)), 0)
	near(t, "repeated", v(4, []int64{2, 4}, []int64{0, 1}), f32([]float32{4, 5, 6, 7, 4, 5, 6, 7}, 2, 4), 0)
	in := []*ir.Tensor{x}
	out := nodeOf(ir.InternalDomain, "View", ir.Attrs{"offset": ir.IntAttr(9), "shape": ir.IntsAttr(4),
		"strides": ir.IntsAttr(1)}, 1, in)
	if _, err := Node(out, in); err == nil {
		t.Error("a view that leaves its input gives no error")
	}
}
