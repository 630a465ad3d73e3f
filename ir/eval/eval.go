// Package eval computes graphs slowly and in an obviously correct way. It defines the results with which every faster
// engine is compared, and it does the arithmetic of constant folding. Its formulas are written from the ONNX standard
// and share no code with the compiled kernels.
//
// Floating-point arithmetic is done in float64, whatever type the tensors have. Each element is rounded once, when it
// is stored; so sums are accumulated in float64. Integers wrap around as in Go.
//
// A graph is run node by node. Operators are rows of one table (evaluators). The function of an operator gets a call:
// the node with its attributes, the tensors of its inputs, and the scope in which subgraphs find the values that they
// capture. It returns the tensors of its outputs:
//
//	func transpose(c *call) []*ir.Tensor {
//		t := c.arg(0)                      // an input that must be there
//		perm := c.Attr("perm").Ints        // an attribute or its default
//		…                                  // fail("…") ends the call with an error of the node
//		return one(permuted(c, t, perm))
//	}
//
// Results do not depend on Options.Workers: parallel work is divided by output elements, and a sum is never divided.
package eval

import (
	"fmt"
	"runtime"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/ir"
)

// Options tune Run. The zero value suits most callers.
type Options struct {
	// Observe is called with every value that a node defines, directly after the node was computed, also for the nodes
	// of subgraphs. It must not change the tensor.
	Observe func(v *ir.Value, t *ir.Tensor)
	// Workers bounds how many goroutines compute at once; 0 means GOMAXPROCS.
	Workers int
	// Progress is called after each node of the outermost graph.
	Progress func(done, total int)
	// MaxBytes is the most that all live values may take together, constants excepted; a node whose results would take
	// more fails. 0 means limits.Memory(). Without a limit, graphs that compute extents from data (ConstantOfShape,
	// Range, …), or that double a tensor again and again, could ask for any amount of memory.
	MaxBytes int64
	// MaxNodes is how many nodes may be run in all, those of each iteration of a loop among them; 0 means a million. A few
	// nested loops would not come to an end in any lifetime.
	MaxNodes int64
	// Rounding emulates engines that round what they multiply or store to fewer digits than float32 has, by node. Nodes
	// of subgraphs and of Fused bodies are looked up like others.
	Rounding map[*ir.Node]Rounding
	// Strings is what the numbers of strings stand for. Operators that make new strings add them to it, and fail without.
	Strings *ir.Strings
	// Known are values that have been computed already. A node all of whose outputs are known is not run: so a graph can
	// be run again from the node on that has changed.
	Known map[*ir.Value]*ir.Tensor
}

const defaultMaxNodes = 1 << 20

// Run computes g's outputs from its inputs; both are keyed by the names of values. The results may share memory with
// inputs and constants, so they must not be written to. The error says which input or which node is wrong; errors that
// belong to a node are *NodeError.
func Run(g *ir.Graph, inputs map[string]*ir.Tensor, opt Options) (map[string]*ir.Tensor, error) {
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

// Node computes the outputs of one node. The result has an entry for each entry of n.Outputs, nil where that is nil.
// in[i] is the tensor of input i, nil where the node leaves it out. Subgraphs of n may use constants of the graphs
// around n, but no other values of these.
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
		opt.MaxBytes = limits.Memory()
	}
	if opt.MaxNodes <= 0 {
		opt.MaxNodes = defaultMaxNodes
	}
	return &runner{opt: opt, ops: evaluators, plans: map[*ir.Graph]*plan{},
		turns: map[*ir.Node]*turns{}}
}

// Supports reports whether the engine has an evaluator for the operator.
func Supports(domain, op string) bool { return evaluators[opKey{domain, op}] != nil }

// bindInputs checks the given tensors against g's inputs and binds the symbolic dims in the inputs' shapes to the
// extents of the tensors. It returns the tensors in the order of g.Inputs. The error lists all problems.
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

// bindSymbols binds those dims of s that are a single symbol to the extents of a tensor. A symbol that is bound already
// keeps its value; matches finds contradictions afterwards.
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

// matches returns an error unless t has v's element type, and those extents of v's shape that are known once dims are
// bound.
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

// wellFormed returns an error unless t.Data has the Go type for t's element type and as many elements as t's dims say.
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
