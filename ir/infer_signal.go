package ir

import "slices"

// inferDFT: the input is […,1] (real) or […,2] (complex), and the output […,2]. The transformed axis gets the extent
// dft_length, or dft_length/2 + 1 if only one side is computed. A one-sided inverse transform takes that form and gives
// real numbers […,1].
func inferDFT(c *InferContext) {
	s := c.shape(0)
	length, lengthKnown := c.scalar(1)
	if s == nil || !c.wantRank(0, 2, -1) || !c.wantOne(1) {
		return
	}
	inverse, onesided := c.int("inverse") != 0, c.int("onesided") != 0
	last := len(s) - 1
	if !c.wantComplex(0, !inverse && onesided) {
		return
	}
	out := slices.Clone(s)
	out[last] = D(2)
	if inverse && onesided {
		out[last] = D(1)
	}
	axis, ok := c.dftAxis(len(s))
	if !ok {
		return
	}
	if axis < 0 { // not known: any axis may have changed
		c.set(0, append(c.in.freshShape(last), out[last]))
		return
	}
	switch {
	case !c.has(1) && inverse && onesided:
		length = s[axis].Sub(D(1)).Mul(D(2))
	case !c.has(1):
		length = s[axis]
	case !lengthKnown:
		length = c.in.fresh()
	}
	if n, ok := length.Const(); ok && (n < 1 || n > maxWindow) {
		c.Report("bad-shape", "", "the length of the transform is %d, wanted 1 to %d", n, maxWindow)
		return
	}
	out[axis] = length
	if onesided && !inverse {
		out[axis] = length.FloorDiv(D(2)).Add(D(1))
	}
	c.set(0, out)
}

// wantComplex wants the last extent of input i to be 1 (real numbers) or 2 (complex ones); with realOnly it must be 1.
func (c *InferContext) wantComplex(i int, realOnly bool) bool {
	s := c.shape(i)
	n, ok := s[len(s)-1].Const()
	switch {
	case ok && n != 1 && n != 2:
		return c.badInput("bad-shape", i, "the last extent is %d, wanted 1 for real and 2 for complex numbers", n)
	case ok && n == 2 && realOnly:
		return c.badInput("bad-shape", i, "the numbers are complex, a one-sided transform needs real ones")
	}
	return true
}

// dftAxis is the axis that is transformed, by default the last one before the parts of the numbers; -1 when it is not
// known. ok is false after a report.
func (c *InferContext) dftAxis(rank int) (int, bool) {
	axis := int64(-2)
	if c.has(2) {
		d, ok := c.scalar(2)
		n, isConst := d.Const()
		if !ok || !isConst {
			return -1, c.wantOne(2)
		}
		axis = n
	}
	a, ok := c.axis(c.inputPlace(2), axis, rank)
	if ok && a == rank-1 {
		return 0, c.Report("bad-shape", c.inputPlace(2), "the axis %d holds the parts of the numbers", axis)
	}
	return a, ok
}

// inferSTFT: signal[N,samples,1 or 2] gives [N, frames, bins, 2]. Each frame has frame_length samples, or else as many
// as the window; the next frame begins frame_step samples later.
func inferSTFT(c *InferContext) {
	s, window := c.shape(0), c.shape(2)
	step, stepKnown := c.scalar(1)
	length, lengthKnown := c.scalar(3)
	if s == nil || !c.wantRank(0, 3, 3) || !c.wantRank(2, 1, 1) || !c.wantOne(1) || !c.wantOne(3) {
		return
	}
	onesided := c.int("onesided") != 0
	if !c.wantComplex(0, onesided) {
		return
	}
	switch {
	case c.has(3) && !lengthKnown:
		length = c.in.fresh()
	case c.has(3):
		c.wantShape(2, Shape{length})
	case window != nil:
		length = window[0]
	case c.has(2):
		length = c.in.fresh()
	default:
		length = s[1]
	}
	n, isConst := step.Const()
	if m, ok := length.Const(); stepKnown && isConst && n < 1 || ok && (m < 1 || m > maxWindow) {
		c.Report("bad-shape", "", "the frames have length %v and step %v, wanted at least 1", length, step)
		return
	}
	frames := c.in.fresh()
	if stepKnown {
		frames = s[1].Sub(length).FloorDiv(step).Add(D(1))
	}
	bins := length
	if onesided {
		bins = length.FloorDiv(D(2)).Add(D(1))
	}
	c.set(0, Shape{s[0], frames, bins, D(2)})
}

// inferWindowFunction: [size].
func inferWindowFunction(c *InferContext) {
	size, ok := c.scalar(0)
	if !c.typeAttr("output_datatype", Invalid) {
		return
	}
	if !ok {
		size = c.in.fresh()
	}
	c.set(0, Shape{size})
}

// inferMelWeightMatrix: [dft_length/2 + 1, num_mel_bins].
func inferMelWeightMatrix(c *InferContext) {
	bins, okBins := c.scalar(0)
	length, okLength := c.scalar(1)
	c.wantOne(2)
	c.wantOne(3)
	c.wantOne(4)
	if !c.typeAttr("output_datatype", Invalid) {
		return
	}
	rows := length.FloorDiv(D(2)).Add(D(1))
	if !okLength {
		rows = c.in.fresh()
	}
	if !okBins {
		bins = c.in.fresh()
	}
	c.set(0, Shape{rows, bins})
}

func inferRandom(c *InferContext) {
	if c.typeAttr("dtype", Invalid) {
		c.set(0, Dims(c.ints("shape")...))
	}
}

// inferRandomLike: the output has the input's shape and, without the attribute dtype, its element type.
func inferRandomLike(c *InferContext) {
	if !c.Node.HasAttr("dtype") && c.dtype(0) == Invalid {
		return
	}
	if c.typeAttr("dtype", c.dtype(0)) {
		if d := c.Node.Output(0); d != nil && !c.Op.OutputPort(0).Allows(d.DType) {
			c.badAttr("dtype", "the attribute is absent and the input's element type is %v, wanted %s", d.DType,
				typeList(c.Op.OutputPort(0).Types))
			return
		}
		c.set(0, c.shape(0))
	}
}

// inferMultinomial: [batch, classes] gives [batch, sample_size].
func inferMultinomial(c *InferContext) {
	n := c.int("sample_size")
	if n < 1 || n > maxElements {
		c.badAttr("sample_size", "the value is %d, wanted at least 1", n)
		return
	}
	if !c.typeAttr("dtype", Invalid) || !c.wantRank(0, 2, 2) || c.shape(0) == nil {
		return
	}
	c.set(0, Shape{c.shape(0)[0], D(n)})
}
