package graphopt

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// TestPoolsOfManyAxes checks that pools with more spatial axes than the kernels support lose those that they do not
// change, and that the results stay the same.
func TestPoolsOfManyAxes(t *testing.T) {
	for _, c := range []struct {
		name, node string
		in, out    string
		axes       int // afterwards
	}{
		{
			"windows in the middle", "MaxPool(%x) {ceil_mode = 1, kernel_shape = [1, 3, 2, 1], pads = [0, 1, 0, 0, 0, 1, 0, 0], strides = [1, 2, 2, 1]}",
			"2,1,3,6,5,4", "2,1,3,4,3,4", 3,
		},
		{
			"same", "AveragePool(%x) {auto_pad = \"SAME_UPPER\", ceil_mode = 1, kernel_shape = [1, 1, 2, 3], strides = [1, 1, 2, 2]}",
			"2,3,2,2,5,4", "2,3,2,2,3,2", 2,
		},
		{"norm", "LpPool(%x) {kernel_shape = [1, 1, 1, 2], p = 1}", "1,2,2,3,2,4", "1,2,2,3,2,3", 1},
		{"nothing to drop", "MaxPool(%x) {kernel_shape = [2, 1, 1, 2]}", "1,1,3,2,2,3", "1,1,2,2,2,2", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := "graph \"g\" (%x: float32[" + c.in + "]) {\n%y: float32[" + c.out + "] = " + c.node +
				"\nreturn %y\n}\n"
			g, err := ir.ParseText(c.name, []byte(src), ir.ParseOptions{})
			if err != nil {
				t.Fatal(err)
			}
			x := ir.NewTensor(ir.Float32, g.Inputs[0].Shape.MustConsts()...)
			for i, data := 0, ir.Slice[float32](x); i < len(data); i++ {
				data[i] = float32(i*37%101) - 50
			}
			in := map[string]*ir.Tensor{"x": x}
			want, err := eval.Run(g, in, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := Run(g, Options{Check: true}); err != nil {
				t.Fatal(err)
			}
			got, err := eval.Run(g, in, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if string(got["y"].LittleEndian()) != string(want["y"].LittleEndian()) {
				t.Errorf("the pool computes something else:\n%v", g)
			}
			pools := 0
			for _, n := range g.Nodes {
				if n.Op == "MaxPool" || n.Op == "AveragePool" || n.Op == "LpPool" {
					pools++
					if k := len(n.Ints("kernel_shape")); k != c.axes {
						t.Errorf("the pool has %d axes, want %d", k, c.axes)
					}
				}
			}
			if pools != 1 {
				t.Errorf("%d pools:\n%v", pools, g)
			}
		})
	}
}
