package difftest

import (
	"bytes"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
)

const exporters = "../../testdata/models/exporters"

// exported are models of several exporters, with what is needed to run them.
var exported = []struct {
	name string
	dims map[string]int64 // extents of symbolic dims
	most int64            // integers of inputs are less than this
	lack string           // part of the message with which onnxruntime refuses the file
}{
	{name: "jax_attention"},
	{name: "jax_convnet", lack: "Unsupported pooling size"},
	{name: "jax_recurrence"},
	{name: "onnxscript_functions"},
	{name: "quantize_dynamic", most: 60},
	{name: "quantize_mixer", dims: map[string]int64{"batch": 3}},
	{name: "quantize_operators"},
	{name: "quantize_qdq", dims: map[string]int64{"batch": 1, "height": 24, "width": 20}},
	{name: "quantize_residual", dims: map[string]int64{"batch": 2}},
	{name: "sklearn_classifier", dims: map[string]int64{"X_dim_0": 60}},
	{name: "sklearn_gaussian", dims: map[string]int64{"X_dim_0": 3}},
	{name: "sklearn_regressor", dims: map[string]int64{"X_dim_0": 5}},
	{name: "spox_detector"},
	{name: "spox_signal"},
	{name: "tensorflow_attention"},
	{name: "tensorflow_lstm"},
	{name: "tensorflow_separable", dims: map[string]int64{"batch": 2}},
	{name: "torch_branches", dims: map[string]int64{"batch": 4}},
	{name: "torch_decoder", most: 60},
	{name: "torch_group_norm"},
	{name: "torch_gru_tagger", dims: map[string]int64{"batch": 3, "time": 5}, most: 50},
	{name: "torch_lstm_lengths"},
	{name: "torch_mixer", dims: map[string]int64{"batch": 3}},
	{name: "torch_mobile"},
	{name: "torch_residual", dims: map[string]int64{"batch": 2}},
	{name: "torch_rnn"},
	{name: "torch_style"},
	{name: "torch_translator", most: 30},
	{name: "torch_unet", dims: map[string]int64{"batch": 1, "height": 16, "width": 12}},
	{name: "torch_warp"},
}

// exportedCases reads the models as cases.
func exportedCases(t *testing.T) (cases []*Case, files [][]byte) {
	t.Helper()
	for _, m := range exported {
		path := filepath.Join(exporters, m.name+".onnx")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		model, err := onnx.Parse(m.name+".onnx", data, "", onnx.Options{Dims: m.dims, RequireStatic: true})
		if err != nil {
			t.Fatal(err)
		}
		h := fnv.New64a()
		h.Write([]byte(m.name))
		c := &Case{Name: m.name, Seed: h.Sum64(), Graph: model.Graph}
		c.Inputs = randomInputs(t, rand.New(rand.NewPCG(c.Seed, 1)), model.Graph, m.most)
		cases, files = append(cases, c), append(files, data)
	}
	return cases, files
}

// randomInputs are inputs of a graph that r draws, integers from 0 to most - 1.
func randomInputs(t *testing.T, r *rand.Rand, g *ir.Graph, most int64) map[string]*ir.Tensor {
	t.Helper()
	inputs := map[string]*ir.Tensor{}
	for _, v := range g.Inputs {
		inputs[v.Name] = randomInput(t, r, v, most)
	}
	return inputs
}

// needRuntime starts ONNX Runtime for the test, which is skipped where there is none.
func needRuntime(t *testing.T) *runtimeServer {
	t.Helper()
	python, reason := findPython()
	if reason != "" {
		t.Skip(reason)
	}
	s, err := startRuntime(python)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func randomInput(t *testing.T, r *rand.Rand, v *ir.Value, most int64) *ir.Tensor {
	t.Helper()
	x := ir.NewTensor(v.DType, v.Shape.MustConsts()...)
	switch data := x.Data.(type) {
	case []float32:
		for i := range data {
			data[i] = float32(r.NormFloat64())
		}
	case []int64:
		for i := range data {
			data[i] = r.Int64N(most)
		}
	default:
		t.Fatalf("input %s has type %v", v.Name, v.DType)
	}
	return x
}

// TestExportedModels compares all engines on the models of exporters. All operators of these models must compile.
func TestExportedModels(t *testing.T) {
	cases, files := exportedCases(t)
	for _, c := range cases {
		_, _, why, err := c.compilable(true, "h200")
		if err != nil || why != "" {
			t.Errorf("%s does not compile: %s%v", c.Name, why, err)
		}
	}
	for _, e := range Engines {
		if e.Name == "onnxruntime" {
			continue // onnxruntime gets the files themselves, below
		}
		t.Run(e.Name, func(t *testing.T) {
			if e.Slow && testing.Short() {
				t.Skip("slow: compiles or starts other programs")
			}
			for i, res := range e.Run(cases) {
				if v := Judge(cases[i], res); v.Failure != nil {
					t.Errorf("%s: %s", cases[i].Name, clip(v.Failure.Error()))
				} else if v.Skip != "" {
					t.Logf("%s: %s", cases[i].Name, v.Skip)
				}
			}
		})
	}
	t.Run("onnxruntime", func(t *testing.T) { compareFiles(t, cases, files) })
}

// TestExportedModelsAreTelling: other inputs change the outputs of every model by far more than engines may differ. If
// they do not, because weights let values vanish or a softmax is saturated, engines agree whatever they compute.
func TestExportedModelsAreTelling(t *testing.T) {
	cases, _ := exportedCases(t)
	for i, c := range cases {
		want, err := c.Want()
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(c.Seed, 2))
		other := &Case{Inputs: randomInputs(t, r, c.Graph, exported[i].most)}
		got, err := other.evaluate(c.Graph)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range c.Graph.Outputs {
			if d := tolerance.Compare(v.Name, got[v.Name], want[v.Name]); !telling(d) {
				t.Errorf("%s: output %s: another input changes it by rel L2 %.1e only", c.Name, v.Name, d.RelL2)
			}
		}
	}
}

// telling reports whether outputs for different inputs differ by much more than the limit for engines.
func telling(d tolerance.Difference) bool {
	return d.Problem == "" && d.Special == 0 && d.RelL2 >= 100*tolerance.LimitFor(ir.Float32).L2
}

// compareFiles runs the files with onnxruntime and compares the outputs with the reference.
func compareFiles(t *testing.T, cases []*Case, files [][]byte) {
	s := needRuntime(t)
	for i, c := range cases {
		if saturates() && bytes.Contains(files[i], []byte("MatMulInteger")) { // see saturates
			t.Logf("%s: onnxruntime is no judge of it on this machine", c.Name)
			continue
		}
		out, reason, err := s.run(files[i], c.Inputs, c.Graph.Inputs)
		if err != nil {
			t.Fatal(err)
		}
		if lack := exported[i].lack; reason != "" || lack != "" {
			if lack == "" || !strings.Contains(reason, lack) {
				t.Errorf("%s: onnxruntime: %q, expected %q", c.Name, reason, lack)
			}
			continue
		}
		v := Judge(c, Result{Outputs: out})
		if v.Failure != nil {
			t.Errorf("%s: %s", c.Name, clip(v.Failure.Error()))
		}
		if v.Skip != "" {
			t.Logf("%s: %s", c.Name, v.Skip)
		}
		for _, v := range c.Graph.Outputs {
			t.Logf("%s: %s: %s", c.Name, v.Name, tolerance.Compare(v.Name, out[v.Name], c.want[v.Name]).Passing())
		}
	}
}

// TestExportersAreListed: every file of the folder is in the table.
func TestExportersAreListed(t *testing.T) {
	var known []string
	for _, m := range exported {
		known = append(known, m.name)
	}
	files, err := filepath.Glob(exporters + "/*.onnx")
	if err != nil || len(files) == 0 {
		t.Fatalf("no models: %v", err)
	}
	var found []string
	for _, f := range files {
		found = append(found, strings.TrimSuffix(filepath.Base(f), ".onnx"))
	}
	slices.Sort(known)
	if !slices.Equal(found, known) {
		t.Errorf("the folder has %v, the table %v", found, known)
	}
}
