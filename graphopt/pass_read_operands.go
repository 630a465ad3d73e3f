package graphopt

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// readOperands lets a run read operands that say along which axes, how often or how far an operator works, where only a
// run knows their values. It does so where the shape of the result is known in spite of that: it does not depend on the
// operand, or the model declares it (rammer.Declared). There are three ways:
//
//	the result says it   Expand(x, shape), declared [3,4]    Expand(x, [3,4])
//	few values fit it    ReduceSum(x, axes), declared [3,2]  a ReduceSum along axis 1 and one along axis 2, of which a
//	                                                         rammer.Select takes what axes says
//	indices are data     Slice(x, starts, ends)              Gather(x, start + step·[0,1,2,…]) along each axis
//
// An input of the model from which several operators compute a declared shape becomes a constant (operands_declared.go).
// A run in which the operand has another value than the shape allows fails with a message, by a rammer.Require that
// compares them. So no result is wrong. Operands that follow from what a run finds (NonZero and its like) are left to
// count-extents, because then the shapes that exporters declare are often those of an example.
//
// Requires: constants folded. Leaves: no rammer.Declared; operators whose results have unknown shapes stay as they are.
func readOperands(c *Context, g *ir.Graph) (bool, error) {
	if g != c.Root {
		return false, nil
	}
	bound := bindShapes(c, g)
	if bound {
		if err := ir.InferShapes(g).Err(); err != nil {
			return true, err
		}
	}
	r := &operandReader{symbols: map[string]int64{}, whole: map[*ir.Value][]int64{}}
	for _, n := range g.Nodes {
		if n.IsInternal("Declared") {
			r.declare(n)
		}
	}
	read := c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		r.decomposer = decomposer{s, n}
		if n.IsInternal("Declared") {
			s.forward(n.Inputs[0])
			return
		}
		if rule := operandRules[n.Op]; n.Domain == "" && rule != nil && r.open() {
			rule(r)
		}
	})
	return bound || read, nil
}

// operandRules are the operators with such operands. A function leaves its node as it is where it can do nothing.
var operandRules = map[string]func(r *operandReader){
	"AffineGrid":      (*operandReader).affineGridSize,
	"BlackmanWindow":  (*operandReader).resultShape,
	"CenterCropPad":   (*operandReader).croppedShape,
	"Col2Im":          (*operandReader).imageShape,
	"ConstantOfShape": (*operandReader).resultShape,
	"CumProd":         (*operandReader).oneAxis,
	"CumSum":          (*operandReader).oneAxis,
	"DFT":             (*operandReader).transformAxis,
	"Expand":          (*operandReader).expandedShape,
	"HammingWindow":   (*operandReader).resultShape,
	"HannWindow":      (*operandReader).resultShape,
	"Loop":            (*operandReader).tripCount,
	"MaxUnpool":       (*operandReader).unpooledShape,
	"MelWeightMatrix": (*operandReader).melWeights,
	"OneHot":          (*operandReader).depth,
	"Pad":             (*operandReader).pads,
	"Range":           (*operandReader).progression,
	"ReduceL1":        (*operandReader).reducedAxes,
	"ReduceL2":        (*operandReader).reducedAxes,
	"ReduceLogSum":    (*operandReader).reducedAxes,
	"ReduceLogSumExp": (*operandReader).reducedAxes,
	"ReduceMax":       (*operandReader).reducedAxes,
	"ReduceMean":      (*operandReader).reducedAxes,
	"ReduceMin":       (*operandReader).reducedAxes,
	"ReduceProd":      (*operandReader).reducedAxes,
	"ReduceSum":       (*operandReader).reducedAxes,
	"ReduceSumSquare": (*operandReader).reducedAxes,
	"Reshape":         (*operandReader).reshapedShape,
	"Resize":          (*operandReader).resizeOperands,
	"STFT":            (*operandReader).frames,
	"Slice":           (*operandReader).slice,
	"Split":           (*operandReader).splitSizes,
	"Squeeze":         (*operandReader).squeezedAxes,
	"Tile":            (*operandReader).repeats,
	"Trilu":           (*operandReader).diagonal,
	"Unsqueeze":       (*operandReader).squeezedAxes,
}

// operandReader is the state of readOperands; the decomposer is for the visited node.
type operandReader struct {
	decomposer
	symbols map[string]int64      // unknown extents that a declared shape tells
	whole   map[*ir.Value][]int64 // declared shapes, by value
	found   map[*ir.Value]bool    // whether what a run finds decides a value
}

// declare takes the extents that n tells. An operator between n and the operator that needs them has passed on the symbol:
// in Log(ReduceSum(x, axes)) both results have the same unknown extents.
func (r *operandReader) declare(n *ir.Node) {
	v, dims := n.Inputs[0], n.Ints("dims")
	r.whole[v] = dims
	for i, d := range v.Shape {
		if name, one := d.Symbol(); one {
			r.symbols[name] = dims[i]
		}
	}
}

// dims is the shape of a value, if inference or a declaration knows it.
func (r *operandReader) dims(v *ir.Value) (dims []int64, ok bool) {
	if v == nil {
		return nil, false
	}
	if dims, ok = r.whole[v]; ok || v.Shape == nil {
		return dims, ok
	}
	bound := make(ir.Shape, len(v.Shape))
	for i, d := range v.Shape {
		bound[i] = d.Bind(r.symbols)
	}
	return bound.Consts()
}

// result is the shape of the node's first result.
func (r *operandReader) result() ([]int64, bool) { return r.dims(r.n.Output(0)) }

// open reports whether an operand that says a shape is not constant, although its own shape and those of the others are,
// and nothing that a run finds decides it. Operands without elements become constants.
func (r *operandReader) open() bool {
	open := false
	for i, v := range r.n.Inputs {
		if v == nil || v.Const != nil {
			continue
		}
		dims, ok := v.Shape.Consts()
		if !ok {
			return false
		}
		if !slices.Contains(ir.ShapePorts[r.n.Op], i) {
			continue
		}
		if ir.Count(dims) == 0 {
			r.setInput(i, r.constant(r.n.Name+"/none", ir.NewTensor(v.DType, dims...)))
			continue
		}
		if r.isFound(v) {
			return false
		}
		open = true
	}
	return open
}

// isFound reports whether v is computed from what operators find whose results have as many elements as they find.
func (r *operandReader) isFound(v *ir.Value) bool {
	if r.found == nil {
		r.found = map[*ir.Value]bool{}
	}
	if known, ok := r.found[v]; ok || v.Def == nil {
		return known
	}
	n := v.Def
	found := finders[n.Op] != nil && !takers[n.Op] || n.Is("Compress") || len(n.Subgraphs()) > 0
	for _, in := range n.Inputs {
		found = found || in != nil && r.isFound(in)
	}
	r.found[v] = found
	return found
}

// setInput gives the node another input.
func (r *operandReader) setInput(i int, v *ir.Value) {
	r.sweep.count(r.n.Inputs[i:i+1], -1)
	r.n.Inputs = slices.Clone(r.n.Inputs)
	r.n.Inputs[i] = v
	r.sweep.count(r.n.Inputs[i:i+1], 1)
	r.changed = true
}

// list is an operand as int64[n].
func (r *operandReader) list(i int) *ir.Value { return r.reshape(r.int64s(r.n.Inputs[i]), -1) }

func (r *operandReader) int64s(v *ir.Value) *ir.Value { return r.cast(v, ir.Int64) }

func (r *operandReader) cast(v *ir.Value, t ir.DType) *ir.Value {
	if v.DType == t {
		return v
	}
	return r.op("Cast", ir.Attrs{"to": ir.IntAttr(t.ONNX())}, v)
}

// length is how many elements an operand has.
func (r *operandReader) length(i int) int64 { return ir.Count(r.n.Inputs[i].Shape.MustConsts()) }

// total is the sum of all elements of a tensor of any rank, as int64[1]; of bools the number of those that are true.
func (r *operandReader) total(v *ir.Value) *ir.Value {
	flat := r.reshape(r.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Int64.ONNX())}, v), -1)
	return r.op("ReduceSum", nil, flat, r.ints(0))
}

// not is how many of the elements of bools are false, as int64[1].
func (r *operandReader) not(v *ir.Value) *ir.Value { return r.total(r.op("Not", nil, v)) }

// require lets a run fail in which one of the numbers, each int64[1], is not 0; none of them is ever negative. port is the
// operand that is wrong then.
func (r *operandReader) require(port int, numbers ...*ir.Value) {
	sum := numbers[0]
	for _, x := range numbers[1:] {
		sum = r.op("Add", nil, sum, x)
	}
	shape, _ := r.result()
	what := r.n.Inputs[port].Name
	if r.isInput(r.n.Inputs[port]) {
		what = "input " + what
	}
	at := r.n.Name
	if len(r.n.Origins) > 0 {
		at = r.n.Origins[0].Name
	}
	v := r.op("Require", ir.Attrs{"message": ir.StringAttr(fmt.Sprintf(
		"%s: its value does not suit %s %s, whose result has the shape %v", what, r.n.Op, at, shape))}, sum)
	v.Def.Domain = ir.InternalDomain
}

// trial is the shape of the node's first result where operands have certain values; ok is false where the node refuses
// them.
func (r *operandReader) trial(with map[int][]int64) (dims []int64, ok bool) {
	g := &ir.Graph{Name: "trial"}
	n := &ir.Node{Op: r.n.Op, Name: r.n.Name, Attrs: r.n.Attrs}
	for i, v := range r.n.Inputs {
		if v == nil {
			n.Inputs = append(n.Inputs, nil)
			continue
		}
		in := &ir.Value{Name: fmt.Sprintf("in%d", i), DType: v.DType, Shape: v.Shape, Const: v.Const}
		if list, has := with[i]; has {
			t := ir.FromSlice(ir.Int64, list, v.Shape.MustConsts()...)
			in.Const = convert(t, v.DType)
		}
		if in.Const == nil {
			g.Inputs = append(g.Inputs, in)
		} else {
			g.Consts = append(g.Consts, in)
		}
		n.Inputs = append(n.Inputs, in)
	}
	for i := range r.n.Outputs {
		n.Outputs = append(n.Outputs, &ir.Value{Name: fmt.Sprintf("out%d", i), Def: n})
	}
	g.Nodes = []*ir.Node{n}
	if ir.InferShapes(g).Err() != nil || n.Outputs[0] == nil {
		return nil, false
	}
	return n.Outputs[0].Shape.Consts()
}

// fits reports whether the node's first result has its known shape where operands have certain values.
func (r *operandReader) fits(with map[int][]int64) bool {
	want, ok := r.result()
	got, known := r.trial(with)
	return ok && known && slices.Equal(got, want)
}

// fix makes an operand a constant, and lets runs fail in which one of its elements is another, except those at the places
// of free, which do not matter.
func (r *operandReader) fix(port int, values []int64, free ...int) {
	v := r.n.Inputs[port]
	if v.Const != nil {
		return
	}
	differ := r.op("Not", nil, r.op("Equal", nil, r.list(port), r.ints(values...)))
	if len(free) > 0 {
		matters := make([]int64, len(values))
		for i := range matters {
			matters[i] = 1
		}
		for _, i := range free {
			matters[i] = 0
		}
		differ = r.op("And", nil, differ, r.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Bool.ONNX())}, r.ints(matters...)))
	}
	r.require(port, r.total(differ))
	t := ir.FromSlice(ir.Int64, values, v.Shape.MustConsts()...)
	r.setInput(port, r.constant(r.n.Name+"/fixed", convert(t, v.DType)))
}

// variant is what the node computes where an operand has a certain value; match is a bool[1] that is true then.
type variant struct{ match, result *ir.Value }

// choose lets the run take the variant whose operand it has, and fail if it has none of them.
func (r *operandReader) choose(port int, variants []variant) {
	none := r.ints(1)
	for _, v := range variants {
		none = r.op("Sub", nil, none, r.total(v.match))
	}
	r.require(port, none)
	last := variants[len(variants)-1].result
	for i := len(variants) - 2; i > 0; i-- {
		last = r.op("Select", nil, variants[i].match, variants[i].result, last)
		last.Def.Domain = ir.InternalDomain
	}
	if len(variants) == 1 {
		r.replace("Identity", nil, last)
		return
	}
	r.replace("Select", nil, variants[0].match, variants[0].result, last)
	r.n.Domain = ir.InternalDomain
}

// with adds a node as the visited one is, but with constants as operands, and returns its result.
func (r *operandReader) with(operands map[int][]int64) *ir.Value {
	in := slices.Clone(r.n.Inputs)
	for i, list := range operands {
		v := r.n.Inputs[i]
		in[i] = r.constant(r.n.Name+"/variant", convert(ir.FromSlice(ir.Int64, list, v.Shape.MustConsts()...), v.DType))
	}
	return r.op(r.n.Op, r.n.Attrs, in...)
}

// same is a bool[1] that is true where operands have certain values.
func (r *operandReader) same(operands map[int][]int64) *ir.Value {
	differ := r.ints(0)
	for i := range r.n.Inputs {
		if list, has := operands[i]; has {
			differ = r.op("Add", nil, differ, r.not(r.op("Equal", nil, r.list(i), r.ints(list...))))
		}
	}
	return r.op("Equal", nil, differ, r.ints(0))
}
