package onnx_test

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
)

func TestBind(t *testing.T) {
	model := newModel(17).in("x float32[n,4]", "s int64[2]", "k int32[1]", "f float32[m]").
		out("y float32").node("r = Reshape(x,s)").node("c = CumSum(r,k)").node("y = Add(c,f)")
	ints := func(v ...int64) *ir.Tensor { return ir.FromSlice(ir.Int64, v, int64(len(v))) }
	type bind = map[string]*ir.Tensor
	for _, c := range []struct {
		name   string
		bind   bind
		inputs string // names of those that are left, or
		ids    string // ids of the errors, and
		text   string // what the messages say
	}{
		{"nothing", nil, "x s k f", "", ""},
		{"shape", bind{"s": ints(4, -1)}, "x k f", "", ""},
		{"converted", bind{"k": ints(1), "f": ints(1, 2)}, "x s", "", ""},
		{"one number for a list", bind{"k": ir.FromSlice(ir.Int64, []int64{0})}, "x s f", "", ""},
		{"too large", bind{"k": ints(1 << 40)}, "", "bad-type", "is no value of element type int32"},
		{"fraction", bind{"s": ir.FromSlice(ir.Float64, []float64{1, 0.5}, 2)}, "", "bad-type",
			"0.5 is no value of element type int64"},
		{"other type", bind{"s": ir.FromSlice(ir.Float32, []float32{1, 2}, 2)}, "", "bad-type",
			"its elements are float32"},
		{"other extent", bind{"s": ints(1, 2, 3)}, "", "bad-shape", "the model wants [2]"},
		{"no such input", bind{"q": ints(1), "s": ints(4)}, "", "unknown-input bad-shape",
			"the inputs are: x, s, k, f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := model.parse(t, onnx.Options{Bind: c.bind})
			if err != nil || c.ids != "" {
				if got := errorIDs(t, err); got != c.ids || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %q, want %q with %q: %v", got, c.ids, c.text, err)
				}
				return
			}
			var names []string
			for _, v := range m.Graph.Inputs {
				names = append(names, v.Name)
			}
			if got := strings.Join(names, " "); got != c.inputs {
				t.Errorf("got inputs %s, want %s", got, c.inputs)
			}
		})
	}
	m, err := model.parse(t, onnx.Options{Bind: bind{"f": ints(1, 2, 3), "s": ints(2, 3), "k": ints(0)}})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Graph.Outputs[0].Shape.String(); got != "[2,3]" {
		t.Errorf("the shape of y is %s, want [2,3]", got)
	}
}
