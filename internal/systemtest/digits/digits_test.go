package digits

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/toolchain"
)

const models = "../../../testdata/models/"

// digits are the models that come with the repository, and the batches they are compiled for; 0 is a
// model whose batch is fixed.
var digits = []struct {
	name  string
	batch []int
}{
	{"digits_branchy", []int{0}}, {"digits_branchy_dyn", []int{1, 4}},
	{"digits_lstm", []int{0}}, {"digits_lstm_dyn", []int{1, 4}},
	{"digits_attention", []int{0}}, {"digits_attention_dyn", []int{1, 4}},
}

// verifyDigits compares a digits model with the reference logits of all test images.
func verifyDigits(t *testing.T, name string, batch int, more func(*commands.VerifyOptions)) {
	t.Helper()
	base := name[:len("digits_")] + firstWord(name[len("digits_"):])
	o := commands.VerifyOptions{
		Inputs: []string{"image=" + models + "digits_test.npz:images"},
		Expect: []string{"logits=" + models + base + "_logits.npy"},
	}
	o.Path, o.Engine = models+name+".onnx", engine.Emu
	if batch > 0 {
		o.Dims = []string{fmt.Sprintf("batch=%d", batch)}
	}
	more(&o)
	r, err := commands.Verify(&driver.Job{}, o)
	if err != nil {
		t.Fatal(err)
	}
	const images, limit = 297, 1e-4
	out := r.Outputs[0]
	if out.Classes == nil || out.Classes.Rows != images || out.Classes.Same != images {
		t.Errorf("same class on %+v images, want all %d", out.Classes, images)
	}
	if !(out.MaxAbs <= limit) {
		t.Errorf("logits differ by %g, want at most %g", out.MaxAbs, limit)
	}
	if r.Engine != o.Engine || r.Reference != "expected outputs" {
		t.Errorf("compared %s with %s", r.Engine, r.Reference)
	}
}

func firstWord(s string) string {
	for i := range s {
		if s[i] == '_' {
			return s[:i]
		}
	}
	return s
}

func TestDigitsOnEmulator(t *testing.T) {
	systemtest.NeedCxx(t)
	for _, d := range digits {
		for _, batch := range d.batch {
			t.Run(fmt.Sprintf("%s/%d", d.name, batch), func(t *testing.T) {
				t.Parallel()
				verifyDigits(t, d.name, batch, func(*commands.VerifyOptions) {})
			})
		}
	}
}

// TestDigitsEvaluated does the same with the evaluator, in one batch where the model lets it.
func TestDigitsEvaluated(t *testing.T) {
	for _, d := range digits {
		batch := 0
		if d.batch[0] > 0 {
			batch = 297
		}
		t.Run(d.name, func(t *testing.T) {
			verifyDigits(t, d.name, batch, func(o *commands.VerifyOptions) { o.Engine = engine.Eval })
		})
	}
}

// TestDigitsOnGPU runs the emitted CUDA; as one rProgram and in waves.
func TestDigitsOnGPU(t *testing.T) {
	systemtest.NeedGPU(t)
	for _, waves := range []bool{false, true} {
		for _, d := range digits {
			for _, batch := range d.batch {
				t.Run(fmt.Sprintf("%s/%d/waves=%v", d.name, batch, waves), func(t *testing.T) {
					verifyDigits(t, d.name, batch, func(o *commands.VerifyOptions) { o.Engine, o.Waves = engine.GPU, waves })
				})
			}
		}
	}
}

func TestDigitsUnderThreadSanitizer(t *testing.T) {
	t.Parallel()
	cxx := systemtest.NeedCxx(t)
	systemtest.NeedThreadSanitizer(t, cxx)
	o := commands.VerifyOptions{RandomSeed: 1, RandomMax: 2, Samples: 2}
	o.Path, o.Engine, o.Sanitize = models+"digits_branchy.onnx", engine.Emu, true
	for _, waves := range []bool{false, true} {
		o.Waves = waves
		if _, err := commands.Verify(&driver.Job{}, o); err != nil {
			t.Errorf("waves %v: %v", waves, err)
		}
	}
}

// TestSameBytes compiles twice: names and times of temporary folders and files must not reach what is
// made, the built library included.
func TestSameBytes(t *testing.T) {
	for _, target := range []string{driver.TargetEmu, "sm_90"} {
		t.Run(target, func(t *testing.T) {
			if target == driver.TargetEmu {
				systemtest.NeedCxx(t)
			} else if _, err := toolchain.FindNVCC(""); err != nil {
				t.Skipf("needs nvcc: %v", err)
			}
			t.Parallel()
			sameBytes(t, target)
		})
	}
}

func sameBytes(t *testing.T, target string) {
	dir := t.TempDir()
	var files [2][]string
	for i := range files {
		o := driver.CompileOptions{Out: filepath.Join(dir, fmt.Sprint(i), "out"), Emit: driver.EmitAll, Offline: true}
		o.Path, o.Target = models+"digits_attention.onnx", target
		r, err := driver.Compile(&driver.Job{}, o)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = r.Artefacts
	}
	if len(files[0]) != len(files[1]) {
		t.Fatalf("%d and %d files", len(files[0]), len(files[1]))
	}
	for i := range files[0] {
		a, errA := os.ReadFile(files[0][i])
		b, errB := os.ReadFile(files[1][i])
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if filepath.Base(files[0][i]) != filepath.Base(files[1][i]) || !bytes.Equal(a, b) {
			t.Errorf("%s and %s differ", files[0][i], files[1][i])
		}
		if bytes.Contains(a, []byte(dir)) {
			t.Errorf("%s names the folder it was made in", files[0][i])
		}
	}
}
