package difftest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
)

// Decoders with caches whose length is a symbol: the evaluator, with which their libraries are compared at any extents,
// agrees with onnxruntime at many.
func TestDecodersWithCaches(t *testing.T) {
	s := needRuntime(t)
	for name, most := range map[string]map[string]int64{
		"gpt2": {"batch_size": 3, "sequence_length": 6, "past_sequence_length": 40},
		"whisper": {"batch_size": 2, "decoder_sequence_length": 5, "past_decoder_sequence_length": 30,
			"encoder_sequence_length": 20},
	} {
		data, err := os.ReadFile(filepath.Join("../../testdata/models/decoders", name+".onnx"))
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 3))
			c := decoderCase(t, name, data, most, r)
			out, reason, err := s.run(data, c.Inputs, c.Graph.Inputs)
			if err != nil || reason != "" {
				t.Fatal(err, reason)
			}
			if v := Judge(c, Result{Outputs: out}); v.Failure != nil || v.Skip != "" {
				t.Errorf("%s, seed %d: %v%s", name, seed, v.Failure, v.Skip)
			}
		}
	}
}

// decoderCase is a decoder at extents that r draws; that of the past may be 0.
func decoderCase(t *testing.T, name string, data []byte, most map[string]int64, r *rand.Rand) *Case {
	t.Helper()
	dims := map[string]int64{}
	for _, dim := range []string{"batch_size", "sequence_length", "past_sequence_length", "decoder_sequence_length",
		"past_decoder_sequence_length", "encoder_sequence_length"} {
		n := r.Int64N(most[dim] + 1)
		if dims[dim] = n; n == 0 && dim != "past_sequence_length" && dim != "past_decoder_sequence_length" {
			dims[dim] = 1
		}
		if _, has := most[dim]; !has {
			delete(dims, dim)
		}
	}
	model, err := onnx.Parse(name+".onnx", data, "", onnx.Options{Dims: dims, RequireStatic: true})
	if err != nil {
		t.Fatal(err)
	}
	c := &Case{Name: name, Graph: model.Graph, Inputs: randomInputs(t, r, model.Graph, 50)}
	for _, v := range model.Graph.Inputs {
		if v.Name == "attention_mask" {
			mask := ir.Slice[int64](c.Inputs[v.Name])
			for i := range mask {
				mask[i] = min(mask[i], 1) // most tokens count
			}
		}
	}
	return c
}
