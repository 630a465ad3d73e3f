package decoders

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/ir"
)

// compiledStates compiles a model whose states the library keeps, and returns its folder and its library.
func compiledStates(t *testing.T, model string, states []string, dims ...string) (dir, library string) {
	t.Helper()
	systemtest.NeedCxx(t)
	dir = filepath.Join(t.TempDir(), "lib")
	c := driver.CompileOptions{Out: dir, Target: driver.TargetEmu, Emit: driver.EmitLibrary, States: states, Check: true}
	c.Path, c.Dims = model, dims
	built, err := driver.Compile(&driver.Job{}, c)
	if err != nil {
		t.Fatal(err)
	}
	return dir, built.Library
}

// follows compares samples, each of which begins with the states that the one before has left.
func follows(t *testing.T, model, dir string, samples int) {
	t.Helper()
	o := commands.VerifyOptions{Model: model, Samples: samples, RandomSeed: 1, RandomMax: 2}
	o.Path = dir
	if r, err := commands.Verify(&driver.Job{}, o); err != nil || !r.OK || r.Samples != samples {
		t.Errorf("%+v, %v", r, err)
	}
}

// A decoder keeps its caches: from run to run they grow in place, with the evaluator's results, until they are full. They
// can be emptied, cut, saved and loaded, and what inputs say of their lengths is checked.
func TestCachesStay(t *testing.T) {
	model := "../../../testdata/models/decoders/gpt2.onnx"
	dir, library := compiledStates(t, model, []string{driver.NamedStates}, "batch_size=1..2", "sequence_length=1..4",
		"past_sequence_length=0..12")
	follows(t, model, dir, 30)
	i, err := commands.InspectLibrary(&driver.Job{}, dir)
	want := "past_key_values.0.key float32[batch_size,2,past_sequence_length,16], which grows in place to 16 at most, " +
		"for the next run from present.0.key"
	if err != nil || len(i.States) != 4 || i.States[0] != want {
		t.Errorf("inspect: %q, %v", i.States, err)
	}
	l, err := engine.OpenLibrary(library, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	step := func(batch, seq, total int64) error {
		in := engine.Tensors{"input_ids": ir.NewTensor(ir.Int64, batch, seq), "attention_mask": ir.NewTensor(ir.Int64, batch, total)}
		_, err := l.Run(in)
		return err
	}
	for _, c := range []struct {
		batch, seq, total int64
		want              string
	}{
		{1, 3, 3, ""}, {1, 1, 3, "want past_sequence_length+sequence_length = 4"}, {1, 1, 4, ""},
		{2, 1, 5, "batch_size is 2, but the state began with 1"}, {1, 4, 8, ""}, {1, 4, 12, ""}, {1, 4, 16, ""},
		{1, 1, 17, "the state is full: past_sequence_length is 16, want past_sequence_length=0..12"},
	} {
		if err := step(c.batch, c.seq, c.total); (err == nil) != (c.want == "") ||
			err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := l.SeekStates(17); err == nil || !strings.Contains(err.Error(), "room for 16") {
		t.Errorf("seek: %v", err)
	}
	if err := l.SeekStates(5); err != nil || step(1, 1, 6) != nil {
		t.Errorf("behind seek: %v", err)
	}
	if err := l.ResetStates(); err != nil || step(2, 2, 2) != nil {
		t.Errorf("behind reset: %v", err)
	}
	savedStates(t, dir)
}

// savedStates is a program that takes a library with states through its Python module: a model that loads what another one
// has saved goes on as that one does.
func savedStates(t *testing.T, dir string) {
	t.Helper()
	script := fmt.Sprintf(`
import sys
sys.path.insert(0, %q)
import numpy as np, gpt2
a, b = gpt2.Model(), gpt2.Model()
mask = lambda n: np.ones((1, n), np.int64)
a([np.array([[3, 5, 7]]), mask(3)])
assert a.state_length == 3
saved = a.state_save()
first = a([np.array([[9]]), mask(4)])[0]
b.state_load(saved)
assert b.state_length == 3
assert (b([np.array([[9]]), mask(4)])[0] == first).all()
a.state_length = 3
assert (a([np.array([[9]]), mask(4)])[0] == first).all()
a.state_reset()
assert a.state_length == 0
a([np.array([[3, 5, 7]]), mask(3)])
assert (a([np.array([[9]]), mask(4)])[0] == first).all()
for bad in (b"", saved[:-1], b"x" * len(saved)):
    try:
        b.state_load(bad)
        raise SystemExit("loaded")
    except gpt2.Error:
        pass
print("fine")
`, filepath.Join(dir, "python"))
	systemtest.RunScript(t, script)
}

// States that do not grow are replaced by each run, also where what is computed of them is an output as well.
func TestStatesAreReplaced(t *testing.T) {
	model := systemtest.Inferred(t, `graph "recurrent" (%x: float32[2,8], %h: float32[2,8], %n: int64[1]) {
  %w = const float32[8,8] splat(0.1)
  %one = const int64[1] {1}
  %a = MatMul(%x, %w)
  %b = MatMul(%h, %w)
  %s = Add(%a, %b)
  %next = Tanh(%s)
  %y = Add(%next, %h)
  %count = Add(%n, %one)
  return %y, %next, %count
}
`)
	dir, library := compiledStates(t, model, []string{"h=next", "n=count"})
	follows(t, model, dir, 6)
	l, err := engine.OpenLibrary(library, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if len(l.Inputs) != 1 || len(l.Outputs) != 1 {
		t.Errorf("inputs %v, outputs %v", l.Inputs, l.Outputs)
	}
}

// What cannot be a state is refused with the input and the reason.
func TestStatesThatAreRefused(t *testing.T) {
	model := "../../../testdata/models/decoders/gpt2.onnx"
	other := systemtest.Inferred(t, `graph "other" (%x: float32[4], %s: float32[4]) {
  %y = Add(%x, %s)
  %z = Cast(%y) {to = 11}
  return %y, %z
}
`)
	for _, c := range []struct {
		model, state, want string
		dims               []string
	}{
		{other, "s=z", "it is float32[4], and output z is float64[4]", nil},
		{other, "q=y", "no input is called q", nil},
		{other, "s", "want INPUT=OUTPUT", nil},
		{other, "auto", "no inputs and outputs are called past… and present…", nil},
		{model, "past_key_values.0.key=present.0.key", "it must be a symbol with a range from 0",
			[]string{"batch_size=1", "sequence_length=1", "past_sequence_length=1..12"}},
	} {
		o := driver.CompileOptions{Target: driver.TargetEmu, States: []string{c.state}}
		o.Path, o.Dims = c.model, c.dims
		r, err := commands.Check(&driver.Job{}, o)
		text := fmt.Sprint(err)
		if err == nil {
			text = fmt.Sprintf("%+v", r.Rows)
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", c.state, text)
		}
	}
}
