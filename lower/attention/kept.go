package attention

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// mostKeptDims is how many dims attention has at most whose operands are read from states as they lie there: with more,
// they might be copied first.
const mostKeptDims = 5

// Announce finds attention that reads what has just been written behind the rows of states. It may take these rows from
// where they were computed, and the others as the run before has left them; then nothing waits for them to be written.
// Where a list says of which batch entry each row is, it may read by that list. It must be called before anything is
// lowered.
//
//	new keys ─┬─────────────────────────────────────────────────▶ Attention
//	          └▶ WriteRows(state) ─┬▶ window ─▶ GatherElements ─ ─ ─ ─▲
//	                               └▶ the state of the next run
func Announce(b *build.Builder, g *ir.Graph) {
	uses := ir.Uses(g)
	for _, n := range g.Nodes {
		grp, err := build.NewGroup(n)
		if err != nil || grp.Anchor == nil || !grp.Anchor.IsInternal("Attention") ||
			len(grp.Inputs) > 3 && grp.Inputs[3] != nil && (grp.Prologue[3] != nil || grp.Inputs[3].DType != ir.Float32) {
			continue
		}
		k, v := readKept(uses, grp.Inputs[1]), readKept(uses, grp.Inputs[2])
		if k == nil || v == nil || k[0] == v[0] || len(k) != len(v) ||
			len(k) > 1 && (k[1] == v[1] || k[1].Inputs[1] != v[1].Inputs[1]) {
			continue
		}
		nodes := []*ir.Node{k[0], v[0]}
		if len(k) > 1 {
			nodes = append(nodes, k[1], v[1])
		}
		if slices.ContainsFunc(append(nodes, n), func(n *ir.Node) bool { return !b.Always(n) }) {
			continue
		}
		b.Postpone(n, nodes...)
		b.Out(k[0].Outputs[0])
		b.Out(v[0].Outputs[0])
	}
}

// readKept finds the WriteRows of which v is a view that nothing else reads in this run, and behind it the GatherElements
// by batch entries, if there is one; nil if v is something else.
func readKept(uses map[*ir.Value][]ir.Use, v *ir.Value) []*ir.Node {
	var gather []*ir.Node
	if n := v.Def; n != nil && n.Is("GatherElements") && len(uses[v]) == 1 && build.AxisOf(n, 0, len(v.Shape)) == 0 &&
		slices.EqualFunc(n.Inputs[0].Shape, v.Shape, ir.Dim.Equal) {
		gather = []*ir.Node{n}
		v = n.Inputs[0]
	}
	for v.Def != nil && v.Def.IsInternal("View") && len(uses[v]) == 1 {
		v = v.Def.Inputs[0]
	}
	if v.Def == nil || !v.Def.IsInternal("WriteRows") || len(uses[v]) != 2 ||
		(uses[v][0].Node == nil) == (uses[v][1].Node == nil) {
		return nil
	}
	return append([]*ir.Node{v.Def}, gather...)
}

// readApart reads the inputs of a group that was announced to take keys and values apart; nil if it cannot.
func readApart(b *build.Builder, g *build.Group) *attention {
	nodes := b.Postponed(g.Node)
	if len(nodes) == 0 || len(g.Outputs[0].Shape) > mostKeptDims {
		return nil
	}
	read := *g
	if len(nodes) > 2 {
		read.Inputs = slices.Clone(g.Inputs)
		read.Inputs[1], read.Inputs[2] = nodes[2].Inputs[0], nodes[3].Inputs[0]
	}
	if !areFew(b, &read) {
		return nil
	}
	a, err := readAttention(b, &read)
	if err != nil || !a.few || a.multiply(b) {
		return nil
	}
	k, ok := newRows(b, nodes[0], a.k)
	v, too := newRows(b, nodes[1], a.v)
	if !ok || !too || v.rows != k.rows || !b.Leaves(nodes[0], k.rows, b.Axis(read.Inputs[1], -2)) {
		return nil
	}
	a.appended = &appended{k: k.view, v: v.view, past: a.keys - k.rows, states: true}
	if len(nodes) > 2 {
		if a.appended.by = listOf(b, nodes[2].Inputs[1], a.k, k, v); a.appended.by == nil {
			return nil
		}
	}
	return a
}

// newKeys are the rows that a WriteRows writes, in the form of a window on the state: [b0][b1][b2][row][col]. axis is that
// of the state along which the rows follow each other, and first the dim that counts its batch entries, -1 if none does.
type newKeys struct {
	view        roperator.View
	rows        int64
	axis, first int
}

// newRows finds what n writes; `in` is the window. ok is false if it has another form, or if only a run knows how many
// rows there are.
func newRows(b *build.Builder, n *ir.Node, in roperator.View) (k newKeys, ok bool) {
	state, from := b.In(n.Outputs[0]), b.In(n.Inputs[1])
	rank := len(state.Shape)
	axis := build.AxisOf(n, 0, rank)
	if in.Buf != state.Buf || in.Offset != state.Offset || b.Axis(n.Inputs[1], axis).Dynamic() || axis == rank-1 ||
		in.Stride(3) != state.Stride(axis) || in.Stride(4) != 1 || !inLoads(from, contraction.PerLoad(from.DType())) ||
		in.Shape[3] != n.Int("extent", 0)+from.Shape[axis] {
		return k, false
	}
	k = newKeys{rows: from.Shape[axis], axis: axis, first: -1}
	k.view = roperator.View{Buf: from.Buf, Offset: from.Offset, Shape: []int64{0, 0, 0, k.rows, in.Shape[4]},
		Strides: []int64{0, 0, 0, from.Stride(axis), from.Stride(rank - 1)}}
	copy(k.view.Shape, in.Shape[:3])
	for d := range 3 {
		if in.Shape[d] == 1 || in.Stride(d) == 0 {
			continue
		}
		at := 0
		for at < rank-1 && (at == axis || state.Shape[at] != in.Shape[d] || state.Stride(at) != in.Stride(d)) {
			at++
		}
		if at == rank-1 {
			return k, false
		}
		k.view.Strides[d] = from.Stride(at)
		if at == 0 {
			k.first = d
		}
	}
	return k, true
}

// batchList says of which batch entry each key is, and its value: of entry list[b0][b1][b2][key] in place of its own.
type batchList struct {
	list    roperator.View
	dim     int   // that counts batch entries
	entries int64 // how many there are
}

// listOf is the list that the indices of a GatherElements are, of keys in a window `in` on a state; nil if they differ
// along other axes than those of batch entries and keys, or if heads of several entries share a tile.
func listOf(b *build.Builder, indices *ir.Value, in roperator.View, k, v newKeys) *batchList {
	index := b.In(indices)
	if k.first < 0 || k.first == 2 || v.first != k.first || v.axis != k.axis || index.DType() != ir.Int64 {
		return nil
	}
	for d := range index.Shape {
		if d != 0 && d != k.axis && index.Shape[d] > 1 && index.Stride(d) != 0 {
			return nil
		}
	}
	l := &batchList{dim: k.first, entries: in.Shape[k.first]}
	l.list = roperator.View{Buf: index.Buf, Offset: index.Offset, Shape: slices.Clone(in.Shape), Strides: make([]int64, 5)}
	l.list.Shape[4] = 1
	l.list.Strides[k.first], l.list.Strides[3] = index.Stride(0), index.Stride(k.axis)
	return l
}

// args are the members of the kernel's argument behind the keys and values, for these.
func (l *batchList) args(k, v, newK, newV roperator.View) rkernels.Struct {
	return rkernels.Struct{
		{Name: "list", Value: arg.HeadMatrix(l.list)}, arg.Int("entries", l.entries),
		arg.Int("k_step", k.Stride(l.dim)), arg.Int("v_step", v.Stride(l.dim)),
		arg.Int("new_k_step", newK.Stride(l.dim)), arg.Int("new_v_step", newV.Stride(l.dim)),
	}
}

// of is the first batch entry of v, where a list says which one is taken; otherwise v.
func (l *batchList) of(v roperator.View) roperator.View {
	if l != nil {
		v.Strides = slices.Clone(v.Strides)
		v.Strides[l.dim] = 0
	}
	return v
}

// whole makes a box of one batch entry one of all of them, if a list says which one is taken.
func (l *batchList) whole(lo, hi []int64) {
	if l != nil {
		lo[l.dim], hi[l.dim] = 0, l.entries
	}
}
