package decoders

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/roperator"
)

const decoder = "../../../testdata/models/decoders/gpt2.onnx"

// A library that generates answers as the evaluator does, which runs the decoder token by token: rows with prompts of
// different lengths, that end by a token or at the limit; in one launch, and in waves, between which the host looks.
func TestGenerate(t *testing.T) {
	dir := compiledSearch(t, decoder, "batch_size=2")
	answersAs(t, dir, decoder)
	i, err := commands.InspectLibrary(&driver.Job{}, dir)
	var text bytes.Buffer
	if err == nil {
		i.Text(&text)
	}
	for _, want := range []string{"greedy, at most 20 tokens with the prompt, until 7 or 21",
		"past_key_values.1.value float32[2,2,past_sequence_length,16], which grows in place to 19 at most in each run",
		"past_sequence_length=0..2 sequence_length=1..17: "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("inspect says nothing of %q: %s, %v", want, text.String(), err)
		}
	}
	answersOf(t, dir)
}

// A decoder with cross-attention takes what the encoder has computed as inputs of any length.
func TestGenerateBehindEncoder(t *testing.T) {
	model := "../../../testdata/models/decoders/whisper.onnx"
	answersAs(t, compiledSearch(t, model, "encoder_sequence_length=1..12"), model)
}

// compiledSearch compiles a decoder into a library that generates. Optimising it would take longer than running it.
func compiledSearch(t *testing.T, model string, dims ...string) (dir string) {
	t.Helper()
	return searchLibrary(t, driver.CompileOptions{Generate: "greedy", EndTokens: []int64{7, 21}}, model, dims...)
}

func searchLibrary(t *testing.T, c driver.CompileOptions, model string, dims ...string) (dir string) {
	t.Helper()
	systemtest.NeedCxx(t)
	fast := filepath.Join(t.TempDir(), "fast-c++")
	if err := os.WriteFile(fast, []byte("#!/bin/sh\nexec c++ \"$@\" -O0\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CXX", fast)
	dir = filepath.Join(t.TempDir(), "lib")
	c.Out, c.Target, c.Emit, c.Check, c.MaxTokens = dir, driver.TargetEmu, driver.EmitLibrary, true, 20
	c.Path, c.Dims = model, dims
	if _, err := driver.Compile(&driver.Job{}, c); err != nil {
		t.Fatal(err)
	}
	return dir
}

// answersAs compares answers of a library, in one launch and in waves, with those of the evaluator.
func answersAs(t *testing.T, dir, model string) {
	t.Helper()
	for _, waves := range []bool{false, true} {
		o := commands.VerifyOptions{Model: model, Samples: 5, RandomSeed: 1}
		o.Path, o.Waves = dir, waves
		r, err := commands.Verify(&driver.Job{}, o)
		if err != nil || !r.OK || r.Samples != 5 || len(r.Outputs) != 2 {
			t.Errorf("waves %v: %+v, %v", waves, r, err)
		}
	}
}

// answersOf asks a library through its Python module: an answer depends on nothing that other runs have left behind, ends
// where the limit says, and never goes on beyond the room that there is.
func answersOf(t *testing.T, dir string) {
	t.Helper()
	script := fmt.Sprintf(`
import sys
sys.path.insert(0, %q)
import gpt2
m = gpt2.Model()
assert m.ranges["generate"]["end_tokens"] == [7, 21] and not m.ranges.get("states")
prompts = [[3, 5, 9], [11]]
first = m.generate(prompts, 12)
m.generate([[1] * 20, [2]], 20)
assert m.generate(prompts, 12) == first
assert [row[:len(p)] for row, p in zip(first, prompts)] == prompts
for row, p in zip(first, prompts):
    assert len(row) == 12 or row[-1] in (7, 21) and not set(row[len(p):-1]) & {7, 21}, first
longest = m.generate(prompts)
assert m.generate(prompts, 1000) == longest and all(len(row) <= 20 for row in longest)
assert [row[:12] for row in longest] == [row[:12] for row in first]

# The prompt is taken at once, but for its last token; an answer goes on as if its tokens had come one by one.
tried = [m.generate([[a, 5], [a + 1, 9]], 12) for a in range(3, 20)]
whole = [rows for rows in tried if all(len(row) == 12 for row in rows)]
assert whole
for rows in whole:
    for known in (3, 6, 11):
        assert m.generate([row[:known] for row in rows], 12) == rows, known
    assert m.generate([rows[0][:9], rows[1][:4]], 12) == rows
    for limit in (1, 2, 3, 5):
        assert m.generate([row[:8] for row in rows], limit) == [row[:max(limit, 2)] for row in rows], limit
for bad in ([[1]], [[], [1]], [[1] * 21, [1]]):
    try:
        m.generate(bad)
        raise SystemExit("answered")
    except ValueError:
        pass
print("fine")
`, filepath.Join(dir, "python"))
	systemtest.RunScript(t, script)
}

// What cannot generate is refused with the reason, and check says how a library would.
func TestGenerateIsChecked(t *testing.T) {
	other := systemtest.Inferred(t, `graph "other" (%x: float32[4], %past: float32[n]) {
  %present = Concat(%past, %x) {axis = 0}
  return %present
}
`)
	for _, x := range []struct {
		model, search, want string
		most                int64
		dims                []string
	}{
		{decoder, "greedy", "greedy, at most 16 tokens with the prompt, until 7", 16, nil},
		{decoder, "best", `--generate "best": want one of greedy, beam=N`, 16, nil},
		{decoder, "beam=99", "--generate beam=99: want at most 16 beams", 16, nil},
		{decoder, "beam=2", "beam=2, at most 16 tokens with the prompt, until 7", 16, nil},
		{decoder, "beam=2", "takes one prompt", 16, []string{"batch_size=3"}},
		{decoder, "greedy", "--max-tokens 2: want how many tokens", 2, nil},
		{decoder, "", "--end-token and --max-tokens go with --generate", 16, nil},
		{decoder, "greedy", "input input_ids is int64[1,4], want one token of each row", 16,
			[]string{"sequence_length=4"}},
		{decoder, "greedy", "--dim batch_size=1..4: with --generate it is one number", 16, []string{"batch_size=1..4"}},
		{other, "greedy", "the model has no input input_ids", 16, nil},
	} {
		o := driver.CompileOptions{Target: driver.TargetEmu, Generate: x.search, MaxTokens: x.most,
			EndTokens: []int64{7}}
		o.Path, o.Dims = x.model, x.dims
		r, err := commands.Check(&driver.Job{}, o)
		text := fmt.Sprint(err)
		if err == nil {
			text = fmt.Sprintf("%+v", r)
		}
		if !strings.Contains(text, x.want) {
			t.Errorf("%s %s: %s", x.model, x.search, text)
		}
	}
}

// lowered are the rOperators of the general program.
func lowered(t *testing.T, o driver.CompileOptions) []*roperator.ROperator {
	t.Helper()
	spec, err := o.Spec(&driver.Job{})
	if err != nil {
		t.Fatal(err)
	}
	ops, err := driver.LowerGeneral(&driver.Job{}, o, spec)
	if err != nil {
		t.Fatal(err)
	}
	return ops.Ops
}

// A decoder that was merged of two becomes the same program as the one that takes caches, and answers the same.
func TestMergedDecoder(t *testing.T) {
	merged := "../../../testdata/models/decoders/merged.onnx"
	var kinds, answers []string
	for _, model := range []string{decoder, merged} {
		o := driver.CompileOptions{Target: driver.TargetEmu, Generate: "greedy", MaxTokens: 16, EndTokens: []int64{7}}
		o.Path = model
		text := ""
		for _, op := range lowered(t, o) {
			text += op.Kind + "\n"
		}
		s, inputs, _, err := driver.Searching(&driver.Job{}, o)
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Run(engine.RandomInputs(inputs, 3, 1))
		if err != nil {
			t.Fatal(err)
		}
		kinds, answers = append(kinds, text), append(answers, fmt.Sprint(out["tokens"].Data, out["length"].Data))
	}
	if kinds[0] != kinds[1] || strings.Count(kinds[0], "\n") < 30 {
		t.Errorf("rOperators %s and of the merged decoder %s", kinds[0], kinds[1])
	}
	if answers[0] != answers[1] {
		t.Errorf("answers %s and of the merged decoder %s", answers[0], answers[1])
	}
}

// A search with several beams gives the answer that the evaluator's search finds, with the score of each answer kept; and
// without tokens that end one, that of a search in NumPy, whose probabilities are those of onnxruntime.
func TestGenerateBeams(t *testing.T) {
	ends := driver.CompileOptions{Generate: "beam=3", EndTokens: []int64{7, 21}}
	answersAs(t, searchLibrary(t, ends, decoder), decoder)
	dir := searchLibrary(t, driver.CompileOptions{Generate: "beam=4"}, decoder)
	script := fmt.Sprintf(`
import sys
sys.path.insert(0, %q)
import gpt2
import numpy as np
import onnxruntime
decoder = onnxruntime.InferenceSession(%q)
names, shapes = [o.name for o in decoder.get_outputs()], {i.name: i.shape for i in decoder.get_inputs()}

def next_words(tokens):
    n, out = len(tokens), None
    past = {k: np.zeros((n, s[1], 0, s[3]), np.float32) for k, s in shapes.items() if k.startswith("past")}
    for i in range(len(tokens[0])):
        feed = {"input_ids": np.array([[t[i]] for t in tokens]), "attention_mask": np.ones((n, i + 1), np.int64),
                "position_ids": np.full((n, 1), i), **past}
        out = dict(zip(names, decoder.run(None, {k: v for k, v in feed.items() if k in shapes})))
        past = {k: out[k.replace("past_key_values", "present")] for k in past}
    x = out["logits"][:, 0].astype(np.float64)
    return x - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)) - x.max(1, keepdims=True)

def search(prompt, limit, beams):
    rows = [(0.0, prompt)]
    while len(rows[0][1]) < limit:
        words = next_words([r for _, r in rows])
        all = [(s + w, r + [k]) for (s, r), row in zip(rows, words) for k, w in enumerate(row)]
        rows = sorted(all, key=lambda x: -x[0])[:beams]
    return rows[0][1]

m = gpt2.Model()
for prompt in ([3, 5, 9], [11], [1, 2, 3, 4, 5, 6]):
    assert m.generate([prompt], 14)[0] == search(prompt, 14, 4), prompt
print("fine")
`, filepath.Join(dir, "python"), decoder)
	out, err := exec.Command(systemtest.NeedPython(t, "numpy, onnxruntime"), "-c", script).CombinedOutput()
	if err != nil || string(out) != "fine\n" {
		t.Errorf("%s: %v", out, err)
	}
}

// A token sees itself and all before it, so attention in a step reads no mask, also where the model slices one out of a
// table. Without --generate the same attention reads it.
func TestStepsReadNoMask(t *testing.T) {
	attention := func(o driver.CompileOptions, dims ...string) (names []string) {
		o.Path, o.Target, o.Dims = decoder, driver.TargetEmu, dims
		for _, op := range lowered(t, o) {
			if name := op.Candidates[0].Inst.Name(); strings.HasPrefix(name, "attention") {
				names = append(names, name)
			}
		}
		return names
	}
	for _, x := range []struct {
		masked bool
		names  []string
	}{
		{false, attention(driver.CompileOptions{Generate: "greedy", MaxTokens: 16})},
		{false, attention(driver.CompileOptions{Generate: "beam=3", MaxTokens: 16})},
		{true, attention(driver.CompileOptions{States: []string{driver.NamedStates}}, "batch_size=1",
			"past_sequence_length=0..14", "sequence_length=1")},
	} {
		for _, name := range x.names {
			if strings.Contains(name, "Masked1") != x.masked {
				t.Errorf("%s is masked: want %v", name, x.masked)
			}
		}
		if len(x.names) < 2 {
			t.Errorf("attention %v", x.names)
		}
	}
}
