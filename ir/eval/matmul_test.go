package eval

import (
	"math"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// TestMatMulDefinition compares MatMul with its definition as a sum, for batches that broadcast, and for extents that
// are no multiples of a tile's.
func TestMatMulDefinition(t *testing.T) {
	r := random(7)
	for _, c := range []struct{ a, b []int64 }{
		{[]int64{3, 5}, []int64{5, 2}},
		{[]int64{131, 300}, []int64{300, 259}},
		{[]int64{2, 1, 3, 4}, []int64{5, 4, 2}},
		{[]int64{4}, []int64{3, 4, 2}},
		{[]int64{3, 2, 4}, []int64{4}},
		{[]int64{7}, []int64{7}},
		{[]int64{2, 0}, []int64{0, 3}},
	} {
		a, b := normal(r, c.a...), normal(r, c.b...)
		near(t, "MatMul", apply1(t, "MatMul", nil, a, b), naiveMatMul(a, b), 1e-4)
	}
}

func naiveMatMul(a, b *ir.Tensor) *ir.Tensor {
	da, db := a.Dims, b.Dims
	if len(da) == 1 {
		da = []int64{1, da[0]}
	}
	if len(db) == 1 {
		db = []int64{db[0], 1}
	}
	lead := broadcastDims(da[:len(da)-2], db[:len(db)-2])
	m, k, n := da[len(da)-2], da[len(da)-1], db[len(db)-1]
	out := ir.NewTensor(ir.Float32, slices.Concat(lead, []int64{m, n})...)
	o := newOdometer(out.Dims, [][]int64{
		append(scaled(broadcastStrides(da[:len(da)-2], lead), m*k), k, 0),
		append(scaled(broadcastStrides(db[:len(db)-2], lead), k*n), 0, 1),
	}, []int64{0, 0})
	for i := range ir.Slice[float32](out) {
		s := 0.0
		for j := range k {
			s += float64(ir.Slice[float32](a)[o.off[0]+j]) * float64(ir.Slice[float32](b)[o.off[1]+j*n])
		}
		ir.Slice[float32](out)[i] = float32(s)
		o.next()
	}
	dims := slices.Clone(lead)
	if len(a.Dims) > 1 {
		dims = append(dims, m)
	}
	if len(b.Dims) > 1 {
		dims = append(dims, n)
	}
	return reshaped(out, dims)
}

func scaled(v []int64, by int64) []int64 {
	out := slices.Clone(v)
	for i := range out {
		out[i] *= by
	}
	return out
}

// TestMatMulIntegers checks that sums of integers wrap around as the element type does.
func TestMatMulIntegers(t *testing.T) {
	a := ir.FromSlice(ir.Int32, []int32{math.MaxInt32, 2}, 1, 2)
	b := ir.FromSlice(ir.Int32, []int32{2, 3}, 2, 1)
	near(t, "int32", apply1(t, "MatMul", nil, a, b), ir.FromSlice(ir.Int32, []int32{4}, 1, 1), 0)
}

func TestGemm(t *testing.T) {
	r := random(8)
	a, b, c := normal(r, 4, 6), normal(r, 6, 5), normal(r, 5)
	product := apply1(t, "MatMul", nil, a, b)
	two, half := f32([]float32{2}), f32([]float32{0.5})
	want := apply1(t, "Add", nil, apply1(t, "Mul", nil, product, two), apply1(t, "Mul", nil, c, half))
	for ta := range int64(2) {
		for tb := range int64(2) {
			x, y := a, b
			if ta == 1 {
				x = apply1(t, "Transpose", nil, a)
			}
			if tb == 1 {
				y = apply1(t, "Transpose", nil, b)
			}
			attrs := ir.Attrs{
				"alpha": ir.FloatAttr(2), "beta": ir.FloatAttr(0.5), "transA": ir.IntAttr(ta), "transB": ir.IntAttr(tb),
			}
			near(t, "Gemm", apply1(t, "Gemm", attrs, x, y, c), want, 1e-5)
		}
	}
}

// TestWorkers checks that the results have the same bits whatever the number of goroutines is.
func TestWorkers(t *testing.T) {
	r := random(9)
	x, w := normal(r, 2, 40, 20, 20), normal(r, 150, 40, 3, 3)
	in := []*ir.Tensor{x, w}
	n := nodeOf("", "Conv", nil, 1, in)
	var first *ir.Tensor
	for _, workers := range []int{1, 2, 5} {
		outs, err := NodeWith(n, in, Options{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = outs[0]
		}
		near(t, "workers", outs[0], first, 0)
	}
}

// naiveEinsum computes an Einsum by its definition, as a sum over all labels. Equations have an arrow and no ellipsis.
func naiveEinsum(terms []string, output string, extent map[rune]int64, ts []*ir.Tensor) *ir.Tensor {
	labels := []rune(output)
	for _, s := range terms {
		for _, l := range s {
			if !slices.Contains(labels, l) {
				labels = append(labels, l)
			}
		}
	}
	dims := make([]int64, len(labels))
	for i, l := range labels {
		dims[i] = extent[l]
	}
	stridesOf := func(s string, own []int64) []int64 {
		out := make([]int64, len(labels))
		for i, l := range []rune(s) {
			out[slices.Index(labels, l)] += own[i]
		}
		return out
	}
	od := dims[:len([]rune(output))]
	cols := [][]int64{stridesOf(output, rowMajor(od))}
	for i, s := range terms {
		cols = append(cols, stridesOf(s, rowMajor(ts[i].Dims)))
	}
	sums := make([]float64, ir.Count(od))
	o := newOdometer(dims, cols, make([]int64, len(cols)))
	for ok := true; ok; ok = o.next() {
		p := 1.0
		for i, t := range ts {
			p *= float64(ir.Slice[float32](t)[o.off[1+i]])
		}
		sums[o.off[0]] += p
	}
	out := ir.NewTensor(ir.Float32, od...)
	store(out, 0, sums)
	return out
}

func TestEinsumDefinition(t *testing.T) {
	r := random(10)
	extent := map[rune]int64{'a': 2, 'b': 3, 'c': 4, 'd': 5, 'e': 1}
	for _, c := range []struct {
		terms  []string
		output string
	}{
		{[]string{"ab", "bc"}, "ac"}, {[]string{"ab", "bc"}, "ca"}, {[]string{"abc", "abd"}, "dca"},
		{[]string{"aab"}, "ab"}, {[]string{"aa"}, ""}, {[]string{"abc"}, "cab"}, {[]string{"ab"}, "b"},
		{[]string{"ab", "ab"}, ""}, {[]string{"a", "b", "c"}, "cba"}, {[]string{"ab", "bc", "cd"}, "ad"},
		{[]string{"abc", "cd", "aeb"}, "de"}, {[]string{"ab", "c"}, "a"}, {[]string{"abb", "cb"}, "bc"},
	} {
		var ts []*ir.Tensor
		equation := ""
		for i, s := range c.terms {
			var dims []int64
			for _, l := range s {
				dims = append(dims, extent[l])
			}
			ts = append(ts, normal(r, dims...))
			if i > 0 {
				equation += ", "
			}
			equation += s
		}
		equation += " -> " + c.output
		got := apply1(t, "Einsum", ir.Attrs{"equation": ir.StringAttr(equation)}, ts...)
		near(t, equation, got, naiveEinsum(c.terms, c.output, extent, ts), 1e-5)
	}
}

// TestEinsumForms compares equations with ellipses or without an arrow with other operators that compute the same.
func TestEinsumForms(t *testing.T) {
	r := random(11)
	a, b := normal(r, 2, 1, 3, 4), normal(r, 5, 4, 2)
	eq := func(s string, ts ...*ir.Tensor) *ir.Tensor {
		t.Helper()
		return apply1(t, "Einsum", ir.Attrs{"equation": ir.StringAttr(s)}, ts...)
	}
	near(t, "batched", eq("...ij,...jk", a, b), apply1(t, "MatMul", nil, a, b), 1e-5)
	near(t, "moved", eq("...ij->...ji", b), apply1(t, "Transpose", ir.Attrs{"perm": ir.IntsAttr(0, 2, 1)}, b), 0)
	near(t, "alphabetical", eq("cba", b), apply1(t, "Transpose", nil, b), 0)
	near(t, "sum", eq("...i->...", b), apply1(t, "ReduceSum", ir.Attrs{"keepdims": ir.IntAttr(0)}, b, i64(-1)), 1e-6)
	near(t, "inner ellipsis", eq("i...j->j...i", b), apply1(t, "Transpose", nil, b), 0)
}

// TestAttention compares Attention with the operators of its formula.
func TestAttention(t *testing.T) {
	r := random(12)
	q, k, v := normal(r, 2, 3, 5, 4), normal(r, 1, 3, 6, 4), normal(r, 2, 1, 6, 7)
	mask := normal(r, 5, 6)
	for i := range int64(6) { // row 0 sees nothing
		ir.Slice[float32](mask)[i] = float32(math.Inf(-1))
	}
	kT := apply1(t, "Transpose", ir.Attrs{"perm": ir.IntsAttr(0, 1, 3, 2)}, k)
	scores := apply1(t, "Add", nil, apply1(t, "Mul", nil, apply1(t, "MatMul", nil, q, kT), f32([]float32{0.5})), mask)
	weights := apply1(t, "Softmax", nil, scores)
	attrs := ir.Attrs{"scale": ir.FloatAttr(0.5)}
	near(t, "with NaN", applyIn(t, ir.InternalDomain, "Attention", attrs, 1, q, k, v, mask)[0],
		apply1(t, "MatMul", nil, weights, v), 1e-5)
	attrs["nan_to_zero"] = ir.IntAttr(1)
	zero := apply1(t, "Where", nil, apply1(t, "IsNaN", nil, weights), f32([]float32{0}), weights)
	near(t, "NaN to zero", applyIn(t, ir.InternalDomain, "Attention", attrs, 1, q, k, v, mask)[0],
		apply1(t, "MatMul", nil, zero, v), 1e-5)
	band := normal(r, 5, 6)
	for i := range 5 {
		for j := range 6 {
			ir.Slice[float32](band)[6*i+j] = 0
			if j < i-1 || j > i+2 {
				ir.Slice[float32](band)[6*i+j] = float32(math.Inf(-1))
			}
		}
	}
	scaled := apply1(t, "Mul", nil, apply1(t, "MatMul", nil, q, kT), f32([]float32{0.5}))
	attrs = ir.Attrs{"scale": ir.FloatAttr(0.5), "before": ir.IntAttr(-1), "behind": ir.IntAttr(2)}
	near(t, "a band of keys", applyIn(t, ir.InternalDomain, "Attention", attrs, 1, q, k, v)[0],
		apply1(t, "MatMul", nil, apply1(t, "Softmax", nil, apply1(t, "Add", nil, scaled, band)), v), 1e-5)
	// A probability that is too small for the element type becomes 0, and 0 times an infinite value is NaN.
	ir.Slice[float32](v)[0] = float32(math.Inf(-1))
	attrs = ir.Attrs{"scale": ir.FloatAttr(500)}
	steep := apply1(t, "Softmax", nil, apply1(t, "Mul", nil, apply1(t, "MatMul", nil, q, kT), f32([]float32{500})))
	near(t, "infinite values", applyIn(t, ir.InternalDomain, "Attention", attrs, 1, q, k, v)[0],
		apply1(t, "MatMul", nil, steep, v), 1e-5)
}
