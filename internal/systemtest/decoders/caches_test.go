package decoders

import (
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/systemtest"
)

// decoders are models with caches whose length is a symbol, and the ranges of their dims.
var decoders = []struct {
	name string
	dims []string
}{
	{"gpt2", []string{"batch_size=1..3", "sequence_length=1..6", "past_sequence_length=0..40"}},
	{"whisper", []string{"batch_size=1..2", "decoder_sequence_length=1..5", "past_decoder_sequence_length=0..30",
		"encoder_sequence_length=1..20"}},
}

// One compilation of a decoder serves all lengths of its caches, the longer ones that it returns too, and takes positions
// and masks from the right places: its results are the evaluator's at extents drawn at random, and without a past.
func TestDecodersWithCaches(t *testing.T) {
	systemtest.NeedCxx(t)
	for _, d := range decoders {
		model, dir := filepath.Join("../../../testdata/models/decoders", d.name+".onnx"), filepath.Join(t.TempDir(), "lib")
		c := driver.CompileOptions{Out: dir, Target: driver.TargetEmu, Emit: driver.EmitLibrary}
		c.Path, c.Dims = model, d.dims
		if _, err := driver.Compile(&driver.Job{}, c); err != nil {
			t.Fatal(err)
		}
		for _, dims := range [][]string{nil, {d.dims[2][:len(d.dims[2])-len("0..40")] + "0"}} {
			o := commands.VerifyOptions{Model: model, Samples: 20, RandomSeed: 1, RandomMax: 2}
			if o.Path, o.Dims = dir, dims; dims != nil {
				o.Samples = 3
			}
			if r, err := commands.Verify(&driver.Job{}, o); err != nil || !r.OK || r.Samples != o.Samples {
				t.Errorf("%s %v: %+v, %v", d.name, dims, r, err)
			}
		}
	}
}

// Special programs of a decoder take parts of the ranges: of the past alone, and with one new token.
func TestDecoderHasSpecialPrograms(t *testing.T) {
	systemtest.NeedCxx(t)
	model, dir := "../../../testdata/models/decoders/gpt2.onnx", filepath.Join(t.TempDir(), "lib")
	c := driver.CompileOptions{Out: dir, Target: driver.TargetEmu, Emit: driver.EmitLibrary}
	c.Path, c.Dims = model, []string{"batch_size=1", "sequence_length=1..4", "past_sequence_length=0..20"}
	c.Typical = []string{"sequence_length=1", "past_sequence_length=8"}
	if _, err := driver.Compile(&driver.Job{}, c); err != nil {
		t.Fatal(err)
	}
	i, err := commands.InspectLibrary(&driver.Job{}, dir)
	if err != nil || len(i.Specials) != 3 {
		t.Errorf("inspect: %+v, %v", i, err)
	}
	o := commands.VerifyOptions{Model: model, Samples: 12, RandomSeed: 2, RandomMax: 2}
	o.Path = dir
	if r, err := commands.Verify(&driver.Job{}, o); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
}
