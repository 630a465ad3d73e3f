package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// maxUnrolled bounds the length of a sequence whose steps are written out as nodes. It suffices in practice: a decoder
// makes one step for each token, and a prompt can be fed in pieces.
const maxUnrolled = 256

// linearAttentionRule writes out the steps of LinearAttention. The state [batch][kv heads][dk][dv] is a sum of products
// of keys and values; each step updates it, and multiplies the queries with it. In ONNX's formula for gated_delta:
//
//	S = exp(decay)·S           only for gated and gated_delta
//	v = beta·(v - Sᵀ·k)        only for delta and gated_delta
//	S = S + k·vᵀ
//	y = scale·Sᵀ·q
//
// The arithmetic is in float32, or in float64 for inputs of this type.
type linearAttentionRule struct {
	w            *rewriting
	q            *ir.Value // [batch][kv heads][group][time][dk], scaled
	k, v         *ir.Value // [batch][kv heads][time][dk or dv]
	decay        *ir.Value // factors of the state [batch][kv heads][time][dk or 1], nil without gate
	beta         *ir.Value // [batch][kv heads or 1][time][1], nil without correction
	state        *ir.Value // nil is 0
	steps        int64
	heads, kv    int64    // heads of queries, and of keys and values
	dtype, stype ir.DType // of the outputs y and state
	wide         ir.DType // of the arithmetic
}

// linearAttention rewrites LinearAttention. Its outputs are Y and the state after the last step.
func linearAttention(c *rewriting) {
	if !c.arity(3, 6) {
		return
	}
	a := &linearAttentionRule{w: c}
	c.takeInt("chunk_size", 0) // a hint for implementations, which does not change the result
	rule := c.takeString("update_rule", "gated_delta", "linear", "gated", "delta", "gated_delta")
	scale := c.takeFloat("scale", 0)
	a.heads, a.kv = c.takeInt("q_num_heads", 0), c.takeInt("kv_num_heads", 0)
	if c.refused || !a.checkHeads() || !a.checkInputs(rule) || !a.readTypes() || !a.readLength() {
		return
	}
	size, known := c.knownExtent(c.n.Input(0), 2)
	switch {
	case scale != 0:
	case known && size >= a.heads:
		scale = 1 / math.Sqrt(float64(size/a.heads))
	default:
		c.later("unknown-extent", "the head size cannot be inferred, but the operator's rewriting depends on it")
		return
	}
	a.spread(scale)
	outs := make([]*ir.Value, a.steps)
	for t := range a.steps {
		outs[t] = c.reshape(a.step(t), 0, 1, -1)
	}
	y := outs[0]
	if a.steps > 1 {
		y = c.concat(1, outs...)
	}
	c.finish(c.cast(y, a.dtype), c.cast(a.state, a.stype))
}

func (a *linearAttentionRule) checkHeads() bool {
	if a.kv < 1 || a.heads < a.kv || a.heads > math.MaxInt32 || a.heads%a.kv != 0 {
		a.w.refuse("bad-attribute", "attribute q_num_heads", "",
			"%d query heads are no multiple of %d heads of keys and values", a.heads, a.kv)
		return false
	}
	return true
}

// checkInputs reports inputs that the update rule needs and are absent, and those that it does not have.
func (a *linearAttentionRule) checkInputs(rule string) bool {
	for _, in := range []struct {
		index int
		name  string
		rules []string
	}{{4, "decay", []string{"gated", "gated_delta"}}, {5, "beta", []string{"delta", "gated_delta"}}} {
		place, there := fmt.Sprintf("input %d (%s)", in.index, in.name), a.w.n.Input(in.index) != nil
		switch wanted := slices.Contains(in.rules, rule); {
		case wanted && !there:
			a.w.refuse("missing-input", place, "", "the input is absent, update_rule %q needs it", rule)
		case !wanted && there:
			a.w.refuse("bad-arity", place, "", "update_rule %q has no such input", rule)
		}
	}
	for i := range 3 {
		a.w.rankOf(i, 3)
	}
	return !a.w.refused
}

func (a *linearAttentionRule) readTypes() bool {
	var ok bool
	if a.dtype, ok = a.w.dtypeOf(a.w.n.Input(0)); !ok {
		return false
	}
	a.stype = a.dtype
	if past := a.w.n.Input(3); past != nil {
		if a.stype, ok = a.w.dtypeOf(past); !ok {
			return false
		}
	}
	a.wide = ir.Float32
	if a.dtype == ir.Float64 {
		a.wide = ir.Float64
	}
	return true
}

func (a *linearAttentionRule) readLength() bool {
	n, known := a.w.knownExtent(a.w.n.Input(0), 1)
	switch {
	case !known:
		a.w.later("unknown-extent", "the length of the sequence cannot be inferred, but the operator is written out step by step")
	case n < 1 || n > maxUnrolled:
		a.w.refuse("unsupported-op", "", fmt.Sprintf("feed the sequence in pieces of at most %d", maxUnrolled),
			"a sequence of length %d is not supported", n)
	}
	a.steps = n
	return !a.w.refused
}

// spread brings the inputs to the shapes of the fields, of which each step takes a slice along time.
func (a *linearAttentionRule) spread(scale float64) {
	wide := func(i int) *ir.Value { return a.w.cast(a.w.n.Input(i), a.wide) }
	q := a.w.emit("Mul", nil, wide(0), a.w.number("scale", scale, a.wide))
	a.q = a.w.transpose(a.w.reshape(q, 0, 0, a.kv, a.heads/a.kv, -1), 0, 2, 3, 1, 4)
	a.k, a.v = a.w.splitHeads(wide(1), a.kv), a.w.splitHeads(wide(2), a.kv)
	if a.w.n.Input(3) != nil {
		a.state = wide(3)
	}
	if a.w.n.Input(4) != nil {
		a.decay = a.w.emit("Exp", nil, a.w.splitHeads(wide(4), a.kv))
	}
	if a.w.n.Input(5) != nil {
		a.beta = a.w.unsqueeze(a.w.transpose(wide(5), 0, 2, 1), 3)
	}
}

// step updates the state and returns the result of time t, of shape [batch][kv heads][group][dv].
func (a *linearAttentionRule) step(t int64) *ir.Value {
	at := func(x *ir.Value, axis int64) *ir.Value { return a.w.slice(x, axis, t, t+1) }
	k, v := at(a.k, 2), at(a.v, 2)
	column := a.w.transpose(k, 0, 1, 3, 2)
	if a.decay != nil && a.state != nil {
		a.state = a.w.emit("Mul", nil, a.state, a.w.transpose(at(a.decay, 2), 0, 1, 3, 2))
	}
	if a.beta != nil {
		if a.state != nil {
			v = a.w.emit("Sub", nil, v, a.w.emit("MatMul", nil, k, a.state))
		}
		v = a.w.emit("Mul", nil, v, at(a.beta, 2))
	}
	update := a.w.emit("Mul", nil, column, v)
	if a.state == nil {
		a.state = update
	} else {
		a.state = a.w.emit("Add", nil, a.state, update)
	}
	return a.w.emit("MatMul", nil, a.w.squeeze(at(a.q, 3), 3), a.state)
}
