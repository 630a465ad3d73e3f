package engine

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// sway is how far the outputs of a model move when its inputs and weights change by as much as a program of its precision
// rounds. It is large where the model is ill-conditioned: where it selects the larger of two nearly equal numbers, rounds
// or compares numbers next to a bound, or divides by nearly nothing. There two engines that are both right differ by more
// than any limit, on random inputs far more often than on real ones. An engine that is wrong differs by more than that.
type sway struct {
	c    *Comparer
	in   Tensors
	want Tensors // what the model gives for in; nil if the reference is not the model
	// moved has the differences by output, nil before they are measured.
	moved map[string]tolerance.Difference
}

// swayFactor is how much further than the model sways a program may be off. It rounds in each operator, and the sway is
// that of a few draws.
const swayFactor = 8

// swayDraws is how many times inputs and weights are changed.
const swayDraws = 3

// swayMost is how far off a program may be at most, as relative L2 error or share of the elements. Beyond that a wrong
// program differs no more than a right one, and nothing has been shown.
const swayMost = 0.25

// explains reports whether the difference of an output is within the sway of the model, and how far it sways: by relative
// L2, or by the share of elements that change where they are no floats; 0 if that was not measured.
func (s *sway) explains(d tolerance.Difference) (ok bool, by float64) {
	if s.want == nil || s.c.Search != nil || s.c.Limit > 0 || d.Problem != "" || !s.measure() {
		return false, 0
	}
	m, off := s.moved[d.Name], d.RelL2
	by = m.RelL2
	if !s.want[d.Name].DType.IsFloat() {
		n := float64(max(d.Elements, 1))
		by, off = float64(m.Unequal)/n, float64(d.Unequal)/n
	} else if d.MaxAbs > swayFactor*m.MaxAbs {
		return false, by
	}
	return off <= min(swayFactor*by, swayMost) && d.Special <= swayFactor*m.Special && m.Unequal > 0, by
}

// measure fills moved. It returns false if the evaluator cannot run the changed model.
func (s *sway) measure() bool {
	if s.moved != nil {
		return true
	}
	moved := map[string]tolerance.Difference{}
	unit := s.unit()
	for draw := range uint64(swayDraws) {
		r := rand.New(rand.NewPCG(draw, 1))
		g, in := changedWeights(s.c.Model, r, unit), Tensors{}
		for _, name := range slices.Sorted(maps.Keys(s.in)) {
			in[name] = changed(s.in[name], r, unit)
		}
		out, err := eval.Run(g, in, eval.Options{})
		if err != nil {
			return false
		}
		for name, w := range s.want {
			d, m := tolerance.Compare(name, out[name], w), moved[name]
			m.MaxAbs, m.RelL2 = max(m.MaxAbs, d.MaxAbs), max(m.RelL2, d.RelL2)
			m.Unequal, m.Special = max(m.Unequal, d.Unequal), max(m.Special, d.Special)
			moved[name] = m
		}
	}
	s.moved = moved
	return true
}

// unit is the relative change of a number: that of float32 with a few roundings, or of what the precision stores.
func (s *sway) unit() float32 {
	if u := tolerance.LimitIn(s.c.Precision, ir.Float32).Abs; u > tolerance.LimitFor(ir.Float32).Abs {
		return float32(u / 2)
	}
	return 1.0 / (1 << 21)
}

// changedWeights is g with other weights: constants of more than a few float32.
func changedWeights(g *ir.Graph, r *rand.Rand, unit float32) *ir.Graph {
	const few = 8
	g = ir.Clone(g)
	ir.EachGraph(g, func(g *ir.Graph) {
		for _, v := range g.Consts {
			if v.Const.Len() > few {
				v.Const = changed(v.Const, r, unit)
			}
		}
	})
	return g
}

// changed is t with each float32 changed by at most unit of it; other tensors stay as they are.
func changed(t *ir.Tensor, r *rand.Rand, unit float32) *ir.Tensor {
	from, ok := t.Data.([]float32)
	if !ok {
		return t
	}
	to := make([]float32, len(from))
	for i, x := range from {
		to[i] = x + x*unit*(2*r.Float32()-1)
	}
	return &ir.Tensor{DType: t.DType, Dims: t.Dims, Data: to}
}
