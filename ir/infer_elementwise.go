package ir

// inferSame: the output has the first input's shape.
func inferSame(c *InferContext) {
	c.set(0, c.shape(0))
	c.inferElems()
}

// inferBroadcast: all inputs broadcast together.
func inferBroadcast(c *InferContext) {
	if s, ok := c.broadcast(); ok {
		c.set(0, s)
		c.inferElems()
	}
}

// broadcast combines the shapes of all inputs and reports those that do not fit.
func (c *InferContext) broadcast() (Shape, bool) {
	shapes := make([]Shape, len(c.Node.Inputs))
	for i := range shapes {
		shapes[i] = c.shape(i)
	}
	s, err := BroadcastShapes(shapes...)
	if err != nil {
		return nil, c.Report("bad-shape", "", "%v", err)
	}
	return s, true
}

// inferMod: Mod of floats is defined for fmod only.
func inferMod(c *InferContext) {
	if c.dtype(0).IsFloat() && c.int("fmod") == 0 {
		c.badAttr("fmod", "the value is 0, numbers of type %v need 1", c.dtype(0))
		return
	}
	inferBroadcast(c)
}

func inferPRelu(c *InferContext) {
	if c.wantBroadcast(1, c.shape(0)) {
		c.set(0, c.shape(0))
	}
}

func inferClip(c *InferContext) {
	if c.wantOne(1) && c.wantOne(2) {
		c.set(0, c.shape(0))
	}
}

func inferCast(c *InferContext) {
	d, ok := DTypeOfONNX(c.int("to"))
	if !ok || d == String {
		c.badAttr("to", "the element type %d is not supported", c.int("to"))
		return
	}
	c.setType(0, d)
	inferSame(c)
}

func inferBitCast(c *InferContext) {
	d, ok := DTypeOfONNX(c.int("to"))
	switch in := c.dtype(0); {
	case !ok || d == String:
		c.badAttr("to", "the element type %d is not supported", c.int("to"))
		return
	case in != Invalid && in.Size() != d.Size():
		c.badAttr("to", "an element of type %v has %d bytes, one of %v has %d", d, d.Size(), in, in.Size())
		return
	}
	c.setType(0, d)
	c.set(0, c.shape(0))
}
