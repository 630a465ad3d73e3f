package gemm

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/gemv"
	"github.com/rammerc/rammerc/rkernels/functor"
)

// Announce finds products of few rows with constant matrices that are carried out together with others. It must be called
// before anything is lowered.
//
//	x ─┬▶ product ──────────────▶ Mul     A product whose result is an operand of the epilogue of another product
//	   └▶ product ─▶ silu ────────▲       of the same rows: both are one, and their results are never stored.
//
//	attention ─▶ views ─▶ product         A product of the only row of attention: it joins the parts that the
//	                                      rTasks of attention leave, which needs no rOperator of its own then.
func Announce(b *build.Builder, g *ir.Graph) {
	uses := ir.Uses(g)
	for _, n := range g.Nodes {
		grp, err := build.NewGroup(n)
		if err != nil || !fewRows(b, grp) {
			continue
		}
		b.Enter(grp)
		announcePair(b, uses, grp)
		announceParts(b, uses, grp)
	}
}

// mostPaired is how many rows products may have that are carried out in pairs.
const mostPaired = 4

// fewRows reports whether g is a product of a few rows with a constant matrix, whose kernels stream it.
func fewRows(b *build.Builder, g *build.Group) bool {
	n := g.Anchor
	if n == nil || !n.Is("MatMul") && !n.IsInternal("RMSMatMul") && !n.IsInternal("QuantizedMatMul") {
		return false
	}
	x, w := g.Inputs[0], g.Inputs[1]
	shape := b.Extents(x, build.ForTiles)
	if x.Const != nil || w.Const == nil || len(w.Const.Dims) != 2 || len(shape) < 2 || ir.Count(shape) == 0 ||
		w.Const.Len() == 0 || functor.RealType(n.Inputs[0].DType) != ir.Float32 {
		return false
	}
	rows, k := ir.Count(shape[:len(shape)-1]), shape[len(shape)-1]
	if rows > mostPaired || !gemv.Normalises(b.Target(), rows, k) {
		return false
	}
	if !n.IsInternal("QuantizedMatMul") {
		return functor.RealType(n.Inputs[1].DType) == ir.Float32
	}
	for _, v := range g.Inputs[2:] {
		if v != nil && v.Const == nil {
			return false
		}
	}
	return gemv.TakesQuantized(b.Target(), n.Int("block", 1), k)
}

// announcePair looks for a product of the same rows among the operands of g's epilogue.
func announcePair(b *build.Builder, uses map[*ir.Value][]ir.Use, g *build.Group) {
	for _, v := range g.Extra {
		if v.Def == nil || len(uses[v]) != 1 || uses[v][0].Node != g.Node || b.Paired(g.Node) || b.Second(g) != nil {
			continue
		}
		second, err := build.NewGroup(v.Def)
		if err == nil && second.Anchor != nil && sameProduct(g, second) && len(second.Extra) == 0 &&
			b.Second(second) == nil && v.Shape.Equal(g.Outputs[0].Shape) && b.PrecisionOf(g) == b.PrecisionOf(second) {
			b.Pair(g, second)
		}
	}
}

// sameProduct reports whether two products differ in nothing but their matrices, and what follows them.
func sameProduct(g, h *build.Group) bool {
	m, n := g.Anchor, h.Anchor
	if m.Op != n.Op || m.Domain != n.Domain || g.Inputs[0] != h.Inputs[0] || len(g.Inputs) != len(h.Inputs) ||
		len(g.Inputs) > 3 ||
		m.Float("rms_epsilon", -1) != n.Float("rms_epsilon", -1) || m.Int("centred", 0) != n.Int("centred", 0) ||
		m.Int("block", 0) != n.Int("block", 0) ||
		!m.Outputs[0].Shape.Equal(n.Outputs[0].Shape) || m.Outputs[0].DType != n.Outputs[0].DType {
		return false
	}
	for i, v := range g.Inputs {
		w := h.Inputs[i]
		if i > 0 && (w == nil || w.Const == nil || w.DType != v.DType || !slices.Equal(w.Const.Dims, v.Const.Dims)) {
			return false
		}
		d := v.DType
		e, f := functor.NewPrologue(d, g.Prologue[i]), functor.NewPrologue(d, h.Prologue[i])
		if e.Key() != f.Key() || !slices.Equal(e.Scalars(), f.Scalars()) {
			return false
		}
	}
	return true
}

// announceParts asks for the parts of attention whose only row is the only row of g's input. They are float32, also where
// the row itself would be stored in 16 bits.
func announceParts(b *build.Builder, uses map[*ir.Value][]ir.Use, g *build.Group) {
	x := g.Inputs[0]
	if _, normalised := g.Anchor.Attrs["rms_epsilon"]; normalised || b.Second(g) != nil {
		return
	}
	v := x
	for v.Def != nil && len(uses[v]) == 1 && v.Def.IsInternal("View") {
		shown := ir.ViewOf(v.Def)
		from := v.Def.Inputs[0]
		if shown.Offset != 0 || !shown.IsDense() || ir.Count(shown.Shape) != ir.Count(b.Extents(from, build.ForTiles)) {
			return
		}
		v = from
	}
	if v.Def == nil || len(uses[v]) != 1 || uses[v][0].Node == nil || b.HasHome(v) ||
		v.DType != ir.Float32 && !functor.OnlyConverts(g.Prologue[0]) {
		return
	}
	shape, dims := b.Extents(x, build.ForTiles), b.Extents(v, build.ForTiles)
	from, err := build.NewGroup(v.Def)
	if err != nil || ir.Count(shape) != shape[len(shape)-1] || len(dims) < 2 || dims[len(dims)-1]%joinedRun != 0 {
		return
	}
	cached := from.Compound == "CachedAttention" && v.DType == ir.Float32
	if cached || from.Anchor != nil && from.Anchor.IsInternal("Attention") && functor.OnlyConverts(from.Epilogue) {
		b.WantParts(v, x)
	}
}

// joinedRun is how many values of a row a thread joins at a time. They belong to one head.
const joinedRun = 8
