package onnx

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

const digitsDir = "../../testdata/models"

// realModels lists the digits models and, where RAMMER_MODELS names a folder of big exported models
// with their weights, those.
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
			m, err := Load(path, Options{})
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
				t.Log(v.Name, v.DType, v.Shape, len(m.Graph.Nodes), m.Dims)
			}
		})
	}
}
