package codegen

import (
	"os"
	"testing"
)

func TestEmitToDir(t *testing.T) {
	dir := os.Getenv("EMIT_DIR")
	if dir == "" {
		t.Skip("EMIT_DIR")
	}
	s := newStencilPlan(t, 4, 6, 256)
	if err := emit(s.plan, Options{Name: "stencil", Version: "dev", Model: "stencil.onnx", Unrolled: os.Getenv("UNROLL") != ""}, Dir(dir), os.DirFS("testdata/kernels")); err != nil {
		t.Fatal(err)
	}
}
