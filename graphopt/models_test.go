package graphopt

import (
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
)

// TestModelsKeepResults runs all passes on the bundled models, with Options.Check, and compares the results before and
// after.
func TestModelsKeepResults(t *testing.T) {
	files, err := filepath.Glob("../testdata/models/*.onnx")
	if err != nil || len(files) == 0 {
		t.Fatalf("no bundled models: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			load := func() *ir.Graph {
				m, err := onnx.Load(f, onnx.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range m.Dims {
					if err := ir.BindDims(m.Graph, map[string]int64{name: 3}).Err(); err != nil {
						t.Fatal(err)
					}
				}
				return m.Graph
			}
			g, in := load(), map[string]*ir.Tensor{}
			for _, v := range g.Inputs {
				x := ir.NewTensor(v.DType, v.Shape.MustConsts()...)
				for i, d := 0, ir.Slice[float32](x); i < len(d); i++ {
					d[i] = float32(i*7919%1000)/500 - 1
				}
				in[v.Name] = x
			}
			want, err := eval.Run(load(), in, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := Run(g, Options{Check: true, Seed: 7}); err != nil {
				t.Fatal(err)
			}
			got, err := eval.Run(g, in, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for name := range want {
				if d := tolerance.Compare(name, got[name], want[name]); !d.Within(tolerance.LimitFor(ir.Float32)) {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}
