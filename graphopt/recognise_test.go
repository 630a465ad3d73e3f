package graphopt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
)

// recognised says which operators exported models must have after all passes, and which must be gone.
var recognised = []struct {
	model string
	want  map[string]int
}{
	{"../testdata/models/digits_attention.onnx", map[string]int{"Attention": 1, "Gelu": 1, "Erf": 0, "Softmax": 0,
		"Shape": 0}},
	{"../testdata/models/digits_attention_dyn.onnx", map[string]int{"Attention": 1, "Gelu": 1, "Softmax": 0}},
	{"bert_l2_legacy_dyn.onnx", map[string]int{"Attention": 2, "Gelu": 2, "Erf": 0, "Softmax": 0, "Shape": 0,
		"Where": 0, "LayerNormalization": 5}},
	{"bert_l4_s32.onnx", map[string]int{"Attention": 4, "Gelu": 4, "Softmax": 0, "Where": 0, "IsNaN": 0}},
	{"gpt2_l2.onnx", map[string]int{"Attention": 2, "Gelu": 2, "Tanh": 0, "Softmax": 0, "Transpose": 0}},
	{"vit_tiny_patch16_224.onnx", map[string]int{"Attention": 12, "Gelu": 12, "Softmax": 0}},
	{"seq2seq.onnx", map[string]int{"LSTMCell": 920, "Gemm": 0, "Sigmoid": 0, "Tanh": 0, "Fused": 0}},
	{"deepspeech2.onnx", map[string]int{"BatchNormalization": 0}},
	{"nasnet_cifar.onnx", map[string]int{"BatchNormalization": 0}},
}

func TestModelsAreRecognised(t *testing.T) {
	for _, c := range recognised {
		t.Run(filepath.Base(c.model), func(t *testing.T) {
			path := c.model
			if filepath.Base(path) == path {
				dir := os.Getenv("RAMMER_MODELS")
				if dir == "" {
					t.Skip("RAMMER_MODELS does not name a folder of exported models")
				}
				path = filepath.Join(dir, path)
			}
			g := loadBound(t, path)
			if err := Run(g, Options{Check: true, Seed: 3}); err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			ir.EachGraph(g, func(g *ir.Graph) {
				for _, n := range g.Nodes {
					got[n.Op]++
				}
			})
			for op, n := range c.want {
				if got[op] != n {
					t.Errorf("%d %s, want %d", got[op], op, n)
				}
			}
		})
	}
}

// loadBound reads a model and binds every symbolic extent to 4.
func loadBound(t *testing.T, path string) *ir.Graph {
	t.Helper()
	m, err := onnx.Load(path, onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	bind := map[string]int64{}
	for _, name := range m.Dims {
		bind[name] = 4
	}
	if err := ir.BindDims(m.Graph, bind).Err(); err != nil {
		t.Fatal(err)
	}
	return m.Graph
}
