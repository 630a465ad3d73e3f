package onnx

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// attentionRule writes Attention out as softmax(scale·q·kᵀ + bias)·v. Several query heads may share one head of keys
// and values (grouped-query attention); they are then an axis of their own, the group, to which keys and values are
// broadcast.
type attentionRule struct {
	w              *rewriting
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
	a := &attentionRule{w: c, standard: true}
	if !a.readInputs() || !a.readAttributes() {
		return
	}
	presentKey, presentValue := a.present(a.w.n.Input(5))
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
	if a.w.refused {
		return nil, nil
	}
	v, ok := a.w.dtypeOf(a.v)
	if !ok {
		return nil, nil
	}
	y = a.w.emit("MatMul", nil, a.w.cast(probabilities, v), a.v)
	if a.group > 1 {
		y = a.w.joinHeads(y, a.heads)
	}
	if a.flat {
		y = a.w.reshape(a.w.transpose(y, 0, 2, 1, 3), 0, 0, -1)
	}
	return a.w.cast(y, a.dtype), scores
}

func (a *attentionRule) readInputs() bool {
	rank, ok := a.w.rankOf(0, 3, 4)
	if !ok {
		return false
	}
	for i := 1; i < 3; i++ {
		if _, ok := a.w.rankOf(i, rank); !ok {
			return false
		}
	}
	a.q, a.k, a.v, a.pastKey = a.w.n.Input(0), a.w.n.Input(1), a.w.n.Input(2), a.w.n.Input(4)
	a.flat = rank == 3
	a.dtype, ok = a.w.dtypeOf(a.q)
	if !ok {
		return false
	}
	if !a.dtype.IsFloat() {
		a.w.refuse("bad-type", "input 0 (Q)", "", "the element type %v is not supported here", a.dtype)
		return false
	}
	if (a.pastKey == nil) != (a.w.n.Input(5) == nil) {
		a.w.refuse("missing-input", "input 4 (past_key)", "", "past_key and past_value go together")
		return false
	}
	return true
}

func (a *attentionRule) readAttributes() bool {
	a.causal = a.w.takeInt("is_causal", 0) != 0
	a.scale, a.softcap = a.w.takeFloat("scale", 0), a.w.takeFloat("softcap", 0)
	a.mode = a.w.takeInt("qk_matmul_output_mode", 0)
	a.precision = a.w.takeType("softmax_precision", a.dtype)
	a.heads, a.kvHeads = a.w.takeInt("q_num_heads", 0), a.w.takeInt("kv_num_heads", 0)
	switch {
	case a.w.refused:
	case !a.precision.IsFloat():
		a.w.refuse("bad-attribute", "attribute softmax_precision", "", "%v is no floating-point type", a.precision)
	case a.mode < 0 || a.mode > 3:
		a.w.refuse("bad-attribute", "attribute qk_matmul_output_mode", "", "%d is unknown, wanted 0 to 3", a.mode)
	case a.flat && (a.heads < 1 || a.kvHeads < 1 || a.heads > math.MaxInt32 || a.kvHeads > math.MaxInt32):
		a.w.refuse("bad-attribute", "attribute q_num_heads", "",
			"%d query heads and %d heads of keys and values are not possible", a.heads, a.kvHeads)
	case a.flat:
		a.q, a.k, a.v = a.w.splitHeads(a.q, a.heads), a.w.splitHeads(a.k, a.kvHeads), a.w.splitHeads(a.v, a.kvHeads)
	}
	return !a.w.refused
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
		a.k = a.w.concat(2, a.pastKey, a.k)
		a.v = a.w.concat(2, pastValue, a.v)
	}
	return a.k, a.v
}

// formGroups finds out how many query heads share a head of keys and values.
func (a *attentionRule) formGroups() bool {
	q, okQ := a.w.dimOf(a.q, 1)
	k, okK := a.w.dimOf(a.k, 1)
	a.group = 1
	if okQ && okK && q.Equal(k) {
		return true
	}
	heads, constQ := q.Const()
	kv, constK := k.Const()
	if !okQ || !okK || !constQ || !constK {
		a.w.later("unknown-extent", "the numbers of heads of queries and keys cannot be inferred, but the operator's rewriting depends on them")
		return false
	}
	if kv < 1 || heads%kv != 0 {
		a.w.refuse("bad-shape", "input 0 (Q)", "", "%d query heads are no multiple of the %d heads of keys and values",
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
	length, size := a.w.extentOf(x, 2), a.w.extentOf(x, 3)
	shape := a.w.concat(0, a.w.ints("batch", 0), a.w.ints("heads", a.kvHeads, a.group), length, size)
	return a.w.emit("Reshape", nil, x, shape)
}

// repeat broadcasts keys or values along the axis of groups.
func (a *attentionRule) repeat(x *ir.Value) *ir.Value {
	return a.w.emit("Expand", nil, a.w.unsqueeze(x, 2), a.w.ints("group", 1, 1, a.group, 1, 1))
}

// probabilities returns the softmax of the scores as p. The result scores is output 3: the stage that the attribute
// qk_matmul_output_mode selects.
func (a *attentionRule) probabilities() (scores, p *ir.Value) {
	x := a.scores(a.rootOfScale())
	stages := [4]*ir.Value{x}
	if a.softcap > 0 {
		limit := a.w.number("softcap", a.softcap, a.dtype)
		x = a.w.emit("Mul", nil, a.w.emit("Tanh", nil, a.w.emit("Div", nil, x, limit)), limit)
	}
	stages[1] = x
	if bias := a.bias(); bias != nil {
		x = a.w.emit("Add", nil, x, bias)
	}
	stages[2] = x
	p = a.softmax(a.w.cast(x, a.precision))
	stages[3] = p
	scores = a.w.cast(stages[a.mode], a.dtype)
	if a.group > 1 && a.w.n.Output(3) != nil {
		scores = a.w.joinHeads(scores, a.heads)
	}
	return scores, p
}

// softmax is the softmax of the scores x along the keys. The sink is a key of its own, which has no value.
func (a *attentionRule) softmax(x *ir.Value) *ir.Value {
	if a.sink == nil {
		return a.w.emit("Softmax", axisAttr(-1), x)
	}
	column := a.w.unsqueeze(a.w.cast(a.sink, a.precision), 1, 2)
	if one, known := a.w.knownExtent(a.sink, 0); a.group > 1 && !(known && one == 1) {
		column = a.w.unsqueeze(a.w.reshape(a.w.cast(a.sink, a.precision), a.kvHeads, a.group), 2, 3)
	}
	like := a.w.slice(x, -1, 0, 1)
	sink := a.w.emit("Expand", nil, column, a.w.emit("Shape", nil, like))
	return a.w.slice(a.w.emit("Softmax", axisAttr(-1), a.w.concat(-1, x, sink)), -1, 0, -1)
}

// scores are the products of queries and keys, both of which are multiplied with root before.
func (a *attentionRule) scores(root *ir.Value) *ir.Value {
	rank := int64(4)
	if a.group > 1 {
		rank = 5
	}
	perm := upTo(0, rank)
	perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
	kt := a.w.emit("Mul", nil, a.w.transpose(a.k, perm...), root)
	return a.w.emit("MatMul", nil, a.w.emit("Mul", nil, a.q, root), kt)
}

// rootOfScale is the square root of the scale, which by default is 1/sqrt(head size). By the standard queries and keys
// are both multiplied with the root, so that products do not overflow in 16-bit floats.
func (a *attentionRule) rootOfScale() *ir.Value {
	last := 3
	if a.group > 1 {
		last = 4
	}
	size, known := a.w.knownExtent(a.q, last)
	switch {
	case a.scale != 0:
		return a.w.number("scale", math.Sqrt(a.scale), a.dtype)
	case known:
		return a.w.number("scale", 1/math.Sqrt(math.Sqrt(float64(size))), a.dtype)
	}
	root := a.w.emit("Sqrt", nil, a.w.emit("Sqrt", nil, a.w.cast(a.w.extent(a.q, int64(last)), ir.Float32)))
	return a.w.cast(a.w.emit("Reciprocal", nil, root), a.dtype)
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
			sum = a.w.emit("Add", nil, sum, term)
		}
	}
	return sum
}

// masked is 0 where condition holds and -∞ elsewhere.
func (a *attentionRule) masked(condition *ir.Value) *ir.Value {
	zero, never := a.w.number("kept", 0, a.dtype), a.w.number("masked", math.Inf(-1), a.dtype)
	return a.w.emit("Where", nil, condition, zero, never)
}

// total is the number of keys, past ones included.
func (a *attentionRule) total() *ir.Value { return a.w.extentOf(a.k, a.lengthAxis()) }

// lengthAxis is the axis of the sequence in q, k and v.
func (a *attentionRule) lengthAxis() int {
	if a.group > 1 {
		return 3
	}
	return 2
}

// maskBias is the input attn_mask as a term of the bias.
func (a *attentionRule) maskBias() *ir.Value {
	mask := a.w.n.Input(3)
	if mask == nil || !a.standard {
		return nil
	}
	d, ok := a.w.dtypeOf(mask)
	rank, ok2 := a.w.rankOf(3, 1, 2, 3, 4)
	if !ok || !ok2 {
		return nil
	}
	if d == ir.Bool {
		mask = a.masked(mask)
	}
	return a.grouped(a.lengthened(a.w.cast(mask, a.dtype), rank), rank)
}

// grouped gives a mask of the given rank, [batch][heads][length][keys] without the first ones, the axis of groups that
// the scores have.
func (a *attentionRule) grouped(mask *ir.Value, rank int) *ir.Value {
	if a.group == 1 || rank < 3 {
		return mask
	}
	heads, known := a.w.knownExtent(mask, rank-3)
	switch {
	case !known:
		a.w.later("unknown-extent", "the number of heads of the mask cannot be inferred, but the operator's rewriting depends on it")
		return nil
	case heads == 1:
		return a.w.unsqueeze(mask, int64(rank-3))
	}
	lead := []*ir.Value{a.w.ints("heads", a.kvHeads, a.group), a.w.extentOf(mask, rank-2), a.w.extentOf(mask, rank-1)}
	if rank == 4 {
		lead = append([]*ir.Value{a.w.ints("batch", 0)}, lead...)
	}
	return a.w.emit("Reshape", nil, mask, a.w.concat(0, lead...))
}

// lengthened pads the last axis of a mask with -∞ to the number of keys. The standard allows a mask that is shorter.
func (a *attentionRule) lengthened(mask *ir.Value, rank int) *ir.Value {
	have, ok := a.w.dimOf(mask, rank-1)
	want, ok2 := a.w.dimOf(a.k, a.lengthAxis())
	if ok && ok2 && have.Equal(want) {
		return mask
	}
	more := a.w.emit("Sub", nil, a.total(), a.w.extentOf(mask, rank-1))
	none := a.w.ints("none", make([]int64, rank)...)
	pads := []*ir.Value{none, more}
	if rank > 1 {
		pads = []*ir.Value{none, a.w.ints("none", make([]int64, rank-1)...), more}
	}
	return a.w.emit("Pad", nil, mask, a.w.concat(0, pads...), a.w.number("masked", math.Inf(-1), a.dtype))
}

// causalBias masks, for each query, the keys behind it. Past keys come before all queries. It is nil without is_causal.
func (a *attentionRule) causalBias() *ir.Value {
	if !a.causal {
		return nil
	}
	queries := a.w.countTo(a.w.extentOf(a.q, a.lengthAxis()))
	if a.pastKey != nil {
		queries = a.w.emit("Add", nil, queries, a.w.extentOf(a.pastKey, 2))
	}
	keys := a.w.countTo(a.total())
	return a.masked(a.w.emit("LessOrEqual", nil, a.w.unsqueeze(keys, 0), a.w.unsqueeze(queries, 1)))
}

// paddingBias masks the keys from the length on that nonpad_kv_seqlen gives for each batch, nil without this input.
func (a *attentionRule) paddingBias() *ir.Value {
	lengths := a.w.n.Input(6)
	if lengths == nil || !a.standard {
		return nil
	}
	axes := upTo(1, int64(a.lengthAxis())+2)
	keys := a.w.countTo(a.total())
	return a.masked(a.w.emit("Less", nil, keys, a.w.unsqueeze(lengths, axes...)))
}
