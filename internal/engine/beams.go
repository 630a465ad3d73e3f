package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// beams are the answers that a search with beams keeps, the best first. Each is a row of the decoder.
type beams struct {
	rows
	scores []float64 // sums of logarithms of probabilities
}

// followBeams is Follow for a search with n beams. Another engine's answer is as good as the own one if its score is:
// the evaluator computes it, too.
func (s *Search) followBeams(in, other Tensors, n int64) (Tensors, error) {
	width, length := int(in["prompt"].Dims[1]), ir.Slice[int64](in["prompt_length"])[0]
	limit := min(ir.Slice[int64](in["limit"])[0], int64(width))
	if length < 1 || length > int64(width) {
		return nil, diag.New("bad-input", "prompt_length is %d: want 1 to %d", length, width)
	}
	prompt := ir.Slice[int64](in["prompt"])[:length]
	b := &beams{rows: rows{width: width}}
	for range n {
		b.tokens, b.ended = append(b.tokens, prompt[:1:1]), append(b.ended, false)
		b.scores = append(b.scores, math.Inf(-1))
	}
	b.scores[0] = 0
	most := 0.0 // of the magnitudes of logits
	err := s.steps(in, &b.rows, func(step int64, logits *ir.Tensor, held Tensors) bool {
		most = max(most, largest(logits))
		if step+1 < length {
			for i := range b.tokens {
				b.tokens[i] = prompt[: step+2 : step+2]
			}
			return step+2 < limit
		}
		s.keepBest(b, logits, held)
		return step+2 < limit && !b.ended[0]
	})
	if err != nil {
		return nil, err
	}
	best := b.tokens[0]
	if other != nil {
		list := ir.Slice[int64](other["tokens"])
		if k := ir.Slice[int64](other["length"])[0]; k > length && k <= int64(width) && !slices.Equal(list[:k], best) {
			score, err := s.score(in, list[:k], length, n)
			if err != nil {
				return nil, err
			}
			if score >= b.scores[0]-2*s.Slack*most*float64(k-length) {
				best = list[:k]
			}
		}
	}
	r := &rows{prompt: ir.Slice[int64](in["prompt"]), lengths: []int64{length}, width: width, tokens: [][]int64{best}}
	return r.answer(s.Generation.Ends), nil
}

// steps runs the decoder on the tokens of r again and again, until more says that it was the last step.
func (s *Search) steps(in Tensors, r *rows, more func(step int64, logits *ir.Tensor, held Tensors) bool) error {
	held := s.empty(len(r.tokens))
	for step := int64(0); ; step++ {
		out, err := eval.Run(s.Graph, s.feed(in, held, r, step), eval.Options{})
		if err != nil {
			return EvalError(err, s.File)
		}
		for _, c := range s.Generation.Caches {
			held[c[0]] = out[c[1]]
		}
		if !more(step, out["logits"], held) {
			return nil
		}
	}
}

// keepBest lets the best of all answers with a token behind them be those of b, and moves the rows of the caches to
// where they go on.
func (s *Search) keepBest(b *beams, logits *ir.Tensor, held Tensors) {
	type candidate struct {
		from  int
		token int64
		score float64
	}
	var all []candidate
	for i, score := range b.scores {
		switch {
		case b.ended[i]:
			all = append(all, candidate{i, -1, score})
		case !math.IsInf(score, -1):
			for token, x := range logarithms(logits, i) {
				all = append(all, candidate{i, int64(token), score + x})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y candidate) int { return cmp.Compare(y.score, x.score) })
	old := *b
	from := make([]int, len(b.scores))
	b.tokens, b.ended, b.scores = nil, nil, nil
	for k, c := range all[:len(from)] {
		from[k] = c.from
		tokens, ended := old.tokens[c.from], true
		if c.token >= 0 {
			tokens = append(slices.Clone(tokens), c.token)
			ended = slices.Contains(s.Generation.Ends, c.token)
		}
		b.tokens, b.ended, b.scores = append(b.tokens, tokens), append(b.ended, ended), append(b.scores, c.score)
	}
	for name, t := range held {
		held[name] = rowsOf(t, from)
	}
}

// rowsOf are the entries of t along its first axis in another order.
func rowsOf(t *ir.Tensor, from []int) *ir.Tensor {
	size, bytes := int(t.Bytes()/t.Dims[0]), t.LittleEndian()
	var list []byte
	for _, i := range from {
		list = append(list, bytes[i*size:][:size]...)
	}
	out, err := ir.TensorFromBytes(t.DType, t.Dims, list)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return out
}

// score is what the evaluator makes of an answer: the sum of the logarithms of the probabilities of its tokens.
func (s *Search) score(in Tensors, answer []int64, length, n int64) (float64, error) {
	sum, r := 0.0, &rows{tokens: slices.Repeat([][]int64{answer}, int(n))}
	err := s.steps(in, r, func(step int64, logits *ir.Tensor, _ Tensors) bool {
		next := step + 1
		if next >= length {
			list := logarithms(logits, 0)
			if x := answer[next]; x < 0 || x >= int64(len(list)) {
				sum = math.Inf(-1)
			} else {
				sum += list[x]
			}
		}
		return next+1 < int64(len(answer)) && !math.IsInf(sum, -1)
	})
	return sum, err
}

// logarithms are those of the probabilities of all tokens behind row i.
func logarithms(logits *ir.Tensor, i int) []float64 {
	list := make([]float64, logits.Dims[2])
	most, sum := math.Inf(-1), 0.0
	for k := range list {
		list[k] = tolerance.At(logits, int64(i)*logits.Dims[2]+int64(k))
		most = max(most, list[k])
	}
	for _, x := range list {
		sum += math.Exp(x - most)
	}
	for k := range list {
		list[k] -= most + math.Log(sum)
	}
	return list
}

// largest is the largest magnitude in t.
func largest(t *ir.Tensor) float64 {
	most := 0.0
	for i := range t.Len() {
		most = max(most, math.Abs(tolerance.At(t, i)))
	}
	return most
}
