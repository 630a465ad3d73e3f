package commands

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// sparseModel is rows that are made from rows of the step before, step by step, each a node of its own: what
// vEUs hand each other is little, and travels in words. Rows of an odd length leave threads without
// elements. Five steps are of one kind, and make a run; the sixth has three operands, of which one is a single element.
func sparseModel(t *testing.T, rows, values, steps int) string {
	t.Helper()
	text := func(s string) *string { return &s }
	floats := func(name string, dims ...int64) *onnxpb.ValueInfoProto {
		shape := &onnxpb.TensorShapeProto{}
		for _, d := range dims {
			shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{
				Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d},
			})
		}
		return &onnxpb.ValueInfoProto{Name: text(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape},
		}}}
	}
	g := &onnxpb.GraphProto{Name: text("sparse")}
	g.Input = append(g.Input, floats("x", int64(rows), int64(values)), floats("scale", 1, 1))
	g.Output = append(g.Output, floats("y", int64(rows), int64(values)))
	node := func(op, name string, in []string, out ...string) *onnxpb.NodeProto {
		n := &onnxpb.NodeProto{OpType: text(op), Name: text(name), Input: in, Output: out}
		g.Node = append(g.Node, n)
		return n
	}
	axis := func(n *onnxpb.NodeProto, more ...*onnxpb.AttributeProto) {
		n.Attribute = append(more, &onnxpb.AttributeProto{Name: text("axis"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(0)})
	}
	at := func(s, r int) string { return fmt.Sprintf("v%d_%d", s, r%rows) }
	all := func(s int) (names []string) {
		for r := range rows {
			names = append(names, at(s, r))
		}
		return names
	}
	axis(node("Split", "cut", []string{"x"}, all(0)...),
		&onnxpb.AttributeProto{Name: text("num_outputs"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(int64(rows))})
	for s := range steps {
		scale := fmt.Sprintf("scale_%d", s)
		last := "scale"
		if s > 0 {
			last = fmt.Sprintf("scale_%d", s-1)
		}
		node("Tanh", scale, []string{last}, scale)
		for r := range rows {
			op, in := "Mean", []string{at(s, r), at(s, r+1)}
			if s%6 == 5 {
				op, in = "Max", append(in, scale)
			}
			node(op, at(s+1, r), in, at(s+1, r))
		}
	}
	axis(node("Concat", "join", all(steps), "y"))
	return writeModel(t, "sparse.onnx", g)
}

// writeModel writes a model of opset 18 into a folder of its own.
func writeModel(t *testing.T, name string, g *onnxpb.GraphProto) string {
	t.Helper()
	m := &onnxpb.ModelProto{IrVersion: proto.Int64(8), Graph: g, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(18)}}}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// Direct steps in any order of threads, with vEUs and warps held up at random; in waves there are none.
func TestDirectSteps(t *testing.T) {
	t.Parallel()
	needCxx(t)
	for _, values := range []int{40, 250} { // the warp that fetches has elements of its own, or not
		o := driver.CompileOptions{Out: filepath.Join(t.TempDir(), "lib"), Target: driver.TargetEmu, Plan: "rprogram", Debug: true}
		o.Path = sparseModel(t, 6, values, 7)
		if _, err := driver.Compile(&driver.Job{}, o); err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(6) {
			v := VerifyOptions{Model: o.Path, RandomSeed: seed, Samples: 2, Repeat: 3}
			v.Path, v.Engine, v.EmuSeed, v.Delays, v.Waves = o.Out, engine.Emu, seed, seed, seed == 5
			if r, err := Verify(&driver.Job{}, v); err != nil || !r.OK {
				t.Errorf("rows of %d, seed %d: %+v, %v", values, seed, r, err)
			}
		}
	}
}

func TestDirectStepsUnderThreadSanitizer(t *testing.T) {
	t.Parallel()
	needThreadSanitizer(t, needCxx(t))
	v := VerifyOptions{RandomSeed: 1, Samples: 2}
	v.Path, v.Engine, v.Sanitize, v.Plan = sparseModel(t, 5, 250, 4), engine.Emu, true, "rprogram"
	if _, err := Verify(&driver.Job{}, v); err != nil {
		t.Error(err)
	}
}

// What is missing in direct steps shows: words that never come are reported, and where those who compute do not wait
// for descriptors, or the warp that fetches them not until they are used, threads find those of another step.
func TestDirectFaults(t *testing.T) {
	t.Parallel()
	cxx := needCxx(t)
	model := sparseModel(t, 6, 40, 10)
	for _, c := range []struct {
		old, new string
		want     []string
	}{
		{
			"if (tid_ < here.count) give_word(", "if (tid_ < here.count && veu_ != 1) give_word(",
			[]string{"segment 0, vEU ", " step ", "waits for tagged word ", "expected tag 1, seen 0", "ONNX nodes: v"},
		},
		{"detail::wait_for_fetched(i % 2, meeting<K>());", ";", nil},
		{"detail::wait_for_used(k % 2, both);", ";", nil},
	} {
		o := driver.CompileOptions{Out: filepath.Join(t.TempDir(), "lib"), Target: driver.TargetEmu, Plan: "rprogram", Emit: driver.EmitSources}
		o.Path = model
		if _, err := driver.Compile(&driver.Job{}, o); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(o.Out, "sparse.cu")
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(c.old)) {
			t.Fatalf("%s has no %q to change; %v", path, c.old, err)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(c.old), []byte(c.new)), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := cxx.BuildLibrary(t.Context(), o.Out, "sparse", "-O0"); err != nil {
			t.Fatal(err)
		}
		shows := false
		for seed := uint64(1); seed <= 8 && !shows; seed++ {
			v := VerifyOptions{Model: model, RandomSeed: 1, Samples: 1}
			v.Path, v.Engine, v.EmuSeed = o.Out, engine.Emu, seed
			_, err := Verify(&driver.Job{}, v)
			shows = err != nil
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: the report lacks %q: %v", c.new, want, err)
				}
			}
		}
		if !shows {
			t.Errorf("without %q everything is right", c.old)
		}
	}
}
