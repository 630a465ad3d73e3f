package ir

import "slices"

// inferBatchNorm: X[N,C,…] with scale, B, mean and var of shape [C]. A rank-1 X has a single channel. Outputs 1 and 2
// are the running statistics of training mode, which is not supported.
func inferBatchNorm(c *InferContext) {
	if c.int("training_mode") != 0 {
		c.badAttr("training_mode", "training is not supported")
	}
	x := c.shape(0)
	if x == nil || !c.wantRank(0, 1, -1) {
		return
	}
	channels := D(1) // of a rank-1 input
	if len(x) > 1 {
		channels = x[1]
	}
	for i := 1; i < 5; i++ {
		c.wantShape(i, Shape{channels})
	}
	c.set(0, x)
	c.set(1, Shape{channels})
	c.set(2, Shape{channels})
}

// inferLayerNorm: Scale and B broadcast to X's axes from axis on. The outputs Mean and InvStdDev have X's shape with 1
// for these axes, and the element type that stash_type numbers.
func inferLayerNorm(c *InferContext) {
	stash, ok := DTypeOfONNX(c.int("stash_type"))
	if !ok || !stash.IsFloat() {
		c.badAttr("stash_type", "the element type %d is not a floating-point type", c.int("stash_type"))
		return
	}
	c.setType(1, stash)
	c.setType(2, stash)
	x := c.shape(0)
	if x == nil || !c.wantRank(0, 1, -1) {
		return
	}
	axis, ok := c.axisAttr(len(x))
	if !ok {
		return
	}
	c.wantBroadcast(1, x[axis:])
	c.wantBroadcast(2, x[axis:])
	c.set(0, x)
	stats := slices.Clone(x)
	for i := axis; i < len(stats); i++ {
		stats[i] = D(1)
	}
	c.set(1, stats)
	c.set(2, stats)
}

// inferInstanceNorm: X[N,C,…] with scale and B of shape [C].
func inferInstanceNorm(c *InferContext) {
	x := c.shape(0)
	if x == nil || !c.wantRank(0, 3, -1) {
		return
	}
	c.wantShape(1, Shape{x[1]})
	c.wantShape(2, Shape{x[1]})
	c.set(0, x)
}

func inferLRN(c *InferContext) {
	if size := c.int("size"); size < 1 || size > maxWindow {
		c.badAttr("size", "the value is %d, wanted 1 to %d", size, maxWindow)
	}
	if c.wantRank(0, 2, -1) {
		c.set(0, c.shape(0))
	}
}

func inferSoftmax(c *InferContext) {
	if s := c.shape(0); s != nil {
		c.axisAttr(max(len(s), 1)) // for a scalar, axis 0 and -1 are accepted as for a vector of one element
		c.set(0, s)
	}
}
