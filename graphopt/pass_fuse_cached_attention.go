package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// mostNewRows is how many queries there may be beside a cache, and how many keys may be new. attention_few takes so many.
const mostNewRows = 8

// fuseCachedAttention joins attention of few new tokens with the concatenations that append their keys and values to
// those of the tokens before, and with the rotary embedding of the queries and of the new keys, into a Fused node with
// the anchor CachedAttention:
//
//	                queries ─▶ rotary ──────────────▶ ┌───────────┐
//	new keys ─▶ rotary ─▶ ┌────────┐                  │ Attention │ ─▶
//	past keys ──────────▶ │ Concat │ ─▶ Unsqueeze ──▶ │           │
//	past values ────────▶ │ Concat │ ─▶ Unsqueeze ──▶ └───────────┘
//	new values ─────────▶ └────────┘
//
// The keys and values before are then read where they lie, instead of being copied, and the embedding is a part of the
// reading. What the model uses beside that, such as the concatenations as results, is still computed for it.
//
// Requires: attention recognised; runs before split-rotary, which rewrites the embeddings. Leaves: such attention as
// Fused nodes, whose bodies have Slice, Neg, Concat, Mul, Add, Reshape, Unsqueeze and Attention.
func fuseCachedAttention(c *Context, g *ir.Graph) (bool, error) {
	f := newFuser(c, g)
	made := map[*ir.Node]*ir.Node{}
	for _, n := range g.Nodes {
		nodes := f.cachedAttention(n)
		if nodes == nil {
			continue
		}
		node := c.fused("CachedAttention", f.inOrder(nodes), n.Outputs, func(v *ir.Value) bool {
			return v.Const != nil && v.DType == ir.Int64
		})
		node.Name = n.Name
		made[n] = node
	}
	putInPlace(g, func(n *ir.Node) *ir.Node { return made[n] }, nil)
	return len(made) > 0, nil
}

// cachedAttention lists the nodes that become one with n, attention of few queries; nil if keys or values are no
// concatenations of old and new ones.
func (f *fuser) cachedAttention(n *ir.Node) []*ir.Node {
	const quad = 4
	if !n.IsInternal("Attention") || !constantShapes(n) || n.Inputs[0].DType == ir.Float64 {
		return nil
	}
	keys, k := f.appended(n.Inputs[1])
	values, v := f.appended(n.Inputs[2])
	depth, _ := lastExtent(n.Inputs[0])
	columns, _ := lastExtent(n.Inputs[2])
	if keys == nil || values == nil || rowsOf(n.Inputs[0]) > mostNewRows || rowsOf(k) > mostNewRows ||
		rowsOf(k) != rowsOf(v) || depth%(4*quad) != 0 || columns%(2*quad) != 0 {
		return nil
	}
	nodes := slices.Concat(keys, values, []*ir.Node{n})
	q, shaped := f.shaped(n.Inputs[0])
	turnedQ, turnedK := f.rotaryNodes(q), f.rotaryNodes(k)
	if turnedQ.nodes != nil && turnedK.nodes != nil && turnedQ.cos == turnedK.cos && turnedQ.sin == turnedK.sin {
		nodes = slices.Concat(shaped, turnedQ.nodes, turnedK.nodes, nodes)
	}
	return unique(nodes)
}

// unique lists each node once.
func unique(nodes []*ir.Node) []*ir.Node {
	var out []*ir.Node
	for _, n := range nodes {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// rowsOf is how many rows the matrices of v have.
func rowsOf(v *ir.Value) int64 {
	dims, ok := v.Shape.Consts()
	if !ok || len(dims) < 2 {
		return 0
	}
	return dims[len(dims)-2]
}

// shaped goes back from v through nodes that give its leading axes another form, and keep its rows.
func (f *fuser) shaped(v *ir.Value) (from *ir.Value, nodes []*ir.Node) {
	for v.Def != nil && (v.Def.Is("Reshape") || v.Def.Is("Unsqueeze")) {
		n := v.Def
		if _, here := f.order[n]; !here || !constantShapes(n) || rowsOf(n.Inputs[0]) != rowsOf(v) ||
			constOf(n.Inputs[1]) == nil || !sameLast(n.Inputs[0], v) {
			break
		}
		nodes = append(nodes, n)
		v = n.Inputs[0]
	}
	return v, nodes
}

func sameLast(v, w *ir.Value) bool {
	m, _ := lastExtent(v)
	n, ok := lastExtent(w)
	return ok && m == n
}

// appended matches v as the Concat of rows and few new rows, perhaps in another form, and returns the nodes between and
// the new rows.
func (f *fuser) appended(v *ir.Value) (nodes []*ir.Node, rows *ir.Value) {
	from, nodes := f.shaped(v)
	n := definedBy(from, "Concat")
	if n == nil || len(n.Inputs) != 2 || n.Inputs[0].Const != nil || !constantShapes(n) {
		return nil, nil
	}
	rank := len(from.Shape)
	if _, here := f.order[n]; !here || normalAxis(n.Int("axis", 0), rank) != rank-2 {
		return nil, nil
	}
	return append(nodes, n), n.Inputs[1]
}

// turned is a rotary embedding: its nodes, nil if there is none, and the factors.
type turned struct {
	nodes    []*ir.Node
	cos, sin *ir.Value
}

// rotaryNodes matches v = x·cos + (-x_high, x_low)·sin, where x_low and x_high are the halves of x along the last axis.
// cos and sin have no heads.
func (f *fuser) rotaryNodes(v *ir.Value) turned {
	add := definedBy(v, "Add")
	if add == nil || !constantShapes(add) {
		return turned{}
	}
	for i := range 2 {
		straight, across := definedBy(add.Inputs[i], "Mul"), definedBy(add.Inputs[1-i], "Mul")
		if straight == nil || across == nil {
			return turned{}
		}
		for j := range 2 {
			x, nodes := f.turnedHalves(across.Inputs[j])
			for k := range 2 {
				t := turned{append(nodes, straight, across, add), straight.Inputs[1-k], across.Inputs[1-j]}
				if x != nil && straight.Inputs[k] == x && sameType(x, v) && headless(t.cos, v) && headless(t.sin, v) {
					return t
				}
			}
		}
	}
	return turned{}
}

// headless reports whether v is the same for all leading axes of whole, and as wide as that is.
func headless(v, whole *ir.Value) bool {
	dims, ok := v.Shape.Consts()
	n := len(dims)
	if !ok || n == 0 || !sameLast(v, whole) {
		return false
	}
	return n == 1 || ir.Count(dims[:n-2]) == 1 && (dims[n-2] == 1 || dims[n-2] == rowsOf(whole))
}

// turnedHalves matches v as the Concat of the negated upper half of x and its lower half.
func (f *fuser) turnedHalves(v *ir.Value) (x *ir.Value, nodes []*ir.Node) {
	turn := definedBy(v, "Concat")
	if turn == nil || len(turn.Inputs) != 2 || !alongLast(turn) || definedBy(turn.Inputs[0], "Neg") == nil {
		return nil, nil
	}
	neg := turn.Inputs[0].Def
	high, low := definedBy(neg.Inputs[0], "Slice"), definedBy(turn.Inputs[1], "Slice")
	n, ok := lastExtent(v)
	if !ok || high == nil || low == nil || high.Inputs[0] != low.Inputs[0] || !sameType(high.Inputs[0], v) ||
		!beginsAt(high, n/2) || !beginsAt(low, 0) || !sameLast(high.Outputs[0], low.Outputs[0]) {
		return nil, nil
	}
	for _, m := range []*ir.Node{high, low, neg, turn} {
		if _, here := f.order[m]; !here {
			return nil, nil
		}
	}
	return high.Inputs[0], []*ir.Node{high, low, neg, turn}
}

// beginsAt reports whether a Slice takes consecutive elements of the last axis, from first on.
func beginsAt(n *ir.Node, first int64) bool {
	start, ok := scalar(n.Inputs[1])
	rank := len(n.Inputs[0].Shape)
	if !ok || start != float64(first) || n.Input(3) == nil && rank != 1 {
		return false
	}
	if axis, ok := scalar(n.Input(3)); n.Input(3) != nil && (!ok || normalAxis(int64(axis), rank) != rank-1) {
		return false
	}
	return n.Input(4) == nil || isExactly(n.Input(4), 1)
}
