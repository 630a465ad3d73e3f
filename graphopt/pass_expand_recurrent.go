package graphopt

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// expandRecurrent replaces LSTM, GRU and RNN by one cell for each direction and time step.
//
// Requires: constant shapes; nodes with an empty X stay as they are. Leaves: cells, which are nodes of their own, so
// that steps of different layers and directions can run side by side. A cell reads its time step as a View of X, and Y
// is a Concat of the steps.
func expandRecurrent(c *Context, g *ir.Graph) (bool, error) {
	var out []*ir.Node
	changed := false
	for _, n := range g.Nodes {
		spec, ok := recurrentSpecs[n.Op]
		if !ok || n.Domain != "" || !constantShapes(n) || ir.Count(n.Inputs[0].Shape.MustConsts()) == 0 {
			out = append(out, n)
			continue
		}
		r := &recurrence{maker: newMaker(g, c.names, n), n: n, spec: spec}
		r.expand()
		out = append(out, r.nodes...)
		changed = true
	}
	g.Nodes = out
	return changed, nil
}

// recurrentSpec says in what the three operators differ.
type recurrentSpec struct {
	cell        string
	gates       int64
	activations []string // defaults of one direction
	copied      []string // attributes that the cells get
	hasC        bool     // there is a cell state
}

var recurrentSpecs = map[string]recurrentSpec{
	"LSTM": {"LSTMCell", 4, []string{"Sigmoid", "Tanh", "Tanh"}, []string{"clip", "input_forget"}, true},
	"GRU":  {"GRUCell", 3, []string{"Sigmoid", "Tanh"}, []string{"clip", "linear_before_reset"}, false},
	"RNN":  {"RNNCell", 1, []string{"Tanh"}, []string{"clip"}, false},
}

// constantShapes reports whether all inputs and outputs of n have constant shapes.
func constantShapes(n *ir.Node) bool {
	for _, list := range [][]*ir.Value{n.Inputs, n.Outputs} {
		for _, v := range list {
			if v == nil {
				continue
			}
			if _, ok := v.Shape.Consts(); !ok {
				return false
			}
		}
	}
	return true
}

// recurrence expands one node.
type recurrence struct {
	*maker
	n                           *ir.Node
	spec                        recurrentSpec
	steps, batch, input, hidden int64
	dirs                        int64         // number of directions
	batchFirst                  bool          // the attribute layout is 1
	y                           [][]*ir.Value // [step][direction], each [batch, hidden]
	lastH, lastC                []*ir.Value   // [direction], the states after the last step
}

// expand emits the cells of all directions and the nodes that join their results.
func (r *recurrence) expand() {
	x := r.n.Inputs[0].Shape.MustConsts()
	rw := r.n.Inputs[2].Shape.MustConsts()
	r.batchFirst = r.n.Int("layout", 0) == 1
	r.steps, r.batch, r.input = x[0], x[1], x[2]
	if r.batchFirst {
		r.steps, r.batch = x[1], x[0]
	}
	r.dirs, r.hidden = rw[0], rw[2]
	r.y = make([][]*ir.Value, r.steps)
	for t := range r.y {
		r.y[t] = make([]*ir.Value, r.dirs)
	}
	activations, alphas, betas := splitActivations(r.n, r.spec.activations, int(r.dirs))
	for d := int64(0); d < r.dirs; d++ {
		attrs := ir.Attrs{"activations": {Kind: ir.AttrStrings, Strs: activations[d]}}
		if len(alphas[d]) > 0 {
			attrs["activation_alpha"] = ir.FloatsAttr(alphas[d]...)
		}
		if len(betas[d]) > 0 {
			attrs["activation_beta"] = ir.FloatsAttr(betas[d]...)
		}
		for _, name := range r.spec.copied {
			if a, ok := r.n.Attrs[name]; ok {
				attrs[name] = a
			}
		}
		r.direction(d, attrs)
	}
	r.results()
}

// direction emits the cells of direction d.
func (r *recurrence) direction(d int64, attrs ir.Attrs) {
	n := r.n
	w := r.part(n.Input(1), d, "W", r.spec.gates*r.hidden, r.input)
	rr := r.part(n.Input(2), d, "R", r.spec.gates*r.hidden, r.hidden)
	bias := r.part(n.Input(3), d, "B", 2*r.spec.gates*r.hidden)
	h := r.state(n.Input(5), d, "h0")
	var c, peephole *ir.Value
	if r.spec.hasC {
		c = r.state(n.Input(6), d, "c0")
		peephole = r.part(n.Input(7), d, "P", 3*r.hidden)
	}
	for s := int64(0); s < r.steps; s++ {
		t := s
		if d == 1 || n.Str("direction", "forward") == "reverse" {
			t = r.steps - 1 - s
		}
		h, c = r.cell(d, t, s == r.steps-1, attrs, w, rr, bias, h, c, peephole)
	}
	r.lastH, r.lastC = append(r.lastH, h), append(r.lastC, c)
}

// cell emits time step t of direction d and returns its states; last says that these are results of the layer. Where
// step t is beyond the end of a sequence, the cell leaves the state as it is. The reverse direction comes to these
// steps first, and then the initial state stays until t < sequence_lens; so one rule serves both directions.
func (r *recurrence) cell(d, t int64, last bool, attrs ir.Attrs, w, rr, bias, h, c, peephole *ir.Value) (*ir.Value,
	*ir.Value) {
	x := r.step(t)
	attrs = attrs.Clone()
	attrs["step"] = ir.IntAttr(t)
	name := fmt.Sprintf("d%d.t%d", d, t)
	dt := x.DType
	shape := []int64{r.batch, r.hidden}
	lens := r.n.Input(4)
	next := r.value(name+".h", dt, ir.Dims(shape...))
	// The step's row of Y and the next state differ where a sequence has ended: there Y is 0. If both are results of
	// the layer they are separate values even if they are always equal, so that the cell can write each into its place.
	var y *ir.Value
	if r.n.Output(0) != nil && (lens != nil || last && r.n.Output(1) != nil) {
		y = r.value(name+".y", dt, ir.Dims(shape...))
	}
	r.y[t][d] = next
	if y != nil {
		r.y[t][d] = y
	}
	if r.spec.hasC {
		nextC := r.value(name+".c", dt, ir.Dims(shape...))
		r.node(name, ir.InternalDomain, r.spec.cell, attrs,
			[]*ir.Value{x, h, c, w, rr, bias, peephole, lens}, []*ir.Value{next, nextC, y})
		return next, nextC
	}
	r.node(name, ir.InternalDomain, r.spec.cell, attrs,
		[]*ir.Value{x, h, w, rr, bias, lens}, []*ir.Value{next, y})
	return next, nil
}

// step is X at time t, [batch, input].
func (r *recurrence) step(t int64) *ir.Value {
	x := r.n.Inputs[0]
	offset, stride := t*r.batch*r.input, r.input
	if r.batchFirst {
		offset, stride = t*r.input, r.steps*r.input
	}
	return r.view(fmt.Sprintf("x%d", t), x, offset, []int64{r.batch, r.input}, []int64{stride, 1})
}

// part is the part of a weight for direction d: a constant if the weight is one, otherwise a view of it.
func (r *recurrence) part(v *ir.Value, d int64, what string, dims ...int64) *ir.Value {
	if v == nil {
		return nil
	}
	size := ir.Count(dims)
	if v.Const == nil {
		return r.view(fmt.Sprintf("%s%d", what, d), v, d*size, dims, rowMajor(dims))
	}
	return r.constant(fmt.Sprintf("%s%d", what, d), sliceConst(v.Const, d*size, dims))
}

// state is the initial state of direction d, [batch, hidden]; without one it is zero.
func (r *recurrence) state(v *ir.Value, d int64, what string) *ir.Value {
	dims := []int64{r.batch, r.hidden}
	if v == nil {
		return r.constant(fmt.Sprintf("%s%d", what, d), ir.NewTensor(r.n.Inputs[0].DType, dims...))
	}
	offset, stride := d*r.batch*r.hidden, r.hidden
	if r.batchFirst {
		offset, stride = d*r.hidden, r.dirs*r.hidden
	}
	return r.view(fmt.Sprintf("%s%d", what, d), v, offset, dims, []int64{stride, 1})
}

// results defines the node's outputs from the cells' results.
func (r *recurrence) results() {
	if y := r.n.Output(0); y != nil {
		r.defineY(y)
	}
	for i, last := range [][]*ir.Value{r.lastH, r.lastC} {
		out := r.n.Output(1 + i)
		if out == nil {
			continue
		}
		shape, axis := []int64{1, r.batch, r.hidden}, int64(0)
		if r.batchFirst {
			shape, axis = []int64{r.batch, 1, r.hidden}, 1
		}
		r.join(fmt.Sprintf("last%d", i), out, last, shape, axis)
	}
}

// defineY joins the directions of each step, then the steps.
func (r *recurrence) defineY(y *ir.Value) {
	full := y.Shape.MustConsts()
	stepAxis, dirAxis := int64(0), int64(1)
	if r.batchFirst {
		stepAxis, dirAxis = 1, 2
	}
	one := append([]int64{}, full...)
	one[stepAxis] = 1
	single := append([]int64{}, one...)
	single[dirAxis] = 1
	rows := make([]*ir.Value, r.steps)
	for t := range rows {
		rows[t] = r.value(fmt.Sprintf("y%d", t), y.DType, ir.Dims(one...))
		r.join(fmt.Sprintf("y%d", t), rows[t], r.y[t], single, dirAxis)
	}
	r.join("Y", y, rows, one, stepAxis)
}

// join concatenates parts, each viewed as shape, into out along axis.
func (r *recurrence) join(what string, out *ir.Value, parts []*ir.Value, shape []int64, axis int64) {
	views := make([]*ir.Value, len(parts))
	for i, p := range parts {
		views[i] = p
		if !p.Shape.Equal(ir.Dims(shape...)) {
			views[i] = r.view(fmt.Sprintf("%s.part%d", what, i), p, 0, shape, rowMajor(shape))
		}
	}
	if len(views) == 1 && views[0].Def.IsInternal("View") && views[0] != out {
		// a single part: out is the view itself
		views[0].Def.Outputs[0], out.Def = out, views[0].Def
		return
	}
	r.node(what, "", "Concat", ir.Attrs{"axis": ir.IntAttr(axis)}, views, []*ir.Value{out})
}

// sliceConst is the part of a constant from element from on, with the given dims. The elements are shared.
func sliceConst(t *ir.Tensor, from int64, dims []int64) *ir.Tensor {
	n := ir.Count(dims)
	out := &ir.Tensor{DType: t.DType, Dims: append([]int64{}, dims...)}
	switch d := t.Data.(type) {
	case []float32:
		out.Data = d[from : from+n : from+n]
	case []float64:
		out.Data = d[from : from+n : from+n]
	case []uint16:
		out.Data = d[from : from+n : from+n]
	default:
		panic("BUG: recurrent weight of type " + t.DType.String())
	}
	return out
}

// activationParams says how many parameters alpha and beta an activation has.
var activationParams = map[string][2]int{
	"Affine": {1, 1}, "LeakyRelu": {1, 0}, "ThresholdedRelu": {1, 0}, "ScaledTanh": {1, 1},
	"HardSigmoid": {1, 1}, "Elu": {1, 0},
}

// splitActivations returns the activations of each direction and their parameters. A list that is too short is
// completed with defaults.
func splitActivations(n *ir.Node, defaults []string, dirs int) (acts [][]string, alphas, betas [][]float64) {
	all := n.Attrs["activations"].Strs
	for len(all) < dirs*len(defaults) {
		all = append(append([]string{}, all...), defaults[len(all)%len(defaults)])
	}
	alpha, beta := n.Attrs["activation_alpha"].Floats, n.Attrs["activation_beta"].Floats
	for d := 0; d < dirs; d++ {
		mine := all[d*len(defaults) : (d+1)*len(defaults)]
		var a, b []float64
		for _, name := range mine {
			p := activationParams[name]
			a, alpha = takeFloats(a, alpha, p[0])
			b, beta = takeFloats(b, beta, p[1])
		}
		acts, alphas, betas = append(acts, mine), append(alphas, a), append(betas, b)
	}
	return acts, alphas, betas
}

// takeFloats appends the first n numbers of src to dst and returns both dst and the rest of src.
func takeFloats(dst, src []float64, n int) (taken, rest []float64) {
	n = min(n, len(src))
	return append(dst, src[:n]...), src[n:]
}
