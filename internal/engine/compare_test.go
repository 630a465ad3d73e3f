package engine

import (
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
)

// TestQuantisedLimit: models that round to 8 bits may be off by a step, and others by what is usual.
func TestQuantisedLimit(t *testing.T) {
	body := func(op string) string {
		return "graph \"g\" (%x: float32[4]) {\n%s = const float32[] {0.5}\n" + op + "\nreturn %y\n}\n"
	}
	for op, want := range map[string]bool{
		"%z = const uint8[] {3}\n%y: uint8[4] = QuantizeLinear(%x, %s, %z)": true,
		"%y: float32[4] = Mul(%x, %s)":                                      false,
	} {
		g, err := ir.ParseText("g", []byte(body(op)), ir.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := quantises(g); got != want {
			t.Errorf("%s: quantises is %v", op, got)
		}
	}
	for _, name := range []string{"resnet_tiny_qdq", "bert_tiny_qdq"} { // import makes several operators of one
		m, err := onnx.Load(filepath.Join("../../testdata/models/quantised", name+".onnx"), onnx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !quantises(m.Graph) {
			t.Errorf("%s does not quantise after import", name)
		}
	}
	usual := tolerance.LimitFor(ir.Float32)
	if got := quantisedLimit(ir.Float32, usual); got.Abs != usual.Abs || got.L2 != tolerance.Quantised.L2 {
		t.Errorf("float32: %+v", got)
	}
	if got := quantisedLimit(ir.Uint8, tolerance.Limit{}); got != tolerance.Quantised {
		t.Errorf("uint8: %+v", got)
	}
	if got := quantisedLimit(ir.Int64, tolerance.Limit{}); got != (tolerance.Limit{}) {
		t.Errorf("int64: %+v", got)
	}
}
