package roperator

// Pointwise marks reads as such (Access.Pointwise), and returns them.
func Pointwise(reads []Access) []Access {
	for i := range reads {
		reads[i].Pointwise = true
	}
	return reads
}

// Replaceable lists the operands whose memory the candidate's result may have from the start, and the buffer of the
// result. An operand is replaceable if the result is all of its buffer, and all reads of the operand are pointwise and
// see it as the result is seen, element for element:
//
//	r = relu(conv(x) + y)      y[i] is read for r[i] alone, and before r[i] is written: r may lie where y lies
//	r = softmax(y)             y[i] is read for all of r's row: r must lie elsewhere
//
// Whether others still need the operand is for the caller to find out. There is no result, and the list is empty, for
// candidates that write several buffers, or whose operands or results the executor moves or travel in tagged words.
func (c *Candidate) Replaceable() (result *Buffer, operands []*Buffer) {
	if len(c.Writes) != 1 || len(c.Imports)+len(c.Exports)+len(c.Polls)+len(c.Gives) > 0 {
		return nil, nil
	}
	out := c.Writes[0].View
	if out.Count() != out.Buf.Elems {
		return nil, nil
	}
	for i := range c.Reads {
		b := c.Reads[i].View.Buf
		if b.Bytes() != out.Buf.Bytes() || b == out.Buf || listed(operands, b) {
			continue
		}
		if c.onlyPointwise(b) {
			operands = append(operands, b)
		}
	}
	if len(operands) == 0 {
		return nil, nil
	}
	return out.Buf, operands
}

// onlyPointwise reports whether every read of b is pointwise and sees it as the only write sees the result.
func (c *Candidate) onlyPointwise(b *Buffer) bool {
	out := c.Writes[0].View
	for i := range c.Reads {
		r := &c.Reads[i]
		if r.View.Buf != b {
			continue
		}
		if moved := ViewOn(out.Buf, r.View.Strided()); !r.Pointwise || !SameView(moved, out) ||
			b.DType.Size() != out.DType().Size() {
			return false
		}
	}
	return true
}

func listed(list []*Buffer, b *Buffer) bool {
	for _, x := range list {
		if x == b {
			return true
		}
	}
	return false
}
