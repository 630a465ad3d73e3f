package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// A search with beams keeps several answers to one prompt, a row of the decoder for each, and their scores: the sums of
// the logarithms of their tokens' probabilities. Of all answers that are one of these with a token behind it, a step
// keeps the best. An answer that has ended keeps its score. Since scores only fall, the search is over as soon as the
// best answer has ended.
//
// A row goes on from the answer of another one, whose keys and values lie in other rows of the caches. They are not
// moved. Instead, each answer has a list that says which row holds those of each place, and what reads a cache reads by
// this list:
//
//	step                   3      4      5            rows of the answer in row 1 in step 5, whose prompt has 2 tokens
//	row 0 goes on from     0      0      1
//	row 1 goes on from     0      1      0            place   0  1  2  3  4  5
//	                                                  row     1  1  0  0  0  1

// lostScore is the score of an answer that is none: less than any sum of logarithms of probabilities.
const lostScore = -1e30

// readByRow lets what reads a cache behind the rows that a step adds read it by the list of rows. It returns the
// decoder's nodes with those that do so.
func (s *stepMaker) readByRow(decoder []*ir.Node) (out []*ir.Node) {
	// The prompt's places are the same in all rows, and those behind the step's own are not read.
	places, own := s.places(), s.constant(ir.FromSlice(ir.Int64, upTo(s.batch), s.batch, 1))
	chosen := s.node("And", nil, s.node("Less", nil, places, s.step),
		s.node("Not", nil, s.node("Less", nil, places, s.lengths)))
	s.rows = s.node("Where", nil, chosen, s.rows, own)
	window := s.node("Slice", nil, s.rows, s.ints(0), s.after, s.ints(1))
	first := s.nodes
	caches := s.growing()
	for i, n := range decoder {
		out = append(out, n)
		for _, v := range n.Outputs {
			axis, ok := caches[v]
			if !ok {
				continue
			}
			s.nodes = nil
			by := s.byRow(v, window, axis)
			for _, m := range decoder[i+1:] {
				if m.Is("Shape") {
					continue // the same, and known
				}
				for k, x := range m.Inputs {
					if x != nil && behindIdentity(x) == v && !m.Is("Identity") {
						m.Inputs[k] = by
					}
				}
			}
			out = append(out, s.nodes...)
		}
	}
	s.nodes = first
	return out
}

// growing are the values that the decoder gives out as caches, and the axes along which they are longer than those that
// it takes.
func (s *stepMaker) growing() map[*ir.Value]int {
	caches := map[*ir.Value]int{}
	for _, p := range s.spec.States {
		in, v := named(s.g.Inputs, p[0]), behindIdentity(named(s.g.Outputs, p[1]))
		for d, n := range in.Shape {
			if dependsOn(in, s.spec.Past) && d < len(v.Shape) && !n.Equal(v.Shape[d]) {
				caches[v] = d
			}
		}
	}
	return caches
}

// byRow is v[rows[i,k], …, k, …] in place of v[i, …, k, …], where k counts along the axis.
func (s *stepMaker) byRow(v, rows *ir.Value, axis int) *ir.Value {
	var others []int64
	for d := 1; d < len(v.Shape); d++ {
		if d != axis {
			others = append(others, int64(d))
		}
	}
	index := s.node("Unsqueeze", nil, rows, s.ints(others...))
	return s.node("GatherElements", axisAttr(0), v, s.node("Expand", nil, index, s.node("Shape", nil, v)))
}

// topK are the k largest elements along the last axis in order, and their places.
func (s *stepMaker) topK(v *ir.Value, k int64) (values, places *ir.Value) {
	values = s.node("TopK", ir.Attrs{"axis": ir.IntAttr(-1)}, v, s.ints(k))
	places = &ir.Value{Name: values.Name + "/places", Def: values.Def}
	values.Def.Outputs = append(values.Def.Outputs, places)
	return values, places
}

// partOfWords is how many of so many words are searched by themselves: few enough for a warp. Parts that leave no words
// over need no copy of them.
func partOfWords(words int64) int64 {
	const least, most, usual = 256, 2048, 512
	for parts := max(1, (words+most-1)/most); words/parts >= least; parts++ {
		if words%parts == 0 {
			return words / parts
		}
	}
	return usual
}

// bestOfWords are the k largest logits of each row in order, and their tokens. Parts of a row are searched side by
// side, and then what was found in them.
func (s *stepMaker) bestOfWords(logits *ir.Value, k int64) (values, tokens *ir.Value) {
	words, known := s.logits.Shape[2].Const()
	part := partOfWords(words)
	parts := words / part
	if !known || parts < 2 || k > part {
		return s.topK(logits, k)
	}
	n := s.batch
	columns := func(from, to int64) *ir.Value {
		return s.node("Slice", nil, logits, s.ints(from), s.ints(to), s.ints(1))
	}
	found, at := s.topK(s.node("Reshape", nil, columns(0, parts*part), s.ints(n, parts, part)), k)
	first := upTo(parts)
	for i := range first {
		first[i] *= part
	}
	at = s.node("Add", nil, at, s.constant(ir.FromSlice(ir.Int64, first, parts, 1)))
	found, at = s.node("Reshape", nil, found, s.ints(n, parts*k)), s.node("Reshape", nil, at, s.ints(n, parts*k))
	if left := words - parts*part; left > 0 {
		last, lastAt := s.topK(columns(parts*part, words), min(k, left))
		lastAt = s.node("Add", nil, lastAt, s.ints(parts*part))
		alongLast := ir.Attrs{"axis": ir.IntAttr(1)}
		found, at = s.node("Concat", alongLast, found, last), s.node("Concat", alongLast, at, lastAt)
	}
	values, places := s.topK(found, k)
	return values, s.node("GatherElements", axisAttr(1), at, places)
}

// beamTail adds what chooses the answers that are kept, and computes the outputs.
func (s *stepMaker) beamTail() {
	n := s.spec.Beams
	logits := s.logits
	if logits.DType != ir.Float32 {
		logits = s.cast(logits, ir.Float32)
	}
	logits = s.node("Squeeze", nil, logits, s.ints(1))
	// The best tokens of each row are enough: no more than n of them can be among the n best.
	values, tokens := s.bestOfWords(logits, n)
	sums := s.node("ReduceLogSumExp", nil, logits, s.ints(1))
	inNext := s.node("Less", nil, s.after, s.lengths)
	first := s.node("Less", nil, s.step, s.lengths) // the rows are equal as yet, and one of them stands for all
	initial := slices.Repeat([]float32{lostScore}, int(n))
	initial[0] = 0
	before := s.node("Where", nil, first, s.constant(ir.FromSlice(ir.Float32, initial, n, 1)), s.scores)
	scores := s.node("Add", nil, before, s.node("Sub", nil, values, sums))
	length := s.node("Add", nil, s.step, s.ints(2))
	pad := s.ints(0)
	if ended := s.ends(s.last); ended != nil {
		pad = s.ints(s.spec.Ends[0])
		ended = s.node("And", nil, s.node("Not", nil, s.inPrompt), ended)
		alone := s.node("Add", nil, before, s.constant(ir.FromSlice(ir.Float32, initial, 1, n)))
		scores = s.node("Where", nil, ended, alone, scores)
		tokens = s.node("Where", nil, ended, pad, tokens)
		length = s.node("Where", nil, ended, s.length, length)
	}
	length = s.node("Expand", nil, length, s.ints(n, 1))
	best, at := s.topK(s.node("Reshape", nil, scores, s.ints(n*n)), n)
	next := s.node("Gather", nil, s.node("Reshape", nil, tokens, s.ints(n*n)), at)
	next = s.node("Where", nil, inNext, s.promptAt(s.after), s.node("Reshape", nil, next, s.ints(n, 1)))
	inNextFlat := s.node("Reshape", nil, inNext, s.ints(1))
	from := s.node("Where", nil, inNextFlat, s.constant(ir.FromSlice(ir.Int64, upTo(n), n)),
		s.node("Div", nil, at, s.ints(n)))
	of := func(v *ir.Value) *ir.Value { return s.node("Gather", axisAttr(0), v, from) }
	length = of(length)
	list := s.list(of(s.tokens), next, pad)
	more := s.node("Less", nil, s.node("Add", nil, s.step, s.ints(2)), s.limit)
	if ends := s.ends(s.firstRow(next)); ends != nil {
		going := s.node("Not", nil, s.node("Reshape", nil, ends, s.ints(1)))
		more = s.node("And", nil, more, s.node("Or", nil, inNextFlat, going))
	}
	s.finish(s.firstRow(list), s.node("Reshape", nil, s.firstRow(length), s.ints(1)), next, length, list,
		s.node("Reshape", nil, best, s.ints(n, 1)), of(s.rows), s.node("Reshape", nil, more, s.ints(1)))
}

// firstRow is the row of the best answer.
func (s *stepMaker) firstRow(v *ir.Value) *ir.Value {
	return s.node("Slice", nil, v, s.ints(0), s.ints(1), s.ints(0))
}
