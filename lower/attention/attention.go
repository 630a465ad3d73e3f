// Package attention lowers fused attention, softmax(scale·QKᵀ + mask)·V.
package attention

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// attention is a fused attention; its views have three batch dims, mask.Buf is nil without a mask.
type attention struct {
	q, k, v, mask              roperator.View // [b0][b1][b2][row][col]
	queries, keys, depth, cols int64
	live                       []roperator.LiveArg // the number of keys, if only a run knows it
	elem                       ir.DType            // of q, k and v, unless few; the mask is float32
	scale                      float32
	nanToZero                  int64
	// Query i attends to the keys from i + before to i + behind.
	before, behind int64
	// So many heads lie side by side in a row of the output; 1 where every head has rows of its own.
	joined int64
	// few says that attention_few carries it out. It reads q, k and v as they are stored and converts them as converted
	// says; q may have another element type than k and v.
	few       bool
	converted [3]*functor.Expr
	// appended are the last keys and values, if they do not lie behind k and v.
	appended *appended
}

// Attention lowers a group whose anchor is the internal operator Attention.
func Attention(b *build.Builder, g *build.Group) error {
	n := g.Anchor
	d := n.Outputs[0].DType
	if functor.RealType(d) != ir.Float32 {
		return build.UnsupportedType(d)
	}
	shape := b.Extents(g.Outputs[0], build.ForTiles)
	if ir.Count(shape) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	a := readApart(b, g)
	if a == nil {
		b.LowerPostponed(g)
		var err error
		if a, err = readAttention(b, g); err != nil {
			return err
		}
		a.few = a.few && !a.multiply(b)
	}
	a.lower(b, g, shape, d)
	if apart := b.Postponed(g.Node); len(apart) > 2 {
		b.Postpone(g.Node, apart[:2]...) // a list has taken the place of the others
	}
	b.LowerPostponed(g)
	return nil
}

// lower adds what computes a, with a result of the given shape, and of type d in front of the epilogue.
func (a *attention) lower(b *build.Builder, g *build.Group, shape []int64, d ir.DType) {
	spec := a.result(b, g.Outputs[0], shape)
	if d != ir.Float32 {
		spec.Own = functor.Cast(d, functor.Leaf(ir.Float32, 0))
	}
	t := tails.New(b, g, spec)
	a.add(b, g, t)
	t.Finish(b)
}

// add adds the rOperators of a. Where too few rTasks would share many keys, rTasks have parts of the keys, and a second
// rOperator joins what they leave.
func (a *attention) add(b *build.Builder, g *build.Group, t *tails.Tail) {
	if a.few {
		a.addFew(b, g, t)
		return
	}
	shapes := a.usefulShapes(b)
	var tiles []*headRows
	for _, s := range shapes {
		tiles = append(tiles, a.rows(s.bq))
	}
	splits := a.splits(b.Target(), tiles, b.Share(g))
	if splits == 1 {
		b.Add(g.Kind(), a.candidates(b, shapes, t)...)
		return
	}
	part := a.partialSums(b, splits)
	var candidates []*roperator.Candidate
	for _, s := range shapes {
		candidates = append(candidates, a.tensorCandidate(b, s, splits, part))
	}
	for _, s := range a.usefulGroups(b, splits) {
		candidates = append(candidates, a.groupCandidate(b, s, splits, part))
	}
	for _, r := range a.usefulWarps(b, splits) {
		candidates = append(candidates, a.warpsCandidate(b, r, splits, part))
	}
	b.AddParts(g.Kind(), roperator.Parts{Count: splits, Length: part.Out.Count() / splits}, candidates...)
	b.Add(g.Kind()+" (sum)", a.sumCandidates(b, part.Out, splits, t)...)
}

// candidates are those without splits. Tensor cores are faster for every number of queries and keys, with three products
// too, so that there are no others where they may be used.
func (a *attention) candidates(b *build.Builder, shapes []tensorShape, t *tails.Tail) []*roperator.Candidate {
	if len(shapes) == 0 {
		return a.scalarCandidates(b, t)
	}
	var out []*roperator.Candidate
	for _, s := range shapes {
		out = append(out, a.tensorCandidate(b, s, 1, t))
	}
	for _, s := range a.usefulDirect(b) {
		out = append(out, a.directCandidate(b, s, t))
	}
	for _, s := range a.usefulGroups(b, 1) {
		out = append(out, a.groupCandidate(b, s, 1, t))
	}
	for _, r := range a.usefulWarps(b, 1) {
		out = append(out, a.warpsCandidate(b, r, 1, t))
	}
	return out
}

// result describes the output v, [batch…][head…][query][column], to its tail. Unless v is destined for elsewhere, the
// heads of a query lie side by side: models join them next, which then moves nothing. To the kernels the output is
//
//	[batch and head][query][column], or [batch][query][head and column] with a.joined heads side by side
func (a *attention) result(b *build.Builder, v *ir.Value, shape []int64) tails.Spec {
	rank := len(shape)
	first := a.firstHead(rank)
	a.joined = 1
	if first < 0 || b.HasHome(v) || ir.Count(shape[first:rank-2]) == 1 {
		return tails.Spec{DType: ir.Float32, Shape: shape, Cuts: [2]int{rank - 2, rank - 1}, Run: a.cols}
	}
	a.joined = ir.Count(shape[first : rank-2])
	var perm, dims []int64 // batch, query, heads, column
	var order []int
	add := func(d int) {
		perm, dims, order = append(perm, int64(d)), append(dims, shape[d]), append(order, d)
	}
	for d := range first {
		add(d)
	}
	add(rank - 2)
	for d := first; d < rank-2; d++ {
		add(d)
	}
	add(rank - 1)
	b.StoreIn(v, order)
	return tails.Spec{DType: ir.Float32, Shape: dims, Perm: perm, Cuts: [2]int{first, first + 1}, Run: a.cols}
}

// firstHead is the first dim of heads of an output of the given rank, -1 if there is none. Heads are one dim, or two
// where groups of them share keys and values.
func (a *attention) firstHead(rank int) int {
	if rank >= 5 && a.k.Stride(2) == 0 && a.v.Stride(2) == 0 && a.q.Shape[2] > 1 {
		return rank - 4
	}
	return rank - 3
}

// elementOf is the element type of Q, K and V that the kernels read. Those for tensor cores multiply 16-bit elements;
// otherwise these are widened before.
func elementOf(b *build.Builder, g *build.Group) ir.DType {
	d := loaded(g, 0)
	if !tensorCores(b) || d != loaded(g, 1) || d != loaded(g, 2) {
		return ir.Float32
	}
	return d
}

// loaded is the element type of input i behind its prologue, but for a conversion from 16 bits to float32 with which that
// ends.
func loaded(g *build.Group, i int) ir.DType { return behind(unwidened(g.Prologue[i]), g.Inputs[i]) }

// unwidened is a prologue, which may be nil, without a conversion from 16 bits to float32 with which it ends: products of
// the 16 bits are exact in float32.
func unwidened(e *functor.Expr) *functor.Expr {
	if e != nil && e.Op == "Cast" && e.DType == ir.Float32 && e.In[0].DType.IsFloat() && e.In[0].DType.Size() == 2 {
		e = e.In[0]
	}
	if e != nil && e.IsLeaf() {
		return nil
	}
	return e
}

// behind is the element type of v behind a prologue, which may be nil.
func behind(prologue *functor.Expr, v *ir.Value) ir.DType {
	if prologue != nil {
		return prologue.DType
	}
	return v.DType
}

// readAttention reads the inputs as they stand in memory where attention_few takes them so. Otherwise they are brought to
// one element type first.
func readAttention(b *build.Builder, g *build.Group) (*attention, error) {
	var prologue [4]*functor.Expr
	copy(prologue[:], g.Prologue)
	if areFew(b, g) {
		q, kv := g.Inputs[0].DType, g.Inputs[1].DType
		a, err := readAs(b, g, [4]ir.DType{q, kv, kv, ir.Float32}, [4]*functor.Expr{3: prologue[3]})
		if err != nil {
			return nil, err
		}
		a.few, a.converted = true, [3]*functor.Expr(prologue[:3])
		return a, nil
	}
	elem := elementOf(b, g)
	for i := range 3 {
		prologue[i] = unwidened(prologue[i])
	}
	return readAs(b, g, [4]ir.DType{elem, elem, elem, ir.Float32}, prologue)
}

// readAs reads the inputs as elements of the given types, behind prologues.
func readAs(b *build.Builder, g *build.Group, types [4]ir.DType, prologue [4]*functor.Expr) (*attention, error) {
	var in [4]roperator.View
	for i, v := range g.Inputs {
		if v == nil {
			continue
		}
		e := prologue[i]
		if d := behind(e, v); d != types[i] {
			if e == nil {
				e = functor.Leaf(v.DType, 0)
			}
			e = functor.Cast(types[i], e)
		}
		var err error
		if in[i], err = elementwise.Mapped(b, e, v); err != nil {
			return nil, err
		}
	}
	shape := b.Extents(g.Outputs[0], build.ForTiles)
	batch := shape[:len(shape)-2]
	last := func(v roperator.View, d int) int64 { return v.Shape[len(v.Shape)-d] }
	a := &attention{
		elem: types[1], queries: last(in[0], 2), keys: last(in[1], 2), depth: last(in[0], 1), cols: last(in[2], 1),
		scale: float32(g.Anchor.Float("scale", 1)), nanToZero: g.Anchor.Int("nan_to_zero", 0),
		before: g.Anchor.Int("before", -ir.Unbounded), behind: g.Anchor.Int("behind", ir.Unbounded),
	}
	if keys := b.Axis(g.Inputs[1], -2); keys.Dynamic() {
		a.live = []roperator.LiveArg{{Member: "keys", Axis: keys}}
	}
	if a.keys == 0 {
		a.nanToZero = 1 // a sum of nothing
	}
	if err := a.checkSize(b, g.Anchor); err != nil {
		return nil, err
	}
	wide := func(v roperator.View, rows, cols int64) roperator.View {
		return v.Broadcast(append(append([]int64{}, batch...), rows, cols))
	}
	views := []roperator.View{wide(in[0], a.queries, a.depth), wide(in[1], a.keys, a.depth),
		wide(in[2], a.keys, a.cols)}
	if in[3].Buf != nil {
		views = append(views, wide(in[3], a.queries, a.keys))
	}
	views = contraction.NormaliseBatch(b, batch, views...)
	a.q, a.k, a.v = views[0], views[1], views[2]
	if len(views) > 3 {
		a.mask = views[3]
	}
	return a, nil
}

// checkSize reports heads that are too large for the kernels of n.
func (a *attention) checkSize(b *build.Builder, n *ir.Node) error {
	fusing := b.Fusing(n)
	if fusing.Within("depth", a.depth) && fusing.Within("columns", a.cols) {
		return nil
	}
	return fmt.Errorf("its heads have %d and %d columns; at most %d and %d have a compiled form", a.depth, a.cols,
		fusing.Limits["depth"], fusing.Limits["columns"])
}

// size is the head size that the kernel is bound to.
func (a *attention) size() int64 {
	dm := int64(32)
	for dm < max(a.depth, a.cols) {
		dm *= 2
	}
	return dm
}

// loadMode is how Q, K and V are read: in whole loads if all of them can be.
func (a *attention) loadMode() int64 {
	for _, v := range []roperator.View{a.q, a.k, a.v} {
		if contraction.LoadMode(v, 3, 4) != schema.LoadVec4 {
			return schema.LoadByCol
		}
	}
	return schema.LoadVec4
}
