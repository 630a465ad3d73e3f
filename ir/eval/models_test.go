package eval_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rammerc/rammerc/internal/npy"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
)

// TestExportedModels runs each model X.onnx in RAMMER_MODELS on the inputs X.NAME.in.npy, and compares the outputs with
// X.ref.npz, which has the first elements of every output as another engine has computed them.
func TestExportedModels(t *testing.T) {
	dir := os.Getenv("RAMMER_MODELS")
	if dir == "" {
		t.Skip("RAMMER_MODELS does not name a folder of exported models")
	}
	models, _ := filepath.Glob(filepath.Join(dir, "*.onnx"))
	if len(models) == 0 {
		t.Fatalf("no models in %s", dir)
	}
	for _, path := range models {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".onnx"), func(t *testing.T) {
			checkModel(t, strings.TrimSuffix(path, ".onnx"))
		})
	}
}

func checkModel(t *testing.T, base string) {
	m, err := onnx.Load(base+".onnx", onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*ir.Tensor{}
	for _, v := range m.Graph.Inputs {
		a, err := npy.ReadFile(base+"."+v.Name+".in.npy", nil)
		if err != nil {
			t.Fatal(err)
		}
		in[v.Name] = tensorOf(t, a)
	}
	start := time.Now()
	out, err := eval.Run(m.Graph, in, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d nodes in %v", len(m.Graph.Nodes), time.Since(start).Round(time.Millisecond))
	ref, err := npy.ReadZip(base+".ref.npz", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range ref {
		got := out[r.Name]
		if got == nil {
			t.Errorf("output %s is missing", r.Name)
			continue
		}
		if e := relL2(got, tensorOf(t, r.Array)); !(e <= 2e-4) {
			t.Errorf("output %s: relative L2 error %g, want at most 2e-4", r.Name, e)
		} else {
			t.Logf("output %s: relative L2 error %.2g", r.Name, e)
		}
	}
}

func tensorOf(t *testing.T, a *npy.Array) *ir.Tensor {
	t.Helper()
	d, ok := ir.ParseDType(a.DType)
	if !ok {
		t.Fatalf("array of %s", a.DType)
	}
	return &ir.Tensor{DType: d, Dims: a.Shape, Data: a.Data}
}

// relL2 compares the first elements of got with all of want; NaN when there are too few.
func relL2(got, want *ir.Tensor) float64 {
	if got.Len() < want.Len() {
		return math.NaN()
	}
	diff, norm := 0.0, 0.0
	for i := range want.Len() {
		g, w := tolerance.At(got, i), tolerance.At(want, i)
		diff += (g - w) * (g - w)
		norm += w * w
	}
	return math.Sqrt(diff / norm)
}

// TestDigits classifies with the trained models in testdata and compares with their reference logits.
func TestDigits(t *testing.T) {
	const dir = "../../testdata/models/"
	images := mustZip(t, dir+"digits_test.npz", "images")
	for _, name := range []string{"branchy", "lstm", "attention"} {
		for _, suffix := range []string{"", "_dyn"} {
			t.Run(name+suffix, func(t *testing.T) {
				m, err := onnx.Load(dir+"digits_"+name+suffix+".onnx", onnx.Options{})
				if err != nil {
					t.Fatal(err)
				}
				a, err := npy.ReadFile(dir+"digits_"+name+"_logits.npy", nil)
				if err != nil {
					t.Fatal(err)
				}
				batch := int64(1)
				if suffix != "" {
					batch = 9
				}
				checkDigits(t, m.Graph, images, tensorOf(t, a), batch)
			})
		}
	}
}

func mustZip(t *testing.T, path, member string) *ir.Tensor {
	t.Helper()
	a, err := npy.ReadZipMember(path, member, nil)
	if err != nil {
		t.Fatal(err)
	}
	return tensorOf(t, a)
}

func checkDigits(t *testing.T, g *ir.Graph, images, logits *ir.Tensor, batch int64) {
	const pixels, classes = 64, 10
	for i := int64(0); i < images.Dims[0]; i += batch {
		image := ir.FromSlice(ir.Float32, ir.Slice[float32](images)[i*pixels:(i+batch)*pixels], batch, 1, 8, 8)
		out, err := eval.Run(g, map[string]*ir.Tensor{"image": image}, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := ir.FromSlice(ir.Float32, ir.Slice[float32](logits)[i*classes:(i+batch)*classes], batch, classes)
		if d := tolerance.Compare(fmt.Sprintf("image %d", i), out["logits"], want); d.Problem != "" || d.MaxAbs > 1e-4 {
			t.Fatalf("%+v", d)
		}
	}
}
