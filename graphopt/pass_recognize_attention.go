package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// recognizeAttention finds softmax(scale·q·kᵀ + mask)·v, from the last MatMul backwards, and replaces it by the
// internal operator Attention. The scale may multiply the scores, q, kᵀ, or several of them. The mask may be a sum of
// several, also on scores with more axes; a summand may be a Where that is equivalent to one. Constant masks that are
// causal or sliding windows become the attributes before and behind. A Where that replaces NaN by 0 between the Softmax
// and the last MatMul becomes the attribute nan_to_zero. Heads of keys and values that are repeated for several heads of
// queries are taken once.
//
// Requires: constants folded, identities removed, Softmax recognised, types inferred; it must run before scales are
// merged with other constants. Leaves: Attention, whose k is not transposed. If the model computes kᵀ in another way
// than by a Transpose, k is a new Transpose of it.
func recognizeAttention(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		if n.Is("MatMul") {
			s.attention(n)
		}
	}), nil
}

// attentionMatch is what is known of a match so far.
type attentionMatch struct {
	q, kt, v       *ir.Value
	scale          float64
	nanToZero      bool
	absorbed       []*ir.Node
	masks          []attentionMask
	before, behind int64 // query i attends to keys i+before … i+behind
}

// attention tries to match n as the last MatMul, and replaces it if it matches.
func (s *sweep) attention(n *ir.Node) {
	m := &attentionMatch{scale: 1, v: n.Inputs[1], before: -ir.Unbounded, behind: ir.Unbounded}
	scores := s.softmaxInput(n.Inputs[0], m)
	if scores == nil {
		return
	}
	product := s.scoresProduct(s.peelMasks(scores, m), m)
	if product == nil {
		return
	}
	m.q, m.kt = product.Inputs[0], product.Inputs[1]
	m.q = peelScale(m.q, m)
	m.kt = peelScale(m.kt, m)
	if !product.Outputs[0].Shape.Equal(scores.Shape) || !m.shapesFit(scores) || !s.c.attentionFits(m) {
		return
	}
	m.absorbed = append(m.absorbed, product)
	s.takeBands(m, scores.Shape)
	s.emitAttention(n, m, s.maskSum(m, scores.Shape))
}

func (s *sweep) emitAttention(n *ir.Node, m *attentionMatch, mask *ir.Value) {
	in := []*ir.Value{m.q, s.untransposed(m), m.v}
	if mask != nil {
		in = append(in, mask)
	}
	scale := m.scale
	if m.q.DType != ir.Float64 {
		scale = float64(float32(scale))
	}
	attrs := ir.Attrs{"scale": ir.FloatAttr(scale)}
	if m.nanToZero {
		attrs["nan_to_zero"] = ir.IntAttr(1)
	}
	if m.before > -ir.Unbounded {
		attrs["before"] = ir.IntAttr(m.before)
	}
	if m.behind < ir.Unbounded {
		attrs["behind"] = ir.IntAttr(m.behind)
	}
	if s.sharedHeads(n, in, attrs, m) {
		return
	}
	s.become("Attention", attrs, in, m.absorbed...)
	n.Domain = ir.InternalDomain
}

// softmaxInput returns the input of the Softmax along the last axis that computes p, directly or followed by
// Where(IsNaN(p), 0, p). It is nil if p has another form.
func (s *sweep) softmaxInput(p *ir.Value, m *attentionMatch) *ir.Value {
	uses := 1
	if where := definedBy(p, "Where"); where != nil {
		isNaN := definedBy(where.Inputs[0], "IsNaN")
		if isNaN == nil || isNaN.Inputs[0] != where.Inputs[2] || !isExactly(where.Inputs[1], 0) || !s.single(p) {
			return nil
		}
		m.absorbed = append(m.absorbed, isNaN, where)
		m.nanToZero = true
		p, uses = where.Inputs[2], 2
	}
	softmax := definedBy(p, "Softmax")
	if softmax == nil || s.uses[p] != uses || s.output[p] {
		return nil
	}
	x := softmax.Inputs[0]
	if x.Shape == nil || normalAxis(softmax.Int("axis", -1), len(x.Shape)) != len(x.Shape)-1 {
		return nil
	}
	m.absorbed = append(m.absorbed, softmax)
	return x
}

// scoresProduct returns the MatMul that computes v, up to scalar factors and divisors, which it moves to m.scale. It is
// nil if v is computed in another way or has other uses.
func (s *sweep) scoresProduct(v *ir.Value, m *attentionMatch) *ir.Node {
	if !s.single(v) {
		return nil
	}
	under := peelScale(v, m)
	if under != v && !s.single(under) {
		return nil
	}
	return definedBy(under, "MatMul")
}

// peelScale returns v without scalar factors and divisors, which it moves to m.scale.
func peelScale(v *ir.Value, m *attentionMatch) *ir.Value {
	for {
		n := v.Def
		if n == nil || !n.Is("Mul") && !n.Is("Div") {
			return v
		}
		x, c := constantSide(n, n.Op == "Mul")
		factor, ok := scalar(c)
		if !ok || factor == 0 || !sameType(x, v) {
			return v
		}
		if n.Op == "Mul" {
			m.scale *= factor
		} else {
			m.scale /= factor
		}
		m.absorbed = append(m.absorbed, n)
		v = x
	}
}

// shapesFit checks that q, kᵀ and v have equal axes before the last two, and that masks do not broadcast the scores to a
// higher rank.
func (m *attentionMatch) shapesFit(scores *ir.Value) bool {
	rank := len(m.q.Shape)
	if rank < 2 || len(m.kt.Shape) != rank || len(m.v.Shape) != rank || !m.q.DType.IsFloat() {
		return false
	}
	batch := m.q.Shape[:rank-2]
	if !batch.Equal(m.kt.Shape[:rank-2]) || !batch.Equal(m.v.Shape[:rank-2]) {
		return false
	}
	for _, x := range m.masks {
		if x.term().Shape == nil || len(x.term().Shape) > len(x.scores) || !x.fits(scores.Shape) {
			return false
		}
	}
	return len(scores.Shape) == rank
}

// attentionFits reports that there are rKernels for the match: for its element type, and for heads of its size as far
// as that is known. The parts of attention with larger heads have rKernels of their own.
func (c *Context) attentionFits(m *attentionMatch) bool {
	f := c.kernels.Fusing(ir.InternalDomain, "Attention")
	within := func(quantity string, v *ir.Value) bool {
		n, known := v.Shape[len(v.Shape)-1].Const()
		return !known || f.Within(quantity, n)
	}
	return f.Computes(m.q.DType) && within("depth", m.q) && within("columns", m.v)
}

// untransposed returns k for the match's kᵀ. If kᵀ is a Transpose of the last two axes, k is its input; the Transpose
// may also be between Reshapes that only join and split the axes before these. Otherwise k is a new Transpose.
func (s *sweep) untransposed(m *attentionMatch) *ir.Value {
	rank := len(m.kt.Shape)
	swapped := slices.Clone(m.kt.Shape)
	swapped[rank-2], swapped[rank-1] = swapped[rank-1], swapped[rank-2]
	if k, nodes := betweenReshapes(m.kt, swapped); k != nil {
		m.absorbed = append(m.absorbed, nodes...)
		if k.Shape.Equal(swapped) {
			return k
		}
		return s.reshaped(m, "Reshape", k, swapped.MustConsts())
	}
	x, perm := m.kt, make([]int64, rank)
	for i := range perm {
		perm[i] = int64(i)
	}
	if t := definedBy(m.kt, "Transpose"); t != nil {
		x, perm = t.Inputs[0], permutation(t, rank)
		m.absorbed = append(m.absorbed, t)
	}
	perm[rank-2], perm[rank-1] = perm[rank-1], perm[rank-2]
	if slices.IsSorted(perm) {
		return x
	}
	var origins []ir.Origin
	if m.kt.Def != nil {
		origins = m.kt.Def.Origins
	}
	attrs := ir.Attrs{"perm": ir.IntsAttr(perm...)}
	return s.add("Transpose", attrs, origins, x.DType, swapped, s.node.Outputs[0].Name+".k", x)
}

// betweenReshapes matches kᵀ = Reshape(Transpose(Reshape(k))), where the Reshapes change only axes before the last two,
// and the Transpose exchanges these two. swapped is the shape that k must have.
func betweenReshapes(kt *ir.Value, swapped ir.Shape) (k *ir.Value, nodes []*ir.Node) {
	after := definedBy(kt, "Reshape")
	if after == nil {
		return nil, nil
	}
	t := definedBy(after.Inputs[0], "Transpose")
	if t == nil || !swapsLastTwo(permutation(t, len(t.Inputs[0].Shape))) {
		return nil, nil
	}
	before := definedBy(t.Inputs[0], "Reshape")
	if before == nil {
		return nil, nil
	}
	k, joined := before.Inputs[0], t.Inputs[0].Shape
	rank, r := len(swapped), len(joined)
	if r < 2 || !joined[r-2:].Equal(swapped[rank-2:]) {
		return nil, nil
	}
	if _, known := swapped.Consts(); !known && !k.Shape.Equal(swapped) {
		return nil, nil
	}
	return k, []*ir.Node{before, t, after}
}

// permutation returns a copy of a Transpose's perm. If it is absent, the axes are reversed.
func permutation(t *ir.Node, rank int) []int64 {
	if perm := t.Ints("perm"); perm != nil {
		return slices.Clone(perm)
	}
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(rank - 1 - i)
	}
	return perm
}

// swapsLastTwo reports whether perm exchanges the last two axes and keeps the others.
func swapsLastTwo(perm []int64) bool {
	n := len(perm)
	if n < 2 || perm[n-1] != int64(n-2) || perm[n-2] != int64(n-1) {
		return false
	}
	for i, p := range perm[:n-2] {
		if p != int64(i) {
			return false
		}
	}
	return true
}
