package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// takeBands moves masks that are bands of keys to m.before and m.behind. A causal mask with three past keys has
// behind = 3, and a sliding window of two keys beside it has before = 2:
//
//	         key 0 1 2 3 4 5
//	query 0      · · x x · ·
//	query 1      · · · x x ·
//	query 2      · · · · x x
//
// A mask that hides keys by a finite number is taken only if it is alone: where another mask hides the keys of the band,
// the two together decide which keys are hidden least.
func (s *sweep) takeBands(m *attentionMatch, scores ir.Shape) {
	var left []attentionMask
	for _, x := range m.masks {
		b := s.bandOf(x, scores)
		if b == nil || b.finite && len(m.masks) > 1 {
			left = append(left, x)
			continue
		}
		m.before, m.behind = max(m.before, b.before), min(m.behind, b.behind)
	}
	m.masks = left
}

// band says that query i attends to keys i+before … i+behind.
type band struct {
	before, behind int64
	finite         bool // keys are hidden by a number that is not -∞
}

// bandOf is the band that a mask stands for. It is nil if the mask is not known, is not the same for all heads, changes
// scores of keys that it does not hide, hides all keys of a query, or has another form than a band.
func (s *sweep) bandOf(x attentionMask, scores ir.Shape) *band {
	n := len(scores)
	if !x.scores.Equal(scores) {
		return nil
	}
	dims, ok := scores[n-2:].Consts()
	if !ok || dims[0]*dims[1] == 0 {
		return nil
	}
	t := s.known(x.term(), dims[0]*dims[1])
	if t == nil || t.Len() != dims[0]*dims[1] || len(t.Dims) < 2 || t.Dims[len(t.Dims)-1] != dims[1] {
		return nil
	}
	mask := x.summands(t)
	b := &band{before: -ir.Unbounded, behind: ir.Unbounded}
	rows := make([][2]int64, dims[0])
	for q := range dims[0] {
		row := mask[q*dims[1] : (q+1)*dims[1]]
		from, to := visible(row)
		if from > to {
			return nil
		}
		rows[q] = [2]int64{from, to}
		if from > 0 {
			b.before = max(b.before, from-q)
			b.finite = b.finite || !math.IsInf(row[0], -1)
		}
		if to < dims[1]-1 {
			b.behind = min(b.behind, to-q)
			b.finite = b.finite || !math.IsInf(row[dims[1]-1], -1)
		}
	}
	for q, r := range rows {
		if r[0] != max(0, int64(q)+b.before) || r[1] != min(dims[1]-1, int64(q)+b.behind) {
			return nil
		}
	}
	return b
}

// summands are the numbers that the mask adds to scores, if t are the elements of its term.
func (x *attentionMask) summands(t *ir.Tensor) []float64 {
	if x.condition == nil {
		return numbers(t)
	}
	out := make([]float64, t.Len())
	for i, c := range ir.Slice[bool](t) {
		if c != x.whenKept {
			out[i] = x.masked
		}
	}
	return out
}

// visible is the range of keys, both ends included, that a row of a mask does not hide. It is empty (from > to) if the
// row hides all keys, or has another number than 0 in between.
func visible(row []float64) (from, to int64) {
	from, to = int64(len(row)), -1
	for k, x := range row {
		switch {
		case x == 0 && (to < 0 || to == int64(k)-1):
			from, to = min(from, int64(k)), int64(k)
		case x == 0 || !(x <= hidden):
			return 0, -1
		}
	}
	return from, to
}

// mostKnown is how many elements known computes at most. A mask of 4096 queries and keys has so many.
const mostKnown = 1 << 24

// known computes v if it depends on constants alone. Masks of many queries and keys are too large to be constants of the
// model, and are not folded; the bands that they stand for are two numbers.
func (s *sweep) known(v *ir.Value, elements int64) *ir.Tensor {
	if v.Const != nil {
		return v.Const
	}
	dims, ok := v.Shape.Consts()
	n := v.Def
	if n == nil || !ok || ir.Count(dims) > min(elements, mostKnown) || len(n.Outputs) != 1 || n.Domain != "" {
		return nil
	}
	if op := ir.LookupOp(n.Domain, n.Op); op == nil || op.Kind == ir.KindControl || !eval.Supports(n.Domain, n.Op) {
		return nil
	}
	in := make([]*ir.Tensor, len(n.Inputs))
	for i, x := range n.Inputs {
		if x != nil {
			if in[i] = s.known(x, elements); in[i] == nil {
				return nil
			}
		}
	}
	out, err := eval.NodeWith(n, in, eval.Options{MaxBytes: 8 * mostKnown})
	if err != nil {
		return nil
	}
	return out[0]
}
