package graphopt

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/precision"
)

var update = flag.Bool("update", false, "rewrite the expected graphs in testdata")

func TestConstraints(t *testing.T) {
	first := map[string]int{}
	for i, p := range Passes {
		if p.Fn == nil || p.Why == "" {
			t.Errorf("pass %q has no function or no reason", p.Name)
		}
		if _, seen := first[p.Name]; !seen {
			first[p.Name] = i
		}
	}
	for _, c := range Constraints {
		before, ok1 := first[c.Before]
		after, ok2 := first[c.After]
		switch {
		case !ok1 || !ok2:
			t.Errorf("constraint %q before %q names an unknown pass", c.Before, c.After)
		case before >= after:
			t.Errorf("%q must come before %q: %s", c.Before, c.After, c.Why)
		}
	}
}

func passNamed(name string) *Pass {
	i := slices.IndexFunc(Passes, func(p Pass) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &Passes[i]
}

// TestPassFiles runs each pass on the text files in the folder of its name. It compares the result with the one in the
// file, and checks that both graphs compute the same.
func TestPassFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.ToSlash(strings.TrimPrefix(file, "testdata")), func(t *testing.T) {
			pass := passNamed(filepath.Base(filepath.Dir(file)))
			if pass == nil || filepath.Ext(file) != ".txtar" {
				t.Fatalf("no pass owns this file")
			}
			testPassFile(t, file, pass)
		})
	}
}

func testPassFile(t *testing.T, file string, pass *Pass) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	in, out := section(archive, "in.rir"), section(archive, "out.rir")
	if in == nil || out == nil && !*update {
		t.Fatal("the file needs the sections in.rir and out.rir")
	}
	before, err := ir.ParseText(file, in.Data, ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.InferShapes(before).Err(); err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(before); err != nil {
		t.Fatal(err)
	}
	after := ir.Clone(before)
	opts, tolerance := Options{
		Extent:         func(_ string, most int64) int64 { return most },
		NormalisesRows: func(precision.Precision) bool { return true },
	}, 2e-5
	if pass.Name == "narrow-storage" {
		opts.Precision, tolerance = precision.All(precision.FP16), 2e-3
	}
	if rules := section(archive, "precision"); rules != nil {
		opts.Precision, tolerance = choiceOf(t, string(rules.Data)), 2e-2
	}
	if err := runPasses(after, []Pass{*pass}, opts); err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(after); err != nil {
		t.Errorf("the pass left an invalid graph: %v", err)
	}
	sameResults(t, before, exact(after), 1, tolerance)
	text := printed(t, after)
	if *update {
		rewrite(t, file, archive, text)
		return
	}
	if text != string(out.Data) {
		t.Errorf("got:\n%s\nwant:\n%s", text, out.Data)
	}
}

// exact is g with results of counted operators that have no more places than are used, so that other results are those of
// the graph before they were counted.
func exact(g *ir.Graph) *ir.Graph {
	g = ir.Clone(g)
	for _, n := range g.Nodes {
		if n.Counted() {
			delete(n.Attrs, "extent")
		}
	}
	ir.InferShapes(g)
	return g
}

func section(a *txtar.Archive, name string) *txtar.File {
	for i := range a.Files {
		if a.Files[i].Name == name {
			return &a.Files[i]
		}
	}
	return nil
}

// choiceOf reads the program's precision and rules for nodes, one a line.
func choiceOf(t *testing.T, text string) (c precision.Choice) {
	t.Helper()
	for i, line := range strings.Fields(text) {
		r, err := precision.ParseRule("program=" + line)
		if i > 0 {
			r, err = precision.ParseRule(line)
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			c.Program = r.Precision
		} else {
			c.Rules = append(c.Rules, r)
		}
	}
	return c
}

func rewrite(t *testing.T, file string, a *txtar.Archive, out string) {
	t.Helper()
	if f := section(a, "out.rir"); f != nil {
		f.Data = []byte(out)
	} else {
		a.Files = append(a.Files, txtar.File{Name: "out.rir", Data: []byte(out)})
	}
	if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

func printed(t *testing.T, g *ir.Graph) string {
	t.Helper()
	var b strings.Builder
	if err := ir.Print(&b, g, ir.PrintOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sameResults evaluates both graphs on the same random inputs, with symbols bound to small extents.
func sameResults(t *testing.T, before, after *ir.Graph, seed uint64, tolerance float64) {
	t.Helper()
	inputs := randomInputs(before, rand.New(rand.NewPCG(seed, 7)))
	want, err := eval.Run(before, inputs, eval.Options{})
	if err != nil {
		t.Fatalf("evaluating the graph before: %v", err)
	}
	got, err := eval.Run(after, inputs, eval.Options{})
	if err != nil {
		t.Fatalf("evaluating the graph after: %v\n%s", err, after)
	}
	if len(got) != len(want) {
		t.Errorf("%d outputs, want %d", len(got), len(want))
	}
	for i, v := range before.Outputs {
		if diff := tensorDiff(got[v.Name], want[v.Name], tolerance); diff != "" {
			t.Errorf("output %d (%%%s): %s", i, v.Name, diff)
		}
	}
}

func randomInputs(g *ir.Graph, random *rand.Rand) map[string]*ir.Tensor {
	bind := map[string]int64{}
	for i, name := range ir.Symbols(g) {
		bind[name] = int64(2 + i%3)
	}
	inputs := map[string]*ir.Tensor{}
	for _, v := range g.Inputs {
		var dims []int64
		for _, d := range v.Shape {
			n, _ := d.Bind(bind).Const()
			dims = append(dims, n)
		}
		inputs[v.Name] = randomTensor(v.DType, dims, random)
	}
	return inputs
}

// randomTensor draws floats around 0 and, for other types, small non-negative numbers.
func randomTensor(d ir.DType, dims []int64, random *rand.Rand) *ir.Tensor {
	data := make([]float64, ir.Count(dims))
	for i := range data {
		if d.IsFloat() {
			data[i] = random.NormFloat64()
		} else {
			data[i] = float64(random.IntN(2))
		}
	}
	return narrow(ir.FromSlice(ir.Float64, data, dims...), d)
}

// tensorDiff describes an element that differs by more than the tolerance, relative to the largest finite element. It is
// "" if there is none.
func tensorDiff(got, want *ir.Tensor, tolerance float64) string {
	if got == nil || want == nil {
		return "an output is missing"
	}
	if got.DType != want.DType || !slices.Equal(got.Dims, want.Dims) {
		return fmt.Sprintf("type %v%v, want %v%v", got.DType, got.Dims, want.DType, want.Dims)
	}
	a, b := numbers(got), numbers(want)
	scale := 1e-2
	for _, x := range b {
		if !math.IsInf(x, 0) && !math.IsNaN(x) {
			scale = max(scale, math.Abs(x))
		}
	}
	for i := range a {
		same := a[i] == b[i] || math.IsNaN(a[i]) && math.IsNaN(b[i]) || math.Abs(a[i]-b[i]) <= tolerance*scale
		if !same {
			return fmt.Sprintf("element %d is %v, want %v", i, a[i], b[i])
		}
	}
	return ""
}

// TestFoldingRevealsMistakes: folding makes extents known that inference could not follow, here because they were
// computed in floating-point numbers. What is then wrong is a mistake of the model, and is reported as such.
func TestFoldingRevealsMistakes(t *testing.T) {
	g, err := ir.ParseText("g.rir", []byte(`graph "g" (%x: float32[1,1,4], %w: float32[1,1,9]) {
  %amount = const float32[1] {1.5}
  %none = const int64[1] {0}
  %up: float32[1] = Ceil(%amount)
  %n: int64[1] = Cast(%up) {to = 7}
  %pads: int64[6] = Concat(%none, %none, %n, %none, %none, %n) {axis = 0}
  %p: float32[1,1,unk__0] = Pad(%x, %pads) {mode = "reflect"}
  %y: float32? = Conv(%p, %w) name "too wide"
  return %y
}
`), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = Run(g, Options{})
	if found := diag.All(err); len(found) != 1 || found[0].ID != "bad-shape" || found[0].Node != "too wide" {
		t.Errorf("got %v, want that the window of the Conv is too wide", err)
	}
}

// Loops that would not end when they are written out stay as they are, at once, and with what is nested in them.
func TestUnrollingHasABudget(t *testing.T) {
	text := "graph \"g\" (%x: float32[4]) {\n  %trips = const int64[] {10}\n  %yes = const bool[] {true}\n  %y: float32[4] = " +
		nestedLoops(8) + "\n  return %y\n}\n"
	g, err := ir.ParseText("loops.rir", []byte(text), ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(g, Options{}); err != nil {
		t.Fatal(err)
	}
	if n := nodesOf(g); n > 100 {
		t.Errorf("there are %d nodes, of 10⁸ that unrolling would make", n)
	}
}

// nestedLoops are so many loops within each other.
func nestedLoops(depth int) string {
	if depth == 0 {
		return "Sin(%x)"
	}
	x := "%x"
	inner := nestedLoops(depth - 1)
	n := strconv.Itoa(depth)
	return "Loop(%trips, %yes, " + x + ") {body = graph \"b" + n + "\" (%i" + n + ": int64[], %c" + n + ": bool[], %a" + n +
		": float32[4]) {\n  %o" + n + ": float32[4] = " + inner + "\n  return %c" + n + ", %o" + n + "\n}}"
}

// A Sum of thousands of operands becomes a tree, which computes the same.
func TestSumOfManyOperands(t *testing.T) {
	for _, op := range []string{"Sum", "Mean", "Max", "Min"} {
		const n = 16*61 + 1 // the last part of the tree has one operand
		var in, add []string
		for i := range n {
			add = append(add, fmt.Sprintf("  %%c%d = const float32[1] {%d}\n  %%a%d: float32[1] = Mul(%%x, %%c%d)\n", i, i, i, i))
			in = append(in, fmt.Sprintf("%%a%d", i))
		}
		text := "graph \"g\" (%x: float32[1]) {\n" + strings.Join(add, "") + "  %y: float32[1] = " + op + "(" +
			strings.Join(in, ", ") + ")\n  return %y\n}\n"
		g, err := ir.ParseText("wide.rir", []byte(text), ir.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := Run(g, Options{Disable: []string{"fuse"}}); err != nil {
			t.Fatal(err)
		}
		for _, m := range g.Nodes {
			if len(m.Inputs) > mostOperands {
				t.Errorf("%s has %d operands", m.Op, len(m.Inputs))
			}
		}
		out, err := eval.Run(g, map[string]*ir.Tensor{"x": ir.FromSlice(ir.Float32, []float32{2}, 1)}, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]float32{"Sum": 2 * n * (n - 1) / 2, "Mean": n - 1, "Max": 2 * (n - 1), "Min": 0}[op]
		if got := ir.Slice[float32](out["y"])[0]; got != want {
			t.Errorf("%s: %v, want %v", op, got, want)
		}
	}
}
