package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// Search carries out what a library that generates does, step by step: the evaluator computes the logits of one token of
// each row, and this code chooses the next ones. It is an Engine, and the reference of such libraries.
type Search struct {
	Graph      *ir.Graph // the decoder; the length of its caches is a symbol
	File       string    // for errors
	Generation runner.Generation
	// Slack is how far below the largest logit that of a token may be which Follow accepts, as a part of the largest
	// magnitude among the logits: arithmetic that is less accurate may choose another one of two that are about as good.
	Slack float64
}

// Name is Eval.
func (s *Search) Name() string { return Eval }

// Close has nothing to release.
func (s *Search) Close() error { return nil }

// Run searches for the answers to prompts.
func (s *Search) Run(in Tensors) (Tensors, error) { return s.Follow(in, nil) }

// rows are the answers to the prompts of a batch while they grow.
type rows struct {
	prompt, lengths []int64
	width           int
	tokens          [][]int64
	ended           []bool
}

// Follow is Run, but where the tokens of another engine are as good as the own ones, it takes those.
func (s *Search) Follow(in, other Tensors) (Tensors, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if n := s.Generation.Beams(); n > 0 {
		return s.followBeams(in, other, n)
	}
	r := &rows{prompt: ir.Slice[int64](in["prompt"]), lengths: ir.Slice[int64](in["prompt_length"]),
		width: int(in["prompt"].Dims[1])}
	limit := min(ir.Slice[int64](in["limit"])[0], int64(r.width))
	for b, n := range r.lengths {
		if n < 1 || n > int64(r.width) {
			return nil, diag.New("bad-input", "prompt_length of row %d is %d: want 1 to %d", b, n, r.width)
		}
		r.tokens = append(r.tokens, []int64{r.prompt[b*r.width]})
		r.ended = append(r.ended, false)
	}
	held := s.empty(len(r.lengths))
	for step := int64(0); ; step++ {
		feed := s.feed(in, held, r, step)
		out, err := eval.Run(s.Graph, feed, eval.Options{})
		if err != nil {
			return nil, EvalError(err, s.File)
		}
		for _, c := range s.Generation.Caches {
			held[c[0]] = out[c[1]]
		}
		s.extend(r, out["logits"], step, other["tokens"])
		if step+2 >= limit || !slices.Contains(r.ended, false) {
			return r.answer(s.Generation.Ends), nil
		}
	}
}

// Check refuses a graph that is no decoder.
func (s *Search) Check() error {
	ids := slices.ContainsFunc(s.Graph.Inputs, func(v *ir.Value) bool { return strings.HasSuffix(v.Name, "input_ids") })
	logits := slices.ContainsFunc(s.Graph.Outputs, func(v *ir.Value) bool { return v.Name == "logits" })
	if ids && logits {
		return nil
	}
	return &diag.Diagnostic{ID: "other-model", File: s.File, Message: "is no decoder with input_ids and logits"}
}

// empty are the caches before the first step.
func (s *Search) empty(batch int) Tensors {
	held := Tensors{}
	for _, v := range s.Graph.Inputs {
		for _, c := range s.Generation.Caches {
			if c[0] != v.Name {
				continue
			}
			dims := make([]int64, len(v.Shape))
			for d, n := range v.Shape {
				k, ok := n.Const()
				switch {
				case ok:
					dims[d] = k
				case d == 0:
					dims[d] = int64(batch)
				}
			}
			held[v.Name] = ir.NewTensor(v.DType, dims...)
		}
	}
	return held
}

// feed are the inputs of the decoder in a step.
func (s *Search) feed(in, held Tensors, r *rows, step int64) Tensors {
	feed := Tensors{}
	batch := int64(len(r.tokens))
	filled := func(v *ir.Value, x func(b int64) int64, dims ...int64) *ir.Tensor {
		t := ir.NewTensor(v.DType, dims...)
		for i := range t.Len() {
			setNumber(t, i, x(i))
		}
		return t
	}
	for _, v := range s.Graph.Inputs {
		here := func(int64) int64 { return step }
		switch name := v.Name; {
		case held[name] != nil:
			feed[name] = held[name]
		case strings.HasSuffix(name, "input_ids"):
			feed[name] = filled(v, func(b int64) int64 { return r.at(b, step) }, batch, 1)
		case strings.HasSuffix(name, "position_ids"):
			feed[name] = filled(v, here, batch, 1)
		case name == "use_cache_branch":
			feed[name] = filled(v, func(int64) int64 { return 1 }, v.Shape.MustConsts()...)
		case name == "cache_position":
			feed[name] = filled(v, here, 1)
		case in[name] == nil && strings.HasSuffix(name, "attention_mask"):
			feed[name] = filled(v, func(int64) int64 { return 1 }, batch, step+1)
		default:
			feed[name] = in[name]
		}
	}
	return feed
}

// at is the token of a row that a step takes. What comes of a row that has ended does not count.
func (r *rows) at(b, step int64) int64 {
	list := r.tokens[b]
	return list[min(step, int64(len(list))-1)]
}

// setNumber sets element i of a tensor of numbers or bools.
func setNumber(t *ir.Tensor, i, x int64) {
	switch d := t.Data.(type) {
	case []int64:
		d[i] = x
	case []int32:
		d[i] = int32(x)
	case []float32:
		d[i] = float32(x)
	case []bool:
		d[i] = x != 0
	default:
		panic(fmt.Sprintf("BUG: an input of a decoder is %v", t.DType))
	}
}

// extend adds the next token of each row.
func (s *Search) extend(r *rows, logits *ir.Tensor, step int64, other *ir.Tensor) {
	words := logits.Dims[2]
	for b := range r.tokens {
		at := step + 1
		switch {
		case at < r.lengths[b]:
			r.tokens[b] = append(r.tokens[b], r.prompt[int64(b*r.width)+at])
			continue
		case r.ended[b]:
			continue
		}
		first := int64(b) * words
		best := argMax(logits, first, words)
		if other != nil {
			if x := ir.Slice[int64](other)[int64(b*r.width)+at]; x >= 0 && x < words &&
				s.asGood(logits, first, best, x) {
				best = x
			}
		}
		r.tokens[b] = append(r.tokens[b], best)
		r.ended[b] = slices.Contains(s.Generation.Ends, best)
	}
}

// asGood reports whether a token may stand for the best one.
func (s *Search) asGood(logits *ir.Tensor, first, best, x int64) bool {
	most := 0.0
	for i := range logits.Dims[2] {
		most = max(most, math.Abs(tolerance.At(logits, first+i)))
	}
	return tolerance.At(logits, first+best)-tolerance.At(logits, first+x) <= s.Slack*most
}

// answer are the outputs of a library. Behind the end of an answer is the token that ends it, or 0.
func (r *rows) answer(ends []int64) Tensors {
	tokens := ir.NewTensor(ir.Int64, int64(len(r.tokens)), int64(r.width))
	length := ir.NewTensor(ir.Int64, int64(len(r.tokens)))
	list := ir.Slice[int64](tokens)
	for b, row := range r.tokens {
		for i := range r.width {
			switch k := b*r.width + i; {
			case int64(i) < r.lengths[b]:
				list[k] = r.prompt[k]
			case i < len(row):
				list[k] = row[i]
			case len(ends) > 0:
				list[k] = ends[0]
			}
		}
		ir.Slice[int64](length)[b] = int64(len(row))
	}
	return Tensors{"tokens": tokens, "length": length}
}

// WithPrompts says which numbers the inputs of a library that generates can be: the tokens are those of the decoder, if it
// is known; prompts take up to a fourth of the places, and answers may go on to the last half of them.
func WithPrompts(ports []Port, decoder *ir.Graph) {
	prompt := FindPort(ports, "prompt")
	width := prompt.Dims[1]
	FindPort(ports, "prompt_length").Domain = &Domain{Low: 1, High: max(width/4, 1) + 1}
	FindPort(ports, "limit").Domain = &Domain{Low: width/2 + 1, High: width + 1}
	if decoder == nil {
		return
	}
	for name, d := range Domains(decoder) {
		if strings.HasSuffix(name, "input_ids") {
			prompt.Domain = &d
		}
	}
}
