package onnx

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// rotaryEmbedding rotates pairs of elements of X by angles that depend on the position in the sequence. X is
// [batch][heads][length][size] or [batch][length][heads·size]. The inputs cos and sin hold the cosines and sines of the
// angles: of all positions, from which position_ids selects, or of each position of the sequence. Only the first
// rotary_embedding_dim elements of a head are rotated, all of them if it is 0.
func rotaryEmbedding(c *rewriting) {
	if !c.arity(3, 4) {
		return
	}
	rank, ok := c.rankOf(0, 3, 4)
	interleaved := c.takeInt("interleaved", 0) != 0
	size, heads := c.takeInt("rotary_embedding_dim", 0), c.takeInt("num_heads", 0)
	if !ok {
		return
	}
	x, headAxis := c.n.Input(0), int64(1)
	if rank == 3 {
		if heads < 1 || heads > math.MaxInt32 {
			c.refuse("bad-attribute", "attribute num_heads", "", "%d heads are not possible", heads)
			return
		}
		x, headAxis = c.reshape(x, 0, 0, heads, -1), 2
	}
	cos, sin := c.n.Input(1), c.n.Input(2)
	if ids := c.n.Input(3); ids != nil {
		cos, sin = c.emit("Gather", axisAttr(0), cos, ids), c.emit("Gather", axisAttr(0), sin, ids)
	}
	cos, sin = c.unsqueeze(cos, headAxis), c.unsqueeze(sin, headAxis)
	turned, rest := x, (*ir.Value)(nil)
	if n, known := c.knownExtent(x, 3); size > 0 && (!known || n != size) {
		turned, rest = c.slice(x, 3, 0, size), c.slice(x, 3, size, math.MaxInt64)
	}
	y := c.rotated(turned, cos, sin, interleaved)
	if rest != nil {
		y = c.concat(3, y, rest)
	}
	if rank == 3 {
		y = c.reshape(y, 0, 0, -1)
	}
	c.finish(y)
}

// rotated rotates pairs of elements of the last axis. The elements of a pair are neighbours if interleaved; otherwise
// they are at the same place in the two halves of the axis.
func (c *rewriting) rotated(x, cos, sin *ir.Value, interleaved bool) *ir.Value {
	if interleaved {
		x = c.reshape(x, 0, 0, 0, -1, 2)
		cos, sin = c.unsqueeze(cos, 4), c.unsqueeze(sin, 4)
	}
	a, b := c.halves(x, -1)
	re := c.emit("Sub", nil, c.emit("Mul", nil, cos, a), c.emit("Mul", nil, sin, b))
	im := c.emit("Add", nil, c.emit("Mul", nil, sin, a), c.emit("Mul", nil, cos, b))
	y := c.concat(-1, re, im)
	if interleaved {
		return c.reshape(y, 0, 0, 0, -1)
	}
	return y
}
