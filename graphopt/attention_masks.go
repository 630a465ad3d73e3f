package graphopt

import (
	"github.com/rammerc/rammerc/ir"
)

// attentionMask is a summand of the scores of attention, or a Where that is equivalent to one.
type attentionMask struct {
	summand *ir.Value
	// If the mask is a Where, condition is its condition: a score is kept where condition equals whenKept, and is
	// replaced by masked elsewhere.
	condition *ir.Value
	masked    float64
	whenKept  bool
	// scores is the shape of the scores that it is applied to. Exporters of windowed attention split the axis of windows
	// off the batch for one of the masks.
	scores ir.Shape
}

// hidden is the greatest number that is taken to hide a key. The sum of such a number and a score of ordinary size is
// the number itself, so adding it is the same as replacing, and its weight beside other scores is 0.
const hidden = -1e30

// term is what the mask is computed from.
func (x *attentionMask) term() *ir.Value {
	if x.condition != nil {
		return x.condition
	}
	return x.summand
}

// idle reports whether the mask hides nothing, as in a step of one token, which sees all before it.
func (x *attentionMask) idle() bool {
	if x.condition != nil {
		all, ok := uniformBool(x.condition)
		return ok && all == x.whenKept
	}
	return isExactly(x.summand, 0)
}

// peelMasks returns the scores without masks, and notes the masks in m.
func (s *sweep) peelMasks(scores *ir.Value, m *attentionMatch) *ir.Value {
	for {
		x := s.peelMask(scores, m)
		if x == nil {
			return scores
		}
		scores = x
	}
}

// peelMask returns the scores without their last mask or Reshape, nil if there is none.
func (s *sweep) peelMask(scores *ir.Value, m *attentionMatch) *ir.Value {
	x, mask := s.maskedScores(scores)
	if x == nil {
		return nil
	}
	if mask.term() != nil && !mask.idle() {
		m.masks = append(m.masks, mask)
	}
	m.absorbed = append(m.absorbed, scores.Def)
	return x
}

// maskedScores matches a value that is computed from scores of attention by adding a mask, by a Where that replaces
// scores by a large negative number, or by a Reshape; then mask has no term.
func (s *sweep) maskedScores(v *ir.Value) (scores *ir.Value, mask attentionMask) {
	if !s.single(v) || v.Def == nil {
		return nil, mask
	}
	mask.scores = v.Shape
	n := v.Def
	switch {
	case n.Is("Add"):
		for i, x := range n.Inputs {
			if sameType(x, v) && s.leadsToScores(x) {
				mask.summand = n.Inputs[1-i]
				return x, mask
			}
		}
	case n.Is("Where"):
		for i := 1; i <= 2; i++ { // input i of the Where keeps the score
			x := n.Inputs[i]
			value, ok := scalar(n.Inputs[3-i])
			if ok && value < hidden && sameType(x, v) && s.leadsToScores(x) {
				mask.condition, mask.masked, mask.whenKept = n.Inputs[0], value, i == 1
				return x, mask
			}
		}
	case n.Is("Reshape") && s.leadsToScores(n.Inputs[0]):
		return n.Inputs[0], mask
	}
	return nil, mask
}

// leadsToScores reports whether v is a product of queries and keys behind any number of masks.
func (s *sweep) leadsToScores(v *ir.Value) bool {
	if s.scoresProduct(v, &attentionMatch{}) != nil {
		return true
	}
	x, _ := s.maskedScores(v)
	return x != nil
}

// fits reports whether the mask can be made one of scores of the given shape: that is the shape it is applied to, or
// has the same last three axes and other axes before.
func (x *attentionMask) fits(scores ir.Shape) bool {
	if x.scores.Equal(scores) {
		return true
	}
	from, to, keep := len(x.scores), len(scores), 3
	if _, ok := x.scores.Consts(); !ok || from < keep || to < keep {
		return false
	}
	return x.scores[from-keep:].Equal(scores[to-keep:])
}

// maskSum computes the sum of the masks, nil if there are none.
func (s *sweep) maskSum(m *attentionMatch, scores ir.Shape) *ir.Value {
	var sum *ir.Value
	for _, x := range m.masks {
		v := x.summand
		if x.condition != nil {
			v = s.additiveMask(m, x)
		}
		v = s.reshapedMask(m, v, x.scores, scores)
		if sum == nil {
			sum = v
			continue
		}
		shape, err := ir.BroadcastShapes(sum.Shape, v.Shape)
		if err != nil {
			panic("BUG: masks of the same scores do not broadcast: " + err.Error())
		}
		sum = s.add("Add", nil, mergeOrigins(m.absorbed...), sum.DType, shape, s.node.Outputs[0].Name+".mask", sum, v)
	}
	return sum
}

// additiveMask makes the summand that is equivalent to a masking Where: 0 where the score is kept, masked elsewhere.
func (s *sweep) additiveMask(m *attentionMatch, x attentionMask) *ir.Value {
	d, base := m.q.DType, s.node.Outputs[0].Name
	kept := s.constant(base+".kept", filled(d, 0))
	masked := s.constant(base+".masked", filled(d, x.masked))
	yes, no := masked, kept
	if x.whenKept {
		yes, no = kept, masked
	}
	return s.add("Where", nil, mergeOrigins(m.absorbed...), d, x.condition.Shape, base+".mask", x.condition, yes, no)
}

// reshapedMask makes of a mask v for scores of shape from one for scores of shape to, which differ in their first axes.
func (s *sweep) reshapedMask(m *attentionMatch, v *ir.Value, from, to ir.Shape) *ir.Value {
	const kept = 3 // last axes that do not change
	if from.Equal(to) || len(v.Shape) <= kept {
		return v
	}
	dims := v.Shape.MustConsts()
	rows := make([]int64, len(from)-len(dims), len(from))
	for i := range rows {
		rows[i] = 1
	}
	rows = append(rows, dims...)
	lead, outer := len(from)-kept, len(to)-kept
	target := make([]int64, outer, len(to))
	if ir.Count(rows[:lead]) == 1 {
		for i := range target {
			target[i] = 1
		}
	} else {
		copy(rows, from[:lead].MustConsts())
		copy(target, to[:outer].MustConsts())
		v = s.reshaped(m, "Expand", v, rows)
	}
	return s.reshaped(m, "Reshape", v, append(target, rows[lead:]...))
}

// reshaped is a Reshape or Expand of v to the given shape.
func (s *sweep) reshaped(m *attentionMatch, op string, v *ir.Value, dims []int64) *ir.Value {
	base := s.node.Outputs[0].Name + ".in"
	shape := s.constant(base+".shape", ir.FromSlice(ir.Int64, dims, int64(len(dims))))
	return s.add(op, nil, mergeOrigins(m.absorbed...), v.DType, ir.Dims(dims...), base, v, shape)
}
