package onnx_test

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

const digitsDir = "../../testdata/models"

// realModels lists the digits models and, if RAMMER_MODELS names a folder of large exported models, these.
func realModels(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(digitsDir + "/*.onnx")
	if err != nil || len(list) != 6 {
		t.Fatalf("digits models: %v, %v", list, err)
	}
	dir := os.Getenv("RAMMER_MODELS")
	if dir == "" {
		t.Log("RAMMER_MODELS is not set: the big exported models are skipped")
		return list
	}
	big, err := filepath.Glob(filepath.Join(dir, "*.onnx"))
	if err != nil || len(big) == 0 {
		t.Fatalf("RAMMER_MODELS=%s has no models (%v)", dir, err)
	}
	return append(list, big...)
}

func TestRealModels(t *testing.T) {
	for _, path := range realModels(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			m, err := onnx.Load(path, onnx.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range m.Warnings {
				t.Error(w)
			}
			if err := ir.Verify(m.Graph); err != nil {
				t.Error(err)
			}
			for _, v := range m.Graph.Outputs {
				if v.DType != ir.Float32 || v.Shape == nil {
					t.Errorf("output %s is %v%v", v.Name, v.DType, v.Shape)
				}
			}
		})
	}
}

// TestDynamicDigits binds the batch in each of the three possible ways.
func TestDynamicDigits(t *testing.T) {
	for _, model := range []string{"attention", "branchy", "lstm"} {
		path := filepath.Join(digitsDir, "digits_"+model+"_dyn.onnx")
		for name, c := range map[string]struct {
			opts onnx.Options
			want string
		}{
			"free":  {onnx.Options{}, "[batch,10]"},
			"dim":   {onnx.Options{Dims: map[string]int64{"batch": 4}, RequireStatic: true}, "[4,10]"},
			"shape": {onnx.Options{Shapes: map[string][]int64{"image": {4, 1, 8, 8}}, RequireStatic: true}, "[4,10]"},
			"open":  {onnx.Options{Shapes: map[string][]int64{"image": {2, -1, -1, 8}}, RequireStatic: true}, "[2,10]"},
		} {
			m, err := onnx.Load(path, c.opts)
			if err != nil {
				t.Errorf("%s, %s: %v", model, name, err)
				continue
			}
			if got := m.Graph.Outputs[0].Shape.String(); got != c.want {
				t.Errorf("%s, %s: the output is %s, want %s", model, name, got, c.want)
			}
			if len(m.Warnings) != 0 {
				t.Errorf("%s, %s: %v", model, name, m.Warnings)
			}
		}
	}
}

func TestModelFacts(t *testing.T) {
	m, err := onnx.Load(filepath.Join(digitsDir, "digits_branchy_dyn.onnx"), onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.IRVersion != 10 || m.Opsets[""] != 20 || m.Producer != "pytorch" || len(m.Dims) != 1 || m.Dims[0] != "batch" {
		t.Errorf("got IR version %d, opsets %v, producer %q, dims %v", m.IRVersion, m.Opsets, m.Producer, m.Dims)
	}
	if n := m.Graph.Nodes[0]; len(n.Origins) != 1 || n.Origins[0].Name == "" || n.Origins[0].OpType != "Conv" {
		t.Errorf("the first node comes from %v", n.Origins)
	}
}

// TestOpsetRange imports a model, whose operators have not changed from opset 7 to 17, as a model of each of these
// opsets. The graphs must be equal.
func TestOpsetRange(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(digitsDir, "digits_branchy.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	pb := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, pb); err != nil {
		t.Fatal(err)
	}
	want := ""
	for opset := int64(17); opset >= 7; opset-- {
		pb.OpsetImport[0].Version = &opset
		if got := text(builder{pb}.mustParse(t).Graph); want == "" {
			want = got
		} else if got != want {
			t.Errorf("opset %d: got\n%s\nwant\n%s", opset, got, want)
		}
	}
}

func TestNewerOpset(t *testing.T) {
	m := newModel(25).in("x float32[2]").out("y").node("y = Relu(x)").mustParse(t)
	if len(m.Warnings) != 1 || m.Warnings[0].ID != "new-opset" {
		t.Errorf("got %v", m.Warnings)
	}
}
