package graphopt

import (
	"math/rand/v2"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// longGraph is a generator whose graph has one input of so many steps.
func longGraph(t *testing.T, attrs ir.Attrs, steps, batch, inputs int64) *generator {
	r := &generator{t: t, g: &ir.Graph{Name: "g"}, random: rand.New(rand.NewPCG(5, 2))}
	dims := ir.Dims(steps, batch, inputs)
	if attrs["layout"].I == 1 {
		dims = ir.Dims(batch, steps, inputs)
	}
	r.input("x", ir.Float32, dims)
	return r
}

// longLayer adds a layer with all outputs, with states and lengths of sequences where asked for.
func (r *generator) longLayer(op string, attrs ir.Attrs, x *ir.Value, lens, states bool) []*ir.Value {
	dims := x.Shape.MustConsts()
	steps, batch := dims[0], dims[1]
	if attrs["layout"].I == 1 {
		steps, batch = batch, steps
	}
	dirs := int64(1)
	if attrs["direction"].S == "bidirectional" {
		dirs = 2
	}
	const hidden = 3
	rows := map[string]int64{"LSTM": 4, "GRU": 3, "RNN": 1}[op] * hidden
	in := []*ir.Value{x, r.weights(dirs, rows, dims[2]), r.weights(dirs, rows, hidden), r.weights(dirs, 2*rows), nil, nil}
	if lens {
		data := make([]int32, batch)
		for i := range data {
			data[i] = int32(steps - 97*int64(i))
		}
		in[4] = r.constant(ir.FromSlice(ir.Int32, data, batch))
	}
	shape := []int64{dirs, batch, hidden}
	if attrs["layout"].I == 1 {
		shape = []int64{batch, dirs, hidden}
	}
	outs := 2
	if states {
		in[5] = r.weights(shape...)
	}
	if op == "LSTM" {
		outs = 3
		if in = append(in, nil, r.weights(dirs, 3*hidden)); states {
			in[6] = r.weights(shape...)
		}
	}
	return r.nodes(op, attrs, outs, in...)
}

// nodes adds a node with so many outputs.
func (r *generator) nodes(op string, attrs ir.Attrs, outs int, in ...*ir.Value) []*ir.Value {
	y := r.node(op, attrs, in...)
	n := y.Def
	for i := 1; i < outs; i++ {
		v := &ir.Value{Name: y.Name + string(rune('a'+i)), Def: n}
		n.Outputs = append(n.Outputs, v)
	}
	if err := ir.InferShapes(r.g).Err(); err != nil {
		r.t.Fatal(err)
	}
	return n.Outputs
}

// checkRepeated runs all passes, and checks the results, how many loops there are and how many cells they have.
func (r *generator) checkRepeated(loops, cells int, outs ...*ir.Value) {
	r.t.Helper()
	r.g.Outputs = outs
	before := ir.Clone(r.g)
	if err := Run(r.g, Options{Check: true, Seed: 1}); err != nil {
		r.t.Fatal(err)
	}
	sameResults(r.t, before, r.g, 1, 3e-5)
	if got := len(ir.Repeats(r.g)); got != loops {
		r.t.Errorf("%d loops, want %d", got, loops)
	}
	got := 0
	for _, n := range r.g.Nodes {
		if _, ok := cellWeight[n.Op]; ok {
			got++
		}
	}
	if got != cells {
		r.t.Errorf("%d cells, want %d", got, cells)
	}
}

func TestRepeatedLayers(t *testing.T) {
	direction := func(d string) ir.Attrs { return ir.Attrs{"direction": ir.StringAttr(d)} }
	for _, c := range []struct {
		name, op     string
		attrs        ir.Attrs
		steps, batch int64
		lens, states bool
		cells        int
	}{
		{"short", "LSTM", nil, 256, 1, false, false, 256},
		{"even", "LSTM", nil, 300, 1, false, true, 100},
		{"with a rest", "LSTM", nil, 307, 2, false, true, 128 + 51},
		{"lengths", "LSTM", nil, 307, 4, true, false, 128 + 51},
		{"reverse", "GRU", direction("reverse"), 307, 1, false, true, 128 + 51},
		{"reverse, lengths", "GRU", direction("reverse"), 307, 4, true, true, 128 + 51},
		{"both", "RNN", direction("bidirectional"), 307, 2, false, true, 2 * (128 + 51)},
		{"both, lengths", "LSTM", direction("bidirectional"), 300, 4, true, true, 200},
		{"batch first", "LSTM", ir.Attrs{"direction": ir.StringAttr("bidirectional"), "layout": ir.IntAttr(1)}, 307, 2,
			true, true, 2 * (128 + 51)},
		{"very long", "RNN", nil, 20000, 1, false, false, 125},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := longGraph(t, c.attrs, c.steps, c.batch, 2)
			loops := 1
			if c.steps <= maxSteps {
				loops = 0
			}
			r.checkRepeated(loops, c.cells, r.longLayer(c.op, c.attrs, r.g.Inputs[0], c.lens, c.states)...)
		})
	}
}

// TestRepeatedStacks checks that layers share a loop where they can.
func TestRepeatedStacks(t *testing.T) {
	for _, c := range []struct {
		name, first, second, between string
		states                       bool // the second layer begins with what the first one ends with
		loops                        int
	}{
		{"step by step", "forward", "forward", "", false, 1},
		{"backwards", "reverse", "reverse", "", false, 1},
		{"opposite", "forward", "reverse", "", false, 2},
		{"element by element", "forward", "forward", "Relu", false, 2},
		{"with the last state", "forward", "forward", "", true, 2},
		{"side by side", "forward", "reverse", "beside", false, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			attrs := func(d string) ir.Attrs { return ir.Attrs{"direction": ir.StringAttr(d)} }
			r := longGraph(t, nil, 307, 2, 3)
			first := r.longLayer("GRU", attrs(c.first), r.g.Inputs[0], false, false)
			x := r.node("Squeeze", nil, first[0], r.ints(1))
			switch c.between {
			case "Relu":
				x = r.node("Relu", nil, x)
			case "beside":
				x = r.g.Inputs[0]
			}
			second := r.longLayer("GRU", attrs(c.second), x, false, true)
			if c.states {
				second[0].Def.Inputs[5] = first[1]
			}
			r.checkRepeated(c.loops, 2*(128+51), append(first, second...)...)
		})
	}
}

// repeatedBodies are a Scan and Loops, and how many loops of the program they become.
var repeatedBodies = []struct {
	name, text string
	loops      int
}{
	{"scan", `graph "scan" (%s0: float32[2], %x: float32[300,2], %y: float32[2,300]) {
  %s: float32[2], %a: float32[300,2], %b: float32[2,300] = Scan(%s0, %x, %y) {body = graph "body" (%s_in: float32[2], %x_in: float32[2], %y_in: float32[2]) {
    %sum: float32[2] = Add(%s_in, %x_in)
    %out: float32[2] = Tanh(%sum)
    %product: float32[2] = Mul(%out, %y_in)
    return %out, %sum, %product
  }, num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1], scan_output_axes = [0, 1], scan_output_directions = [1, 0]}
  return %s, %a, %b
}`, 1},
	{"scan with a rest", `graph "scan" (%s0: float32[2], %x: float32[301,2]) {
  %s: float32[2], %a: float32[301,2] = Scan(%s0, %x) {body = graph "body" (%s_in: float32[2], %x_in: float32[2]) {
    %sum: float32[2] = Add(%s_in, %x_in)
    %out: float32[2] = Tanh(%sum)
    return %out, %sum
  }, num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1]}
  return %s, %a
}`, 1},
	{"loop", `graph "loop" (%v0: float32[2], %w: float32[2]) {
  %m = const int64[] {307}
  %yes = const bool[] {true}
  %v: float32[2], %all: float32[307,2] = Loop(%m, %yes, %v0) {body = graph "body" (%i: int64[], %go: bool[], %v_in: float32[2]) {
    %number: float32[] = Cast(%i) {to = 1}
    %scaled: float32[2] = Mul(%w, %number)
    %wave: float32[2] = Sin(%scaled)
    %sum: float32[2] = Add(%v_in, %wave)
    %out: float32[2] = Tanh(%sum)
    return %go, %out, %wave
  }}
  return %v, %all
}`, 1},
	{"a loop that ends by a condition", `graph "loop" (%v0: float32[2]) {
  %m = const int64[] {300}
  %last = const int64[] {7}
  %yes = const bool[] {true}
  %v: float32[2] = Loop(%m, %yes, %v0) {body = graph "body" (%i: int64[], %go: bool[], %v_in: float32[2]) {
    %more: bool[] = Less(%i, %last)
    %out: float32[2] = Tanh(%v_in)
    return %more, %out
  }}
  return %v
}`, 0},
}

// TestRepeatedBodies checks Scan and Loop, whose bodies have any operators.
func TestRepeatedBodies(t *testing.T) {
	for _, c := range repeatedBodies {
		t.Run(c.name, func(t *testing.T) {
			g, err := ir.ParseText("test.rir", []byte(c.text), ir.ParseOptions{})
			if err != nil {
				t.Fatal(err)
			}
			before := ir.Clone(g)
			if err := Run(g, Options{Check: true, Seed: 1}); err != nil {
				t.Fatal(err)
			}
			sameResults(t, before, g, 1, 2e-5)
			if got := len(ir.Repeats(g)); got != c.loops {
				t.Errorf("%d loops, want %d:\n%s", got, c.loops, g)
			}
		})
	}
}
