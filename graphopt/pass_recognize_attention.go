package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// recognizeAttention finds softmax(scale·q·kᵀ + mask)·v, from the last MatMul backwards, and replaces it by the
// internal operator Attention. The scale may multiply the scores, q, kᵀ, or several of them. The mask may be a summand,
// or a Where that is equivalent to one. A Where that replaces NaN by 0 between the Softmax and the last MatMul becomes
// the attribute nan_to_zero.
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
	q, kt, v, mask *ir.Value
	scale          float64
	nanToZero      bool
	absorbed       []*ir.Node
	// If the mask is a Where, condition is its condition: a score is kept where condition equals whenKept, and is
	// replaced by masked elsewhere.
	condition *ir.Value
	masked    float64
	whenKept  bool
}

// attention tries to match n as the last MatMul, and replaces it if it matches.
func (s *sweep) attention(n *ir.Node) {
	m := &attentionMatch{scale: 1, v: n.Inputs[1]}
	scores := s.softmaxInput(n.Inputs[0], m)
	if scores == nil {
		return
	}
	product := s.scoresProduct(s.peelMask(scores, m), m)
	if product == nil {
		return
	}
	m.q, m.kt = product.Inputs[0], product.Inputs[1]
	m.q = peelScale(m.q, m)
	m.kt = peelScale(m.kt, m)
	if !m.shapesFit(scores) || !s.c.attentionFits(m) {
		return
	}
	m.absorbed = append(m.absorbed, product)
	if m.condition != nil {
		m.mask = s.additiveMask(m)
	}
	s.emitAttention(n, m)
}

func (s *sweep) emitAttention(n *ir.Node, m *attentionMatch) {
	in := []*ir.Value{m.q, s.untransposed(m), m.v}
	if m.mask != nil {
		in = append(in, m.mask)
	}
	scale := m.scale
	if m.q.DType != ir.Float64 {
		scale = float64(float32(scale))
	}
	attrs := ir.Attrs{"scale": ir.FloatAttr(scale)}
	if m.nanToZero {
		attrs["nan_to_zero"] = ir.IntAttr(1)
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

// peelMask returns the scores without the mask, and notes the mask in m. A mask is a summand, or a Where that replaces
// scores by a large negative number.
func (s *sweep) peelMask(scores *ir.Value, m *attentionMatch) *ir.Value {
	if !s.single(scores) {
		return scores
	}
	if add := definedBy(scores, "Add"); add != nil {
		for i, x := range add.Inputs {
			if s.scoresProduct(x, &attentionMatch{}) != nil && sameType(x, scores) {
				m.mask = add.Inputs[1-i]
				m.absorbed = append(m.absorbed, add)
				return x
			}
		}
	}
	where := definedBy(scores, "Where")
	if where == nil {
		return scores
	}
	for i := 1; i <= 2; i++ { // input i of the Where keeps the score
		x := where.Inputs[i]
		value, ok := scalar(where.Inputs[3-i])
		// The sum of such a number and a score of ordinary size is the number itself, so adding it is the same as
		// replacing.
		if ok && value < -1e30 && s.scoresProduct(x, &attentionMatch{}) != nil && sameType(x, scores) {
			m.condition, m.masked, m.whenKept = where.Inputs[0], value, i == 1
			m.absorbed = append(m.absorbed, where)
			return x
		}
	}
	return scores
}

// additiveMask makes the summand that is equivalent to a masking Where: 0 where the score is kept, masked elsewhere.
func (s *sweep) additiveMask(m *attentionMatch) *ir.Value {
	d, base := m.q.DType, s.node.Outputs[0].Name
	kept := s.constant(base+".kept", filled(d, 0))
	masked := s.constant(base+".masked", filled(d, m.masked))
	x, y := masked, kept
	if m.whenKept {
		x, y = kept, masked
	}
	return s.add("Where", nil, mergeOrigins(m.absorbed...), d, m.condition.Shape, base+".mask", m.condition, x, y)
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

// shapesFit checks that q, kᵀ and v have equal axes before the last two, and that mask and condition do not broadcast
// the scores to a higher rank.
func (m *attentionMatch) shapesFit(scores *ir.Value) bool {
	rank := len(m.q.Shape)
	if rank < 2 || len(m.kt.Shape) != rank || len(m.v.Shape) != rank || !m.q.DType.IsFloat() {
		return false
	}
	batch := m.q.Shape[:rank-2]
	if !batch.Equal(m.kt.Shape[:rank-2]) || !batch.Equal(m.v.Shape[:rank-2]) {
		return false
	}
	for _, v := range []*ir.Value{m.mask, m.condition} {
		if v != nil && (v.Shape == nil || len(v.Shape) > rank) {
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
		return k
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
	if !k.Shape.Equal(swapped) || r < 2 || !joined[r-2:].Equal(swapped[rank-2:]) {
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
