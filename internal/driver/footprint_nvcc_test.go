package driver

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/toolchain"
)

// TestCodeOfDigitsIsSmall: what most code is, once an inference, it has to be fetched for. The plans are those
// that a user gets without a GPU at hand.
func TestCodeOfDigitsIsSmall(t *testing.T) {
	const release = "13.0" // another one's code is of other sizes, which no change here need answer for
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		t.Skipf("needs nvcc: %v", err)
	}
	if v, err := nvcc.Version(t.Context()); err != nil || v != release {
		t.Skipf("needs nvcc %s, this is %s (%v)", release, v, err)
	}
	for _, name := range []string{"digits_attention", "digits_branchy", "digits_lstm"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := CompileOptions{Out: t.TempDir(), Target: "sm_90", Offline: true, Emit: EmitLibrary, Code: true}
			o.Path = models + name + ".onnx"
			r, err := Compile(&UI{}, o)
			if err != nil {
				t.Fatal(err)
			}
			instances := 0
			for _, k := range r.Code {
				if strings.HasPrefix(k.Instance, "(") {
					continue
				}
				instances++
				if k.Bytes > LargeCode {
					t.Errorf("%s is %d bytes, want at most %d", k.Instance, k.Bytes, LargeCode)
				}
			}
			if instances == 0 {
				t.Errorf("no instance among %v", r.Code)
			}
		})
	}
}
