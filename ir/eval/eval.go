// Package eval computes graphs the slow, obviously right way. It is the definition that every faster
// engine is compared with, and the constant folder's arithmetic.
//
// Floating-point arithmetic happens in float64 whatever the tensors hold, and each element is rounded
// once, when it is stored; sums therefore accumulate in float64. Integers wrap around as in Go.
// Operators are rows of one table (evaluators); an operator's function sees a call: the node, its
// input tensors and the scope that subgraphs look captured values up in.
//
// Results do not depend on Options.Workers: the work is split over outputs, never over a sum.
package eval

import (
	"fmt"
	"runtime"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// Options tune RunWith; the zero value is what Run uses.
type Options struct {
	// Observe is called with every value that a node defines, right after it is computed, in order;
	// nodes of subgraphs included. The tensor must not be changed.
	Observe func(v *ir.Value, t *ir.Tensor)
	// Workers bounds how many goroutines compute at once; 0 means GOMAXPROCS.
	Workers int
	// Progress is called after each node of the outermost graph.
	Progress func(done, total int)
	// MaxBytes refuses to make a tensor that is larger; 0 means 16 GiB. Graphs whose extents are
	// computed from data (ConstantOfShape, Range, …) could otherwise ask for any amount.
	MaxBytes int64
}

const defaultMaxBytes = 16 << 30

// Run computes g's outputs, keyed by value name, from inputs keyed the same way. The results may share
// memory with inputs and constants, so they must not be written to.
func Run(g *ir.Graph, inputs map[string]*ir.Tensor) (map[string]*ir.Tensor, error) {
	return RunWith(g, inputs, Options{})
}

// RunWith is Run with options. Errors that belong to a node are *NodeError.
func RunWith(g *ir.Graph, inputs map[string]*ir.Tensor, opt Options) (map[string]*ir.Tensor, error) {
	r := newRunner(opt)
	s := &scope{vals: map[*ir.Value]*ir.Tensor{}, dims: map[string]int64{}}
	in, err := bindInputs(g, inputs, s.dims)
	if err != nil {
		return nil, err
	}
	r.progress = opt.Progress
	outs, err := r.graph(g, s, in)
	if err != nil {
		return nil, err
	}
	res := make(map[string]*ir.Tensor, len(outs))
	for i, v := range g.Outputs {
		res[v.Name] = outs[i]
	}
	return res, nil
}

// Node computes one node's outputs, one per entry of n.Outputs (nil for outputs nobody asked for).
// in[i] is the tensor of input i, nil where it is absent. Subgraphs of n may use constants of the
// graphs around n, but no other value of theirs.
func Node(n *ir.Node, in []*ir.Tensor) ([]*ir.Tensor, error) {
	return NodeWith(n, in, Options{})
}

// NodeWith is Node with options.
func NodeWith(n *ir.Node, in []*ir.Tensor, opt Options) ([]*ir.Tensor, error) {
	for i, t := range in {
		if t == nil {
			continue
		}
		if err := wellFormed(t); err != nil {
			return nil, nodeError(n, fmt.Errorf("input %d: %w", i, err))
		}
	}
	s := &scope{vals: map[*ir.Value]*ir.Tensor{}, dims: map[string]int64{}}
	return newRunner(opt).node(n, s, in)
}

func newRunner(opt Options) *runner {
	if opt.Workers <= 0 {
		opt.Workers = runtime.GOMAXPROCS(0)
	}
	if opt.MaxBytes <= 0 {
		opt.MaxBytes = defaultMaxBytes
	}
	return &runner{opt: opt, ops: evaluators, plans: map[*ir.Graph]*plan{}}
}

// Supports reports whether the engine has an evaluator for the operator.
func Supports(domain, op string) bool { return evaluators[opKey{domain, op}] != nil }

// bindInputs checks the inputs against g's and binds the symbolic dims that occur in their shapes.
// It returns the tensors in the order of g.Inputs.
func bindInputs(g *ir.Graph, inputs map[string]*ir.Tensor, dims map[string]int64) ([]*ir.Tensor, error) {
	var problems []string
	known := map[string]bool{}
	ts := make([]*ir.Tensor, len(g.Inputs))
	for i, v := range g.Inputs {
		known[v.Name] = true
		t := inputs[v.Name]
		if t == nil {
			problems = append(problems, fmt.Sprintf("input %q is missing", v.Name))
			continue
		}
		if err := wellFormed(t); err != nil {
			problems = append(problems, fmt.Sprintf("input %q: %v", v.Name, err))
			continue
		}
		ts[i] = t
		bindSymbols(v.Shape, t.Dims, dims)
	}
	for i, v := range g.Inputs {
		if ts[i] == nil {
			continue
		}
		if err := matches(v, ts[i], dims); err != nil {
			problems = append(problems, fmt.Sprintf("input %q: %v", v.Name, err))
		}
	}
	var unknown []string
	for name := range inputs {
		if !known[name] {
			unknown = append(unknown, fmt.Sprintf("no input is called %q", name))
		}
	}
	sort.Strings(unknown)
	if problems = append(problems, unknown...); len(problems) == 0 {
		return ts, nil
	}
	names := make([]string, len(g.Inputs))
	for i, v := range g.Inputs {
		names[i] = v.Name
	}
	return nil, fmt.Errorf("%s; the inputs are %s", strings.Join(problems, "; "), strings.Join(names, ", "))
}

// bindSymbols gives the dims of s that are nothing but a symbol the extents found; the first one wins,
// matches finds contradictions afterwards.
func bindSymbols(s ir.Shape, found []int64, dims map[string]int64) {
	if len(s) != len(found) {
		return
	}
	for i, d := range s {
		set := map[string]bool{}
		d.Symbols(set)
		for name := range set {
			if _, bound := dims[name]; len(set) == 1 && !bound && d.Equal(ir.Sym(name)) {
				dims[name] = found[i]
			}
		}
	}
}

// matches checks t against v's element type and the extents of v's shape that are known once dims are bound.
func matches(v *ir.Value, t *ir.Tensor, dims map[string]int64) error {
	if v.DType != ir.Invalid && v.DType != t.DType {
		return fmt.Errorf("element type is %v, want %v", t.DType, v.DType)
	}
	if v.Shape == nil {
		return nil
	}
	ok := len(v.Shape) == len(t.Dims)
	for i := 0; ok && i < len(t.Dims); i++ {
		want, known := v.Shape[i].Bind(dims).Const()
		ok = !known || want == t.Dims[i]
	}
	if !ok {
		return fmt.Errorf("dims are %v, want %v", t.Dims, boundShape(v.Shape, dims))
	}
	return nil
}

func boundShape(s ir.Shape, dims map[string]int64) ir.Shape {
	b := make(ir.Shape, len(s))
	for i, d := range s {
		b[i] = d.Bind(dims)
	}
	return b
}

// wellFormed checks that t's Data is of t's element type and holds as many elements as t's dims say.
func wellFormed(t *ir.Tensor) error {
	n := int64(1)
	for _, d := range t.Dims {
		if d < 0 {
			return fmt.Errorf("dims %v: negative extent", t.Dims)
		}
		if d != 0 && n > (1<<62)/d {
			return fmt.Errorf("dims %v: too many elements", t.Dims)
		}
		n *= d
	}
	e, ok := elemsOf(t)
	if !ok {
		return fmt.Errorf("element type %v does not fit Go type %T", t.DType, t.Data)
	}
	if int64(e.len()) != n {
		return fmt.Errorf("%d elements for dims %v", e.len(), t.Dims)
	}
	return nil
}
