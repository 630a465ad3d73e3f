package eval

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// nodeOf makes a node with nout outputs of unknown type around tensors.
func nodeOf(domain, op string, attrs ir.Attrs, nout int, in []*ir.Tensor) *ir.Node {
	n := &ir.Node{Op: op, Domain: domain, Name: "n", Attrs: attrs}
	for _, t := range in {
		var v *ir.Value
		if t != nil {
			v = &ir.Value{Name: "in", DType: t.DType}
		}
		n.Inputs = append(n.Inputs, v)
	}
	for range nout {
		n.Outputs = append(n.Outputs, &ir.Value{Name: "out"})
	}
	return n
}

// apply evaluates an ai.onnx operator with nout outputs.
func apply(t *testing.T, op string, attrs ir.Attrs, nout int, in ...*ir.Tensor) []*ir.Tensor {
	t.Helper()
	return applyIn(t, "", op, attrs, nout, in...)
}

func applyIn(t *testing.T, domain, op string, attrs ir.Attrs, nout int, in ...*ir.Tensor) []*ir.Tensor {
	t.Helper()
	outs, err := Node(nodeOf(domain, op, attrs, nout, in), in)
	if err != nil {
		t.Fatal(err)
	}
	return outs
}

// apply1 evaluates an operator with one output.
func apply1(t *testing.T, op string, attrs ir.Attrs, in ...*ir.Tensor) *ir.Tensor {
	t.Helper()
	return apply(t, op, attrs, 1, in...)[0]
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// normal makes a float32 tensor of normally distributed elements.
func normal(r *rand.Rand, dims ...int64) *ir.Tensor {
	t := ir.NewTensor(ir.Float32, dims...)
	for i := range ir.Slice[float32](t) {
		ir.Slice[float32](t)[i] = float32(r.NormFloat64())
	}
	return t
}

func f32(v []float32, dims ...int64) *ir.Tensor { return ir.FromSlice(ir.Float32, v, dims...) }
func i64(v ...int64) *ir.Tensor                 { return ir.FromSlice(ir.Int64, v, int64(len(v))) }
func i64Scalar(v int64) *ir.Tensor              { return ir.FromSlice(ir.Int64, []int64{v}) }

// near checks dims, element type and every element.
func near(t *testing.T, what string, got, want *ir.Tensor, tol float64) {
	t.Helper()
	if got.DType != want.DType || len(got.Dims) != len(want.Dims) {
		t.Fatalf("%s: got %v %v, want %v %v", what, got.DType, got.Dims, want.DType, want.Dims)
	}
	for i := range got.Dims {
		if got.Dims[i] != want.Dims[i] {
			t.Fatalf("%s: got dims %v, want %v", what, got.Dims, want.Dims)
		}
	}
	g, w := values[float64](got), values[float64](want)
	for i := range g {
		if !(math.Abs(g[i]-w[i]) <= tol) && g[i] != w[i] && !(math.IsNaN(g[i]) && math.IsNaN(w[i])) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, g[i], w[i])
		}
	}
}
