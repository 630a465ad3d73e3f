package decoders

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/systemtest"
)

// decoderModel is a decoder that bench/models.py writes. Skips without a Python that has onnx; RAMMER_PYTHON names
// one.
func decoderModel(t *testing.T, name string) string {
	t.Helper()
	python := systemtest.NeedPython(t, "numpy, onnx")
	dir := t.TempDir()
	if out, err := exec.Command(python, "../../../bench/models.py", dir, name).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return filepath.Join(dir, name+".onnx")
}

// Plans of the decoder for 132 multiprocessors and for the emulator compute what the evaluator does. They mix what the
// models of digits have one at a time: streamed weights, operands that the executor brings, launches beside rPrograms,
// and rTasks of several sizes on one vEU.
func TestDecoder(t *testing.T) {
	t.Parallel()
	cxx := systemtest.NeedCxx(t)
	model := decoderModel(t, "decoder")
	for _, c := range []struct{ target, plan string }{
		{"sm_90", "auto"}, {"sm_90", "rprogram"}, {"sm_90", "clusters-8"},
		{driver.TargetEmu, "auto"}, {driver.TargetEmu, "rprogram"}, {driver.TargetEmu, "clusters-4"}, // it has 4 vEUs
	} {
		t.Run(c.target+" "+c.plan, func(t *testing.T) {
			t.Parallel()
			o := driver.CompileOptions{Target: c.target, Plan: c.plan, Emit: driver.EmitSources, Offline: true}
			o.Path, o.Out = model, filepath.Join(t.TempDir(), "lib")
			if _, err := driver.Compile(&driver.Job{}, o); err != nil {
				t.Fatal(err)
			}
			if _, err := cxx.BuildLibrary(t.Context(), o.Out, "decoder"); err != nil {
				t.Fatal(err)
			}
			v := commands.VerifyOptions{Model: model, RandomSeed: 1, RandomMax: 512, Samples: 1} // tokens below 512, the vocabulary
			v.Path, v.Engine = o.Out, engine.Emu
			r, err := commands.Verify(&driver.Job{}, v)
			if err != nil {
				t.Fatalf("%+v, %v", r, err)
			}
			if c.plan != "auto" && r.Mode != "rprogram" {
				t.Errorf("it ran as %s: %s", r.Mode, r.Reason)
			}
		})
	}
}

// A decoder at one token computes the same with weights of every form, and with values stored in 16 bits beside them.
// The reference has the same rounded weights.
func TestToken(t *testing.T) {
	t.Parallel()
	cxx := systemtest.NeedCxx(t)
	model := decoderModel(t, "token_tiny")
	for _, c := range []struct{ weights, precision string }{{"", "fp32"}, {"int8", "fp32"}, {"int4", "fp32"},
		{"int4", "bf16"}} {
		t.Run(c.weights+" "+c.precision, func(t *testing.T) {
			t.Parallel()
			o := driver.CompileOptions{Target: "sm_90", Emit: driver.EmitSources, Offline: true, Weights: c.weights,
				Precision: c.precision}
			o.Path, o.Out = model, filepath.Join(t.TempDir(), "lib")
			if _, err := driver.Compile(&driver.Job{}, o); err != nil {
				t.Fatal(err)
			}
			if _, err := cxx.BuildLibrary(t.Context(), o.Out, "token_tiny"); err != nil {
				t.Fatal(err)
			}
			v := commands.VerifyOptions{Model: model, RandomSeed: 1, RandomMax: 512, Samples: 1}
			v.Path, v.Engine = o.Out, engine.Emu
			if r, err := commands.Verify(&driver.Job{}, v); err != nil {
				t.Fatalf("%+v, %v", r, err)
			}
		})
	}
}

// fewVEUs is the file of a device like an H200 with four multiprocessors.
func fewVEUs(t *testing.T) string {
	t.Helper()
	spec, err := os.ReadFile("../../../device/devices/h200.yaml")
	if err != nil {
		t.Fatal(err)
	}
	spec = regexp.MustCompile(`(?m)^sms: .*|^clusters:(\n  .*)*`).ReplaceAll(spec, nil)
	path := filepath.Join(t.TempDir(), "few.yaml")
	if err := os.WriteFile(path, append(spec, "\nsms: 4\n"...), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// On few vEUs rTasks are large, and their weights go round the ring several times: the lanes of its loader must not be
// a round apart, which the emulator, whose threads run in any order, would report.
func TestTokenOnFewVEUs(t *testing.T) {
	t.Parallel()
	cxx := systemtest.NeedCxx(t)
	o := driver.CompileOptions{Target: "sm_90", Device: fewVEUs(t), Plan: "rprogram", Offline: true,
		Emit: driver.EmitSources, Precision: "bf16"}
	o.Path, o.Out = decoderModel(t, "token_tiny"), filepath.Join(t.TempDir(), "lib")
	if _, err := driver.Compile(&driver.Job{}, o); err != nil {
		t.Fatal(err)
	}
	if _, err := cxx.BuildLibrary(t.Context(), o.Out, "token_tiny"); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(3) {
		v := commands.VerifyOptions{Model: o.Path, RandomSeed: 1, RandomMax: 512, Samples: 1}
		v.Path, v.Engine, v.EmuSeed = o.Out, engine.Emu, seed
		if r, err := commands.Verify(&driver.Job{}, v); err != nil || r.Mode != "rprogram" {
			t.Errorf("seed %d: %+v, %v", seed, r, err)
		}
	}
}
