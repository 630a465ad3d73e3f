package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// splitRotary computes rotary position embeddings part by part. Exporters write x·cos + turned(x)·sin with the turned x
// as a concatenation of pieces of x, usually halves, of which one is negated:
//
//	x ─┬──────────────────────────▶ Mul(cos) ─┐
//	   ├─▶ Slice ─▶ Neg ─▶ Concat ─▶ Mul(sin) ─▶ Add
//	   └─▶ Slice ───────────▶
//
// As it stands the concatenation is stored before it can be multiplied. Afterwards each piece of the result is an
// elementwise function of two pieces of x, and the pieces are concatenated, which moves nothing:
//
//	piece i of the result = x_i·cos_i + turned_i·sin_i
//
// Requires: constants folded; runs before extract-views, which makes views of the slices. Leaves: Concat of sums.
func splitRotary(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		if !n.Is("Add") {
			return
		}
		for i := range n.Inputs {
			if r := s.rotary(n, n.Inputs[1-i], n.Inputs[i]); r != nil {
				s.concatSums(n, r)
				return
			}
		}
	}), nil
}

// rotaryParts are the operands of x·cos + turned·sin.
type rotaryParts struct {
	x, cos, sin *ir.Value
	turned      *ir.Node // the Concat
	absorbed    []*ir.Node
}

// rotary matches straight as x·cos and across as the product of sin and a Concat of pieces of x along the last axis.
func (s *sweep) rotary(n *ir.Node, straight, across *ir.Value) *rotaryParts {
	p, q := definedBy(straight, "Mul"), definedBy(across, "Mul")
	if p == nil || q == nil || !s.single(straight) || !s.single(across) || !sameType(straight, across) {
		return nil
	}
	for i, v := range q.Inputs {
		turned := definedBy(v, "Concat")
		if turned == nil || !s.single(v) || !sameType(v, n.Outputs[0]) || !alongLast(turned) {
			continue
		}
		for k, x := range p.Inputs {
			if sameType(x, v) && isTurned(turned, x) && slicesLast(p.Inputs[1-k], v) && slicesLast(q.Inputs[1-i], v) {
				return &rotaryParts{x: x, cos: p.Inputs[1-k], sin: q.Inputs[1-i], turned: turned,
					absorbed: []*ir.Node{p, q, turned}}
			}
		}
	}
	return nil
}

func alongLast(concat *ir.Node) bool {
	rank := len(concat.Outputs[0].Shape)
	return normalAxis(concat.Int("axis", 0), rank) == rank-1
}

// isTurned reports whether all inputs of a Concat are pieces of x, some of them perhaps negated.
func isTurned(concat *ir.Node, x *ir.Value) bool {
	return !slices.ContainsFunc(concat.Inputs, func(v *ir.Value) bool {
		if neg := definedBy(v, "Neg"); neg != nil {
			v = neg.Inputs[0]
		}
		piece := definedBy(v, "Slice")
		if piece == nil {
			piece = definedBy(v, "Split")
		}
		last, ok := lastExtent(v)
		return !ok || last == 0 || piece == nil || piece.Inputs[0] != x
	})
}

// slicesLast reports whether v can be cut along the last axis as whole is: it has the same extent there, or just one.
func slicesLast(v, whole *ir.Value) bool {
	if len(v.Shape) == 0 {
		return true
	}
	n, ok := lastExtent(v)
	m, _ := lastExtent(whole)
	return ok && (n == 1 || n == m)
}

func lastExtent(v *ir.Value) (int64, bool) {
	if len(v.Shape) == 0 {
		return 0, false
	}
	return v.Shape[len(v.Shape)-1].Const()
}

// concatSums makes n the Concat of sums.
func (s *sweep) concatSums(n *ir.Node, r *rotaryParts) {
	out := n.Outputs[0]
	rank := len(out.Shape)
	origins := mergeOrigins(append([]*ir.Node{n}, r.absorbed...)...)
	var pieces []*ir.Value
	first := int64(0)
	for _, v := range r.turned.Inputs {
		extent, _ := lastExtent(v)
		shape := append(slices.Clone(out.Shape[:rank-1]), ir.Dims(extent)...)
		product := func(a, b *ir.Value) *ir.Value {
			return s.add("Mul", nil, origins, out.DType, shape, out.Name, a, s.piece(b, first, extent, origins))
		}
		straight, across := product(s.piece(r.x, first, extent, origins), r.cos), product(v, r.sin)
		pieces = append(pieces, s.add("Add", nil, origins, out.DType, shape, out.Name, straight, across))
		first += extent
	}
	s.become("Concat", ir.Attrs{"axis": ir.IntAttr(int64(rank - 1))}, pieces, r.absorbed...)
}

// piece is v from first on along its last axis, v itself where it is broadcast along that.
func (s *sweep) piece(v *ir.Value, first, extent int64, origins []ir.Origin) *ir.Value {
	rank := len(v.Shape)
	if n, ok := lastExtent(v); !ok || n == 1 && extent != 1 {
		return v
	}
	bounds := [3]*ir.Tensor{}
	for i, x := range []int64{first, first + extent, int64(rank - 1)} {
		bounds[i] = ir.FromSlice(ir.Int64, []int64{x}, 1)
	}
	if v.Const != nil {
		return s.constant(v.Name, compute("Slice", nil, v.Const, bounds[0], bounds[1], bounds[2]))
	}
	in := []*ir.Value{v}
	for _, t := range bounds {
		in = append(in, s.constant(v.Name+".bound", t))
	}
	shape := append(slices.Clone(v.Shape[:rank-1]), ir.Dims(extent)...)
	return s.add("Slice", nil, origins, v.DType, shape, v.Name, in...)
}
