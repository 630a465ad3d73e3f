package onnx

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// attentionRule writes Attention out as softmax(scale·q·kᵀ + bias)·v. Several query heads may share one head of keys
// and values (grouped-query attention); they are then an axis of their own, the group, to which keys and values are
// broadcast.
type attentionRule struct {
	*rewriting
	q, k, v        *ir.Value // [batch][heads][length][size], with groups [batch][kv heads][group][length][size]
	pastKey        *ir.Value // [batch][kv heads][past length][size], nil when there is none
	dtype          ir.DType  // of q and k
	flat           bool      // inputs and output are [batch][length][heads·size]
	heads, kvHeads int64     // heads of queries, and of keys and values
	group          int64     // query heads that share a head of keys and values
	causal         bool      // a query attends only to keys up to its own place
	scale, softcap float64   // 0: the default scale; no soft cap
	mode           int64     // qk_matmul_output_mode: which stage of the scores is output 3
	precision      ir.DType  // of the softmax
	// terms are added to the scores, beside those that the standard operator's inputs say; each is of the shape [batch or
	// 1][heads or 1][length or 1][keys].
	terms []*ir.Value
	// sink is one more score of each query head, [heads or 1], whose probability is dropped; nil for none.
	sink *ir.Value
	// standard says that the node has the inputs of ONNX's Attention, of which some are masks.
	standard bool
}

// attention rewrites Attention. Its outputs are Y, present_key, present_value and the scores.
func attention(c *rewriting) {
	if !c.arity(3, 7) {
		return
	}
	a := &attentionRule{rewriting: c, standard: true}
	if !a.readInputs() || !a.readAttributes() {
		return
	}
	presentKey, presentValue := a.present(a.n.Input(5))
	y, scores := a.attended()
	if !c.refused {
		c.finish(y, presentKey, presentValue, scores)
	}
}

// attended is the sum of the values, weighted by the probabilities of their keys, in the shape of the output, and the
// scores that mode selects. After an error both are nil.
func (a *attentionRule) attended() (y, scores *ir.Value) {
	if !a.formGroups() {
		return nil, nil
	}
	scores, probabilities := a.probabilities()
	if a.refused {
		return nil, nil
	}
	v, ok := a.dtypeOf(a.v)
	if !ok {
		return nil, nil
	}
	y = a.emit("MatMul", nil, a.cast(probabilities, v), a.v)
	if a.group > 1 {
		y = a.joinHeads(y, a.heads)
	}
	if a.flat {
		y = a.reshape(a.transpose(y, 0, 2, 1, 3), 0, 0, -1)
	}
	return a.cast(y, a.dtype), scores
}

func (a *attentionRule) readInputs() bool {
	rank, ok := a.rankOf(0, 3, 4)
	if !ok {
		return false
	}
	for i := 1; i < 3; i++ {
		if _, ok := a.rankOf(i, rank); !ok {
			return false
		}
	}
	a.q, a.k, a.v, a.pastKey = a.n.Input(0), a.n.Input(1), a.n.Input(2), a.n.Input(4)
	a.flat = rank == 3
	a.dtype, ok = a.dtypeOf(a.q)
	if !ok {
		return false
	}
	if !a.dtype.IsFloat() {
		a.refuse("bad-type", "input 0 (Q)", "", "the element type %v is not supported here", a.dtype)
		return false
	}
	if (a.pastKey == nil) != (a.n.Input(5) == nil) {
		a.refuse("missing-input", "input 4 (past_key)", "", "past_key and past_value go together")
		return false
	}
	return true
}

func (a *attentionRule) readAttributes() bool {
	a.causal = a.takeInt("is_causal", 0) != 0
	a.scale, a.softcap = a.takeFloat("scale", 0), a.takeFloat("softcap", 0)
	a.mode = a.takeInt("qk_matmul_output_mode", 0)
	a.precision = a.takeType("softmax_precision", a.dtype)
	a.heads, a.kvHeads = a.takeInt("q_num_heads", 0), a.takeInt("kv_num_heads", 0)
	switch {
	case a.refused:
	case !a.precision.IsFloat():
		a.refuse("bad-attribute", "attribute softmax_precision", "", "%v is no floating-point type", a.precision)
	case a.mode < 0 || a.mode > 3:
		a.refuse("bad-attribute", "attribute qk_matmul_output_mode", "", "%d is unknown, wanted 0 to 3", a.mode)
	case a.flat && (a.heads < 1 || a.kvHeads < 1 || a.heads > math.MaxInt32 || a.kvHeads > math.MaxInt32):
		a.refuse("bad-attribute", "attribute q_num_heads", "",
			"%d query heads and %d heads of keys and values are not possible", a.heads, a.kvHeads)
	case a.flat:
		a.q, a.k, a.v = a.splitHeads(a.q, a.heads), a.splitHeads(a.k, a.kvHeads), a.splitHeads(a.v, a.kvHeads)
	}
	return !a.refused
}

// splitHeads turns [batch][length][heads·size] into [batch][heads][length][size].
func (c *rewriting) splitHeads(x *ir.Value, heads int64) *ir.Value {
	return c.transpose(c.reshape(x, 0, 0, heads, -1), 0, 2, 1, 3)
}

// joinHeads turns [batch][kv heads][group][length][size] into [batch][heads][length][size].
func (c *rewriting) joinHeads(x *ir.Value, heads int64) *ir.Value {
	length, size := c.extentOf(x, 3), c.extentOf(x, 4)
	return c.emit("Reshape", nil, x, c.concat(0, c.ints("batch", 0), c.ints("heads", heads), length, size))
}

// present appends the new keys and values to the past ones. The results are outputs 1 and 2.
func (a *attentionRule) present(pastValue *ir.Value) (key, value *ir.Value) {
	if a.pastKey != nil {
		a.k = a.concat(2, a.pastKey, a.k)
		a.v = a.concat(2, pastValue, a.v)
	}
	return a.k, a.v
}

// formGroups finds out how many query heads share a head of keys and values.
func (a *attentionRule) formGroups() bool {
	q, okQ := a.dimOf(a.q, 1)
	k, okK := a.dimOf(a.k, 1)
	a.group = 1
	if okQ && okK && q.Equal(k) {
		return true
	}
	heads, constQ := q.Const()
	kv, constK := k.Const()
	if !okQ || !okK || !constQ || !constK {
		a.later("unknown-extent", "the numbers of heads of queries and keys cannot be inferred, but the operator's rewriting depends on them")
		return false
	}
	if kv < 1 || heads%kv != 0 {
		a.refuse("bad-shape", "input 0 (Q)", "", "%d query heads are no multiple of the %d heads of keys and values",
			heads, kv)
		return false
	}
	a.heads, a.kvHeads, a.group = heads, kv, heads/kv
	a.q = a.splitGroups(a.q)
	a.k, a.v = a.repeat(a.k), a.repeat(a.v)
	return true
}

// splitGroups turns [batch][heads][length][size] into [batch][kv heads][group][length][size].
func (a *attentionRule) splitGroups(x *ir.Value) *ir.Value {
	length, size := a.extentOf(x, 2), a.extentOf(x, 3)
	return a.emit("Reshape", nil, x, a.concat(0, a.ints("batch", 0), a.ints("heads", a.kvHeads, a.group), length, size))
}

// repeat broadcasts keys or values along the axis of groups.
func (a *attentionRule) repeat(x *ir.Value) *ir.Value {
	return a.emit("Expand", nil, a.unsqueeze(x, 2), a.ints("group", 1, 1, a.group, 1, 1))
}

// probabilities returns the softmax of the scores as p. The result scores is output 3: the stage that the attribute
// qk_matmul_output_mode selects.
func (a *attentionRule) probabilities() (scores, p *ir.Value) {
	x := a.scores(a.rootOfScale())
	stages := [4]*ir.Value{x}
	if a.softcap > 0 {
		limit := a.number("softcap", a.softcap, a.dtype)
		x = a.emit("Mul", nil, a.emit("Tanh", nil, a.emit("Div", nil, x, limit)), limit)
	}
	stages[1] = x
	if bias := a.bias(); bias != nil {
		x = a.emit("Add", nil, x, bias)
	}
	stages[2] = x
	p = a.softmax(a.cast(x, a.precision))
	stages[3] = p
	scores = a.cast(stages[a.mode], a.dtype)
	if a.group > 1 && a.n.Output(3) != nil {
		scores = a.joinHeads(scores, a.heads)
	}
	return scores, p
}

// softmax is the softmax of the scores x along the keys. The sink is a key of its own, which has no value.
func (a *attentionRule) softmax(x *ir.Value) *ir.Value {
	if a.sink == nil {
		return a.emit("Softmax", axisAttr(-1), x)
	}
	column := a.unsqueeze(a.cast(a.sink, a.precision), 1, 2)
	if one, known := a.knownExtent(a.sink, 0); a.group > 1 && !(known && one == 1) {
		column = a.unsqueeze(a.reshape(a.cast(a.sink, a.precision), a.kvHeads, a.group), 2, 3)
	}
	like := a.slice(x, -1, 0, 1)
	sink := a.emit("Expand", nil, column, a.emit("Shape", nil, like))
	return a.slice(a.emit("Softmax", axisAttr(-1), a.concat(-1, x, sink)), -1, 0, -1)
}

// scores are the products of queries and keys, both of which are multiplied with root before.
func (a *attentionRule) scores(root *ir.Value) *ir.Value {
	rank := int64(4)
	if a.group > 1 {
		rank = 5
	}
	perm := upTo(0, rank)
	perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
	kt := a.emit("Mul", nil, a.transpose(a.k, perm...), root)
	return a.emit("MatMul", nil, a.emit("Mul", nil, a.q, root), kt)
}

// rootOfScale is the square root of the scale, which by default is 1/sqrt(head size). By the standard queries and keys
// are both multiplied with the root, so that products do not overflow in 16-bit floats.
func (a *attentionRule) rootOfScale() *ir.Value {
	last := 3
	if a.group > 1 {
		last = 4
	}
	size, known := a.knownExtent(a.q, last)
	switch {
	case a.scale != 0:
		return a.number("scale", math.Sqrt(a.scale), a.dtype)
	case known:
		return a.number("scale", 1/math.Sqrt(math.Sqrt(float64(size))), a.dtype)
	}
	root := a.emit("Sqrt", nil, a.emit("Sqrt", nil, a.cast(a.extent(a.q, int64(last)), ir.Float32)))
	return a.cast(a.emit("Reciprocal", nil, root), a.dtype)
}

// bias is the sum of all masks, which is added to the scores: 0 where a query attends to a key and -∞ where it does
// not. It is nil when there is no mask.
func (a *attentionRule) bias() *ir.Value {
	var sum *ir.Value
	terms := []*ir.Value{a.maskBias(), a.causalBias(), a.paddingBias()}
	for _, term := range a.terms {
		terms = append(terms, a.grouped(term, 4))
	}
	for _, term := range terms {
		switch {
		case term == nil:
		case sum == nil:
			sum = term
		default:
			sum = a.emit("Add", nil, sum, term)
		}
	}
	return sum
}

// masked is 0 where condition holds and -∞ elsewhere.
func (a *attentionRule) masked(condition *ir.Value) *ir.Value {
	zero, never := a.number("kept", 0, a.dtype), a.number("masked", math.Inf(-1), a.dtype)
	return a.emit("Where", nil, condition, zero, never)
}

// total is the number of keys, past ones included.
func (a *attentionRule) total() *ir.Value { return a.extentOf(a.k, a.lengthAxis()) }

// lengthAxis is the axis of the sequence in q, k and v.
func (a *attentionRule) lengthAxis() int {
	if a.group > 1 {
		return 3
	}
	return 2
}

// maskBias is the input attn_mask as a term of the bias.
func (a *attentionRule) maskBias() *ir.Value {
	mask := a.n.Input(3)
	if mask == nil || !a.standard {
		return nil
	}
	d, ok := a.dtypeOf(mask)
	rank, ok2 := a.rankOf(3, 1, 2, 3, 4)
	if !ok || !ok2 {
		return nil
	}
	if d == ir.Bool {
		mask = a.masked(mask)
	}
	return a.grouped(a.lengthened(a.cast(mask, a.dtype), rank), rank)
}

// grouped gives a mask of the given rank, [batch][heads][length][keys] without the first ones, the axis of groups that
// the scores have.
func (a *attentionRule) grouped(mask *ir.Value, rank int) *ir.Value {
	if a.group == 1 || rank < 3 {
		return mask
	}
	heads, known := a.knownExtent(mask, rank-3)
	switch {
	case !known:
		a.later("unknown-extent", "the number of heads of the mask cannot be inferred, but the operator's rewriting depends on it")
		return nil
	case heads == 1:
		return a.unsqueeze(mask, int64(rank-3))
	}
	lead := []*ir.Value{a.ints("heads", a.kvHeads, a.group), a.extentOf(mask, rank-2), a.extentOf(mask, rank-1)}
	if rank == 4 {
		lead = append([]*ir.Value{a.ints("batch", 0)}, lead...)
	}
	return a.emit("Reshape", nil, mask, a.concat(0, lead...))
}

// lengthened pads the last axis of a mask with -∞ to the number of keys. The standard allows a mask that is shorter.
func (a *attentionRule) lengthened(mask *ir.Value, rank int) *ir.Value {
	have, ok := a.dimOf(mask, rank-1)
	want, ok2 := a.dimOf(a.k, a.lengthAxis())
	if ok && ok2 && have.Equal(want) {
		return mask
	}
	more := a.emit("Sub", nil, a.total(), a.extentOf(mask, rank-1))
	none := a.ints("none", make([]int64, rank)...)
	pads := []*ir.Value{none, more}
	if rank > 1 {
		pads = []*ir.Value{none, a.ints("none", make([]int64, rank-1)...), more}
	}
	return a.emit("Pad", nil, mask, a.concat(0, pads...), a.number("masked", math.Inf(-1), a.dtype))
}

// causalBias masks, for each query, the keys behind it. Past keys come before all queries. It is nil without is_causal.
func (a *attentionRule) causalBias() *ir.Value {
	if !a.causal {
		return nil
	}
	queries := a.countTo(a.extentOf(a.q, a.lengthAxis()))
	if a.pastKey != nil {
		queries = a.emit("Add", nil, queries, a.extentOf(a.pastKey, 2))
	}
	keys := a.countTo(a.total())
	return a.masked(a.emit("LessOrEqual", nil, a.unsqueeze(keys, 0), a.unsqueeze(queries, 1)))
}

// paddingBias masks the keys from the length on that nonpad_kv_seqlen gives for each batch, nil without this input.
func (a *attentionRule) paddingBias() *ir.Value {
	lengths := a.n.Input(6)
	if lengths == nil || !a.standard {
		return nil
	}
	axes := upTo(1, int64(a.lengthAxis())+2)
	keys := a.countTo(a.total())
	return a.masked(a.emit("Less", nil, keys, a.unsqueeze(lengths, axes...)))
}
