package commands

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// TestTexts runs a model on strings, from a file of strings to a file of strings.
func TestTexts(t *testing.T) {
	m := systemtest.NewModel("texts")
	m.Input("x", 3)
	m.Output("y", 2)
	for _, v := range []*onnxpb.ValueInfoProto{m.Graph.Input[0], m.Graph.Output[0]} {
		v.GetType().GetTensorType().ElemType = proto.Int32(int32(onnxpb.TensorProto_STRING))
	}
	n := m.Node("StringNormalizer", "y", "x")
	n.Attribute = []*onnxpb.AttributeProto{
		{Name: proto.String("stopwords"), Type: onnxpb.AttributeProto_STRINGS.Enum(), Strings: [][]byte{[]byte("the")}},
		{Name: proto.String("case_change_action"), Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte("UPPER")},
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.npy"), filepath.Join(dir, "out")
	if err := tensorio.WriteNPY(in, ir.FromSlice(ir.String, []string{"The", "bée", "c"}, 3)); err != nil {
		t.Fatal(err)
	}
	o := RunOptions{Inputs: []string{"x=" + in}, Out: out}
	o.Path, o.Engine = m.Write(t), engine.Eval
	r, err := Run(&driver.Job{}, o)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"BÉE", "C"}
	if !reflect.DeepEqual(r.Outputs[0].Texts, want) || r.Outputs[0].DType != "string" {
		t.Errorf("got %v", r.Outputs[0])
	}
	if y, err := tensorio.Read(r.Files[0], "y", nil); err != nil || !reflect.DeepEqual(y.Data, want) {
		t.Errorf("the file has %v, %v", y, err)
	}
	var text strings.Builder
	r.Files = nil
	if r.Text(&text); !strings.Contains(text.String(), "[\"BÉE\" \"C\"]") {
		t.Errorf("got %q", text.String())
	}
}
