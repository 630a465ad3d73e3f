package conformance

import (
	"math"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/precision"
)

const boundedGraph = `graph "g" (%x: float32[1,16]) {
  %w = const float32[16,1] {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3}
  %a: float32[1,1] = MatMul(%x, %w)
  %y: float32[1,1] = Tanh(%a)
  %i: int64[1,1] = ArgMax(%a)
  %c: int64[1,1] = Cast(%a) {to = 7}
  return %y, %i, %c
}`

// TestBounds: the formulas for a product of length 16 of elements up to 2 and 3, and for what is computed from it.
func TestBounds(t *testing.T) {
	g, err := ir.ParseText("g.rir", []byte(boundedGraph), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x := ir.NewTensor(ir.Float32, 1, 16)
	ir.Slice[float32](x)[5] = -2
	half, brain := 1.0/(1<<11), 1.0/(1<<8)
	for p, want := range map[precision.Precision]struct{ product, stored float64 }{
		precision.FP32: {2.0 / (1 << 22) * 16 * 2 * 3, 0},
		precision.TF32: {2 * half * 16 * 2 * 3, 0},
		precision.FP16: {2 * half * 16 * 2 * 3, half},
		precision.BF16: {2 * brain * 16 * 2 * 3, brain},
	} {
		got, err := bounds(g, map[string]*ir.Tensor{"x": x}, p)
		if err != nil {
			t.Fatal(err)
		}
		product := want.product + want.stored*6 // the result is -6
		y := product + want.stored*math.Tanh(6)
		if math.Abs(got["y"]-y) > 1e-6*y || got["i"] != 0 || math.Abs(got["c"]-product-1) > 1e-6 {
			t.Errorf("%v: %v, want y %g, i 0, c %g", p, got, y, product+1)
		}
	}
	if spread(4) != 4 || spread(100) != 40 {
		t.Errorf("sums of 4 and 100 products spread by %g and %g", spread(4), spread(100))
	}
}

// TestRounded evaluates ONNX's backend tests as passes leave them for each precision, with the factors of products rounded
// as kernels round them. The results must be within the bounds.
func TestRounded(t *testing.T) {
	cases := suiteCases(t)
	spec, err := device.Find("emu4")
	if err != nil {
		t.Fatal(err)
	}
	for p, format := range map[precision.Precision]eval.Format{
		precision.TF32: eval.TF32, precision.FP16: eval.Float16, precision.BF16: eval.BFloat16,
	} {
		for _, c := range shareOf(t, cases, uint64(p)) {
			if err := rounded(c, target{spec, "", p}, format); err != nil {
				t.Errorf("%v, %s: %v", p, c.Name, err)
			}
		}
	}
}

// rounded evaluates all data sets of a case. Cases that cannot be compiled are left out.
func rounded(c Case, to target, format eval.Format) error {
	t, err := read(c)
	if err != nil {
		return err
	}
	for _, dir := range t.sets {
		x, r := t.compile(dir, to)
		if r.Status != "" {
			continue
		}
		opt := onnx.Options{Shapes: map[string][]int64{}, Bind: map[string]*ir.Tensor{}, RequireStatic: true}
		in := map[string]*ir.Tensor{}
		for name, v := range x.set.in {
			opt.Shapes[name], in[name] = v.Dims, v
		}
		for _, name := range x.bound {
			if in[name] == nil {
				continue // load binds it
			}
			opt.Bind[name] = in[name]
			delete(opt.Shapes, name)
			delete(in, name)
		}
		m, err := t.load(opt)
		if err != nil {
			return err
		}
		if err := graphopt.Run(m.Graph, graphopt.Options{Precision: precision.All(to.precision)}); err != nil {
			return err
		}
		rounding := map[*ir.Node]eval.Rounding{}
		ir.EachGraph(m.Graph, func(g *ir.Graph) {
			for _, n := range g.Nodes {
				rounding[n] = eval.Rounding{Factors: format}
			}
		})
		got, err := eval.Run(m.Graph, in, eval.Options{Workers: 1, Rounding: rounding})
		if err == nil {
			err = t.compare(got, x.set.want, x.outputs, x.allowed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
