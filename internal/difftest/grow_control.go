package difftest

import (
	"github.com/rammerc/rammerc/ir"
)

var controlGrowers = []grower{{"If", growIf}, {"Loop", growLoop}, {"Scan", growScan}}

// body builds a small graph inside of a node. It may use values of the graph around that node.
type body struct {
	r *generator
	g *ir.Graph
}

func (r *generator) body(name string) *body { return &body{r, &ir.Graph{Name: name}} }

func (b *body) input(d ir.DType, s ir.Shape) *ir.Value {
	v := &ir.Value{Name: b.r.name("p"), DType: d, Shape: s}
	b.g.Inputs = append(b.g.Inputs, v)
	return v
}

func (b *body) constant(t *ir.Tensor) *ir.Value {
	v := &ir.Value{Name: b.r.name("k"), DType: t.DType, Shape: ir.Dims(t.Dims...), Const: t}
	b.g.Consts = append(b.g.Consts, v)
	return v
}

// node adds a node to the body. Its result has the type of its first operand until the whole graph is inferred.
func (b *body) node(op string, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	v := &ir.Value{Name: b.r.name("b"), DType: in[0].DType}
	v.Def = &ir.Node{Op: op, Name: b.r.name("n"), Attrs: attrs, Inputs: in, Outputs: []*ir.Value{v}}
	v.Def.Origins = []ir.Origin{{Name: v.Def.Name, OpType: op}}
	b.g.Nodes = append(b.g.Nodes, v.Def)
	return v
}

// change computes a value from x that has the same type and shape.
func (b *body) change(x *ir.Value) *ir.Value {
	ops := []string{"Identity", "Relu", "Neg", "Abs"}
	if x.DType.IsFloat() {
		ops = append(ops, "Tanh", "Sigmoid", "Softsign")
	}
	if x.DType == ir.Bool {
		ops = []string{"Not", "Identity"}
	}
	for range 1 + b.r.IntN(2) {
		x = b.node(oneOf(b.r, ops...), nil, x)
	}
	if x.DType != ir.Bool && b.r.one(2) {
		x = b.node(oneOf(b.r, "Add", "Sub", "Max"), nil, x, b.constant(filled(x.DType, 1)))
	}
	return x
}

func (r *generator) condition() *ir.Value {
	v := r.find(func(v *ir.Value) bool { return v.DType == ir.Bool && ir.Count(dimsOf(v)) == 1 })
	if v == nil || r.one(2) {
		return r.source(ir.Bool, nil)
	}
	return v
}

// signedValue is a value of a type that body.change can work on.
func (r *generator) signedValue(lo, hi int) *ir.Value {
	return r.of([]ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.BFloat16, ir.Int64, ir.Int32}, lo, hi)
}

func growIf(r *generator) {
	x := r.signedValue(0, 4)
	y := r.find(func(v *ir.Value) bool { return v.DType == x.DType && v.Shape.Equal(x.Shape) })
	if y == nil {
		y = x
	}
	then, other := r.body("then"), r.body("else")
	then.g.Outputs = []*ir.Value{then.change(x)}
	other.g.Outputs = []*ir.Value{other.change(y)}
	if r.one(3) { // a second result; one of the branches returns a value that it did not compute
		then.g.Outputs = append(then.g.Outputs, then.node("Mul", nil, x, y))
		other.g.Outputs = append(other.g.Outputs, other.node("Identity", nil, x))
	}
	attrs := ir.Attrs{"then_branch": ir.GraphAttr(then.g), "else_branch": ir.GraphAttr(other.g)}
	r.nodes("", "If", len(then.g.Outputs), attrs, r.condition())
}

// growLoop adds a Loop that carries a value, may use a value of the graph around it, and stacks what each iteration
// gives.
func growLoop(r *generator) {
	x := r.signedValue(0, 3)
	b := r.body("body")
	i, cond, carried := b.input(ir.Int64, ir.Shape{}), b.input(ir.Bool, ir.Shape{}), b.input(x.DType, x.Shape)
	next := b.change(carried)
	if y := r.find(func(v *ir.Value) bool { return v.DType == x.DType && v.Shape.Equal(x.Shape) }); y != nil &&
		r.one(2) {
		next = b.node("Max", nil, next, y)
	}
	goOn := cond
	if r.one(2) {
		goOn = b.node("Less", nil, i, b.constant(filled(ir.Int64, float64(r.IntN(4)))))
	}
	b.g.Outputs = []*ir.Value{goOn, next}
	outs := 1
	if r.one(2) {
		b.g.Outputs = append(b.g.Outputs, b.change(carried))
		outs = 2
	}
	trips := r.scalar(ir.Int64, float64(r.IntN(4)))
	if r.one(4) {
		trips = r.inputOf(filled(ir.Int64, float64(r.IntN(4))))
	}
	in := []*ir.Value{trips, nil, x}
	if r.one(2) {
		in[1] = r.scalar(ir.Bool, 1)
	}
	r.nodes("", "Loop", outs, ir.Attrs{"body": ir.GraphAttr(b.g)}, in...)
}

// growScan adds a Scan over the first or last axis of x that carries a state.
func growScan(r *generator) {
	x := r.signedValue(1, 3)
	axis := 0
	attrs := ir.Attrs{"num_scan_inputs": ir.IntAttr(1)}
	if r.one(3) {
		axis = rankOf(x) - 1
		attrs["scan_input_axes"] = ir.IntsAttr(int64(axis))
	}
	if r.one(3) {
		attrs["scan_input_directions"] = ir.IntsAttr(1)
	}
	if r.one(3) {
		attrs["scan_output_directions"] = ir.IntsAttr(1)
	}
	slice := append(append(ir.Shape{}, x.Shape[:axis]...), x.Shape[axis+1:]...)
	state := r.shaped(x.DType, slice.MustConsts()...)
	b := r.body("body")
	s, e := b.input(x.DType, slice), b.input(x.DType, slice)
	next := b.node("Max", nil, b.change(s), e)
	b.g.Outputs = []*ir.Value{next, b.change(e)}
	attrs["body"] = ir.GraphAttr(b.g)
	r.nodes("", "Scan", 2, attrs, state, x)
}
