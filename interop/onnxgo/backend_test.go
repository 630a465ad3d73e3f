package onnxgo_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/owulveryck/onnx-go"
	"gonum.org/v1/gonum/graph"
	"gorgonia.org/tensor"

	"github.com/rammerc/rammerc/internal/npy"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/interop/onnxgo"
)

const models = "../../testdata/models"

// onnxFile is a bundled model of handwritten digits.
func onnxFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(models, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// array is an array of float32 of the test data.
func array(t *testing.T, file, member string) *tensor.Dense {
	t.Helper()
	path := filepath.Join(models, file)
	a, err := npy.ReadFile(path, nil)
	if member != "" {
		a, err = npy.ReadZipMember(path, member, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	shape := make([]int, len(a.Shape))
	for i, n := range a.Shape {
		shape[i] = int(n)
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(a.Data))
}

// image is one of the digits, and the logits that its exporter computed.
func image(t *testing.T, model string, i int) (in tensor.Tensor, logits []float32) {
	t.Helper()
	images, all := array(t, "digits_test.npz", "images"), array(t, model+"_logits.npy", "")
	one := images.Data().([]float32)[i*64 : (i+1)*64]
	return tensor.New(tensor.WithShape(1, 1, 8, 8), tensor.WithBacking(one)), all.Data().([]float32)[i*10 : (i+1)*10]
}

// run decodes a model by onnx-go, and compares its results with those of the exporter for some images.
func run(t *testing.T, b *onnxgo.Backend, name string) {
	t.Helper()
	m := onnx.NewModel(b)
	if err := m.UnmarshalBinary(onnxFile(t, name+".onnx")); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		in, want := image(t, name, i)
		if err := m.SetInput(0, in); err != nil {
			t.Fatal(err)
		}
		if err := b.Run(); err != nil {
			t.Fatal(err)
		}
		out, err := m.GetOutputTensors()
		if err != nil {
			t.Fatal(err)
		}
		for k, x := range out[0].Data().([]float32) {
			if d := math.Abs(float64(x - want[k])); d > 1e-4 {
				t.Fatalf("image %d, logit %d is %v, want %v", i, k, x, want[k])
			}
		}
	}
}

// Models that onnx-go decodes give what their exporter has computed, on the evaluator and as a program on the emulator.
func TestDigits(t *testing.T) {
	for _, name := range []string{"digits_branchy", "digits_attention"} {
		for _, e := range []string{onnxgo.Evaluator, onnxgo.Emulator} {
			t.Run(name+"/"+e, func(t *testing.T) {
				if _, err := toolchain.FindCxx(""); err != nil && e == onnxgo.Emulator {
					t.Skip(err)
				}
				b := onnxgo.New(onnxgo.Engine(e), onnxgo.Model(onnxFile(t, name+".onnx")))
				defer b.Close()
				run(t, b, name)
				if used, reason := b.Runs(); used != e || reason != nil {
					t.Errorf("runs on %s (%v), want %s", used, reason, e)
				}
			})
		}
	}
}

// A GPU for which nothing can be built leaves the model to the emulator, and where there is no compiler for that either, to
// the evaluator.
func TestNextEngine(t *testing.T) {
	if _, err := toolchain.FindCxx(""); err != nil {
		t.Skip(err)
	}
	bin := t.TempDir()
	for name, script := range map[string]string{"nvidia-smi": "echo 9.0", "nvcc": "echo nvcc does not work; exit 1"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("NVCC", filepath.Join(bin, "nvcc"))
	for _, want := range []string{onnxgo.Emulator, onnxgo.Evaluator} {
		if want == onnxgo.Evaluator {
			t.Setenv("CXX", "false")
		}
		b := onnxgo.New(onnxgo.Model(onnxFile(t, "digits_branchy.onnx")))
		run(t, b, "digits_branchy")
		if used, reason := b.Runs(); used != want || reason == nil || !strings.Contains(reason.Error(), "nvcc does not work") {
			t.Errorf("runs on %s (%v), want %s, because nvcc does not work", used, reason, want)
		}
		b.Close()
	}
}

// Without the version of the operator set there is no saying what operators mean, and no operator runs.
func TestOpsetIsNotGuessed(t *testing.T) {
	b := onnxgo.New(onnxgo.Engine(onnxgo.Evaluator))
	defer b.Close()
	m := onnx.NewModel(b)
	if err := m.UnmarshalBinary(onnxFile(t, "digits_branchy.onnx")); err != nil {
		t.Fatal(err)
	}
	in, _ := image(t, "digits_branchy", 0)
	if err := m.SetInput(0, in); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(); err == nil || !strings.Contains(err.Error(), "Opset") {
		t.Errorf("Run says %v, want that the operator set is missing", err)
	}
}

// The model is compiled again when its inputs have other extents.
func TestOtherExtents(t *testing.T) {
	b := onnxgo.New(onnxgo.Engine(onnxgo.Evaluator), onnxgo.Model(onnxFile(t, "digits_branchy_dyn.onnx")))
	defer b.Close()
	m := onnx.NewModel(b)
	if err := m.UnmarshalBinary(onnxFile(t, "digits_branchy_dyn.onnx")); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 3, 1} {
		images := array(t, "digits_test.npz", "images").Data().([]float32)[:n*64]
		if err := m.SetInput(0, tensor.New(tensor.WithShape(n, 1, 8, 8), tensor.WithBacking(images))); err != nil {
			t.Fatal(err)
		}
		if err := b.Run(); err != nil {
			t.Fatal(err)
		}
		out, err := m.GetOutputTensors()
		if err != nil {
			t.Fatal(err)
		}
		if got := out[0].Shape(); got[0] != n || got[1] != 10 {
			t.Errorf("%d images: the logits have shape %v", n, got)
		}
	}
}

// node is a tensor of that name.
func node(b *onnxgo.Backend, name string) graph.Node {
	n := b.NewNode()
	b.AddNode(n)
	n.(onnx.Namer).SetName(name)
	return n
}

// An operator that is not known is onnx-go's error, so that its programs can skip it.
func TestNotImplemented(t *testing.T) {
	b := onnxgo.New(onnxgo.Engine(onnxgo.Evaluator), onnxgo.Opset(9))
	defer b.Close()
	x, y := node(b, "x"), node(b, "y")
	b.SetWeightedEdge(b.NewWeightedEdge(y, x, 0))
	if err := b.ApplyOperation(onnx.Operation{Name: "Levitate"}, y); err != nil {
		t.Fatal(err)
	}
	if err := x.(onnx.DataCarrier).SetTensor(tensor.New(tensor.WithBacking([]float32{1, 2}))); err != nil {
		t.Fatal(err)
	}
	var missing *onnx.ErrNotImplemented
	if err := b.Run(); !errors.As(err, &missing) || missing.Operator != "Levitate" {
		t.Errorf("Run says %v, want that Levitate is not implemented", err)
	}
}

// An operator may take a tensor twice, and tensors may be views.
func TestSquareOfATransposedMatrix(t *testing.T) {
	b := onnxgo.New(onnxgo.Engine(onnxgo.Evaluator), onnxgo.Opset(9))
	defer b.Close()
	x, y := node(b, "x"), node(b, "y")
	for i := range 2 {
		b.SetWeightedEdge(b.NewWeightedEdge(y, x, float64(i)))
	}
	if err := b.ApplyOperation(onnx.Operation{Name: "Mul"}, y); err != nil {
		t.Fatal(err)
	}
	matrix := tensor.New(tensor.WithShape(2, 3), tensor.WithBacking([]float32{1, 2, 3, 4, 5, 6}))
	if err := matrix.T(); err != nil {
		t.Fatal(err)
	}
	if err := x.(onnx.DataCarrier).SetTensor(matrix); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	got := y.(onnx.DataCarrier).GetTensor()
	if want := []float32{1, 16, 4, 25, 9, 36}; !slices.Equal(got.Data().([]float32), want) || got.Shape()[0] != 3 {
		t.Errorf("the square is %v of shape %v, want %v of shape (3, 2)", got.Data(), got.Shape(), want)
	}
}
