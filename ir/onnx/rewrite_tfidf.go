package onnx

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// tfIdf counts in each row of X the n-grams of a pool. An n-gram of elements that lie s places apart is at a place if each
// of its elements equals the one of X there: so all places are compared with all n-grams of one length and distance at once.
type tfIdf struct {
	w       *rewriting
	x       *ir.Value // [rows][elements]
	extent  int64     // of a row
	pool    *ir.Tensor
	starts  []int64 // of the n-grams of each length in pool
	indexes []int64 // of the n-grams in the output, in the order of pool
}

func tfIdfVectorizer(c *rewriting) {
	t := &tfIdf{w: c}
	low, high, skips := c.takeInt("min_gram_length", 1), c.takeInt("max_gram_length", 1), c.takeInt("max_skip_count", 0)
	mode := c.takeString("mode", "TF", "TF", "IDF", "TFIDF")
	weights := c.takeFloats("weights")
	rank, ok := t.read(low, high, skips)
	if !ok {
		return
	}
	if weights != nil && len(weights) != len(t.indexes) {
		c.refuse("bad-attribute", "attribute weights", "", "%d weights for %d n-grams", len(weights), len(t.indexes))
		return
	}
	y := t.counts(low, high, skips)
	if mode == "IDF" {
		y = c.cast(c.emit("Greater", nil, y, c.number("zero", 0, ir.Float32)), ir.Float32)
	}
	if mode != "TF" && weights != nil {
		y = c.emit("Mul", nil, y, c.floats("weights", weights...))
	}
	y = t.ordered(y, slices.Max(t.indexes)+1)
	if rank == 1 {
		y = c.squeeze(y, 0)
	}
	c.finish(y)
}

// mostGrams bounds the lengths of n-grams and their distances.
const mostGrams = 64

// read takes the input and the pool. It returns the rank of the input.
func (t *tfIdf) read(low, high, skips int64) (rank int, ok bool) {
	shape, ok := t.w.shapeOf(t.w.n.Input(0))
	dtype, known := t.w.dtypeOf(t.w.n.Input(0))
	if !ok || !known {
		return 0, false
	}
	if len(shape) != 1 && len(shape) != 2 || low < 1 || high < low || high > mostGrams || skips < 0 || skips > mostGrams {
		t.w.refuse("bad-shape", "", "", "n-grams of %d to %d elements, %d left out, of a tensor of rank %d", low, high, skips,
			len(shape))
		return 0, false
	}
	if t.extent, ok = shape[len(shape)-1].Const(); !ok {
		t.w.later("unknown-extent", "the number of elements of a row cannot be inferred")
		return 0, false
	}
	t.x = t.w.n.Input(0)
	if len(shape) == 1 {
		t.x = t.w.unsqueeze(t.x, 0)
	}
	t.starts, t.indexes = t.w.takeInts("ngram_counts"), t.w.takeInts("ngram_indexes")
	t.pool = t.takePool(dtype)
	return len(shape), t.pool != nil && t.fits()
}

// takePool takes the elements of the n-grams, as a list of x's type.
func (t *tfIdf) takePool(dtype ir.DType) *ir.Tensor {
	numbers := t.w.takeInts("pool_int64s")
	texts, isText := t.w.take("pool_strings", ir.AttrStrings)
	switch {
	case isText && len(texts.Strs) > 0:
		return t.w.s.im.texts.numbered(texts.Strs, int64(len(texts.Strs)))
	case dtype == ir.Int32:
		small := make([]int32, len(numbers))
		for i, n := range numbers {
			small[i] = int32(n)
		}
		return ir.FromSlice(ir.Int32, small, int64(len(small)))
	case dtype == ir.Int64:
		return ir.FromSlice(ir.Int64, numbers, int64(len(numbers)))
	}
	t.w.refuse("bad-type", "input 0 (X)", "", "not defined for element type %v", dtype)
	return nil
}

// fits reports whether the pool has the n-grams that ngram_counts and ngram_indexes say, each at an index of its own.
func (t *tfIdf) fits() bool {
	grams, seen := int64(0), map[int64]bool{}
	for n := range t.starts {
		begin, end := t.span(n)
		if begin < 0 || end < begin || end > int64(t.pool.Len()) || (end-begin)%int64(n+1) != 0 {
			t.w.refuse("bad-attribute", "attribute ngram_counts", "", "the pool has no n-grams of %d elements at [%d,%d)", n+1,
				begin, end)
			return false
		}
		grams += (end - begin) / int64(n+1)
	}
	for _, i := range t.indexes {
		if i < 0 || i >= maxElems || seen[i] {
			t.w.refuse("bad-attribute", "attribute ngram_indexes", "", "the index %d is negative, or there twice", i)
			return false
		}
		seen[i] = true
	}
	if len(t.indexes) == 0 || grams != int64(len(t.indexes)) || slices.Max(t.indexes) >= 2*grams+mostParts {
		t.w.refuse("bad-attribute", "attribute ngram_indexes", "", "%d indexes for %d n-grams", len(t.indexes), grams)
		return false
	}
	return true
}

// span is where the n-grams of n+1 elements are in the pool.
func (t *tfIdf) span(n int) (begin, end int64) {
	if n+1 < len(t.starts) {
		return t.starts[n], t.starts[n+1]
	}
	return t.starts[n], int64(t.pool.Len())
}

// counts are how often each n-gram of the pool is in each row, [rows][n-grams]; those that do not count are not.
func (t *tfIdf) counts(low, high, skips int64) *ir.Value {
	var parts []*ir.Value
	for n := range t.starts {
		begin, end := t.span(n)
		length := int64(n + 1)
		if begin == end {
			continue
		}
		var sum *ir.Value
		for s := int64(1); s <= skips+1 && length >= low && length <= high; s++ {
			if places := t.extent - (length-1)*s; places > 0 && (length > 1 || s == 1) {
				found := t.found(begin, end, length, s, places)
				if sum != nil {
					found = t.w.emit("Add", nil, sum, found)
				}
				sum = found
			}
		}
		if sum == nil {
			sum = t.none((end - begin) / length)
		}
		parts = append(parts, sum)
	}
	return t.w.concat(1, parts...)
}

// found counts the places of the n-grams of one length whose elements are s apart.
func (t *tfIdf) found(begin, end, length, s, places int64) *ir.Value {
	var all *ir.Value
	for j := range length {
		x := t.w.unsqueeze(t.w.slice(t.x, 1, j*s, j*s+places), 2)
		same := t.w.emit("Equal", nil, x, t.w.constant(fmt.Sprintf("elements%d", j), column(t.pool, begin+j, end, length)))
		if all != nil {
			same = t.w.emit("And", nil, all, same)
		}
		all = same
	}
	return t.w.emit("ReduceSum", ir.Attrs{"keepdims": ir.IntAttr(0)}, t.w.cast(all, ir.Float32), t.w.ints("axes", 1))
}

// column is every step-th element of a list from begin on.
func column(list *ir.Tensor, begin, end, step int64) *ir.Tensor {
	n := (end - begin + step - 1) / step
	out := ir.NewTensor(list.DType, n)
	for i := range n {
		if list.DType == ir.Int32 {
			ir.Slice[int32](out)[i] = ir.Slice[int32](list)[begin+i*step]
		} else {
			ir.Slice[int64](out)[i] = ir.Slice[int64](list)[begin+i*step]
		}
	}
	return out
}

// none is so many zeros for each row.
func (t *tfIdf) none(n int64) *ir.Value {
	rows := t.w.slice(t.w.emit("Shape", nil, t.x), 0, 0, 1)
	return t.w.emit("ConstantOfShape", ir.Attrs{"value": ir.TensorAttr(ir.FromSlice(ir.Float32, []float32{0}, 1))},
		t.w.concat(0, rows, t.w.ints("grams", n)))
}

// ordered puts the columns of y where the output has them, and zeros where it has no n-gram.
func (t *tfIdf) ordered(y *ir.Value, width int64) *ir.Value {
	at := make([]int64, width)
	for i := range at {
		at[i] = int64(len(t.indexes)) // the column of zeros
	}
	for k, i := range t.indexes {
		at[i] = int64(k)
	}
	if slices.Contains(at, int64(len(t.indexes))) {
		y = t.w.concat(1, y, t.none(1))
	}
	return t.w.emit("Gather", axisAttr(1), y, t.w.ints("order", at...))
}
