package eval

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

func parsed(t *testing.T, text string) *ir.Graph {
	t.Helper()
	g, err := ir.ParseText("test.rir", []byte(text), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(g); err != nil {
		t.Fatal(err)
	}
	return g
}

type tensors = map[string]*ir.Tensor

func ran(t *testing.T, g *ir.Graph, in tensors) tensors {
	t.Helper()
	out, err := Run(g, in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const chain = `graph "chain" (%x: float32[n,2], %y: float32[n,2]) {
  %a: float32[n,2] = Add(%x, %y) name "first"
  %b: float32[n,2] = Relu(%a)
  %c: float32[n,2] = Mul(%b, %x)
  %d: float32[n,2] = Neg(%c)
  return %d, %b
}
`

func TestRun(t *testing.T) {
	out := ran(t, parsed(t, chain), tensors{"x": f32([]float32{1, -2}, 1, 2), "y": f32([]float32{3, 1}, 1, 2)})
	near(t, "d", out["d"], f32([]float32{-4, 0}, 1, 2), 0)
	near(t, "b", out["b"], f32([]float32{4, 0}, 1, 2), 0)
	if len(out) != 2 {
		t.Errorf("%d outputs, want 2", len(out))
	}
}

// TestInputChecks checks that all mistakes in the inputs are reported at once.
func TestInputChecks(t *testing.T) {
	g := parsed(t, chain)
	for _, c := range []struct {
		in   tensors
		want []string
	}{
		{tensors{"x": counted0(2, 2)}, []string{`"y" is missing`, "the inputs are x, y"}},
		{tensors{"x": counted0(2, 2), "y": counted0(3, 2), "z": counted0(1)},
			[]string{`input "y": dims are [3 2], want [2,2]`, `no input is called "z"`}},
		{tensors{"x": counted0(2, 2), "y": ir.NewTensor(ir.Int8, 2, 2)},
			[]string{"element type is int8, want float32"}},
		{tensors{"x": counted0(2), "y": counted0(2, 2)}, []string{`input "x": dims are [2]`}},
		{
			tensors{"x": {DType: ir.Float32, Dims: []int64{2, 2}, Data: []float32{1}},
				"y": {DType: ir.Float32, Dims: []int64{2, 2}, Data: []int8{1}}},
			[]string{`"x": 1 elements for dims [2 2]`, `"y": element type float32 does not fit Go type []int8`},
		},
	} {
		_, err := Run(g, c.in, Options{})
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v does not say %q", err, want)
			}
		}
	}
}

// TestBrokenPromise evaluates a node whose output has other extents than its value declares, which is an error.
func TestBrokenPromise(t *testing.T) {
	g := parsed(t, chain)
	g.Nodes[0].Outputs[0].Shape = ir.Dims(7, 2)
	_, err := Run(g, tensors{"x": counted0(1, 2), "y": counted0(1, 2)}, Options{})
	var ne *NodeError
	if !errors.As(err, &ne) || ne.Node != "first" || ne.Op != "Add" {
		t.Errorf("got %v, want an error of node first", err)
	}
}

// TestObserve checks that Observe gets every value once and in order, and that Progress counts the outermost nodes.
func TestObserve(t *testing.T) {
	var seen []string
	var steps []int
	_, err := Run(parsed(t, chain), tensors{"x": counted0(1, 2), "y": counted0(1, 2)}, Options{
		Observe:  func(v *ir.Value, _ *ir.Tensor) { seen = append(seen, v.Name) },
		Progress: func(done, total int) { steps = append(steps, done, total) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(seen, want) {
		t.Errorf("observed %v, want %v", seen, want)
	}
	if want := []int{1, 4, 2, 4, 3, 4, 4, 4}; !slices.Equal(steps, want) {
		t.Errorf("progress %v, want %v", steps, want)
	}
}

// TestLiveness checks that a value is released after the last node that reads it, also from inside a subgraph, and that
// outputs are kept.
func TestLiveness(t *testing.T) {
	g := parsed(t, `graph "live" (%x: float32[2], %c: bool[]) {
  %a: float32[2] = Neg(%x)
  %b: float32[2] = Neg(%a)
  %unused: float32[2] = Neg(%a)
  %r: float32[2] = If(%c) {else_branch = graph "else" () {
    %e: float32[2] = Add(%b, %x)
    return %e
  }, then_branch = graph "then" () {
    return %b
  }}
  %s: float32[2] = Abs(%r)
  return %s, %a
}
`)
	var got []string
	for _, dead := range newPlan(g).dead {
		names := []string{}
		for _, v := range dead {
			names = append(names, v.Name)
		}
		got = append(got, strings.Join(names, " "))
	}
	if want := []string{"", "", "unused", "x c b", "r"}; !slices.Equal(got, want) {
		t.Errorf("dead after each node: %q, want %q", got, want)
	}
	for _, c := range []bool{true, false} {
		out := ran(t, g, tensors{"x": f32([]float32{1, -2}, 2), "c": ir.FromSlice(ir.Bool, []bool{c})})
		want := f32([]float32{2, 4}, 2)
		if c {
			want = f32([]float32{1, 2}, 2)
		}
		near(t, "s", out["s"], want, 0)
	}
}

// TestLoop adds numbers until the sum exceeds a limit, which the body captures, and returns the sums as a scan output.
func TestLoop(t *testing.T) {
	g := parsed(t, `graph "loop" (%limit: float32[], %m: int64[]) {
  %start = const float32[] {0}
  %sum: float32[], %all: float32[k] = Loop(%m, _, %start) {body = graph "body" (%i: int64[], %in: bool[], %s: float32[]) {
    %f: float32[] = CastLike(%i, %s)
    %t: float32[] = Add(%s, %f)
    %go: bool[] = Less(%t, %limit)
    return %go, %t, %s
  }}
  return %sum, %all
}
`)
	for _, c := range []struct {
		m    int64
		sum  float32
		seen []float32
	}{{100, 10, []float32{0, 0, 1, 3, 6}}, {3, 3, []float32{0, 0, 1}}, {0, 0, nil}} {
		out := ran(t, g, tensors{"limit": f32([]float32{10}), "m": i64Scalar(c.m)})
		near(t, "sum", out["sum"], f32([]float32{c.sum}), 0)
		near(t, "all", out["all"], f32(c.seen, int64(len(c.seen))), 0)
	}
}

// TestScan scans the second axis, once in each direction, and stacks the results in reverse order.
func TestScan(t *testing.T) {
	g := parsed(t, `graph "scan" (%x: float32[2,3]) {
  %start = const float32[2] {0, 0}
  %sum: float32[2], %sums: float32[2,3], %both: float32[3,2] = Scan(%start, %x, %x) {body = graph "body" (%s: float32[2], %a: float32[2], %b: float32[2]) {
    %t: float32[2] = Add(%s, %a)
    %u: float32[2] = Sub(%a, %b)
    return %t, %t, %u
  }, num_scan_inputs = 2, scan_input_axes = [1, 1], scan_input_directions = [0, 1], scan_output_axes = [1, 0], scan_output_directions = [0, 1]}
  return %sum, %sums, %both
}
`)
	out := ran(t, g, tensors{"x": counted0(2, 3)})
	near(t, "sum", out["sum"], f32([]float32{3, 12}, 2), 0)
	near(t, "sums", out["sums"], f32([]float32{0, 1, 3, 3, 7, 12}, 2, 3), 0)
	near(t, "both", out["both"], f32([]float32{2, 2, 0, 0, -2, -2}, 3, 2), 0)
}

// TestNestedError checks that an error in a subgraph names the node and the nodes around it.
func TestNestedError(t *testing.T) {
	g := parsed(t, `graph "nested" (%c: bool[], %i: int64[1]) {
  %x = const float32[2] {1, 2}
  %r: float32[1] = If(%c) {else_branch = graph "else" () {
    %e: float32[1] = Gather(%x, %i) name "inner"
    return %e
  }, then_branch = graph "then" () {
    %f: float32[1] = Gather(%x, %i)
    return %f
  }} name "outer"
  return %r
}
`)
	_, err := Run(g, tensors{"c": ir.FromSlice(ir.Bool, []bool{false}), "i": i64(5)}, Options{})
	const want = `node "outer" (If): node "inner" (Gather): index 5 is out of range for extent 2`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestFused checks that a Fused node computes what its body does.
func TestFused(t *testing.T) {
	g := parsed(t, `graph "fused" (%x: float32[2], %y: float32[2]) {
  %r: float32[2], %s: float32[2] = rammer.Fused(%x, %y) {anchor = "map", body = graph "body" (%a: float32[2], %b: float32[2]) {
    %t: float32[2] = Add(%a, %b)
    %u: float32[2] = Mul(%t, %a)
    return %t, %u
  }}
  return %r, %s
}
`)
	out := ran(t, g, tensors{"x": f32([]float32{1, 2}, 2), "y": f32([]float32{3, 4}, 2)})
	near(t, "r", out["r"], f32([]float32{4, 6}, 2), 0)
	near(t, "s", out["s"], f32([]float32{4, 12}, 2), 0)
}

// TestMemoryLimit checks that extents that come from data cannot ask for more memory than the limit.
func TestMemoryLimit(t *testing.T) {
	in := []*ir.Tensor{i64(1<<40, 1<<40)}
	_, err := Node(nodeOf("", "ConstantOfShape", nil, 1, in), in)
	if err == nil || !strings.Contains(err.Error(), "more than the limit") {
		t.Errorf("got %v", err)
	}
	in = []*ir.Tensor{i64(1000)}
	if _, err = NodeWith(nodeOf("", "ConstantOfShape", nil, 1, in), in, Options{MaxBytes: 3999}); err == nil {
		t.Error("4000 bytes pass a limit of 3999")
	}
}

// TestNodeCaptures evaluates a single node. Its bodies may use constants of the graphs around it, but no other values.
func TestNodeCaptures(t *testing.T) {
	x := &ir.Value{Name: "x", Const: f32([]float32{3})}
	body := &ir.Graph{Name: "b", Outputs: []*ir.Value{x}}
	n := nodeOf("", "If", ir.Attrs{"then_branch": ir.GraphAttr(body), "else_branch": ir.GraphAttr(body)}, 1, nil)
	in := []*ir.Tensor{ir.FromSlice(ir.Bool, []bool{true})}
	outs, err := Node(n, in)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "constant", outs[0], x.Const, 0)
	x.Const = nil
	if _, err := Node(n, in); err == nil {
		t.Error("a captured value that nobody computed gives no error")
	}
}

func TestConstantForms(t *testing.T) {
	for name, c := range map[string]struct {
		a    ir.Attr
		want *ir.Tensor
	}{
		"value":        {ir.TensorAttr(i64(4, 5)), i64(4, 5)},
		"value_int":    {ir.IntAttr(4), i64Scalar(4)},
		"value_ints":   {ir.IntsAttr(4, 5), i64(4, 5)},
		"value_float":  {ir.FloatAttr(0.5), f32([]float32{0.5})},
		"value_floats": {ir.FloatsAttr(0.5, 2), f32([]float32{0.5, 2}, 2)},
	} {
		near(t, name, apply1(t, "Constant", ir.Attrs{name: c.a}), c.want, 0)
	}
}

// TestDropout checks that Dropout returns its input and a mask of trues, and that training mode is an error.
func TestDropout(t *testing.T) {
	x := counted0(3)
	outs := apply(t, "Dropout", nil, 2, x)
	near(t, "output", outs[0], x, 0)
	near(t, "mask", outs[1], ir.FromSlice(ir.Bool, []bool{true, true, true}, 3), 0)
	in := []*ir.Tensor{x, nil, ir.FromSlice(ir.Bool, []bool{true})}
	if _, err := Node(nodeOf("", "Dropout", nil, 1, in), in); err == nil {
		t.Error("training mode gives no error")
	}
}
