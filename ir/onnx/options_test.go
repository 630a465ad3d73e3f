package onnx_test

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir/onnx"
)

// TestExtentsThatExportersDoNotKnow: -1 and names such as "?" say nothing about an extent, and tie it to no other.
func TestExtentsThatExportersDoNotKnow(t *testing.T) {
	model := newModel(17).in("x float32[-1,unknown]", "y float32[unknown,-1]").out("z float32").node("z = MatMul(x,y)")
	m, err := model.parse(t, onnx.Options{Dims: map[string]int64{"x_dim_1": 3, "y_dim_0": 3}})
	if err != nil {
		t.Fatal(err)
	}
	got := m.Graph.Inputs[0].Shape.String() + " " + m.Graph.Inputs[1].Shape.String()
	if want := "[x_dim_0,3] [3,y_dim_1]"; got != want {
		t.Errorf("the shapes are %s, want %s", got, want)
	}
	shapes := map[string][]int64{"x": {2, 5}, "y": {5, 4}}
	if m, err = model.parse(t, onnx.Options{Shapes: shapes, RequireStatic: true}); err != nil {
		t.Fatal(err)
	}
	if got := m.Graph.Outputs[0].Shape.String(); got != "[2,4]" {
		t.Errorf("the output's shape is %s, want [2,4]", got)
	}
}

func TestOptions(t *testing.T) {
	model := newModel(17).in("x float32[batch,seq,8]", "y float32[batch,?,8]").
		out("z float32[batch,seq,8]").node("z = Add(x,y)")
	type dims = map[string]int64
	type shapes = map[string][]int64
	for _, c := range []struct {
		name   string
		opts   onnx.Options
		inputs string // shapes of x and y, or
		ids    string // ids of the errors, and
		text   string // what the messages say
	}{
		{"free", onnx.Options{}, "[batch,seq,8] [batch,y_dim_1,8]", "", ""},
		{"dims", onnx.Options{Dims: dims{"batch": 2, "seq": 3, "y_dim_1": 1}, RequireStatic: true}, "[2,3,8] [2,1,8]",
			"", ""},
		{"shape binds", onnx.Options{Shapes: shapes{"x": {2, -1, 8}}}, "[2,seq,8] [2,y_dim_1,8]", "", ""},
		{"constant replaced", onnx.Options{Shapes: shapes{"x": {-1, -1, 1}}}, "[batch,seq,1] [batch,y_dim_1,8]",
			"", ""},
		{"agreeing", onnx.Options{Shapes: shapes{"x": {2, 3, 8}}, Dims: dims{"batch": 2}}, "[2,3,8] [2,y_dim_1,8]",
			"", ""},
		{"static", onnx.Options{RequireStatic: true}, "", "unbound-dim unbound-dim unbound-dim", "--dim seq=1"},
		{"unknown dim", onnx.Options{Dims: dims{"bath": 2}}, "", "unknown-dim", "its dims are: batch, seq, y_dim_1"},
		{"unknown input", onnx.Options{Shapes: shapes{"q": {2}}}, "", "unknown-input", "the inputs are: x, y"},
		{"rank", onnx.Options{Shapes: shapes{"x": {2, 8}}}, "", "bad-shape", "rank 2"},
		{"shapes that differ untie", onnx.Options{Shapes: shapes{"x": {1, 3, 8}, "y": {4, -1, 8}}},
			"[1,3,8] [4,y_dim_1,8]", "", ""},
		{"conflict of both", onnx.Options{Shapes: shapes{"x": {2, 3, 8}}, Dims: dims{"batch": 4}}, "", "dim-conflict",
			"bound to 4"},
		{"negative", onnx.Options{Dims: dims{"batch": -4}}, "", "bad-dim", "-4"},
		{"absurd", onnx.Options{Shapes: shapes{"x": {1 << 62, 3, 8}}}, "", "bad-shape", "absurdly"},
		{"absurd product", onnx.Options{Dims: dims{"batch": 1 << 39, "seq": 1 << 39}}, "", "bad-shape", "absurdly"},
		{
			"everything at once",
			onnx.Options{Dims: dims{"a": 1, "b": 2}, Shapes: shapes{"q": {2}}, RequireStatic: true},
			"", "unknown-input unknown-dim unknown-dim unbound-dim unbound-dim unbound-dim", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := model.parse(t, c.opts)
			if got := errorIDs(t, err); !strings.HasPrefix(got, c.ids) || (got == "") != (c.ids == "") {
				t.Fatalf("got errors %q, want %q: %v", got, c.ids, err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v, want %q in it", err, c.text)
				}
				return
			}
			if got := m.Graph.Inputs[0].Shape.String() + " " + m.Graph.Inputs[1].Shape.String(); got != c.inputs {
				t.Errorf("got %s, want %s", got, c.inputs)
			}
		})
	}
}

func TestDimExpressions(t *testing.T) {
	m := newModel(17).in("x float32[s0,2*s0,batch-size]", "y float32[s0 + 1]").out("z").node("z = Relu(x)").mustParse(t)
	if got := m.Graph.Inputs[0].Shape.String(); got != `[s0,2*s0,"batch-size"]` {
		t.Errorf("x has the shape %s", got)
	}
	if got := m.Graph.Inputs[1].Shape.String(); got != "[s0+1]" {
		t.Errorf("y has the shape %s", got)
	}
}

func TestUnknownRank(t *testing.T) {
	model := newModel(17).in("x float32").out("y").node("y = Relu(x)")
	if _, err := model.parse(t, onnx.Options{RequireStatic: true}); errorIDs(t, err) != "unknown-rank" {
		t.Errorf("got %v, want unknown-rank", err)
	}
	m, err := model.parse(t, onnx.Options{RequireStatic: true, Shapes: map[string][]int64{"x": {2, 3}}})
	if err != nil || m.Graph.Outputs[0].Shape.String() != "[2,3]" {
		t.Errorf("with a shape: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	model := newModel(17).in("x float32[2,3]", "w float32[3]").out("y float32[2,4]").
		init(tensor("w", []float32{1, 2, 3})).node("y = Add(x,w)")
	m := model.mustParse(t)
	var ids []string
	for _, w := range m.Warnings {
		if w.Severity != diag.Warning {
			t.Errorf("not a warning: %v", w)
		}
		ids = append(ids, w.ID)
	}
	if got := strings.Join(ids, " "); got != "overridable-initializer declared-type" {
		t.Errorf("got warnings %q", got)
	}
	if len(m.Graph.Inputs) != 1 || m.Graph.Inputs[0].Name != "x" {
		t.Errorf("the inputs are %v", m.Graph.Inputs)
	}
	*model.IrVersion = 3
	if m := model.mustParse(t); len(m.Warnings) != 1 {
		t.Errorf("IR version 3 lists initializers as inputs, got %v", m.Warnings)
	}
}
