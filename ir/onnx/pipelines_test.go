package onnx_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
)

const pipelines = digitsDir + "/pipelines"

// TestPipelines evaluates pipelines of scikit-learn, and compares them with what ONNX Runtime computed of the same rows.
// Labels that are strings are compared as places in their sorted list.
func TestPipelines(t *testing.T) {
	results, err := tensorio.ReadAll(pipelines+"/results.npz", nil)
	if err != nil {
		t.Fatal(err)
	}
	models, err := filepath.Glob(pipelines + "/*.onnx")
	if err != nil || len(models) < 8 {
		t.Fatalf("%d models, %v", len(models), err)
	}
	for _, path := range models {
		name := strings.TrimSuffix(filepath.Base(path), ".onnx")
		t.Run(name, func(t *testing.T) {
			m, err := onnx.Load(path, onnx.Options{Shapes: map[string][]int64{"X": {7, 6}}, RequireStatic: true})
			if err != nil {
				t.Fatal(err)
			}
			x := results[name+"/X"]
			if x == nil {
				x = results["X"]
			}
			got, err := eval.Run(m.Graph, map[string]*ir.Tensor{"X": x}, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range m.Graph.Outputs {
				want := results[name+"/"+v.Name]
				if d := tolerance.Compare(v.Name, got[v.Name], want); !d.Within(tolerance.LimitFor(v.DType)) {
					t.Errorf("got %v, want %v: %+v", got[v.Name], want, d)
				}
			}
		})
	}
}

// TestStrings exchanges strings, which are numbers in the graph, for others.
func TestStrings(t *testing.T) {
	m := newML("x string[4]", "y string").node("a = ai.onnx.ml::LabelEncoder(x)",
		attr("keys_strings", []string{"one", "two"}), attr("values_strings", []string{"un", "deux"}),
		attr("default_string", "quoi")).node("y = Gather(a,i)").
		init(integers("i", ir.Int64, []int64{4}, 3, 2, 1, 0)).mustParse(t)
	if len(m.Texts) != 2 || m.Texts[0] != "x" || m.Texts[1] != "y" || strings.Join(m.Strings, " ") != "one two un deux quoi" {
		t.Errorf("got strings %q in %q", m.Strings, m.Texts)
	}
	x := ir.FromSlice(ir.Int64, []int64{1, 0, -1, 4}, 4)
	out, err := eval.Run(m.Graph, map[string]*ir.Tensor{"x": x}, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	words := ""
	for _, n := range ir.Slice[int64](out["y"]) {
		words += m.Strings[n] + " "
	}
	if words != "quoi quoi un deux " {
		t.Errorf("got %s", words)
	}
}

// TestStringsRefused refuses operators that would compute with the numbers of strings.
func TestStringsRefused(t *testing.T) {
	for _, call := range []string{"y = Cast(x)", "y = ai.onnx.ml::Scaler(x)"} {
		m := newML("x string[4]", "y float32")
		if call[4] == 'C' {
			m = m.node(call, attr("to", 1))
		} else {
			m = m.node(call)
		}
		if _, err := m.parse(t, onnx.Options{}); err == nil || !strings.Contains(err.Error(), "element type string") {
			t.Errorf("%s: got %v", call, err)
		}
	}
}

// TestLinearMachines computes support vector machines without vectors, which are linear: ONNX Runtime refuses them.
func TestLinearMachines(t *testing.T) {
	x := ir.FromSlice(ir.Float32, []float32{1, 2, 3, -1, 0.5, 2}, 2, 3)
	for _, c := range []struct {
		call  string
		more  []any
		ports []string
		want  []float32
	}{
		{"y = ai.onnx.ml::SVMRegressor(x)", []any{"coefficients", []float32{0.5, 1, 0.25}}, []string{"y float32"},
			[]float32{2.75, 0}},
		{"l,y = ai.onnx.ml::SVMClassifier(x)", []any{"coefficients", []float32{0.5, 1, 0.25, -1, 0, 1}, "classlabels_ints",
			[]int64{4, 5}}, []string{"l int64", "y float32"}, []float32{2.75, 1.5, 0, 2.5}},
	} {
		list := attrs(attr("rho", []float32{-0.5}))
		for i := 0; i < len(c.more); i += 2 {
			list = append(list, attr(c.more[i].(string), c.more[i+1]))
		}
		m := newML("x float32[2,3]", c.ports...).node(c.call, list...).mustParse(t)
		out, err := eval.Run(m.Graph, map[string]*ir.Tensor{"x": x}, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.Slice[float32](out["y"]); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.call, got, c.want)
		}
		if l := out["l"]; l != nil && !slices.Equal(ir.Slice[int64](l), []int64{4, 5}) {
			t.Errorf("got labels %v, want 4 and 5", l)
		}
	}
}
