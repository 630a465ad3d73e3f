package graphopt

import (
	"github.com/rammerc/rammerc/ir"
)

// ifRecipe captures x in both branches.
func ifRecipe(r *generator, x *ir.Value) {
	branch := func(name string, ops ...string) ir.Attr {
		g := &ir.Graph{Name: name}
		v := x
		for _, op := range ops {
			n := &ir.Node{Op: op, Inputs: []*ir.Value{v}}
			v = &ir.Value{Name: r.name("b"), Def: n}
			n.Outputs = []*ir.Value{v}
			g.Nodes = append(g.Nodes, n)
		}
		g.Outputs = []*ir.Value{v}
		return ir.GraphAttr(g)
	}
	cond := r.flag
	if r.random.IntN(2) == 0 {
		cond = r.constant(randomTensor(ir.Bool, nil, r.random))
	}
	r.keep(r.node("If", ir.Attrs{
		"then_branch": branch("then", "Identity", "Relu", "Relu"),
		"else_branch": branch("else", "Neg", "Neg", "Identity"),
	}, cond))
}

// loopRecipe is a loop that applies Tanh a few times, may end early, and adds up the results of all iterations.
func loopRecipe(r *generator, x *ir.Value) {
	body := &ir.Graph{Name: "body"}
	add := func(op string, in ...*ir.Value) *ir.Value {
		v := &ir.Value{Name: r.name("b")}
		v.Def = &ir.Node{Op: op, Inputs: in, Outputs: []*ir.Value{v}}
		body.Nodes = append(body.Nodes, v.Def)
		return v
	}
	counter := &ir.Value{Name: r.name("i"), DType: ir.Int64, Shape: ir.Shape{}}
	cond := &ir.Value{Name: r.name("c"), DType: ir.Bool, Shape: ir.Shape{}}
	carried := &ir.Value{Name: r.name("v"), DType: x.DType, Shape: x.Shape}
	body.Inputs = []*ir.Value{counter, cond, carried}
	next := add("Tanh", carried)
	keep := add("Identity", cond)
	if r.random.IntN(2) == 0 {
		most := &ir.Value{Name: r.name("k"), DType: ir.Int64, Shape: ir.Shape{},
			Const: ir.FromSlice(ir.Int64, []int64{1})}
		body.Consts = append(body.Consts, most)
		keep = add("Less", counter, most)
	}
	body.Outputs = []*ir.Value{keep, next, add("Neg", next)}
	trips := r.constant(ir.FromSlice(ir.Int64, []int64{int64(1 + r.random.IntN(4))}))
	yes := r.constant(ir.FromSlice(ir.Bool, []bool{true}))
	n := &ir.Node{Op: "Loop", Name: r.name("loop"), Inputs: []*ir.Value{trips, yes, x},
		Attrs: ir.Attrs{"body": ir.GraphAttr(body)}}
	last, all := &ir.Value{Name: r.name("last"), Def: n}, &ir.Value{Name: r.name("all"), Def: n}
	n.Outputs = []*ir.Value{last, all}
	r.g.Nodes = append(r.g.Nodes, n)
	if ir.InferShapes(r.g).Err() != nil {
		panic("BUG: the loop has no types")
	}
	r.keep(r.either("Add", last, r.node("ReduceSum", ir.Attrs{"keepdims": ir.IntAttr(0)}, all, r.ints(0))))
}

// cellRecipe writes out steps of an LSTM, GRU or RNN.
func cellRecipe(r *generator, x *ir.Value) {
	k, ok := extent(x, -1)
	if !ok || len(x.Shape) != 2 {
		return
	}
	kind, hidden := r.random.IntN(3), int64(3)
	gates := []int64{4, 3, 1}[kind]
	w, u, b := r.weights(k, gates*hidden), r.weights(hidden, gates*hidden), r.weights(gates*hidden)
	h := r.node("Tanh", nil, r.node("MatMul", nil, x, r.weights(k, hidden)))
	c := h
	for range 2 + 2*r.random.IntN(2) {
		h, c = r.cell(kind, hidden, r.either("Add", r.node("MatMul", nil, x, w), b), r.node("MatMul", nil, h, u), h, c)
		x = r.node("Tanh", nil, x)
	}
	r.keep(h)
}

// cell is a step of a recurrent layer, from the products with x and h on.
func (r *generator) cell(kind int, hidden int64, px, ph, h, c *ir.Value) (*ir.Value, *ir.Value) {
	part := func(v *ir.Value, gate int64) *ir.Value {
		return r.node("Slice", nil, v, r.ints(gate*hidden), r.ints((gate+1)*hidden), r.ints(1))
	}
	gate := func(op string, q int64) *ir.Value {
		return r.node(op, nil, r.either("Add", part(px, q), part(ph, q)))
	}
	switch kind {
	case 0:
		i, f, g, o := gate("Sigmoid", 0), gate("Sigmoid", 1), gate("Tanh", 2), gate("Sigmoid", 3)
		c = r.either("Add", r.either("Mul", f, c), r.either("Mul", i, g))
		return r.either("Mul", o, r.node("Tanh", nil, c)), c
	case 1:
		reset, z := gate("Sigmoid", 0), gate("Sigmoid", 1)
		n := r.node("Tanh", nil, r.either("Add", part(px, 2), r.either("Mul", reset, part(ph, 2))))
		return r.either("Add", n, r.either("Mul", z, r.node("Sub", nil, h, n))), c
	}
	return r.node("Tanh", nil, r.either("Add", px, ph)), c
}
