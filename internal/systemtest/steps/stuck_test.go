package steps

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// A wait that never ends is told to whoever runs the library: who waits for what, and which ONNX nodes it is
// about.
func TestRunTellsOfWaitsThatNeverEnd(t *testing.T) {
	t.Parallel()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		model, file, old, new string
		want                  []string
	}{
		{
			"digits_branchy", "digits_branchy.cu", "detail::store_release_gpu(flag",
			"if (veu_ == 9) detail::store_release_gpu(flag",
			[]string{"segment 0, vEU ", " step ", "waits for vEU ", "expected flag 1, seen 0", "ONNX nodes: /"},
		},
		{
			"digits_lstm", "cudaemu/device.h", "inline void store_word(uint64_t* p, uint64_t v) {",
			"inline void store_word(uint64_t* p, uint64_t v) {\n  if (block_index() == 1) return;",
			[]string{"segment 0, vEU ", " step ", "waits for tagged word ", "expected tag 1, seen 0",
				"ONNX nodes: /l/LSTM"},
		},
	} {
		o := driver.CompileOptions{Out: filepath.Join(t.TempDir(), "lib"), Target: driver.TargetEmu, Plan: "rprogram",
			Emit: driver.EmitSources}
		o.Path = filepath.Join("..", "..", "..", "testdata", "models", c.model+".onnx")
		if _, err := driver.Compile(&driver.Job{}, o); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(o.Out, c.file)
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(c.old)) {
			t.Fatalf("%s has no %q to change; %v", path, c.old, err)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte(c.old), []byte(c.new)), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := cxx.BuildLibrary(t.Context(), o.Out, c.model, "-O0"); err != nil {
			t.Fatal(err)
		}
		run := commands.RunOptions{Random: true}
		run.Path = o.Out
		_, err = commands.Run(&driver.Job{}, run)
		if err == nil {
			t.Fatalf("%s: the program without signals ended", c.model)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the report lacks %q: %v", c.model, want, err)
			}
		}
		if code := driver.ExitCode(err); code != driver.ExitInternal {
			t.Errorf("%s: exit status %d, want %d", c.model, code, driver.ExitInternal)
		}
	}
}
