package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// mostCentredRows is how many rows a product has that absorbs a LayerNormalization: as many as four beams have, with which
// it was measured. In float32 the code of such a product with eight rows takes 24 KB.
const mostCentredRows = 4

// Products of many rows normalise these where the device and the precision say so (Options.NormalisesRows), of which the
// following are worth it: below, there are kernels for fewer rows, and above, a launch more counts for little beside what
// every rTask of a row of tiles would do again.
const fewestTiledRows, mostTiledRows = 65, 4096

// absorbNorms makes products of few rows normalise the rows that they read. The time of such a product is that of its
// weights, while a normalisation of few rows before it is a step of its own in which most of the device waits:
//
//	x ─▶ RMSNormalization(scale) ─┬▶ MatMul(w1) ─▶        x ─┬▶ rammer.RMSMatMul(scale·w1) ─▶
//	                              └▶ MatMul(w2) ─▶           └▶ rammer.RMSMatMul(scale·w2) ─▶
//
// Every product then adds up the squares of the rows once more, beside its own sums. A LayerNormalization becomes a
// part of products in the same way. The mean of a row need not be taken off it if it is taken off the columns of the
// weights, and the bias, multiplied by the weights, becomes a part of what is added behind the product:
//
//	Σ_k (x_k - mean)·w_k = Σ_k x_k·(w_k - Σ w/K)
//
// Products of many rows, which tensor cores multiply, do the same: what normalises before them is a launch of little work.
//
// Requires: RMSNormalization and LayerNormalization recognised, constants folded. Leaves: rammer.RMSMatMul with constant
// weights, in place of normalisations of the last axis all of whose users are such products.
func absorbNorms(c *Context, g *ir.Graph) (bool, error) {
	uses := c.usesIn(g)
	absorbs := map[*ir.Value]bool{}
	for _, n := range g.Nodes {
		if n.Is("LayerNormalization") && c.Opts.Weights == "" && c.absorbableLayerNorm(n, uses) {
			absorbs[n.Outputs[0]] = true
		}
		if n.IsInternal("RMSNormalization") && n.Int("axis", -1) == int64(len(n.Inputs[0].Shape))-1 &&
			n.Outputs[0].DType == ir.Float32 && constOf(n.Inputs[1]) != nil &&
			c.onlyAbsorbing(uses[n.Outputs[0]], n.Outputs[0], mostRows) {
			absorbs[n.Outputs[0]] = true
		}
	}
	type scaled struct {
		w, scale *ir.Value
		centred  bool
	}
	weights := map[scaled]*ir.Value{}
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		if !n.Is("MatMul") || !absorbs[n.Inputs[0]] {
			return
		}
		norm := n.Inputs[0].Def
		centred := norm.Is("LayerNormalization")
		key := scaled{n.Inputs[1], norm.Inputs[1], centred}
		if weights[key] == nil {
			w := scaledRows(n.Inputs[1].Const, norm.Inputs[1].Const)
			if centred {
				centreColumns(w)
			}
			weights[key] = s.constant(n.Inputs[1].Name, w)
		}
		attrs := ir.Attrs{"rms_epsilon": ir.FloatAttr(norm.Float("epsilon", 1e-5))}
		if centred {
			attrs["centred"] = ir.IntAttr(1)
			s.addToShift(uses[n.Outputs[0]], n.Inputs[1].Const, norm.Input(2))
		}
		s.become("RMSMatMul", attrs, []*ir.Value{norm.Inputs[0], weights[key]}, norm)
		n.Domain = ir.InternalDomain
	}), nil
}

// absorbableLayerNorm reports whether products that normalise rows are all that use a LayerNormalization, and whether its
// bias, if it has one, can go into a constant that is added behind each of them.
func (c *Context) absorbableLayerNorm(n *ir.Node, uses map[*ir.Value][]ir.Use) bool {
	x, y := n.Inputs[0], n.Outputs[0]
	if len(n.Outputs) > 1 || y.DType != ir.Float32 || normalAxis(n.Int("axis", -1), len(x.Shape)) != len(x.Shape)-1 ||
		constOf(n.Inputs[1]) == nil || !c.onlyAbsorbing(uses[y], y, mostCentredRows) {
		return false
	}
	bias := n.Input(2)
	if bias == nil {
		return true
	}
	if constOf(bias) == nil {
		return false
	}
	for _, u := range uses[y] {
		if _, shift := shiftBehind(uses[u.Node.Outputs[0]]); shift == nil && !isExactly(bias, 0) {
			return false
		}
	}
	return true
}

// shiftBehind is the Add that is the only user of a product, and the place of its operand that is a constant with a
// number for each column; nil if there is none.
func shiftBehind(uses []ir.Use) (at int, add *ir.Node) {
	if len(uses) != 1 || uses[0].Node == nil || !uses[0].Node.Is("Add") {
		return 0, nil
	}
	add, at = uses[0].Node, 1-uses[0].Index
	columns, ok := lastExtent(add.Inputs[1-at])
	if c := constOf(add.Inputs[at]); c == nil || !ok || len(c.Dims) != 1 || c.Dims[0] != columns {
		return 0, nil
	}
	return at, add
}

// addToShift adds a bias that is multiplied by w to what is added to a product.
func (s *sweep) addToShift(uses []ir.Use, w *ir.Tensor, bias *ir.Value) {
	if bias == nil || isExactly(bias, 0) {
		return
	}
	at, add := shiftBehind(uses)
	columns := int(w.Dims[1])
	sums := make([]float64, columns)
	for k, b := range ir.Slice[float32](bias.Const) {
		for j, x := range ir.Slice[float32](w)[k*columns:][:columns] {
			sums[j] += float64(b) * float64(x)
		}
	}
	old := add.Inputs[at]
	out := slices.Clone(ir.Slice[float32](old.Const))
	for j := range out {
		out[j] = float32(float64(out[j]) + sums[j])
	}
	add.Inputs[at] = s.constant(old.Name, ir.FromSlice(ir.Float32, out, old.Const.Dims...))
	s.count([]*ir.Value{old}, -1)
	s.count([]*ir.Value{add.Inputs[at]}, 1)
}

// centreColumns takes its mean off each column of w[K,N].
func centreColumns(w *ir.Tensor) {
	k, n := int(w.Dims[0]), int(w.Dims[1])
	v, means := ir.Slice[float32](w), make([]float64, n)
	for i := range v {
		means[i%n] += float64(v[i]) / float64(k)
	}
	for i := range v {
		v[i] = float32(float64(v[i]) - means[i%n])
	}
}

// onlyAbsorbing reports whether all uses of v are products with constant matrices that can normalise its rows: of which
// there are `few` at most, or many.
func (c *Context) onlyAbsorbing(uses []ir.Use, v *ir.Value, few int64) bool {
	dims, ok := v.Shape.Consts()
	if !ok || len(uses) == 0 || ir.Count(dims) == 0 {
		return false
	}
	rows := ir.Count(dims[:len(dims)-1])
	tiled := c.Opts.NormalisesRows != nil && rows >= fewestTiledRows && rows <= mostTiledRows && !takesMovedRows(v.Def)
	for _, u := range uses {
		n := u.Node
		if n == nil || !n.Is("MatMul") || n.Inputs[0] != v || constOf(n.Inputs[1]) == nil ||
			len(n.Inputs[1].Const.Dims) != 2 || n.Inputs[1].DType != ir.Float32 ||
			rows > few && !(tiled && c.Opts.NormalisesRows(c.Opts.Precision.Of(n))) {
			return false
		}
	}
	return true
}

// takesMovedRows reports whether what n normalises are rows that were moved, or sums with such, as those of a Swin
// transformer's windows are: one rOperator gathers them, adds them and normalises the sums (fuse-gather-norm).
func takesMovedRows(n *ir.Node) bool {
	x := n.Inputs[0]
	if movedBy(x, "Slice", "Concat", "Gather") {
		return true
	}
	add := definedBy(x, "Add")
	return add != nil && slices.ContainsFunc(add.Inputs, func(v *ir.Value) bool {
		return movedBy(v, "Slice", "Concat", "Gather", "Transpose")
	})
}

// movedBy reports whether v comes from one of such operators, possibly with another shape.
func movedBy(v *ir.Value, ops ...string) bool {
	for v.Def != nil && (v.Def.Is("Reshape") || v.Def.Is("Squeeze") || v.Def.Is("Unsqueeze") || v.Def.Is("Flatten")) {
		v = v.Def.Inputs[0]
	}
	return slices.ContainsFunc(ops, func(op string) bool { return v.Def != nil && v.Def.Is(op) })
}

// scaledRows is w[K,N] with row k multiplied by scale number k; one scale may stand for all.
func scaledRows(w, scale *ir.Tensor) *ir.Tensor {
	n := w.Dims[1]
	from, by := ir.Slice[float32](w), ir.Slice[float32](scale)
	out := make([]float32, len(from))
	for i, x := range from {
		k := int64(i) / n
		if len(by) == 1 {
			k = 0
		}
		out[i] = x * by[k]
	}
	return ir.FromSlice(ir.Float32, out, w.Dims...)
}
