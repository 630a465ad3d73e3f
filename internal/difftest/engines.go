package difftest

import (
	"bytes"
	"fmt"

	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// Engines are all engines. The outputs of each are compared with those of ir/eval on the graph as generated.
var Engines = []Engine{
	{Name: "inference", Run: each(runInference)},
	{Name: "text", Run: each(runText)},
	{Name: "graphopt", Run: each(runOptimized)},
	{Name: "graphopt twice", Run: each(runOptimizedTwice)},
	{Name: "import", Run: each(runImport)},
	{Name: "onnxruntime", Run: runRuntime, Slow: true},
	{Name: "lower", Run: each(runLower)},
	{Name: "schedule", Run: each(runSchedule)},
	{Name: "emulator", Run: runEmulator, Slow: true},
}

// runInference compares inferred types, shapes and elements with those that the reference computes.
func runInference(c *Case) Result {
	if err := ir.Verify(c.Graph); err != nil {
		return Result{Err: err}
	}
	if _, err := c.Want(); err != nil {
		return Result{Err: err}
	}
	dims := bindings(c)
	bound := ir.Clone(c.Graph)
	if err := ir.BindDims(bound, dims).Err(); err != nil {
		return Result{Err: fmt.Errorf("BindDims: %w", err)}
	}
	for i, n := range c.Graph.Nodes {
		for k, v := range n.Outputs {
			t := c.values[v]
			if t == nil {
				continue
			}
			for _, w := range []*ir.Value{v, bound.Nodes[i].Outputs[k]} {
				if err := agree(w, t, dims); err != nil {
					return Result{Err: fmt.Errorf("%s: %%%s: %w", n.Op, v.Name, err)}
				}
			}
		}
	}
	return Result{}
}

// bindings gives each symbol of the graph the extent that the inputs have there.
func bindings(c *Case) map[string]int64 {
	dims := map[string]int64{}
	for _, v := range c.Graph.Inputs {
		for i, d := range v.Shape {
			for _, name := range ir.Symbols(c.Graph) {
				if d.Equal(ir.Sym(name)) {
					dims[name] = c.Inputs[v.Name].Dims[i]
				}
			}
		}
	}
	return dims
}

// agree compares what is inferred of v, its type, shape and elements, with the tensor t that was computed. Symbols have
// the extents dims; what is still unknown then is not compared.
func agree(v *ir.Value, t *ir.Tensor, dims map[string]int64) error {
	if v.DType != t.DType {
		return fmt.Errorf("inferred type %v, computed %v", v.DType, t.DType)
	}
	if v.Shape != nil && len(v.Shape) != len(t.Dims) {
		return fmt.Errorf("inferred shape %v, computed %v", v.Shape, t.Dims)
	}
	for i, d := range v.Shape {
		if n, ok := d.Bind(dims).Const(); ok && n != t.Dims[i] {
			return fmt.Errorf("inferred shape %v, computed %v", v.Shape, t.Dims)
		}
	}
	if v.Elems == nil {
		return nil
	}
	if int64(len(v.Elems)) != t.Len() {
		return fmt.Errorf("inferred elements %v, computed %s", v.Elems, brief(t))
	}
	whole := ir.Slice[int64](convert(t, ir.Int64))
	for i, d := range v.Elems {
		if n, ok := d.Bind(dims).Const(); ok && n != whole[i] {
			return fmt.Errorf("inferred elements %v, computed %s", v.Elems, brief(t))
		}
	}
	return nil
}

// runText prints the graph, parses the text, prints that again, which must give the same text, and evaluates it.
func runText(c *Case) Result {
	var first, second bytes.Buffer
	if err := ir.Print(&first, c.Graph, ir.PrintOptions{}); err != nil {
		return Result{Err: err}
	}
	g, err := ir.ParseText("case.rir", first.Bytes(), ir.ParseOptions{})
	if err != nil {
		return Result{Err: err}
	}
	if err := ir.Print(&second, g, ir.PrintOptions{}); err != nil {
		return Result{Err: err}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		return Result{Err: fmt.Errorf("the text changes:\n%s\n%s", first.Bytes(), second.Bytes())}
	}
	if err := ir.InferShapes(g).Err(); err != nil {
		return Result{Err: err}
	}
	return c.result(g)
}

func (c *Case) result(g *ir.Graph) Result {
	out, err := c.evaluate(g)
	if err != nil {
		return Result{Err: fmt.Errorf("%w\n%s", err, g)}
	}
	return Result{Outputs: out}
}

// optimized is what graphopt makes of g. The nodes are put into a random valid order before each pass, because no pass
// may depend on their order. Every other case has images stored for convolutions of scalar arithmetic, as compilations
// in most precisions do. extent gives extents to what operators find; nil leaves these operators as they are.
func (c *Case) optimized(g *ir.Graph, extent func(string, int64) int64) (*ir.Graph, error) {
	h := ir.Clone(g)
	opt := graphopt.Options{Check: true, Seed: c.Seed, Extent: extent}
	if c.Seed%2 == 0 {
		opt.ConvolvesOnTensorCores = func(precision.Precision) bool { return false }
	}
	if err := graphopt.Run(h, opt); err != nil {
		return nil, err
	}
	return h, nil
}

func runOptimized(c *Case) Result {
	g, err := c.optimized(c.Graph, nil)
	if err != nil {
		return Result{Err: err}
	}
	return c.result(g)
}

// runOptimizedTwice optimises the optimised graph once more. That happens to users who compile a dump.
func runOptimizedTwice(c *Case) Result {
	g, err := c.optimized(c.Graph, nil)
	if err != nil {
		return Result{Err: err}
	}
	if g, err = c.optimized(g, nil); err != nil {
		return Result{Err: err}
	}
	return c.result(g)
}
