package onnx

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// groupQueryAttention is the attention of decoders: each sequence has its own number of tokens in the cache of keys and
// values, several query heads may share a head of keys and values, and positions may be embedded by rotation.
//
// seqlens_k (input 5) is, for each sequence, the index of its last token. So the new tokens have the indices from
// seqlens_k + 1 - length on, and are stored there in the cache:
//
//	past      a b c . .      seqlens_k = 4, two new tokens d e
//	present   a b c d e
//
// The cache has room for past + length tokens, or for as many as past has, if total_sequence_length (input 6) is known
// not to exceed it.
func groupQueryAttention(c *rewriting) {
	if !c.arity(1, 12) {
		return
	}
	g := &groupQuery{contribMask: newContribAttention(c)}
	if !g.readAttributes() || !g.setType(c.n.Input(0)) || !g.readTokens() {
		return
	}
	last := c.cast(c.n.Input(5), ir.Int64)
	if g.pastKey = c.n.Input(3); g.pastKey != nil {
		first := c.emit("Sub", nil, c.emit("Add", nil, last, c.ints("one", 1)), c.extentOf(g.q, 2))
		first = c.emit("Max", nil, first, c.ints("none", 0)) // where a first prompt is padded
		g.first = c.reshape(first, -1, 1)                    // [batch][1]
	} else { // the index of a first token is 0, whatever padding seqlens_k says
		g.first = c.constant("first", ir.FromSlice(ir.Int64, []int64{0}, 1, 1))
	}
	g.embedPositions()
	key, value := g.k, g.v
	if g.pastKey != nil {
		key, value = g.append(c.n.Input(3), g.k), g.append(c.n.Input(4), g.v)
	}
	g.k, g.v = key, value
	g.maskByPosition()
	g.addBias(10)
	g.sink = c.n.Input(11)
	if g.smooth && g.sink == nil {
		g.sink = c.constant("sink", ir.FromSlice(ir.Float32, []float32{0}, 1))
	}
	if y, _ := g.attended(); !c.refused {
		c.finish(y, key, value)
	}
}

// groupQuery rewrites one GroupQueryAttention.
type groupQuery struct {
	*contribMask
	first                 *ir.Value // index of the first new token of each sequence, [batch or 1][1]
	rotary, interleaved   bool
	smooth                bool  // a further key has the score 0 and no value
	window                int64 // how many keys a query attends to at most, itself included; -1 for all
	positions, cos, sines *ir.Value
}

func (g *groupQuery) readAttributes() bool {
	c := g.w
	g.kvHeads = c.takeInt("kv_num_heads", 0)
	g.softcap, g.window = c.takeFloat("softcap", 0), c.takeInt("local_window_size", -1)
	g.rotary, g.interleaved = c.takeInt("do_rotary", 0) != 0, c.takeInt("rotary_interleaved", 0) != 0
	g.smooth = c.takeInt("smooth_softmax", 0) != 0 && c.n.Input(11) == nil
	causal := c.takeInt("causal", 1)
	for _, name := range []string{"k_quant_type", "v_quant_type"} {
		if a, ok := c.take(name, ir.AttrString); ok && a.S != "NONE" {
			c.refuse("unsupported-op", "attribute "+name, "", "only NONE is supported")
		}
	}
	for _, name := range []string{"kv_cache_bit_width", "qk_output", "sliding_window_cache"} {
		if c.takeInt(name, 0) > 0 {
			c.refuse("unsupported-op", "attribute "+name, "", "only 0 is supported")
		}
	}
	for _, name := range []string{"q_norm_epsilon", "k_norm_epsilon", "qk_norm_epsilon"} {
		c.takeFloat(name, 0)
	}
	if causal == 0 {
		c.refuse("unsupported-op", "attribute causal", "", "only 1 is supported")
	}
	if g.kvHeads < 1 || g.heads%max(g.kvHeads, 1) != 0 {
		c.refuse("bad-attribute", "attribute kv_num_heads", "", "%d query heads are no multiple of %d", g.heads,
			g.kvHeads)
	}
	if c.n.Input(5) == nil {
		c.refuse("missing-input", "input 5 (seqlens_k)", "", "the input is absent, the operator needs it")
	}
	if (c.n.Input(3) == nil) != (c.n.Input(4) == nil) {
		c.refuse("missing-input", "input 3 (past_key)", "", "past_key and past_value go together")
	}
	g.cos, g.sines, g.positions = c.n.Input(7), c.n.Input(8), c.n.Input(9)
	if g.rotary && (g.cos == nil || g.sines == nil) {
		c.refuse("missing-input", "input 7 (cos_cache)", "", "do_rotary needs cos_cache and sin_cache")
	}
	return !c.refused
}

// readTokens reads the queries, keys and values of the new tokens. Without input 1 they are side by side in input 0.
func (g *groupQuery) readTokens() bool {
	c := g.w
	if _, ok := c.rankOf(0, 3); !ok {
		return false
	}
	q, k, v := c.n.Input(0), c.n.Input(1), c.n.Input(2)
	if k == nil {
		width, known := c.knownExtent(q, 2)
		heads := g.heads + 2*g.kvHeads
		if !known || width%heads != 0 {
			c.later("unknown-extent", "the size of the heads cannot be inferred, but the operator's rewriting depends on it")
			return false
		}
		size := width / heads
		both := g.heads * size
		all := q
		q, k = c.slice(all, 2, 0, both), c.slice(all, 2, both, both+g.kvHeads*size)
		v = c.slice(all, 2, both+g.kvHeads*size, width)
	} else if v == nil {
		c.refuse("missing-input", "input 2 (value)", "", "the input is absent, the operator needs it")
		return false
	}
	g.q, g.k, g.v = g.w.splitHeads(q, g.heads), g.w.splitHeads(k, g.kvHeads), g.w.splitHeads(v, g.kvHeads)
	return true
}

// embedPositions rotates queries and keys by their positions.
func (g *groupQuery) embedPositions() {
	if !g.rotary {
		return
	}
	positions := g.positions
	if positions == nil {
		positions = g.w.emit("Add", nil, g.w.unsqueeze(g.w.countTo(g.w.extentOf(g.q, 2)), 0), g.first)
	}
	g.q = g.w.turned(g.q, positions, g.cos, g.sines, 0, g.interleaved)
	g.k = g.w.turned(g.k, positions, g.cos, g.sines, 0, g.interleaved)
}

// append stores the keys or values of the new tokens in the cache.
func (g *groupQuery) append(past, tokens *ir.Value) *ir.Value {
	if n, known := g.w.knownExtent(past, 2); known && n == 0 {
		return tokens
	}
	room := past
	if !g.fits(past) {
		room = g.w.concat(2, past, tokens)
	}
	places := g.w.emit("Add", nil, g.w.countTo(g.w.extentOf(tokens, 2)), g.first) // [batch][length]
	places = g.w.emit("Expand", nil, g.w.unsqueeze(places, 1, 3), g.w.shapeValue(tokens))
	stored := g.w.emit("ScatterElements", axisAttr(2), room, places, tokens)
	if batch, known := g.w.knownExtent(past, 0); known && batch == 1 || room == past {
		return stored
	}
	// Sequences that are shorter than the longest one have zeros behind their tokens.
	end := g.w.emit("Add", nil, g.first, g.w.extentOf(tokens, 2))
	there := g.w.emit("Less", nil, g.w.unsqueeze(g.w.countTo(g.w.extentOf(stored, 2)), 1), g.w.unsqueeze(end, 1, 3))
	return g.w.emit("Where", nil, there, stored, g.w.scalar("none", 0, stored))
}

// fits reports whether the cache is known to have room for all tokens.
func (g *groupQuery) fits(past *ir.Value) bool {
	total := g.w.n.Input(6)
	room, known := g.w.knownExtent(past, 2)
	if total == nil || !known {
		return false
	}
	g.w.s.typeOf(total)
	if total.Const == nil || total.Const.Len() != 1 {
		if len(total.Elems) != 1 {
			return false
		}
		n, ok := total.Elems[0].Const()
		return ok && n <= room
	}
	t, err := exactly(total.Const, ir.Int64)
	if total.DType == ir.Int32 {
		t, err = ir.FromSlice(ir.Int64, []int64{int64(ir.Slice[int32](total.Const)[0])}), nil
	}
	return err == nil && ir.Slice[int64](t)[0] <= room
}

// maskByPosition lets each token attend to those before it, as far as the window reaches.
func (g *groupQuery) maskByPosition() {
	queries := g.w.emit("Add", nil, g.w.countTo(g.w.extentOf(g.q, 2)), g.first) // [batch or 1][length]
	queries = g.w.unsqueeze(queries, 1, 3)
	keys := g.w.countTo(g.w.extentOf(g.k, 2))
	seen := g.w.emit("LessOrEqual", nil, keys, queries)
	if g.window > 0 {
		near := g.w.emit("Greater", nil, keys, g.w.emit("Sub", nil, queries, g.w.ints("window", g.window)))
		seen = g.w.emit("And", nil, seen, near)
	}
	g.keep(seen, math.Inf(-1))
}
