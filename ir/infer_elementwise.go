package ir

// inferSame is the rule of operators whose output has the first input's shape.
func inferSame(c *InferContext) {
	c.set(0, c.shape(0))
	c.inferElems()
}

// inferBroadcast is the rule of operators that broadcast all inputs together (ONNX, "Multidirectional Broadcasting").
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

// inferMod reports floats without fmod, for which the standard defines no Mod.
func inferMod(c *InferContext) {
	if c.dtype(0).IsFloat() && c.int("fmod") == 0 {
		c.badAttr("fmod", "the value is 0, numbers of type %v need 1", c.dtype(0))
		return
	}
	inferBroadcast(c)
}

// inferPRelu: slope broadcasts to X, unidirectionally.
func inferPRelu(c *InferContext) {
	if c.wantBroadcast(1, c.shape(0)) {
		c.set(0, c.shape(0))
	}
}

// inferClip: min and max are scalars.
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

// inferBitCast: the new element type must have the size of the old one, so that the shape stays.
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
