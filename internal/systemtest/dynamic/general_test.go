package dynamic

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/commands"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/systemtest"
)

// encoderText is a transformer encoder in the manner of BERT, with symbolic batch and seq: token and position
// embeddings, positions by Range, a padding mask and layers with heads of 16. The first token, the mean of all and a
// mean whose weights are a softmax over all are pooled.
type encoderText struct {
	strings.Builder
	random        *rand.Rand
	hidden, heads int
	consts        int
}

// weight declares a constant of random elements in [-scale, scale) and returns its name.
func (e *encoderText) weight(scale float64, dims ...int) string {
	e.consts++
	name, n, text := fmt.Sprintf("%%w%d", e.consts), 1, make([]string, len(dims))
	for i, d := range dims {
		n, text[i] = n*d, fmt.Sprint(d)
	}
	elems := make([]string, n)
	for i := range elems {
		elems[i] = fmt.Sprintf("%.4f", scale*(2*e.random.Float64()-1))
	}
	fmt.Fprintf(e, "  %s = const float32[%s] {%s}\n", name, strings.Join(text, ","), strings.Join(elems, ", "))
	return name
}

// linear computes x·w + b and returns the name of the result.
func (e *encoderText) linear(out, x string, from, to int) string {
	w, b := e.weight(0.3, from, to), e.weight(0.1, to)
	fmt.Fprintf(e, "  %%%s.p = MatMul(%s, %s)\n  %%%s = Add(%%%s.p, %s)\n", out, x, w, out, out, b)
	return "%" + out
}

func (e *encoderText) norm(out, x string) string {
	scale, bias := e.weight(1, e.hidden), e.weight(0.1, e.hidden)
	fmt.Fprintf(e, "  %%%s = LayerNormalization(%s, %s, %s)\n", out, x, scale, bias)
	return "%" + out
}

// layer is self-attention and two linear layers, each added to its input and normalised.
func (e *encoderText) layer(k int, x string) string {
	at := func(name string) string { return fmt.Sprintf("l%d.%s", k, name) }
	for _, m := range []string{"q", "k", "v"} {
		y := e.linear(at(m), x, e.hidden, e.hidden)
		fmt.Fprintf(e, "  %%%s.r = Reshape(%s, %%heads)\n  %%%s.t = Transpose(%%%s.r) {perm = [0, 2, %s]}\n", at(m), y,
			at(m), at(m), map[string]string{"q": "1, 3", "k": "3, 1", "v": "1, 3"}[m])
	}
	fmt.Fprintf(e, "  %%%s = MatMul(%%%s.t, %%%s.t)\n", at("s"), at("q"), at("k"))
	fmt.Fprintf(e, "  %%%s = Mul(%%%s, %%scale)\n  %%%s = Add(%%%s, %%mask)\n", at("ss"), at("s"), at("sm"), at("ss"))
	fmt.Fprintf(e, "  %%%s = Softmax(%%%s)\n  %%%s = MatMul(%%%s, %%%s.t)\n", at("p"), at("sm"), at("o"), at("p"),
		at("v"))
	fmt.Fprintf(e, "  %%%s = Transpose(%%%s) {perm = [0, 2, 1, 3]}\n  %%%s = Reshape(%%%s, %%rows)\n", at("ot"),
		at("o"),
		at("or"), at("ot"))
	y := e.linear(at("d"), "%"+at("or"), e.hidden, e.hidden)
	fmt.Fprintf(e, "  %%%s = Add(%s, %s)\n", at("a"), x, y)
	x = e.norm(at("n"), "%"+at("a"))
	y = e.linear(at("f"), x, e.hidden, 2*e.hidden)
	fmt.Fprintf(e, "  %%%s = Gelu(%s)\n", at("g"), y)
	y = e.linear(at("h"), "%"+at("g"), 2*e.hidden, e.hidden)
	fmt.Fprintf(e, "  %%%s = Add(%s, %s)\n", at("b"), x, y)
	return e.norm(at("m"), "%"+at("b"))
}

// encoder writes the model and returns its path.
func encoder(t *testing.T, layers int) string {
	t.Helper()
	e := &encoderText{random: rand.New(rand.NewPCG(1, 2)), hidden: 64, heads: 4}
	e.WriteString("graph \"encoder\" (%ids: int64[batch,seq], %padding: float32[batch,seq]) {\n")
	fmt.Fprintf(e, "  %%heads = const int64[4] {0, 0, %d, %d}\n  %%rows = const int64[3] {0, 0, %d}\n", e.heads,
		e.hidden/e.heads, e.hidden)
	e.WriteString("  %scale = const float32[] {0.25}\n  %hide = const float32[] {-100}\n  %zero = const int64[] {0}\n" +
		"  %one = const int64[] {1}\n  %seq = const int64[1] {1}\n  %between = const int64[2] {1, 2}\n")
	tokens, positions := e.weight(1, 32, e.hidden), e.weight(1, 40, e.hidden)
	fmt.Fprintf(e, "  %%x.t = Gather(%s, %%ids)\n  %%shape = Shape(%%ids)\n  %%n = Gather(%%shape, %%one)\n"+
		"  %%places = Range(%%zero, %%n, %%one)\n  %%x.p = Gather(%s, %%places)\n  %%x.s = Add(%%x.t, %%x.p)\n", tokens,
		positions)
	e.WriteString("  %hidden = Mul(%padding, %hide)\n  %mask = Unsqueeze(%hidden, %between)\n")
	x := e.norm("x", "%x.s")
	for k := range layers {
		x = e.layer(k, x)
	}
	fmt.Fprintf(e, "  %%first = Gather(%s, %%zero) {axis = 1}\n", x)
	fmt.Fprintf(e, "  %%share.s = MatMul(%s, %s)\n  %%share = Softmax(%%share.s) {axis = 1}\n", x,
		e.weight(0.3, e.hidden, 1))
	fmt.Fprintf(e, "  %%shared = Mul(%s, %%share)\n  %%sum = ReduceSum(%%shared, %%seq) {keepdims = 0}\n", x)
	fmt.Fprintf(e, "  %%mean = ReduceMean(%s, %%seq) {keepdims = 0}\n  %%both = Add(%%sum, %%mean)\n", x)
	e.WriteString("  %all = Add(%both, %first)\n")
	pooled := e.linear("pool", "%all", e.hidden, e.hidden)
	fmt.Fprintf(e, "  %%pooled = Tanh(%s)\n  return %s, %%pooled\n}\n", pooled, x)
	return systemtest.Inferred(t, e.String())
}

// A number that depends on the extents in another way than near the largest ones is computed by the device. As an extent
// it stands in the way of a general program.
func TestGeneralProgramOfOtherFunctions(t *testing.T) {
	text := `graph "limited" (%x: float32[batch,seq]) {
  %s = Shape(%x) {start = 1, end = 2}
  %most = const int64[1] {20}
  %n = Min(%s, %most)
`
	compile := func(model string, dims ...string) (string, error) {
		c := driver.CompileOptions{Out: filepath.Join(t.TempDir(), "lib"), Target: driver.TargetEmu, Emit: driver.EmitSources}
		c.Path, c.Dims = model, dims
		_, err := driver.Compile(&driver.Job{}, c)
		return c.Out, err
	}
	scaled := systemtest.Inferred(t, text+"  %f = Cast(%n) {to = 1}\n  %y = Mul(%x, %f)\n  return %y\n}\n")
	for _, dims := range [][]string{{"batch=2", "seq=1..32"}, {"batch=1..4", "seq=32"}, {"batch=1..4", "seq=20..32"}} {
		if _, err := compile(scaled, dims...); err != nil {
			t.Errorf("%v: %v", dims, err)
		}
	}
	cut := systemtest.Inferred(t, text+"  %zero = const int64[1] {0}\n  %one = const int64[1] {1}\n"+
		"  %y = Slice(%x, %zero, %n, %one)\n  return %y\n}\n")
	if _, err := compile(cut, "batch=2", "seq=1..32"); err == nil || !strings.Contains(err.Error(), "dynamic-") {
		t.Errorf("seq=1..32: %v, want dynamic-…", err)
	}
	for _, dims := range [][]string{{"batch=2", "seq=32"}, {"batch=1..4", "seq=20..32"}} {
		if _, err := compile(cut, dims...); err != nil {
			t.Errorf("%v: %v", dims, err)
		}
	}
}

// One compilation serves all extents of the ranges: the results are the evaluator's at extents drawn at random, and at
// those that --dim gives; others are refused with the input, the axis and the range.
func TestGeneralProgram(t *testing.T) {
	systemtest.NeedCxx(t)
	model, dir := encoder(t, 2), filepath.Join(t.TempDir(), "lib")
	c := driver.CompileOptions{Out: dir, Target: driver.TargetEmu, Emit: driver.EmitLibrary}
	c.Path, c.Dims = model, []string{"batch=1..4", "seq=1,3,16,17,32"}
	built, err := driver.Compile(&driver.Job{}, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, dims := range [][]string{nil, {"batch=4", "seq=32"}, {"batch=1", "seq=1"}} {
		o := commands.VerifyOptions{Model: model, Samples: 20, RandomSeed: 1, RandomMax: 32}
		if o.Path, o.Dims = dir, dims; dims != nil {
			o.Samples = 1
		}
		r, err := commands.Verify(&driver.Job{}, o)
		if err != nil {
			t.Fatal(err)
		}
		if !r.OK || r.Samples != o.Samples || len(r.Outputs) != 2 {
			t.Errorf("with --dim %v: %+v", dims, r)
		}
	}
	b, err := commands.RunBench(&driver.Job{}, commands.BenchOptions{Dirs: []string{dir}, Runs: 1, RandomMax: 32,
		SubjectOptions: commands.SubjectOptions{CompileOptions: driver.CompileOptions{ModelOptions: driver.ModelOptions{
			Dims: []string{"seq=3"},
		}}}})
	if err != nil || b.Libraries[0].Dims != "batch=4 seq=3" {
		t.Errorf("bench: %+v, %v", b, err)
	}
	i, err := commands.InspectLibrary(&driver.Job{}, dir)
	if err != nil || !slices.Equal(i.Dims, []string{"batch=1..4", "seq=1,3,16,17,32"}) {
		t.Errorf("inspect: %+v, %v", i, err)
	}
	refusedDims(t, built.Library)
}

// refusedDims gives extents to a library that it must refuse, and some after them that it takes.
func refusedDims(t *testing.T, file string) {
	t.Helper()
	l, err := engine.OpenLibrary(file, runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		dims [][]int64
		want string
	}{
		{[][]int64{{5, 3}, {5, 3}}, "input ids, axis 0: the extent is 5, want batch=1..4"},
		{[][]int64{{0, 3}, {0, 3}}, "input ids, axis 0: the extent is 0, want batch=1..4"},
		{[][]int64{{2, 4}, {2, 4}}, "input ids, axis 1: the extent is 4, want seq=1,3,16,17,32"},
		{[][]int64{{2, 3}, {2, 16}}, "input padding, axis 1: the extent is 16, but seq is 3 elsewhere"},
		{[][]int64{{2, 3}, {2}}, "input padding has 2 dims, got 1"},
	} {
		if err := l.SetDims(c.dims); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.dims, err)
		}
	}
	if err := l.SetDims([][]int64{{2, 3}, {2, 3}}); err != nil || !slices.Equal(l.Outputs[0].Dims, []int64{2, 3, 64}) ||
		l.Outputs[1].Bytes != 4*2*64 {
		t.Errorf("%+v, %v", l.Outputs, err)
	}
}

// What cannot be a general program is refused before anything is written, with the node and the reason.
func TestGeneralRefused(t *testing.T) {
	for _, c := range []struct{ body, dim, want string }{
		{"  %y = Trilu(%x)", "n=1..8", "no rule says which of its elements depend"},
		{"  %y = Relu(%x)", "m=1..8", "--dim m=1..8: no input has a dim of that name; there are n"},
		{"  %y = Relu(%x)", "n=-1..8", "want NAME=NUMBER, NAME=1..512 or NAME=1,4,16"},
		{"  %y = Relu(%x)", "n=8..2", "a range begins with its smallest extent"},
		{"  %y = Relu(%x)", "n=1..", "want NAME=NUMBER, NAME=1..512 or NAME=1,4,16"},
	} {
		path := systemtest.Inferred(t, "graph \"g\" (%x: float32[2,n]) {\n"+c.body+"\n  return %y\n}\n")
		o := driver.CompileOptions{Out: filepath.Join(t.TempDir(), "lib"), Target: driver.TargetEmu}
		o.Path, o.Dims = path, []string{c.dim}
		_, err := driver.Compile(&driver.Job{}, o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("--dim %s: %v", c.dim, err)
		}
		if _, err := os.Stat(o.Out); err == nil {
			t.Errorf("--dim %s: there is a library", c.dim)
		}
	}
}

// Recurrences and convolutions take each sequence and each image of a batch by itself.
func TestGeneralDigits(t *testing.T) {
	systemtest.NeedCxx(t)
	for _, name := range []string{"digits_lstm_dyn", "digits_branchy_dyn"} {
		o := commands.VerifyOptions{Samples: 4, RandomSeed: 1, RandomMax: 2}
		o.Path, o.Dims, o.Engine = "../../../testdata/models/"+name+".onnx", []string{"batch=1..4"}, engine.Emu
		r, err := commands.Verify(&driver.Job{}, o)
		if err != nil {
			t.Fatal(err)
		}
		if !r.OK {
			t.Errorf("%s: %+v", name, r.Outputs)
		}
	}
}

// Tensors are dense for the extents of a run, wherever in them the dims with ranges are.
func TestGeneralShapes(t *testing.T) {
	systemtest.NeedCxx(t)
	path := systemtest.Inferred(t, `graph "shapes" (%x: float32[a,b,3,c], %s: float32[], %k: int32[b]) {
  %flat = const int64[2] {-1, 3}
  %perm = Transpose(%x) {perm = [3, 0, 1, 2]}
  %rows = Reshape(%perm, %flat)
  %y = Relu(%rows)
  %z = Mul(%x, %s)
  %n = Add(%k, %k)
  %b = Softmax(%x)
  %scales = const float32[4] {1, 1, 2, 1}
  %tall = Resize(%x, _, %scales) {mode = "linear"}
  return %y, %z, %n, %b, %perm, %tall
}
`)
	o := commands.VerifyOptions{Samples: 20, RandomSeed: 3, RandomMax: 100}
	o.Path, o.Dims, o.Engine = path, []string{"a=1..3", "b=2,5", "c=1..7"}, engine.Emu
	r, err := commands.Verify(&driver.Job{}, o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || len(r.Outputs) != 6 {
		t.Errorf("%+v", r.Outputs)
	}
}

// A recurrence of many steps is a loop of a program whose other dims have ranges: forwards and backwards, with what it
// carries from turn to turn, and with a special program.
func TestGeneralLoops(t *testing.T) {
	systemtest.NeedCxx(t)
	t.Parallel()
	model := systemtest.Inferred(t, `graph "loops" (%x: float32[300,batch,4], %h0: float32[1,batch,8], %w: float32[1,32,4],
  %r: float32[1,32,8], %w2: float32[1,24,8], %r2: float32[1,24,8]) {
  %one = const int64[1] {1}
  %y: invalid?, %h: invalid?, %c = LSTM(%x, %w, %r) {hidden_size = 8, direction = "reverse"}
  %flat = Squeeze(%y, %one)
  %z: invalid?, %last = GRU(%flat, %w2, %r2, _, _, %h0) {hidden_size = 8}
  return %z, %h, %c, %last
}
`)
	dir := filepath.Join(t.TempDir(), "lib")
	c := driver.CompileOptions{Out: dir, Target: driver.TargetEmu, Emit: driver.EmitLibrary, Typical: []string{"batch=2"}}
	c.Path, c.Dims = model, []string{"batch=1..3"}
	if _, err := driver.Compile(&driver.Job{}, c); err != nil {
		t.Fatal(err)
	}
	plans, err := filepath.Glob(filepath.Join(dir, "*.plan.json"))
	if err != nil || len(plans) != 1 {
		t.Fatal(plans, err)
	}
	plan, err := os.ReadFile(plans[0])
	if err != nil || !strings.Contains(string(plan), `"turns"`) {
		t.Errorf("the plan has no loop: %v", err)
	}
	o := commands.VerifyOptions{Model: model, Samples: 3, RandomSeed: 2}
	o.Path = dir
	if r, err := commands.Verify(&driver.Job{}, o); err != nil || !r.OK || len(r.Outputs) != 4 {
		t.Errorf("%+v, %v", r, err)
	}
}
