package onnx

import (
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
)

// Attention as ONNX Runtime's optimiser and model builder write it. All forms are brought to queries, keys and values of
// the shape [batch][heads][length][size] and then written out as the standard operator is.

// contribMask reads the masks and the attributes that several forms share.
type contribMask struct {
	*attentionRule
	filter float64 // is added to scores of masked keys
}

func newContribAttention(c *rewriting) *contribMask {
	a := &attentionRule{w: c, flat: true, scale: c.takeFloat("scale", 0), heads: c.takeInt("num_heads", 0)}
	a.kvHeads = a.heads
	if a.heads < 1 || a.heads > math.MaxInt32 {
		c.refuse("bad-attribute", "attribute num_heads", "", "%d heads are not possible", a.heads)
	}
	return &contribMask{a, c.takeFloat("mask_filter_value", -10000)}
}

// setType sets the element type of scores and softmax to that of x.
func (m *contribMask) setType(x *ir.Value) bool {
	d, ok := m.w.dtypeOf(x)
	if ok && !d.IsFloat() {
		m.w.refuse("bad-type", "", "", "the element type %v is not supported here", d)
		return false
	}
	m.dtype, m.precision = d, d
	return ok
}

// keep adds a term that masks the keys for which condition does not hold.
func (m *contribMask) keep(condition *ir.Value, masked float64) {
	kept, out := m.w.number("kept", 0, m.dtype), m.w.number("masked", masked, m.dtype)
	m.terms = append(m.terms, m.w.emit("Where", nil, condition, kept, out))
}

// addBias adds a term of the standard shape, which may be absent.
func (m *contribMask) addBias(i int) {
	if x := m.w.n.Input(i); x != nil {
		m.terms = append(m.terms, m.w.cast(x, m.dtype))
	}
}

// maskKeys masks keys by input i, if it is there. It has one of these shapes, where length counts new tokens and keys
// also those of the past:
//
//	[batch]                 the number of keys of each sequence, the others are padding behind them
//	[2·batch]               the same, followed by the index of the first key of each sequence
//	[batch][keys]           whether each key counts; with a single column instead of keys the mask says nothing
//	[batch][length][keys]   the same for each query
//	[batch][1][max][max]    the same for sequences of any length, of which rows from past on and columns from 0 on count
func (m *contribMask) maskKeys(i int, past *ir.Value) {
	mask := m.w.n.Input(i)
	if mask == nil {
		return
	}
	rank, ok := m.w.rankOf(i, 1, 2, 3, 4)
	if !ok {
		return
	}
	total := m.total()
	switch rank {
	case 1:
		m.maskByLength(i, total)
		return
	case 2:
		columns, known := m.w.knownExtent(mask, 1)
		if keys, ok := m.w.knownExtent(m.k, 2); known && columns == 1 && !(ok && keys == 1) {
			return
		}
		mask = m.w.unsqueeze(mask, 1, 2)
	case 3:
		mask = m.w.unsqueeze(mask, 1)
	case 4:
		first := m.w.ints("first", 0)
		if past != nil {
			first = m.w.extentOf(past, 2)
		}
		end := m.w.emit("Add", nil, first, m.w.extentOf(m.q, 2))
		mask = m.w.emit("Slice", nil, mask, first, end, m.w.ints("axes", 2))
		mask = m.w.emit("Slice", nil, mask, m.w.ints("first", 0), total, m.w.ints("axes", 3))
	}
	m.keep(m.w.emit("Greater", nil, m.w.cast(mask, ir.Int32), m.w.int32s(0)), m.filter)
}

// maskByLength masks the keys outside of the sequences whose ends, and perhaps first keys, input i lists.
func (m *contribMask) maskByLength(i int, total *ir.Value) {
	list := m.w.cast(m.w.n.Input(i), ir.Int64)
	count, ok := m.w.dimOf(list, 0)
	batch, ok2 := m.w.dimOf(m.q, 0)
	keys := m.w.countTo(total)
	column := func(v *ir.Value) *ir.Value { return m.w.unsqueeze(v, 1, 2, 3) }
	switch {
	case !ok || !ok2:
		m.w.later("unknown-rank", "the rank of the mask or of the queries cannot be inferred")
	case count.Equal(batch):
		m.keep(m.w.emit("Less", nil, keys, column(list)), m.filter)
	case count.Equal(batch.Mul(ir.D(2))):
		ends, starts := m.w.halves(list, 0)
		before := m.w.emit("Less", nil, keys, column(ends))
		m.keep(m.w.emit("And", nil, before, m.w.emit("GreaterOrEqual", nil, keys, column(starts))), m.filter)
	case isConst(count) && isConst(batch):
		m.w.refuse("unsupported-op", fmt.Sprintf("input %d", i), "",
			"a mask of shape [%v] for a batch of %v is not supported",
			count, batch)
	default:
		m.w.later("unknown-extent", "the batch cannot be inferred, but the meaning of the mask depends on it")
	}
}

func isConst(d ir.Dim) bool {
	_, ok := d.Const()
	return ok
}

// int32s adds a constant list.
func (c *rewriting) int32s(list ...int32) *ir.Value {
	return c.constant("numbers", ir.FromSlice(ir.Int32, list, int64(len(list))))
}

// contribAttention multiplies the input with the joined weights of queries, keys and values before it attends. Its
// second output stacks the keys and values of all tokens.
func contribAttention(c *rewriting) {
	if !c.arity(2, 7) {
		return
	}
	qkv := c.emit("MatMul", nil, c.n.Input(0), c.n.Input(1))
	if bias := c.n.Input(2); bias != nil {
		qkv = c.emit("Add", nil, qkv, bias)
	}
	selfAttention(c, qkv, 3, 4, 5)
}

// quantizedAttention is contribAttention of an input and weights in 8 bits.
func quantizedAttention(c *rewriting) {
	if !c.arity(5, 9) {
		return
	}
	in := c.n.Inputs
	sum := c.emit("MatMul", nil, c.centred(in[0], c.n.Input(6), ir.Int32), c.centred(in[1], c.n.Input(7), ir.Int32))
	scale := c.emit("Mul", nil, in[3], in[4])
	d, ok := c.dtypeOf(in[2])
	if !ok {
		return
	}
	qkv := c.emit("Mul", nil, c.cast(sum, ir.Float32), c.cast(scale, ir.Float32))
	selfAttention(c, c.cast(c.emit("Add", nil, qkv, c.cast(in[2], ir.Float32)), d), 5, 8, -1)
}

// widths are the numbers of columns that queries, keys and values have in qkv along an axis, a third each if the attribute
// qkv_hidden_sizes does not say. ok is false if the node cannot be rewritten, or not yet.
func (m *contribMask) widths(qkv *ir.Value, axis int) (sizes []int64, ok bool) {
	given, _ := m.w.take("qkv_hidden_sizes", ir.AttrInts)
	width, known := m.w.knownExtent(qkv, axis)
	switch sizes = given.Ints; {
	case m.w.refused || !m.setType(qkv):
		return nil, false
	case !known:
		m.w.later("unknown-extent", "the width of the weights cannot be inferred, but the operator's rewriting depends on it")
		return nil, false
	case len(sizes) == 0:
		sizes = []int64{width / 3, width / 3, width / 3}
	}
	if len(sizes) != 3 || sizes[0]+sizes[1]+sizes[2] != width {
		m.w.refuse("bad-attribute", "attribute qkv_hidden_sizes", "", "%v do not divide %d columns", sizes, width)
		return nil, false
	}
	return sizes, true
}

// selfAttention attends with the queries, keys and values that are side by side in qkv. mask, past and bias are the
// numbers of inputs; bias is -1 if the operator has none.
func selfAttention(c *rewriting, qkv *ir.Value, mask, past, bias int) {
	m := newContribAttention(c)
	m.causal = c.takeInt("unidirectional", 0) != 0
	for _, name := range []string{"past_present_share_buffer", "do_rotary"} {
		if c.takeInt(name, 0) != 0 {
			c.refuse("unsupported-op", "attribute "+name, "", "only 0 is supported")
		}
	}
	c.takeInt("rotary_embedding_dim", 0)
	sizes, ok := m.widths(qkv, 2)
	if !ok {
		return
	}
	if sizes[0] != sizes[1] {
		c.refuse("bad-attribute", "attribute qkv_hidden_sizes", "", "%v: queries and keys have different sizes", sizes)
		return
	}
	q, k, v := sizes[0], sizes[1], sizes[2]
	m.q, m.k = m.w.splitHeads(c.slice(qkv, 2, 0, q), m.heads), m.w.splitHeads(c.slice(qkv, 2, q, q+k), m.heads)
	m.v = m.w.splitHeads(c.slice(qkv, 2, q+k, q+k+v), m.heads)
	var pastValue *ir.Value
	if both := c.n.Input(past); both != nil {
		m.pastKey, pastValue = c.squeeze(c.slice(both, 0, 0, 1), 0), c.squeeze(c.slice(both, 0, 1, 2), 0)
	}
	key, value := m.present(pastValue)
	m.maskKeys(mask, m.pastKey)
	if bias >= 0 {
		m.addBias(bias)
	}
	y, _ := m.attended()
	if c.refused {
		return
	}
	if c.n.Output(1) == nil {
		c.finish(y)
		return
	}
	c.finish(y, c.concat(0, c.unsqueeze(key, 0), c.unsqueeze(value, 0)))
}

// multiHeadAttention takes queries, keys and values that have been projected already, separately or packed:
//
//	query [batch][length][heads·size]            key and value alike, or [batch][heads][keys][size]
//	query [batch][length][heads·size]            key [batch][keys][heads][2][size] with the values
//	query [batch][length][heads][3][size]        with keys and values
func multiHeadAttention(c *rewriting) {
	if !c.arity(1, 8) {
		return
	}
	m := newContribAttention(c)
	m.causal = c.takeInt("unidirectional", 0) != 0
	if c.refused || !m.setType(c.n.Input(0)) || !m.readProjections() {
		return
	}
	if m.pastKey = c.n.Input(6); (m.pastKey == nil) != (c.n.Input(7) == nil) {
		c.refuse("missing-input", "input 6 (past_key)", "", "past_key and past_value go together")
		return
	}
	key, value := m.present(c.n.Input(7))
	m.maskKeys(4, m.pastKey)
	m.addBias(5)
	y, scores := m.attended()
	if !c.refused {
		c.finish(y, key, value, scores)
	}
}

// readProjections brings queries, keys and values of a MultiHeadAttention to [batch][heads][length][size].
func (m *contribMask) readProjections() bool {
	c := m.w
	rank, ok := c.rankOf(0, 3, 5)
	if !ok {
		return false
	}
	query, key, value := c.n.Input(0), c.n.Input(1), c.n.Input(2)
	piece := func(x *ir.Value, i int64) *ir.Value { // piece i of [batch][length][heads][pieces][size]
		return c.transpose(c.squeeze(c.slice(x, 3, i, i+1), 3), 0, 2, 1, 3)
	}
	if rank == 5 {
		m.q, m.k, m.v = piece(query, 0), piece(query, 1), piece(query, 2)
		return m.addProjectionBias(true)
	}
	m.q = m.w.splitHeads(query, m.heads)
	if key == nil {
		c.refuse("missing-input", "input 1 (key)", "", "the queries have rank 3, so that keys are needed")
		return false
	}
	keyRank, ok := c.rankOf(1, 3, 4, 5)
	switch {
	case !ok:
		return false
	case keyRank == 5:
		m.k, m.v = piece(key, 0), piece(key, 1)
	case value == nil:
		c.refuse("missing-input", "input 2 (value)", "", "keys of rank %d need it", keyRank)
		return false
	case keyRank == 4:
		m.k, m.v = key, value
	default:
		m.k, m.v = m.w.splitHeads(key, m.heads), m.w.splitHeads(value, m.heads)
	}
	return m.addProjectionBias(keyRank != 4)
}

// addProjectionBias adds the parts of input 3 to queries, keys and values; to queries alone if keys come from a cache.
func (m *contribMask) addProjectionBias(all bool) bool {
	bias := m.w.n.Input(3)
	if bias == nil {
		return true
	}
	size, ok := m.w.knownExtent(m.q, 3)
	valueSize, ok2 := m.w.knownExtent(m.v, 3)
	if !ok || !ok2 {
		m.w.later("unknown-extent", "the size of the heads cannot be inferred, but the operator's rewriting depends on it")
		return false
	}
	start := int64(0)
	add := func(x *ir.Value, size int64) *ir.Value {
		part := m.w.reshape(m.w.slice(bias, 0, start, start+m.heads*size), m.heads, 1, size)
		start += m.heads * size
		return m.w.emit("Add", nil, x, part)
	}
	m.q = add(m.q, size)
	if all {
		m.k, m.v = add(m.k, size), add(m.v, valueSize)
	}
	return true
}

// packedAttention is contribAttention of sequences of different lengths without padding: the input is [tokens][width],
// and cumulative_sequence_length (input 4) has the index of the first token of each sequence, and at its end the number
// of tokens. Tokens attend to those of their own sequence.
func packedAttention(c *rewriting) {
	if !c.arity(5, 6) {
		return
	}
	if c.n.Input(5) != nil {
		c.refuse("unsupported-op", "input 5 (attention_bias)", "", "it is not supported here")
		return
	}
	qkv := c.emit("Add", nil, c.emit("MatMul", nil, c.n.Input(0), c.n.Input(1)), c.n.Input(2))
	m := newContribAttention(c)
	sizes, ok := m.widths(qkv, 1)
	if !ok {
		return
	}
	q, k, width := sizes[0], sizes[0]+sizes[1], sizes[0]+sizes[1]+sizes[2]
	tokens := c.unsqueeze(qkv, 0)
	m.q, m.k = m.w.splitHeads(c.slice(tokens, 2, 0, q), m.heads), m.w.splitHeads(c.slice(tokens, 2, q, k), m.heads)
	m.v = m.w.splitHeads(c.slice(tokens, 2, k, width), m.heads)

	ends := c.slice(c.cast(c.n.Input(4), ir.Int64), 0, 1, math.MaxInt64)
	behind := c.emit("GreaterOrEqual", nil, c.unsqueeze(c.countTo(m.total()), 1), ends)
	sequence := c.emit("ReduceSum", ir.Attrs{"keepdims": ir.IntAttr(0)}, c.cast(behind, ir.Int64), c.ints("axes", 1))
	same := c.emit("Equal", nil, c.unsqueeze(sequence, 1), c.unsqueeze(sequence, 0))
	m.keep(c.unsqueeze(same, 0, 1), math.Inf(-1))
	if y, _ := m.attended(); !c.refused {
		c.finish(c.squeeze(y, 0))
	}
}
