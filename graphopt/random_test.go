package graphopt

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

var seeds = flag.Uint64("seeds", 300, "how many random graphs to try")

// TestRandomGraphs runs all passes on random graphs, which contain the expanded forms that the passes
// look for, and compares the results after every pass.
func TestRandomGraphs(t *testing.T) {
	changes := map[string]int{}
	for seed := range *seeds {
		if !t.Run(fmt.Sprint("seed", seed), func(t *testing.T) { testRandomGraph(t, seed, changes) }) {
			return
		}
	}
	// The generator makes no recurrent operators, no weights so large that they would be quantised, which does change
	// results (TestQuantizeWeights), and none that are, nor other numbers of 8 bits (testdata/recognize-quantized,
	// testdata/fuse-quantized-norm, testdata/fuse-dynamic-quantization). Without Options.Extent nothing is counted
	// (testdata/count-extents). Loops are short (TestRepeatedBodies). Operands that say axes or shapes are constants
	// (testdata/read-operands, internal/difftest). No loop pastes masks (testdata/paste-masks).
	for _, name := range []string{"expand-recurrent", "quantize-weights", "recognize-quantized", "split-dequantized",
		"fuse-quantized-norm", "fuse-dynamic-quantization", "count-extents", "read-operands", "open-cells",
		RepeatSteps, "paste-masks"} {
		changes[name] = 1
	}
	for _, p := range Passes {
		if changes[p.Name] == 0 {
			t.Errorf("pass %s never changed a random graph: the generator does not test it", p.Name)
		}
	}
}

func testRandomGraph(t *testing.T, seed uint64, changes map[string]int) {
	before := randomGraph(t, seed)
	if err := ir.Verify(before); err != nil {
		t.Fatalf("the generator made an invalid graph: %v\n%s", err, before)
	}
	after := ir.Clone(before)
	stored, tolerance := precision.FP32, 1e-4
	if seed%3 == 0 {
		stored = precision.FP16
	}
	err := Run(after, Options{Check: true, Seed: seed, Precision: precision.All(stored), After: func(step Step) error {
		if !step.Changed {
			return nil
		}
		changes[step.Pass.Name]++
		if step.Pass.Name == "narrow-storage" {
			tolerance = 3e-2 // a few dozen roundings to 11 bits
		}
		sameResults(t, before, step.Graph, seed, tolerance)
		if t.Failed() {
			return fmt.Errorf("wrong after pass %s:\n%s\nbefore:\n%s", step.Pass.Name, step.Graph, before)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRunIsDeterministic compares the text of two runs on copies of a graph.
func TestRunIsDeterministic(t *testing.T) {
	for seed := range uint64(20) {
		g := randomGraph(t, seed)
		h := ir.Clone(g)
		for _, x := range []*ir.Graph{g, h} {
			if err := Run(x, Options{}); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := printed(t, g), printed(t, h); a != b {
			t.Fatalf("seed %d: two runs differ:\n%s\n%s", seed, a, b)
		}
	}
}

// TestSimplificationEnds runs the simplification passes three times. The third run must change nothing.
func TestSimplificationEnds(t *testing.T) {
	simplify := Passes[:slices.IndexFunc(Passes, func(p Pass) bool { return p.Name == "fold-affine" })+4]
	for seed := range uint64(40) {
		g := randomGraph(t, seed)
		if err := runPasses(g, simplify, Options{}); err != nil {
			t.Fatal(err)
		}
		if err := runPasses(g, simplify, Options{}); err != nil {
			t.Fatal(err)
		}
		again := printed(t, g)
		if err := runPasses(g, simplify, Options{}); err != nil {
			t.Fatal(err)
		}
		if got := printed(t, g); got != again {
			t.Errorf("seed %d: a third round of simplification changes\n%s\ninto\n%s", seed, again, got)
		}
	}
}

// generator grows a random graph; every value in pool is float32 and its shape is known.
type generator struct {
	t      *testing.T
	g      *ir.Graph
	random *rand.Rand
	pool   []*ir.Value
	flag   *ir.Value // bool[]
	n      int
}

func randomGraph(t *testing.T, seed uint64) *ir.Graph {
	t.Helper()
	r := &generator{t: t, g: &ir.Graph{Name: "random"}, random: rand.New(rand.NewPCG(seed, 1))}
	batch := ir.D(2)
	if r.random.IntN(3) == 0 {
		batch = ir.Sym("n")
	}
	r.input("x", ir.Float32, ir.Shape{batch, ir.D(3), ir.D(4), ir.D(5)})
	r.input("y", ir.Float32, ir.Shape{batch, ir.D(4), ir.D(6)})
	r.input("z", ir.Float32, ir.Shape{batch, ir.D(4)})
	r.pool = slices.Clone(r.g.Inputs)
	r.input("flag", ir.Bool, ir.Shape{})
	r.flag = r.g.Inputs[3]
	for range 6 + r.random.IntN(14) {
		recipes[r.random.IntN(len(recipes))](r, r.pick())
	}
	r.g.Outputs = append(r.g.Outputs, r.pool[len(r.pool)-1])
	for range 3 {
		if v := r.pick(); !slices.Contains(r.g.Outputs, v) {
			r.g.Outputs = append(r.g.Outputs, v)
		}
	}
	return r.g
}

func (r *generator) input(name string, d ir.DType, s ir.Shape) {
	r.g.Inputs = append(r.g.Inputs, &ir.Value{Name: name, DType: d, Shape: s})
}

// pick prefers recent values, so that chains of nodes are formed.
func (r *generator) pick() *ir.Value {
	if n := len(r.pool); n > 3 && r.random.IntN(3) > 0 {
		return r.pool[n-1-r.random.IntN(3)]
	}
	return r.pool[r.random.IntN(len(r.pool))]
}

func (r *generator) name(base string) string {
	r.n++
	return fmt.Sprint(base, r.n)
}

// node adds a node and returns its first result, typed.
func (r *generator) node(op string, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	v := &ir.Value{Name: r.name("v")}
	n := &ir.Node{Op: op, Name: v.Name, Attrs: attrs, Inputs: in, Outputs: []*ir.Value{v}}
	n.Origins = []ir.Origin{{Name: v.Name, OpType: op}}
	v.Def = n
	r.g.Nodes = append(r.g.Nodes, n)
	if err := ir.InferShapes(r.g).Err(); err != nil {
		r.t.Fatalf("the generator made %s with %v: %v", op, in, err)
	}
	return v
}

func (r *generator) constant(t *ir.Tensor) *ir.Value {
	v := &ir.Value{Name: r.name("c"), DType: t.DType, Shape: ir.Dims(t.Dims...), Const: t}
	r.g.Consts = append(r.g.Consts, v)
	return v
}

// number is a scalar constant, of shape [] or [1].
func (r *generator) number(f float64) *ir.Value {
	if r.random.IntN(2) == 0 {
		return r.constant(filled(ir.Float32, f))
	}
	return r.constant(filled(ir.Float32, f, 1))
}

func (r *generator) ints(v ...int64) *ir.Value {
	return r.constant(ir.FromSlice(ir.Int64, v, int64(len(v))))
}

func (r *generator) weights(dims ...int64) *ir.Value {
	return r.constant(randomTensor(ir.Float32, dims, r.random))
}

// keep adds v to the pool unless it is large.
func (r *generator) keep(v *ir.Value) {
	n := int64(1)
	for _, d := range v.Shape {
		if c, ok := d.Const(); ok {
			n *= c
		}
	}
	if n <= 2000 && v.DType == ir.Float32 {
		r.pool = append(r.pool, v)
	}
}

// extent returns the constant extent of v's axis, counted from the end if negative.
func extent(v *ir.Value, axis int) (int64, bool) {
	if axis < 0 {
		axis += len(v.Shape)
	}
	if axis < 0 || axis >= len(v.Shape) {
		return 0, false
	}
	return v.Shape[axis].Const()
}

// either returns a node of a commutative operator with its operands in random order.
func (r *generator) either(op string, a, b *ir.Value) *ir.Value {
	if r.random.IntN(2) == 0 {
		a, b = b, a
	}
	return r.node(op, nil, a, b)
}
