package eval

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// naiveConv is the definition: for every output element a sum over channels and taps.
func naiveConv(x, w *ir.Tensor, group int64, strides, pads, dilations, outSpatial []int64) *ir.Tensor {
	rank := len(strides)
	dims := append([]int64{x.Dims[0], w.Dims[0]}, outSpatial...)
	out := ir.NewTensor(ir.Float32, dims...)
	xs, ws := rowMajor(x.Dims), rowMajor(w.Dims)
	o := newOdometer(dims, nil, nil)
	for i := range ir.Slice[float32](out) {
		n, m := o.index[0], o.index[1]
		g := m / (w.Dims[0] / group)
		sum := 0.0
		taps := newOdometer(w.Dims[1:], nil, nil)
		for ok := true; ok; ok = taps.next() {
			at, wat, inside := n*xs[0]+(g*w.Dims[1]+taps.index[0])*xs[1], m*ws[0]+taps.index[0]*ws[1], true
			for d := range rank {
				p := o.index[2+d]*strides[d] - pads[d] + taps.index[1+d]*dilations[d]
				inside = inside && p >= 0 && p < x.Dims[2+d]
				at += p * xs[2+d]
				wat += taps.index[1+d] * ws[2+d]
			}
			if inside {
				sum += float64(ir.Slice[float32](x)[at]) * float64(ir.Slice[float32](w)[wat])
			}
		}
		ir.Slice[float32](out)[i] = float32(sum)
		o.next()
	}
	return out
}

// TestConvDefinition compares convolutions of one to three spatial axes with their definition. The extents are no
// multiples of the sizes of tiles and panels.
func TestConvDefinition(t *testing.T) {
	r := random(2)
	for i := range 40 {
		rank := 1 + i%3
		group := int64(1 + r.IntN(3))
		cin, cout := group*int64(1+r.IntN(3)), group*int64(1+r.IntN(4))
		xd, wd := []int64{int64(1 + r.IntN(2)), cin}, []int64{cout, cin / group}
		var s, d, before, behind, out []int64
		for range rank {
			k, st, dl := int64(1+r.IntN(3)), int64(1+r.IntN(3)), int64(1+r.IntN(2))
			a, b, n := int64(r.IntN(3)), int64(r.IntN(3)), int64(6+r.IntN(6))
			wd, xd = append(wd, k), append(xd, n)
			s, d = append(s, st), append(d, dl)
			before, behind = append(before, a), append(behind, b)
			out = append(out, (n+a+b-(k-1)*dl-1)/st+1)
		}
		pads := slices.Concat(before, behind)
		x, w := normal(r, xd...), normal(r, wd...)
		attrs := ir.Attrs{
			"group": ir.IntAttr(group), "strides": ir.IntsAttr(s...), "pads": ir.IntsAttr(pads...),
			"dilations": ir.IntsAttr(d...),
		}
		bias := normal(r, cout)
		want := naiveConv(x, w, group, s, before, d, out)
		near(t, fmt.Sprint("conv ", xd, wd, attrs["pads"].Ints), apply1(t, "Conv", attrs, x, w), want, 1e-5)
		plus := append([]int64{cout}, make([]int64, rank)...)
		for j := range rank {
			plus[1+j] = 1
		}
		want = apply1(t, "Add", nil, want, reshaped(bias, plus))
		near(t, "conv with bias", apply1(t, "Conv", attrs, x, w, bias), want, 1e-5)
	}
}

// TestConvLarge computes a convolution that is larger than a tile of the product in every direction.
func TestConvLarge(t *testing.T) {
	r := random(3)
	x, w := normal(r, 1, 67, 19, 17), normal(r, 131, 67, 3, 3)
	one := []int64{1, 1}
	want := naiveConv(x, w, 1, one, one, one, []int64{19, 17})
	near(t, "conv", apply1(t, "Conv", ir.Attrs{"pads": ir.IntsAttr(1, 1, 1, 1)}, x, w), want, 1e-4)
}

func inner(a, b *ir.Tensor) float64 { return dot(floats(a), floats(b)) }

// TestConvTransposeAdjoint: ConvTranspose is the adjoint of Conv with the same attributes, so
// ⟨Conv(x), y⟩ = ⟨x, ConvTranspose(y)⟩.
func TestConvTransposeAdjoint(t *testing.T) {
	r := random(4)
	for range 30 {
		group := int64(1 + r.IntN(2))
		s, d := []int64{int64(1 + r.IntN(3)), int64(1 + r.IntN(2))}, []int64{int64(1 + r.IntN(2)), 1}
		w := normal(r, 4, 6/group, int64(1+r.IntN(3)), 3)
		attrs := ir.Attrs{
			"group": ir.IntAttr(group), "strides": ir.IntsAttr(s...), "dilations": ir.IntsAttr(d...),
			"pads": ir.IntsAttr(0, 1, 0, 1),
		}
		x := normal(r, 2, 6, 8, 9)
		fwd := apply1(t, "Conv", attrs, x, w)
		y := normal(r, fwd.Dims...)
		// The extents that the stride cuts off have to be put back.
		var extra []int64
		for i := range 2 {
			reach := (w.Dims[2+i]-1)*d[i] + 1 - 2*[]int64{0, 1}[i]
			extra = append(extra, x.Dims[2+i]-((fwd.Dims[2+i]-1)*s[i]+reach))
		}
		attrs["output_padding"] = ir.IntsAttr(extra...)
		back := apply1(t, "ConvTranspose", attrs, y, w)
		if a, b := inner(fwd, y), inner(x, back); math.Abs(a-b) > 1e-4 {
			t.Fatalf("%v: ⟨Conv(x), y⟩ = %v, ⟨x, ConvTranspose(y)⟩ = %v", attrs, a, b)
		}
	}
}

// TestSamePadding checks that the output has ⌈in/stride⌉ elements, and that SAME_UPPER and SAME_LOWER differ exactly if
// the padding is odd.
func TestSamePadding(t *testing.T) {
	x, w := f32([]float32{1, 2, 3, 4}, 1, 1, 4), f32([]float32{1, 10}, 1, 1, 2)
	for mode, want := range map[string][]float32{
		"SAME_UPPER": {21, 32, 43, 4}, "SAME_LOWER": {10, 21, 32, 43}, "VALID": {21, 32, 43},
	} {
		got := apply1(t, "Conv", ir.Attrs{"auto_pad": ir.StringAttr(mode)}, x, w)
		near(t, mode, got, f32(want, 1, 1, int64(len(want))), 0)
	}
}

// naivePool reduces the elements of each window that lie inside x; padded counts the padding as well.
func naivePool(x *ir.Tensor, k, s, pad, dil, out int64, f func(v []float64, padded int) float64) *ir.Tensor {
	n := x.Dims[2]
	res := ir.NewTensor(ir.Float32, x.Dims[0], x.Dims[1], out)
	for p := range x.Dims[0] * x.Dims[1] {
		for o := range out {
			var v []float64
			padded := 0
			for i := range k {
				at := o*s - pad + i*dil
				if at < n+pad {
					padded++
				}
				if at >= 0 && at < n {
					v = append(v, float64(ir.Slice[float32](x)[p*n+at]))
				}
			}
			ir.Slice[float32](res)[p*out+o] = float32(f(v, padded))
		}
	}
	return res
}

func TestPoolDefinition(t *testing.T) {
	r := random(5)
	for range 60 {
		k, s, dil, n := int64(2+r.IntN(2)), int64(1+r.IntN(3)), int64(1+r.IntN(2)), int64(7+r.IntN(5))
		pad, ceil := int64(r.IntN(2)), int64(r.IntN(2))
		room := n + 2*pad - (k-1)*dil - 1
		out := room/s + 1
		if ceil == 1 && room%s != 0 && out*s < n+pad {
			out++
		}
		x := normal(r, 2, 3, n)
		attrs := func(count int64) ir.Attrs {
			return ir.Attrs{
				"kernel_shape": ir.IntsAttr(k), "strides": ir.IntsAttr(s), "pads": ir.IntsAttr(pad, pad),
				"dilations": ir.IntsAttr(dil), "ceil_mode": ir.IntAttr(ceil), "count_include_pad": ir.IntAttr(count),
			}
		}
		top := naivePool(x, k, s, pad, dil, out, func(v []float64, _ int) float64 { return maxOf(v) })
		near(t, "MaxPool", apply1(t, "MaxPool", attrs(0), x), top, 0)
		avg := naivePool(x, k, s, pad, dil, out, func(v []float64, _ int) float64 { return meanOf(v) })
		near(t, "AveragePool", apply1(t, "AveragePool", attrs(0), x), avg, 1e-6)
		avg = naivePool(x, k, s, pad, dil, out, func(v []float64, padded int) float64 { return sumOf(v) / float64(padded) })
		near(t, "AveragePool with padding", apply1(t, "AveragePool", attrs(1), x), avg, 1e-6)
	}
}

// TestMaxPoolIndices reads X at the indices of MaxPool, in both storage orders, and expects the maxima.
func TestMaxPoolIndices(t *testing.T) {
	x := normal(random(6), 2, 3, 5, 6)
	for order := range int64(2) {
		outs := apply(t, "MaxPool", ir.Attrs{"kernel_shape": ir.IntsAttr(2, 3),
			"storage_order": ir.IntAttr(order)}, 2, x)
		flat := x
		if order == 1 {
			flat = apply1(t, "Transpose", ir.Attrs{"perm": ir.IntsAttr(0, 1, 3, 2)}, x)
		}
		picked := apply1(t, "Gather", nil, reshaped(flat, []int64{flat.Len()}), outs[1])
		near(t, "elements at the indices", picked, outs[0], 0)
	}
}
