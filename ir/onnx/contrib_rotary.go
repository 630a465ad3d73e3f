package onnx

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// contribRotary is RotaryEmbedding with the positions in input 1: one for each token, or the first one of all sequences.
func contribRotary(c *rewriting) {
	if !c.arity(4, 4) {
		return
	}
	rank, ok := c.rankOf(0, 3, 4)
	ids, ok2 := c.rankOf(1, 0, 1, 2)
	interleaved, heads := c.takeInt("interleaved", 0) != 0, c.takeInt("num_heads", 0)
	turned := c.takeInt("rotary_embedding_dim", 0)
	c.takeInt("is_packed_batching", 0)
	if scale := c.takeFloat("scale", 1); scale != 1 {
		c.refuse("unsupported-op", "attribute scale", "", "only 1 is supported")
	}
	if !ok || !ok2 || c.refused {
		return
	}
	x, lengthAxis := c.n.Input(0), 1
	if rank == 4 {
		lengthAxis = 2
	}
	positions := c.n.Input(1)
	if ids < 2 {
		first := c.reshape(positions, 1, 1)
		positions = c.emit("Add", nil, c.unsqueeze(c.countTo(c.extentOf(x, lengthAxis)), 0), first)
	}
	if rank == 3 {
		if heads == 0 { // then the width of the tables says the size of a head
			half, known := c.knownExtent(c.n.Input(2), 1)
			width, known2 := c.knownExtent(x, 2)
			if !known || !known2 || half < 1 || width%(2*half) != 0 {
				c.later("unknown-extent", "the number of heads cannot be inferred, but the operator's rewriting depends on it")
				return
			}
			heads = width / (2 * half)
		}
		x = c.splitHeads(x, heads)
	}
	y := c.turned(x, positions, c.n.Input(2), c.n.Input(3), turned, interleaved)
	if rank == 3 {
		y = c.reshape(c.transpose(y, 0, 2, 1, 3), 0, 0, -1)
	}
	c.finish(y)
}

// turned rotates the first size elements of each head of x[batch][heads][length][…] by the angles of positions, which
// are [batch or 1][length]. If size is 0 the tables say it.
func (c *rewriting) turned(x, positions, cos, sin *ir.Value, size int64, interleaved bool) *ir.Value {
	if half, known := c.knownExtent(cos, 1); size == 0 && known {
		size = 2 * half
	}
	table := func(t *ir.Value) *ir.Value { return c.unsqueeze(c.emit("Gather", axisAttr(0), t, positions), 1) }
	part, rest := x, (*ir.Value)(nil)
	if n, known := c.knownExtent(x, 3); size > 0 && (!known || n != size) {
		part, rest = c.slice(x, 3, 0, size), c.slice(x, 3, size, math.MaxInt64)
	}
	y := c.rotated(part, table(cos), table(sin), interleaved)
	if rest != nil {
		y = c.concat(3, y, rest)
	}
	return y
}
