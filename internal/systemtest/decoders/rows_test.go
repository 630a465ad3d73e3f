package decoders

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/systemtest"
)

// rowOptions compiles an rProgram of one token whose rows travel in tagged words, and are its options.
func rowOptions(t *testing.T, model, device, weights, precision string) driver.CompileOptions {
	t.Helper()
	o := driver.CompileOptions{Target: "sm_90", Device: device, Plan: "rows", Offline: true, Emit: driver.EmitSources,
		Weights: weights, Precision: precision, Debug: true}
	o.Path, o.Out = model, filepath.Join(t.TempDir(), "lib")
	if _, err := driver.Compile(&driver.Job{}, o); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(o.Out, "token_tiny.cu"))
	if err != nil {
		t.Fatal(err)
	}
	// The row between two products is polled and stored.
	for _, want := range []string{"kWords = true", "_Words3_"} {
		if !strings.Contains(string(source), want) {
			t.Errorf("%s %s: the program lacks %q", weights, precision, want)
		}
	}
	return o
}

// Rows in tagged words, in any order of threads, with vEUs and warps held up at random; and wave by wave.
func TestRowsInWords(t *testing.T) {
	t.Parallel()
	cxx := systemtest.NeedCxx(t)
	model := decoderModel(t, "token_tiny")
	for _, c := range []struct{ weights, precision string }{{"", "fp16"}, {"int4", "bf16"}} {
		t.Run(c.weights+" "+c.precision, func(t *testing.T) {
			t.Parallel()
			o := rowOptions(t, model, "", c.weights, c.precision)
			if _, err := cxx.BuildLibrary(t.Context(), o.Out, "token_tiny", "-DRT_DEBUG"); err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(3) {
				v := commands.VerifyOptions{Model: model, RandomSeed: 1 + seed, RandomMax: 512, Samples: 1, Repeat: 2}
				v.Path, v.Engine, v.EmuSeed, v.Delays, v.Waves = o.Out, engine.Emu, seed, seed, seed == 2
				if r, err := commands.Verify(&driver.Job{}, v); err != nil || !r.OK || (r.Mode == "rprogram") == v.Waves {
					t.Errorf("seed %d: %+v, %v", seed, r, err)
				}
			}
		})
	}
}

func TestRowsInWordsUnderThreadSanitizer(t *testing.T) {
	t.Parallel()
	cxx := systemtest.NeedCxx(t)
	systemtest.NeedThreadSanitizer(t, cxx)
	model := decoderModel(t, "token_tiny")
	// ThreadSanitizer can follow the threads of few vEUs alone.
	o := rowOptions(t, model, fewVEUs(t), "", "bf16")
	if _, err := cxx.BuildLibrary(t.Context(), o.Out, "token_tiny", "-fsanitize=thread", "-g1"); err != nil {
		t.Fatal(err)
	}
	v := commands.VerifyOptions{Model: model, RandomSeed: 1, RandomMax: 512, Samples: 1}
	v.Path, v.Engine, v.Sanitize = o.Out, engine.Emu, true
	if r, err := commands.Verify(&driver.Job{}, v); err != nil || r.Mode != "rprogram" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A word that never comes is reported with who waits for it, and where words are taken whatever their tags are, results
// are wrong.
func TestRowFaults(t *testing.T) {
	t.Parallel()
	cxx := systemtest.NeedCxx(t)
	model := decoderModel(t, "token_tiny")
	for _, c := range []struct{ what, old, with, want string }{
		{"a word that never comes", "if (mine) rt::detail::store_word", "if (mine && t.tid > 0) rt::detail::store_word",
			"waits for tagged word"},
		{"words of any tag", "if (here || t.tag == 0) break;", "break;", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			o := rowOptions(t, model, "", "", "bf16")
			path := filepath.Join(o.Out, "token_tiny.cu")
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(source), c.old) {
				t.Fatalf("the source lacks %q", c.old)
			}
			if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(source), c.old, c.with)), 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := cxx.BuildLibrary(t.Context(), o.Out, "token_tiny", "-DRT_DEBUG"); err != nil {
				t.Fatal(err)
			}
			v := commands.VerifyOptions{Model: model, RandomSeed: 1, RandomMax: 512, Samples: 1, Repeat: 1}
			v.Path, v.Engine, v.EmuSeed, v.Delays = o.Out, engine.Emu, 1, 1
			r, err := commands.Verify(&driver.Job{}, v)
			if err == nil && r.OK || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("got %+v, %v, want %q", r, err, c.want)
			}
		})
	}
}
