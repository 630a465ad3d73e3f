package ir

import (
	"math/rand"
	"testing"
)

// windowsOf counts windows by placing one after another. Each must begin inside the input or the padding before it, and
// end inside the padded input; with ceil the last one may reach beyond that.
func windowsOf(in, reach, stride, begin, end int64, ceil bool) int64 {
	count := int64(0)
	for at := int64(0); ; at += stride {
		fits := at+reach <= in+begin+end
		overruns := at+reach-stride < in+begin+end && at < in+begin
		if !fits && !(ceil && overruns) {
			return count
		}
		count++
	}
}

func TestConvGeometryWindows(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 3000 {
		kernel, stride, dilation := 1+r.Int63n(4), 1+r.Int63n(3), 1+r.Int63n(2)
		reach := (kernel-1)*dilation + 1
		begin, end, in := r.Int63n(kernel), r.Int63n(kernel), reach+r.Int63n(8)
		ceil := r.Intn(2)
		n := &Node{Op: "MaxPool", Inputs: []*Value{{DType: Float32, Shape: Dims(1, 1, in)}}, Attrs: Attrs{
			"kernel_shape": IntsAttr(kernel), "strides": IntsAttr(stride), "dilations": IntsAttr(dilation),
			"pads": IntsAttr(begin, end), "ceil_mode": IntAttr(int64(ceil)),
		}}
		g, err := ConvGeometry(n)
		if err != nil {
			t.Fatal(err)
		}
		if want := windowsOf(in, reach, stride, begin, end, ceil == 1); g.Out[0] != want {
			t.Fatalf("in %d, kernel %d, stride %d, dilation %d, pads %d %d, ceil %d: got %d windows, want %d",
				in, kernel, stride, dilation, begin, end, ceil, g.Out[0], want)
		}
	}
}

// TestConvGeometrySame checks auto_pad: there are as many windows as strides fit into the input, and padding is divided
// evenly, with an odd element at the end for SAME_UPPER and at the beginning for SAME_LOWER.
func TestConvGeometrySame(t *testing.T) {
	for _, mode := range []string{"SAME_UPPER", "SAME_LOWER"} {
		for in := int64(1); in < 12; in++ {
			for kernel := int64(1); kernel < 5; kernel++ {
				for stride := int64(1); stride < 4; stride++ {
					checkSame(t, mode, in, kernel, stride)
				}
			}
		}
	}
}

func checkSame(t *testing.T, mode string, in, kernel, stride int64) {
	t.Helper()
	n := &Node{Op: "Conv", Attrs: Attrs{"auto_pad": StringAttr(mode), "strides": IntsAttr(stride)}, Inputs: []*Value{
		{DType: Float32, Shape: Dims(1, 1, in)}, {DType: Float32, Shape: Dims(1, 1, kernel)},
	}}
	g, err := ConvGeometry(n)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := g.PadBegin[0], g.PadEnd[0]
	if want := (in + stride - 1) / stride; g.Out[0] != want {
		t.Errorf("%s in %d, kernel %d, stride %d: got %d windows, want %d", mode, in, kernel, stride, g.Out[0], want)
	}
	odd := end - begin
	if mode == "SAME_LOWER" {
		odd = -odd
	}
	if odd != 0 && odd != 1 {
		t.Errorf("%s in %d, kernel %d, stride %d: pads %d, %d", mode, in, kernel, stride, begin, end)
	}
	if windowsOf(in, kernel, stride, begin, end, false) != g.Out[0] {
		t.Errorf("%s in %d, kernel %d, stride %d: pads %d, %d do not give %d windows", mode, in, kernel, stride, begin,
			end, g.Out[0])
	}
}

// TestConvGeometryTransposed checks that a transposed convolution restores the extents that the convolution had.
func TestConvGeometryTransposed(t *testing.T) {
	for _, attrs := range []Attrs{
		{"strides": IntsAttr(2, 3), "pads": IntsAttr(1, 0, 1, 2), "dilations": IntsAttr(1, 2)},
		{"strides": IntsAttr(2, 3), "auto_pad": StringAttr("SAME_UPPER")},
		{"strides": IntsAttr(2, 3), "auto_pad": StringAttr("SAME_LOWER")},
		{"strides": IntsAttr(2, 3), "auto_pad": StringAttr("VALID")},
		{"strides": IntsAttr(2, 3), "output_shape": IntsAttr(9, 14)},
	} {
		n := &Node{Op: "ConvTranspose", Attrs: attrs, Inputs: []*Value{
			{DType: Float32, Shape: Dims(1, 2, 5, 5)}, {DType: Float32, Shape: Dims(2, 1, 3, 4)},
		}}
		g, err := ConvGeometry(n)
		if err != nil {
			t.Fatal(err)
		}
		for i := range g.In {
			reach := (g.Kernel[i]-1)*g.Dilations[i] + 1
			if got := windowsOf(g.Out[i], reach, g.Strides[i], g.PadBegin[i], g.PadEnd[i], false); got != g.In[i] {
				t.Errorf("%v axis %d: %+v has %d windows over its output, want %d", attrs, i, g, got, g.In[i])
			}
		}
	}
}

func TestConvGeometryErrors(t *testing.T) {
	x := &Value{DType: Float32, Shape: Shape{D(1), D(1), Sym("n")}}
	for _, n := range []*Node{
		{Op: "Relu"},
		{Op: "MaxPool", Inputs: []*Value{x}, Attrs: Attrs{"kernel_shape": IntsAttr(3)}},
		{Op: "MaxPool", Inputs: []*Value{{Shape: Dims(1, 1, 9)}}},
		{Op: "Conv", Inputs: []*Value{{Shape: Dims(1, 1, 9)}, {Shape: Dims(1, 1)}}},
		{Op: "Conv", Inputs: []*Value{{Shape: Dims(9)}}},
	} {
		if g, err := ConvGeometry(n); err == nil {
			t.Errorf("%s: got %+v, want an error", n.Op, g)
		}
	}
}

func TestONNXTypes(t *testing.T) {
	for d := Float32; d <= Uint2; d++ {
		if back, ok := DTypeOfONNX(d.ONNX()); !ok || back != d {
			t.Errorf("%v: number %d is %v", d, d.ONNX(), back)
		}
	}
	for _, n := range []int64{-1, 0, 14, 15, 27, 1 << 40} {
		if d, ok := DTypeOfONNX(n); ok {
			t.Errorf("number %d is %v", n, d)
		}
	}
}
