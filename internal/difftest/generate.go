package difftest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// generator builds a graph node by node. Each node is evaluated when it is added, so that one whose result is
// undefined, absurd or large can be refused. Every value in pool has a constant shape, and vals holds its tensor.
type generator struct {
	*rand.Rand
	g      *ir.Graph
	pool   []*ir.Value
	loose  []*ir.Value // values whose extents depend on data, which can only be outputs
	vals   map[*ir.Value]*ir.Tensor
	inputs map[string]*ir.Tensor

	palette []ir.DType // float types, the preferred one first
	exotic  bool       // use all operators and integer types, not only those that most models use
	wild    bool
	large   bool // some extents are larger than a tile of an rKernel
	names   int
	refused map[string]int // how often nodes were refused, by reason, for those who work on the generator
}

// Generate makes the case of a seed; the same seed gives the same case.
func Generate(seed uint64) *Case {
	r := newGenerator(seed)
	for range 2 + r.IntN(2) {
		r.input(r.palette[0], r.dims(1+r.IntN(4)))
	}
	steps := 3 + r.IntN(14)
	for tries := 0; len(r.g.Nodes) < steps && tries < 6*steps; tries++ {
		r.attempt(r.choose())
	}
	return r.finish(seed)
}

func newGenerator(seed uint64) *generator {
	r := &generator{
		Rand: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)), g: &ir.Graph{Name: "random"},
		vals: map[*ir.Value]*ir.Tensor{}, inputs: map[string]*ir.Tensor{}, refused: map[string]int{},
	}
	r.palette = []ir.DType{ir.Float32}
	if r.IntN(4) == 0 {
		floats := []ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.BFloat16}
		r.palette = []ir.DType{floats[r.IntN(4)], floats[r.IntN(4)]}
	}
	r.exotic = r.IntN(2) == 0
	r.wild, r.large = r.IntN(7) == 0, r.IntN(12) == 0
	return r
}

// choose picks what to add next: an idiom, an operator that most models use, or any operator.
func (r *generator) choose() func(*generator) {
	switch n := r.IntN(10); {
	case n < 3:
		return idioms[r.IntN(len(idioms))].grow
	case n < 6 || !r.exotic:
		return growerOf(common[r.IntN(len(common))])
	}
	return growers[r.IntN(len(growers))].grow
}

// common are the operators that most models are made of.
var common = []string{
	"Conv", "Conv", "MatMul", "MatMul", "Gemm", "Relu", "Sigmoid", "Add", "Add", "Mul", "Mul", "Sub", "Div", "MaxPool",
	"AveragePool", "GlobalAveragePool", "BatchNormalization", "Softmax", "LayerNormalization", "Concat", "Concat",
	"Reshape", "Reshape", "Transpose", "Transpose", "Slice", "Split", "Squeeze", "Unsqueeze", "Flatten", "Gather",
	"ReduceMean", "ReduceSum", "ReduceMax", "Clip", "Where", "Pad", "Resize", "Expand", "Tanh", "Gelu",
	"Identity", "Cast",
	"ConvTranspose", "Einsum", "ArgMax", "Erf", "Pow", "Sqrt", "HardSwish", "LeakyRelu", "Max", "Min", "Sum", "Exp",
}

// refusal is what a grower panics with when a node cannot be added. The panic ends in attempt.
type refusal struct{ why string }

func (r *generator) refuse(why string) { panic(refusal{why}) }

// attempt calls grow. If a node is refused, the graph becomes again what it was before.
func (r *generator) attempt(grow func(*generator)) (ok bool) {
	nodes, consts, inputs, pool, loose := len(r.g.Nodes), len(r.g.Consts), len(r.g.Inputs), len(r.pool), len(r.loose)
	defer func() {
		switch p := recover().(type) {
		case nil:
		case refusal:
			r.refused[p.why]++
			for _, v := range r.g.Inputs[inputs:] {
				delete(r.inputs, v.Name)
			}
			r.g.Nodes, r.g.Consts, r.g.Inputs, r.pool = r.g.Nodes[:nodes], r.g.Consts[:consts], r.g.Inputs[:inputs],
				r.pool[:pool]
			r.loose = r.loose[:loose]
			ok = false
		default:
			panic(p)
		}
	}()
	grow(r)
	return true
}

// finish makes the case: it chooses outputs, and turns some extents into symbols.
func (r *generator) finish(seed uint64) *Case {
	if len(r.g.Nodes) == 0 {
		r.node("Identity", nil, r.pool[0])
	}
	r.chooseOutputs()
	r.attempt((*generator).relax)
	if err := ir.InferShapes(r.g).Err(); err != nil {
		panic("BUG: " + err.Error())
	}
	r.dropUnused()
	return &Case{Name: fmt.Sprintf("seed-%d", seed), Seed: seed, Graph: r.g, Inputs: r.inputs, Wild: r.wild}
}

// chooseOutputs makes most values that no node uses outputs, and a few that nodes use.
func (r *generator) chooseOutputs() {
	uses := ir.Uses(r.g)
	for _, v := range r.pool {
		if v.Def == nil && r.IntN(40) != 0 {
			continue
		}
		if used := len(uses[v]) > 0; used && r.IntN(6) == 0 || !used && r.IntN(8) != 0 {
			r.g.Outputs = append(r.g.Outputs, v)
		}
	}
	for _, v := range r.loose {
		if r.one(2) {
			r.g.Outputs = append(r.g.Outputs, v)
		}
	}
	last := r.g.Nodes[len(r.g.Nodes)-1].Outputs
	for _, v := range last {
		if len(r.g.Outputs) == 0 && v != nil {
			r.g.Outputs = append(r.g.Outputs, v)
		}
	}
	r.Shuffle(len(r.g.Outputs), func(i, j int) {
		r.g.Outputs[i], r.g.Outputs[j] = r.g.Outputs[j], r.g.Outputs[i]
	})
}

// relax replaces an extent of the inputs by a symbol, either wherever that extent occurs or in one place. Graphs with
// empty values stay as they are: shape inference assumes that two symbols broadcast to the larger one, which is wrong
// for 0 and 1.
func (r *generator) relax() {
	if r.IntN(3) != 0 || slices.ContainsFunc(r.pool, func(v *ir.Value) bool { return r.vals[v].Len() == 0 }) {
		return
	}
	v := r.g.Inputs[r.IntN(len(r.g.Inputs))]
	if len(v.Shape) == 0 {
		return
	}
	axis := r.IntN(len(v.Shape))
	n, everywhere := r.inputs[v.Name].Dims[axis], r.IntN(2) == 0
	saved := map[*ir.Value]ir.Shape{}
	for _, w := range r.g.Inputs {
		saved[w] = w.Shape
		w.Shape = slices.Clone(w.Shape)
		for i, extent := range r.inputs[w.Name].Dims {
			if extent == n && (everywhere || w == v && i == axis) {
				w.Shape[i] = ir.Sym("n")
			}
		}
	}
	if ir.InferShapes(r.g).Err() != nil || ir.Verify(r.g) != nil {
		for w, s := range saved {
			w.Shape = s
		}
		r.refuse("no symbol fits")
	}
}

// dropUnused removes constants that no node reads and, most of the time, inputs that no node reads.
func (r *generator) dropUnused() {
	uses := ir.Uses(r.g)
	unused := func(v *ir.Value) bool { return len(uses[v]) == 0 }
	r.g.Consts = slices.DeleteFunc(r.g.Consts, unused)
	if r.IntN(10) == 0 {
		return
	}
	r.g.Inputs = slices.DeleteFunc(r.g.Inputs, func(v *ir.Value) bool {
		if unused(v) {
			delete(r.inputs, v.Name)
		}
		return unused(v)
	})
}

func (r *generator) name(base string) string {
	r.names++
	return fmt.Sprint(base, r.names)
}

// input adds a graph input with random elements.
func (r *generator) input(d ir.DType, dims []int64) *ir.Value {
	return r.inputOf(r.tensor(d, dims, r.wild))
}

func (r *generator) inputOf(t *ir.Tensor) *ir.Value {
	v := &ir.Value{Name: r.name("x"), DType: t.DType, Shape: ir.Dims(t.Dims...)}
	r.g.Inputs = append(r.g.Inputs, v)
	r.inputs[v.Name], r.vals[v] = t, t
	r.pool = append(r.pool, v)
	return v
}

// constant adds a constant.
func (r *generator) constant(t *ir.Tensor) *ir.Value {
	v := &ir.Value{Name: r.name("c"), DType: t.DType, Shape: ir.Dims(t.Dims...), Const: t}
	r.g.Consts = append(r.g.Consts, v)
	r.vals[v] = t
	return v
}

func (r *generator) ints(v ...int64) *ir.Value {
	return r.constant(ir.FromSlice(ir.Int64, slices.Clone(v), int64(len(v))))
}

// node adds a node and returns its first output.
func (r *generator) node(op string, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	return r.nodes("", op, 1, attrs, in...)[0]
}

// nodes adds a node with the given number of outputs. It refuses nodes that are not valid or whose results are not
// tame.
func (r *generator) nodes(domain, op string, outs int, attrs ir.Attrs, in ...*ir.Value) []*ir.Value {
	n := &ir.Node{Op: op, Domain: domain, Name: r.name("n"), Attrs: attrs, Inputs: in}
	n.Origins = []ir.Origin{{Name: n.Name, OpType: op}}
	for range outs {
		n.Outputs = append(n.Outputs, &ir.Value{Name: r.name("v"), Def: n})
	}
	return r.addNode(n)
}

func (r *generator) addNode(n *ir.Node) []*ir.Value {
	r.g.Nodes = append(r.g.Nodes, n)
	if err := ir.InferShapes(r.g).Err(); err != nil {
		r.refuse(n.Op + ": " + err.Error())
	}
	outs, err := r.compute(n)
	if err != nil {
		r.refuse(n.Op + ": eval: " + err.Error())
	}
	in := make([]*ir.Tensor, len(n.Inputs))
	for i, v := range n.Inputs {
		in[i] = r.vals[v]
	}
	if undefined(n, in) {
		r.refuse(n.Op + ": undefined")
	}
	for i, v := range n.Outputs {
		if v == nil {
			continue
		}
		if outs[i].Len() > r.limit() {
			r.refuse("large")
		}
		if !r.wild && !tame(n.Op, outs[i]) {
			r.refuse(n.Op + ": not tame")
		}
		r.vals[v] = outs[i]
		if _, fixed := v.Shape.Consts(); fixed {
			r.pool = append(r.pool, v)
		} else if v.Shape != nil {
			r.loose = append(r.loose, v)
		}
	}
	return n.Outputs
}

// compute evaluates the node that was added last.
func (r *generator) compute(n *ir.Node) ([]*ir.Tensor, error) {
	opts := eval.Options{Workers: 1, MaxBytes: maxEvalBytes}
	if len(n.Subgraphs()) == 0 {
		in := make([]*ir.Tensor, len(n.Inputs))
		for i, v := range n.Inputs {
			in[i] = r.vals[v]
		}
		return eval.NodeWith(n, in, opts)
	}
	got := map[*ir.Value]*ir.Tensor{} // graphs inside of the node may use any value
	opts.Observe = func(v *ir.Value, t *ir.Tensor) { got[v] = t }
	if _, err := eval.Run(r.g, r.inputs, opts); err != nil {
		return nil, err
	}
	outs := make([]*ir.Tensor, len(n.Outputs))
	for i, v := range n.Outputs {
		outs[i] = got[v]
	}
	return outs, nil
}
