package difftest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// slowCases is how many of TestGraphs' cases slow engines get.
const slowCases = 100

// seeds are those of TestGraphs: from <= seed < to. With DIFFTEST_SEEDS=FROM:TO in the environment they are those, and
// slow engines get all of them.
func seeds(t *testing.T) (from, to uint64) {
	to = 400
	if testing.Short() {
		to = 60
	}
	if text := os.Getenv("DIFFTEST_SEEDS"); text != "" {
		if n, err := fmt.Sscanf(text, "%d:%d", &from, &to); n != 2 || err != nil {
			t.Fatalf("DIFFTEST_SEEDS is %q, want FROM:TO", text)
		}
	}
	return from, to
}

// TestGraphs compares all engines on random graphs.
func TestGraphs(t *testing.T) {
	from, to := seeds(t)
	var cases []*Case
	for seed := from; seed < to; seed++ {
		cases = append(cases, Generate(seed))
	}
	compare(t, cases)
}

// TestStored compares compiled programs with the evaluator on random graphs whose values are stored in 16 bits.
func TestStored(t *testing.T) {
	from, to := seeds(t)
	var cases []*Case
	for seed := from; seed < min(to, from+100); seed++ {
		p := []precision.Precision{precision.FP16, precision.BF16}[seed%2]
		c, err := Generate(seed).Stored(p)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		cases = append(cases, c)
	}
	compareWith(t, cases, Engines[slices.IndexFunc(Engines, func(e Engine) bool { return e.Name == "emulator" })])
}

// TestReproducers compares all engines on graphs for which an engine was wrong once.
func TestReproducers(t *testing.T) {
	files, err := filepath.Glob("testdata/*.rir")
	if err != nil {
		t.Fatal(err)
	}
	var cases []*Case
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Parse(filepath.Base(file), src)
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	compare(t, cases)
}

// compare runs all engines on the cases. It makes cases with differences small before it reports them, and logs how
// many cases could not be judged and why.
func compare(t *testing.T, cases []*Case) { compareWith(t, cases, Engines...) }

func compareWith(t *testing.T, cases []*Case, engines ...Engine) {
	for _, e := range engines {
		cases := cases
		if e.Slow && len(cases) > slowCases && os.Getenv("DIFFTEST_SEEDS") == "" {
			cases = cases[:slowCases]
		}
		t.Run(e.Name, func(t *testing.T) {
			if e.Slow && testing.Short() {
				t.Skip("slow: compiles or starts other programs")
			}
			skips := map[string]int{}
			for i, res := range e.Run(cases) {
				v := Judge(cases[i], res)
				if v.Failure != nil {
					t.Error(report(cases[i], e, v.Failure))
				}
				if v.Skip != "" {
					skips[v.Skip]++
				}
			}
			logCounts(t, len(cases), skips)
		})
	}
}

func logCounts(t *testing.T, cases int, skips map[string]int) {
	total := 0
	var lines []string
	for why, n := range skips {
		total += n
		lines = append(lines, fmt.Sprintf("%6d %s", n, why))
	}
	sort.Sort(sort.Reverse(sort.StringSlice(lines)))
	t.Logf("%d of %d cases judged", cases-total, cases)
	for _, line := range lines {
		t.Log(line)
	}
}

// report makes a failing case smaller for 20 s, or as long as DIFFTEST_SHRINK says, and returns it as text for
// testdata.
func report(c *Case, e Engine, failure error) string {
	fails := func(c *Case) bool { return Judge(c, e.Run([]*Case{c})[0]).Failure != nil }
	limit := 20 * time.Second
	if d, err := time.ParseDuration(os.Getenv("DIFFTEST_SHRINK")); err == nil {
		limit = d
	}
	small := Shrink(c, fails, time.Now().Add(limit))
	why := Judge(small, e.Run([]*Case{small})[0]).Failure
	if why == nil {
		why = failure
	}
	return fmt.Sprintf("%s: %s\n%s", c.Name, clip(why.Error()), small.Text())
}

func clip(s string) string {
	if len(s) > 2500 {
		return s[:2500] + "…"
	}
	return s
}

// FuzzGraphs compares the engines that are not slow on the graph of any seed.
func FuzzGraphs(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		c := Generate(seed)
		for _, e := range Engines {
			if e.Slow {
				continue
			}
			if v := Judge(c, e.Run([]*Case{c})[0]); v.Failure != nil {
				t.Errorf("%s: %s", e.Name, report(c, e, v.Failure))
			}
		}
	})
}

// TestGenerateIsDeterministic compares the text of two runs.
func TestGenerateIsDeterministic(t *testing.T) {
	for seed := range uint64(40) {
		if a, b := Generate(seed).Text(), Generate(seed).Text(); a != b {
			t.Fatalf("seed %d gives two graphs:\n%s\n%s", seed, a, b)
		}
	}
}

// TestCoverage: every operator of the table and every idiom can become part of a valid graph that can be evaluated.
func TestCoverage(t *testing.T) {
	grows := func(grow func(*generator)) bool {
		for seed := range uint64(60) {
			r := newGenerator(seed)
			r.node("Relu", nil, r.input(ir.Float32, []int64{2, 1, 4}))
			for range 3 {
				if r.attempt(grow) {
					return true
				}
			}
		}
		return false
	}
	rows := map[string]bool{}
	for _, g := range growers {
		rows[g.op] = true
		if !grows(g.grow) {
			t.Errorf("nothing grows by %s", g.op)
		}
	}
	for _, i := range idioms {
		if !grows(i.grow) {
			t.Errorf("nothing grows by the idiom %q", i.name)
		}
	}
	// Fused nodes are made by passes only, and so are these, where dims are symbols: tests of decoders compare them.
	// Declared and Require come with operands of results whose shapes are declared: ONNX's backend tests have those.
	// RepeatBegin and RepeatEnd are made of recurrences that are longer than those that grow: tests of the driver have
	// such. A Reference asks Python: scripts of cmd/rammerc have some.
	open := []string{"Extent", "Append", "WriteRows", "Declared", "Require", "RepeatBegin", "RepeatEnd", "Reference"}
	for _, op := range ir.Ops {
		// What computes with strings needs their list, and has no compiled form to compare.
		if !rows[op.Name] && op.Kind != ir.KindFused && !ir.TextOp(op.Name) && !(op.Domain == ir.InternalDomain && slices.Contains(open, op.Name)) {
			t.Errorf("no row of growers has %s", op.Name)
		}
	}
}

// TestText: a case that is printed and parsed prints the same text again, inputs included.
func TestText(t *testing.T) {
	for seed := range uint64(60) {
		c := Generate(seed)
		d, err := Parse("case.rir", []byte(c.Text()))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, c.Text())
		}
		if c.Text() != d.Text() {
			t.Errorf("seed %d: the text changes:\n%s\n%s", seed, c.Text(), d.Text())
		}
	}
}

// TestShrink: if an engine fails whenever there is a Softmax, a failing case shrinks to a single Softmax.
func TestShrink(t *testing.T) {
	fails := func(c *Case) bool {
		return slices.ContainsFunc(c.Graph.Nodes, func(n *ir.Node) bool { return n.Is("Softmax") })
	}
	seen := 0
	for seed := uint64(0); seen < 8; seed++ {
		c := Generate(seed).Without(func(*ir.Node) bool { return false }) // removes nodes that nothing uses
		if c == nil || !fails(c) {
			continue
		}
		seen++
		small := Shrink(c, fails, time.Now().Add(time.Minute))
		if len(small.Graph.Nodes) != 1 || !fails(small) {
			t.Errorf("seed %d shrinks to\n%s", seed, small.Text())
		}
	}
}

// TestNoise: cases whose results depend on rounding are told from others.
func TestNoise(t *testing.T) {
	for _, test := range []struct {
		body      string
		got       float32
		sensitive bool
	}{
		{"%y: float32[1] = Floor(%x)", 2, true}, // x is 3
		{"%h: float32[1] = Mul(%x, %x)\n%y: float32[1] = Floor(%h)", 8, true},
		{"%y: float32[1] = Sub(%x, %x)", 1e-3, false},
		{"%y: float32[1] = Neg(%x)", -3.01, false},
		{"%k = const float32[1] {3}\n%y: float32[1] = Sub(%x, %k)", 1e-6, true},
	} {
		src := "//input %x = const float32[1] {3}\ngraph \"g\" (%x: float32[1]) {\n" + test.body + "\nreturn %y\n}\n"
		c, err := Parse("test.rir", []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]*ir.Tensor{"y": ir.FromSlice(ir.Float32, []float32{test.got}, 1)}
		v := Judge(c, Result{Outputs: got})
		if sensitive := v.Failure == nil; sensitive != test.sensitive {
			t.Errorf("%s = %v: %+v", test.body, test.got, v)
		}
	}
}

// TestJudge: the reference itself passes, missing outputs do not.
func TestJudge(t *testing.T) {
	c := Generate(3)
	want, err := c.Want()
	if err != nil {
		t.Fatal(err)
	}
	if v := Judge(c, Result{Outputs: want}); v.Failure != nil || v.Skip != "" {
		t.Errorf("the reference differs from itself: %+v", v)
	}
	if v := Judge(c, Result{Outputs: map[string]*ir.Tensor{}}); v.Failure == nil {
		t.Error("missing outputs are no difference")
	}
}
