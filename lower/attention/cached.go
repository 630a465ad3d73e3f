package attention

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// appended are keys and values that lie apart from those before them, and the factors of the rotary embedding of the
// queries and of these keys; cos.Buf is nil without it.
type appended struct {
	k, v, cos, sin roperator.View // [b0][b1][b2][row][col]
	past           int64          // keys before them
	states         bool           // those are in states, and are there before a run begins
	by             *batchList     // says of which batch entries keys are; nil if they are of their own
}

// Cached lowers a Fused node with the anchor CachedAttention.
func Cached(b *build.Builder, g *build.Group) error {
	n, err := readCachedBody(g)
	if err != nil {
		return err
	}
	shape := b.Extents(g.Outputs[0], build.ForTiles)
	if ir.Count(shape) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	a, err := n.read(b, shape)
	if err != nil {
		return err
	}
	a.lower(b, g, shape, g.Outputs[0].DType)
	return nil
}

// cachedBody are the values outside of the body of a CachedAttention, and its operators that say what is done to them.
type cachedBody struct {
	attention                      *ir.Node
	q, pastK, k, pastV, v          *ir.Value
	mask, cos, sin                 *ir.Value // nil if there is none
	shapeQ, shapeK, shapeV, shapeM []int64   // of the operands of attention
}

// readCachedBody finds the values in the form that the pass fuse-cached-attention leaves.
func readCachedBody(g *build.Group) (*cachedBody, error) {
	c := &cachedBody{}
	for _, n := range g.Node.Attrs["body"].G.Nodes {
		if n.IsInternal("Attention") {
			c.attention = n
		}
	}
	if c.attention == nil {
		return nil, fmt.Errorf("its body has no attention")
	}
	in := c.attention.Inputs
	keys, values := unshaped(in[1]).Def, unshaped(in[2]).Def
	if keys == nil || values == nil || !keys.Is("Concat") || !values.Is("Concat") {
		return nil, fmt.Errorf("its body appends no keys and values")
	}
	var r, rk rotary
	r.x, rk.x = unshaped(in[0]), keys.Inputs[1]
	if rk.x.Def != nil {
		r, rk = readRotary(r.x.Def), readRotary(rk.x.Def)
	} else {
		r.x = in[0] // what gives the queries their form is outside of the body
	}
	c.q, c.k, c.pastK, c.pastV, c.v = g.Outer(r.x), g.Outer(rk.x), g.Outer(keys.Inputs[0]), g.Outer(values.Inputs[0]),
		g.Outer(values.Inputs[1])
	if r.cos != nil {
		c.cos, c.sin = g.Outer(r.cos), g.Outer(r.sin)
	}
	c.shapeQ, c.shapeK, c.shapeV = in[0].Shape.MustConsts(), in[1].Shape.MustConsts(), in[2].Shape.MustConsts()
	if len(in) > 3 && in[3] != nil {
		c.mask, c.shapeM = g.Outer(in[3]), in[3].Shape.MustConsts()
	}
	return c, nil
}

// unshaped goes back through the nodes of the body that give v's leading axes another form.
func unshaped(v *ir.Value) *ir.Value {
	for v.Def != nil && (v.Def.Is("Reshape") || v.Def.Is("Unsqueeze")) {
		v = v.Def.Inputs[0]
	}
	return v
}

// rotary are the operands of a rotary embedding.
type rotary struct{ x, cos, sin *ir.Value }

// readRotary reads x·cos + turned·sin, where the turned x is a Concat.
func readRotary(add *ir.Node) rotary {
	isTurned := func(v *ir.Value) bool { return v.Def != nil && v.Def.Is("Concat") }
	straight, across := add.Inputs[0].Def, add.Inputs[1].Def
	if !isTurned(across.Inputs[0]) && !isTurned(across.Inputs[1]) {
		straight, across = across, straight
	}
	turn, sin := across.Inputs[0], across.Inputs[1]
	if !isTurned(turn) {
		turn, sin = sin, turn
	}
	x := turn.Def.Inputs[1].Def.Inputs[0] // the Concat's second input is a Slice of x
	cos := straight.Inputs[0]
	if cos == x {
		cos = straight.Inputs[1]
	}
	return rotary{x, cos, sin}
}

// read brings the values to the form in which attention_few takes them.
func (c *cachedBody) read(b *build.Builder, shape []int64) (*attention, error) {
	n := c.attention
	rank := len(shape)
	batch := shape[:rank-2]
	a := &attention{
		elem: c.q.DType, queries: shape[rank-2], keys: c.shapeK[len(c.shapeK)-2], depth: c.shapeQ[len(c.shapeQ)-1],
		cols: shape[rank-1], scale: float32(n.Float("scale", 1)), nanToZero: n.Int("nan_to_zero", 0),
		before: n.Int("before", -ir.Unbounded), behind: n.Int("behind", ir.Unbounded), few: true,
	}
	if err := a.checkSize(b, n); err != nil {
		return nil, err
	}
	// like is v in the form of an operand of attention, with rows of its own number, broadcast to the batch.
	like := func(v *ir.Value, operand []int64) roperator.View {
		view := b.In(v)
		dims := append([]int64{}, operand...)
		dims[len(dims)-2] = view.Shape[len(view.Shape)-2]
		shaped, ok := view.Reshape(dims)
		if !ok || !inLoads(view, contraction.PerLoad(v.DType)) {
			shaped, _ = elementwise.Contiguous(b, view).Reshape(dims)
		}
		return shaped.Broadcast(append(append([]int64{}, batch...), dims[len(dims)-2:]...))
	}
	views := []roperator.View{like(c.q, c.shapeQ), like(c.pastK, c.shapeK), like(c.pastV, c.shapeV),
		like(c.k, c.shapeK),
		like(c.v, c.shapeV)}
	for _, v := range []*ir.Value{c.cos, c.sin} {
		if v != nil {
			views = append(views, factors(b, v, batch, a.depth))
		}
	}
	if c.mask != nil {
		prologue := functor.Cast(ir.Float32, functor.Leaf(c.mask.DType, 0))
		mask, err := elementwise.Mapped(b, prologue, c.mask)
		if err != nil {
			return nil, err
		}
		views = append(views, mask.Broadcast(append(append([]int64{}, batch...), a.queries, a.keys)))
	}
	views = contraction.NormaliseBatch(b, batch, views...)
	a.q, a.k, a.v = views[0], views[1], views[2]
	a.appended = &appended{k: views[3], v: views[4], past: views[1].Shape[3]}
	if c.cos != nil {
		a.appended.cos, a.appended.sin = views[5], views[6]
	}
	if c.mask != nil {
		a.mask = views[len(views)-1]
	}
	return a, nil
}

// factors are cosines or sines as [batch…][row][col], of one row or of one for each query.
func factors(b *build.Builder, v *ir.Value, batch []int64, depth int64) roperator.View {
	view := b.In(v)
	rows := int64(1)
	if n := len(view.Shape); n > 1 {
		rows = view.Shape[n-2]
	}
	shaped, ok := view.Reshape([]int64{rows, depth})
	if !ok || !inLoads(view, contraction.PerLoad(v.DType)) {
		shaped, _ = elementwise.Contiguous(b, view).Reshape([]int64{rows, depth})
	}
	return shaped.Broadcast(append(append([]int64{}, batch...), rows, depth))
}

// form is the parameter Appended of attention_few.
func (p *appended) form() int64 {
	switch {
	case p == nil:
		return 0
	case p.by != nil:
		return 3
	case p.cos.Buf == nil:
		return 1
	}
	return 2
}

// early is the parameter Early of attention_few: 1 if the keys and values in front of appended ones are inputs of the
// model, 2 if they are states. They are there before the queries are.
func (a *attention) early() int64 {
	switch {
	case a.appended == nil || a.appended.by != nil:
		return 0
	case a.appended.states:
		return 2
	case a.k.Buf.Kind == roperator.Input && a.v.Buf.Kind == roperator.Input:
		return 1
	}
	return 0
}

// args are the appended keys and values as an argument of attention_few; k and v are those in front of them.
func (p *appended) args(k, v roperator.View) rkernels.Struct {
	if p == nil {
		return rkernels.Struct{}
	}
	out := rkernels.Struct{
		arg.Int("count", p.k.Shape[3]), {Name: "k", Value: arg.HeadMatrix(p.by.of(p.k))},
		{Name: "v", Value: arg.HeadMatrix(p.by.of(p.v))},
	}
	if p.by != nil {
		return append(out, p.by.args(k, v, p.k, p.v)...)
	}
	if p.cos.Buf != nil {
		out = append(out, rkernels.Field{Name: "cos", Value: arg.HeadMatrix(p.cos)},
			rkernels.Field{Name: "sin", Value: arg.HeadMatrix(p.sin)})
	}
	return out
}

// reads are what the rTasks of r read of old keys and values, k and v, and of the appended ones. Behind states these are
// read by the rTask that has their places in a run.
func (p *appended) reads(r *headRows, k, v roperator.View) []roperator.Access {
	rows := func(first, count, cols int64) func(task int, lo, hi []int64) {
		all := r.box(false, cols)
		return func(task int, lo, hi []int64) {
			all(task, lo, hi)
			lo[3], hi[3] = max(lo[3]-first, 0), min(hi[3]-first, count)
			if first > 0 && p.states {
				lo[3], hi[3] = 0, count
			}
			p.by.whole(lo, hi)
		}
	}
	depth, cols, count := k.Shape[4], v.Shape[4], p.k.Shape[3]
	out := roperator.AppendRead(nil, k, rows(0, p.past, depth))
	out = roperator.AppendRead(out, v, rows(0, p.past, cols))
	out = roperator.AppendRead(out, p.k, rows(p.past, count, depth))
	out = roperator.AppendRead(out, p.v, rows(p.past, count, cols))
	if p.by != nil {
		out = roperator.AppendRead(out, p.by.list, r.box(false, 1))
	}
	for _, f := range []roperator.View{p.cos, p.sin} {
		if f.Buf != nil {
			out = roperator.AppendRead(out, f, func(task int, lo, hi []int64) {
				r.box(false, f.Shape[4])(task, lo, hi)
				lo[3], hi[3] = 0, f.Shape[3]
			})
		}
	}
	return out
}
