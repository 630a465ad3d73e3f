package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// joinProducts makes one product of those that multiply the same few rows by different constant matrices, such as the
// queries, keys and values of attention. The time of such products is that of their weights, and all of a device brings
// one large matrix faster than it brings several small ones side by side:
//
//	x ─┬▶ MatMul(q) ─▶ Reshape              x ─▶ MatMul(q|k|v) ─▶ Split ─┬▶ Reshape
//	   ├▶ MatMul(k) ─▶ Reshape    becomes                               ├▶ Reshape
//	   └▶ MatMul(v) ─▶ Reshape                                          └▶ Reshape
//
// Products stay apart that an elementwise operator follows: it would not become their epilogue behind a Split.
//
// Requires: constants folded; runs before views are extracted and weights quantised. Leaves: MatMul and
// rammer.RMSMatMul of at most 8 rows, with a Split behind them.
func joinProducts(c *Context, g *ir.Graph) (bool, error) {
	j := &productJoiner{c: c, uses: c.usesIn(g), sets: map[productKey][]*ir.Node{}}
	for _, n := range g.Nodes {
		if key, ok := j.key(n); ok {
			j.sets[key] = append(j.sets[key], n)
		}
	}
	changed := false
	done := map[*ir.Node]bool{}
	var out []*ir.Node
	for _, n := range g.Nodes {
		key, ok := j.key(n)
		set := j.sets[key]
		switch {
		case !ok || len(set) < 2:
			out = append(out, n)
		case !done[n]:
			for _, m := range set {
				done[m] = true
			}
			out = append(out, joined(c, g, set)...)
			changed = true
		}
	}
	g.Nodes = out
	return changed, nil
}

// productKey is what products have in common that can be joined.
type productKey struct {
	x       *ir.Value
	op      string
	epsilon float64
	centred int64
}

type productJoiner struct {
	c    *Context
	uses map[*ir.Value][]ir.Use
	sets map[productKey][]*ir.Node
}

// key tells products apart that cannot be joined; ok is false for nodes that are not to be joined with any.
func (j *productJoiner) key(n *ir.Node) (key productKey, ok bool) {
	if !n.Is("MatMul") && !n.IsInternal("RMSMatMul") {
		return key, false
	}
	x, w, y := n.Inputs[0], constOf(n.Inputs[1]), n.Outputs[0]
	dims, constant := x.Shape.Consts()
	if !constant || len(dims) < 2 || w == nil || len(w.Dims) != 2 || w.DType != ir.Float32 || w.Len() == 0 ||
		ir.Count(dims[:len(dims)-1]) > mostRows || slices.Contains(j.c.Root.Outputs, y) || j.isTransformed(y) {
		return key, false
	}
	return productKey{x, n.Op, n.Float("rms_epsilon", 0), n.Int("centred", 0)}, true
}

// isTransformed reports whether the only user of v, behind views, is an elementwise operator.
func (j *productJoiner) isTransformed(v *ir.Value) bool {
	for {
		uses := j.uses[v]
		if len(uses) != 1 || uses[0].Node == nil {
			return false
		}
		n := uses[0].Node
		if isElementwise(n) {
			return true
		}
		if _, isView := viewOps[n.Op]; !isView || n.Domain != "" || len(n.Outputs) != 1 || uses[0].Index != 0 {
			return false
		}
		v = n.Outputs[0]
	}
}

// joined are the nodes in place of a set of products.
func joined(c *Context, g *ir.Graph, set []*ir.Node) []*ir.Node {
	first := set[0]
	m := newMaker(g, c.names, first)
	m.origins = mergeOrigins(set...)
	var weights []*ir.Tensor
	var extents []int64
	var results []*ir.Value
	for _, n := range set {
		weights = append(weights, n.Inputs[1].Const)
		extents = append(extents, n.Inputs[1].Const.Dims[1])
		results = append(results, n.Outputs[0])
	}
	w := m.constant("weights", compute("Concat", ir.Attrs{"axis": ir.IntAttr(1)}, weights...))
	shape := slices.Clone(first.Outputs[0].Shape)
	shape[len(shape)-1] = ir.D(w.Const.Dims[1])
	y := m.value("joined", first.Outputs[0].DType, shape)
	m.node("joined", first.Domain, first.Op, first.Attrs, []*ir.Value{first.Inputs[0], w}, []*ir.Value{y})
	parts := m.constant("extents", ir.FromSlice(ir.Int64, extents, int64(len(extents))))
	m.node("parts", "", "Split", ir.Attrs{"axis": ir.IntAttr(int64(len(shape) - 1))}, []*ir.Value{y, parts}, results)
	return m.nodes
}
