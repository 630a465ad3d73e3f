package digits

import (
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/ir"
)

// TestQuantisedModels compares quantised models with ONNX Runtime, which computes with integers, too: the codes of each
// layer, and the floats that come out. The program runs on the emulator.
func TestQuantisedModels(t *testing.T) {
	systemtest.NeedCxx(t)
	for _, name := range []string{"resnet_tiny_qdq", "bert_tiny_qdq"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareQuantised(t, filepath.Join(models, "quantised", name))
		})
	}
}

func compareQuantised(t *testing.T, path string) {
	t.Helper()
	o := commands.VerifyOptions{}
	o.Path, o.Engine = path+".onnx", engine.Emu
	m, err := driver.Load(&driver.Job{}, o.ModelOptions, true)
	if err != nil {
		t.Fatal(err)
	}
	stored := func(values []*ir.Value) (flags []string) {
		for _, v := range values {
			flags = append(flags, v.Name+"="+path+".npz:"+v.Name)
		}
		return flags
	}
	o.Inputs, o.Expect = stored(m.Graph.Inputs), stored(m.Graph.Outputs)
	r, err := commands.Verify(&driver.Job{}, o)
	if r == nil {
		t.Fatal(err)
	}
	codes := 0
	for _, out := range r.Outputs {
		const steps, floats = 1, 1e-5
		switch {
		case out.Problem != "" || out.Special > 0:
			t.Errorf("%s: %s", out.Name, out.Problem)
		case out.DType == ir.Uint8.String():
			codes++
			if out.MaxAbs > steps {
				t.Errorf("%s: %g quantisation steps off, want at most %d", out.Name, out.MaxAbs, steps)
			}
		case out.RelL2 > floats:
			t.Errorf("%s: relative L2 %g, want at most %g", out.Name, out.RelL2, floats)
		}
	}
	if codes < 10 || codes != len(r.Outputs)-1 {
		t.Errorf("%d of %d outputs are codes", codes, len(r.Outputs))
	}
}
