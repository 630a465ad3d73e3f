package graphopt

import (
	"math/rand/v2"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

const hoistSteps, hoistHidden = 5, 4

// sequence adds a layer of hoistHidden units with constant weights, and returns Y.
func (r *generator) sequence(op string, attrs ir.Attrs, x *ir.Value, lens bool) *ir.Value {
	dims := x.Shape.MustConsts()
	batch := dims[1]
	if attrs["layout"].I == 1 {
		batch = dims[0]
	}
	dirs := int64(1)
	if attrs["direction"].S == "bidirectional" {
		dirs = 2
	}
	rows := map[string]int64{"LSTM": 4, "GRU": 3, "RNN": 1}[op] * hoistHidden
	in := []*ir.Value{x, r.weights(dirs, rows, dims[2]), r.weights(dirs, rows, hoistHidden), r.weights(dirs, 2*rows)}
	if lens {
		data := make([]int32, batch)
		for i := range data {
			data[i] = int32(hoistSteps - i)
		}
		in = append(in, r.constant(ir.FromSlice(ir.Int32, data, batch)))
	}
	return r.node(op, attrs, in...)
}

// checkHoisted runs all passes and checks how many cells read a hoisted product.
func (r *generator) checkHoisted(want int) {
	r.t.Helper()
	r.g.Outputs = []*ir.Value{r.g.Nodes[len(r.g.Nodes)-1].Outputs[0]}
	before := ir.Clone(r.g)
	if err := Run(r.g, Options{Check: true, Seed: 1}); err != nil {
		r.t.Fatal(err)
	}
	sameResults(r.t, before, r.g, 1, 2e-5)
	hoisted := 0
	for _, n := range r.g.Nodes {
		if port, ok := cellWeight[n.Op]; ok && n.Inputs[port] == nil {
			hoisted++
		}
	}
	if hoisted != want {
		r.t.Errorf("%d cells read a projection, want %d:\n%s", hoisted, want, r.g)
	}
}

func newHoistGraph(t *testing.T, attrs ir.Attrs, batch, inputs int64) *generator {
	r := &generator{t: t, g: &ir.Graph{Name: "g"}, random: rand.New(rand.NewPCG(5, 1))}
	dims := ir.Dims(hoistSteps, batch, inputs)
	if attrs["layout"].I == 1 {
		dims = ir.Dims(batch, hoistSteps, inputs)
	}
	r.input("x", ir.Float32, dims)
	return r
}

func TestHoistedLayers(t *testing.T) {
	for _, c := range []struct {
		name, op      string
		attrs         ir.Attrs
		batch, inputs int64
		lens          bool
		hoisted       int // of hoistSteps·directions
	}{
		{"lstm", "LSTM", nil, 1, 6, false, hoistSteps},
		{"narrow", "LSTM", nil, 1, 3, false, 0},
		{"batch", "LSTM", nil, 3, 6, true, hoistSteps},
		{"batch first", "GRU", ir.Attrs{"layout": ir.IntAttr(1), "linear_before_reset": ir.IntAttr(1)}, 3, 6, true,
			hoistSteps},
		{"reverse", "GRU", ir.Attrs{"direction": ir.StringAttr("reverse")}, 2, 6, false, hoistSteps},
		{"both", "RNN", ir.Attrs{"direction": ir.StringAttr("bidirectional")}, 2, 6, true, 2 * hoistSteps},
		{"both, batch first", "LSTM", ir.Attrs{"direction": ir.StringAttr("bidirectional"), "layout": ir.IntAttr(1)}, 2,
			6, false, 2 * hoistSteps},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newHoistGraph(t, c.attrs, c.batch, c.inputs)
			r.sequence(c.op, c.attrs, r.g.Inputs[0], c.lens)
			r.checkHoisted(c.hoisted)
		})
	}
}

// TestHoistedStacks checks stacks of layers. A layer that reads another one step by step keeps its products, unless it
// has to wait for the end of the other one.
func TestHoistedStacks(t *testing.T) {
	for _, c := range []struct {
		name, first, second, between string
		layout                       int64
		hoisted                      int
	}{
		{"same direction", "forward", "forward", "", 0, hoistSteps},
		{"beside as wide a layer", "forward", "forward", "Concat", 0, 0},
		{"element by element", "forward", "forward", "Relu", 0, hoistSteps},
		{"reverse", "reverse", "reverse", "Relu", 0, hoistSteps},
		{"opposite direction", "forward", "reverse", "", 0, 2 * hoistSteps},
		{"both directions", "bidirectional", "bidirectional", "Relu", 0, 4 * hoistSteps},
		{"batch first", "forward", "forward", "Relu", 1, hoistSteps},
		{"sums over time", "forward", "forward", "CumSum", 0, 2 * hoistSteps},
	} {
		t.Run(c.name, func(t *testing.T) {
			attrs := func(direction string) ir.Attrs {
				return ir.Attrs{"direction": ir.StringAttr(direction), "layout": ir.IntAttr(c.layout)}
			}
			r := newHoistGraph(t, attrs(c.first), 2, 6)
			y := r.sequence("LSTM", attrs(c.first), r.g.Inputs[0], false)
			perm := []int64{0, 2, 1, 3} // the directions behind the batch
			if c.layout == 1 {
				perm = []int64{0, 1, 2, 3}
			}
			y = r.node("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, y)
			y = r.node("Reshape", nil, y, r.ints(0, 0, -1))
			switch c.between {
			case "Relu":
				y = r.node("Relu", nil, y)
			case "Concat":
				y = r.node("Concat", ir.Attrs{"axis": ir.IntAttr(-1)}, y, y)
			case "CumSum":
				y = r.node("CumSum", nil, y, r.constant(ir.FromSlice(ir.Int64, []int64{0})))
			}
			r.sequence("LSTM", attrs(c.second), y, false)
			r.checkHoisted(c.hoisted)
		})
	}
}
