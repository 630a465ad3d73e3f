package difftest

import (
	"errors"
	"hash/fnv"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
	"github.com/rammerc/rammerc/lower"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/roperator"
)

// lightModels finds the light models among ONNX's backend tests.
func lightModels(t *testing.T) []string {
	t.Helper()
	root := os.Getenv("RAMMER_ONNX_TESTS")
	if root == "" {
		t.Skip("RAMMER_ONNX_TESTS does not name the folder of ONNX's backend tests")
	}
	for _, dir := range []string{"light", "data/light"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) > 0 {
			return files
		}
	}
	t.Skipf("%s has no light models", root)
	return nil
}

// TestLightModels takes the light models of ONNX's backend tests, which are well-known networks in which every weight
// is the same constant. It gives them random weights and compares ir/eval, the optimised graph and onnxruntime with
// each other. All operators of these models must compile for a small and for a large device.
func TestLightModels(t *testing.T) {
	files := lightModels(t)
	var server *runtimeServer
	if python, reason := findPython(); reason != "" {
		t.Logf("not compared with another runtime: %s", reason)
	} else {
		var err error
		if server, err = startRuntime(python); err != nil {
			t.Fatal(err)
		}
		defer server.stop()
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".onnx"), func(t *testing.T) { light(t, file, server) })
	}
}

func light(t *testing.T, file string, server *runtimeServer) {
	data, err := randomWeights(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(filepath.Base(file), data, "", onnx.Options{RequireStatic: true})
	if err != nil {
		t.Fatal(err)
	}
	g := m.Graph
	in := map[string]*ir.Tensor{}
	r := rand.New(rand.NewPCG(1, 1))
	for _, v := range g.Inputs {
		in[v.Name] = randomInput(t, r, v, 1)
	}
	want, err := eval.Run(g, in, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	scores := g.Outputs[len(g.Outputs)-1] // see exposeScores
	if n := distinct(want[scores.Name]); 2*n < want[scores.Name].Len() {
		t.Errorf("output %s has %d distinct values of %d: agreement proves nothing", scores.Name, n,
			want[scores.Name].Len())
	}
	if server != nil {
		got, reason, err := server.run(data, in, g.Inputs)
		if err != nil || reason != "" {
			t.Fatal(reason, err)
		}
		closeTo(t, "onnxruntime", g, got, want)
	}
	if err := graphopt.Run(g, graphopt.Options{Check: true, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	got, err := eval.Run(g, in, eval.Options{})
	if err != nil {
		t.Fatal(err)
	}
	closeTo(t, "graphopt", g, got, want)
	lightPlans(t, g)
}

func lightPlans(t *testing.T, g *ir.Graph) {
	for _, name := range []string{"emu4", "h200"} {
		spec, err := device.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		ops, err := lower.General(g, nil, spec, precision.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		if err := roperator.Verify(ops); err != nil {
			t.Error(err)
		}
		if _, err := planFor(ops, name, 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func closeTo(t *testing.T, engine string, g *ir.Graph, got, want map[string]*ir.Tensor) {
	t.Helper()
	for _, v := range g.Outputs {
		d := tolerance.Compare(v.Name, got[v.Name], want[v.Name])
		if d.Problem != "" || d.Special > 0 || !(d.RelL2 <= 1e-4) {
			t.Errorf("%s: output %s: %+v", engine, v.Name, d)
			continue
		}
		t.Logf("%s: output %s: %s", engine, v.Name, d.Passing())
	}
}

// distinct counts the different finite values of x.
func distinct(x *ir.Tensor) int64 {
	seen := map[float64]bool{}
	for i := range x.Len() {
		if v := tolerance.At(x, i); !math.IsNaN(v) && !math.IsInf(v, 0) {
			seen[v] = true
		}
	}
	return int64(len(seen))
}

// randomWeights is the model in file with its constant weights replaced by random ones of the same shape.
func randomWeights(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(data, m); err != nil {
		return nil, err
	}
	w := &weights{roles: roles(m.Graph), shapes: map[string]*onnxpb.TensorProto{}}
	for _, t := range m.Graph.Initializer {
		w.shapes[t.GetName()] = t
	}
	var kept []*onnxpb.NodeProto
	for _, n := range m.Graph.Node {
		if n.GetOpType() != "ConstantOfShape" {
			kept = append(kept, n)
			continue
		}
		_, shape, err := constant(w.shapes[n.Input[0]])
		if err != nil {
			return nil, err
		}
		m.Graph.Initializer = append(m.Graph.Initializer, w.tensor(n.Output[0], ir.Slice[int64](shape)))
	}
	if len(kept) == len(m.Graph.Node) {
		return nil, errors.New("no weights of the model are constants")
	}
	m.Graph.Node = kept
	exposeScores(m.Graph)
	m.IrVersion = proto.Int64(max(m.GetIrVersion(), 4)) // from version 4 on, initializers need not be inputs
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// exposeScores makes the input of a final Softmax an output too, the last one. Behind a deep network with random
// weights the Softmax gives a single 1 and zeros, on which engines agree whatever they have computed.
func exposeScores(g *onnxpb.GraphProto) {
	for _, n := range g.Node {
		if n.GetOpType() == "Softmax" && n.Output[0] == g.Output[0].GetName() {
			g.Output = append(g.Output, &onnxpb.ValueInfoProto{Name: proto.String(n.Input[0]), Type: g.Output[0].Type})
		}
	}
}

func constant(t *onnxpb.TensorProto) (string, *ir.Tensor, error) {
	if t == nil {
		return "", nil, fs.ErrNotExist
	}
	data, err := proto.Marshal(t)
	if err != nil {
		return "", nil, err
	}
	return onnx.ReadTensorPB(data)
}

// role is what an operator uses a weight for.
type role struct {
	op   string
	port int
}

// roles finds the role of each weight, also where operators between only change its shape.
func roles(g *onnxpb.GraphProto) map[string]role {
	out := map[string]role{}
	for _, n := range slices.Backward(g.Node) {
		for i, name := range n.Input {
			r := role{n.GetOpType(), i}
			if through, ok := out[n.Output[0]]; ok && r.op == "Unsqueeze" {
				r = through
			}
			out[name] = r
		}
	}
	return out
}

// weights makes random weights such that values stay around 1 from layer to layer.
type weights struct {
	roles  map[string]role
	shapes map[string]*onnxpb.TensorProto
}

func (w *weights) tensor(name string, dims []int64) *onnxpb.TensorProto {
	low, high := w.span(w.roles[name], dims)
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 2))
	x := ir.NewTensor(ir.Float32, dims...)
	for i, data := 0, ir.Slice[float32](x); i < len(data); i++ {
		data[i] = float32(low + (high-low)*r.Float64())
	}
	return tensorProto(name, x)
}

// span is the range that weights are drawn from. Factors of sums have the variance 2/n for n summands, so that values
// keep their size through a layer with a ReLU.
func (w *weights) span(r role, dims []int64) (low, high float64) {
	switch {
	case len(dims) >= 2:
		most := math.Sqrt(6 / float64(ir.Count(dims[1:])))
		return -most, most
	case r == role{"BatchNormalization", 1} || r == role{"BatchNormalization", 4} || r.op == "Mul":
		return 0.8, 1.2
	}
	return -0.1, 0.1
}
