package eval

import "github.com/rammerc/rammerc/ir"

// filledUp makes the counted operator of op, whose result has as many elements along axis as it finds. They are filled up
// with zeros to the attribute extent; the second result says how many there are.
func filledUp(op func(*call) []*ir.Tensor, axis int) func(*call) []*ir.Tensor {
	return func(c *call) []*ir.Tensor {
		found := op(c)[0]
		n := found.Dims[axis]
		count := ir.FromSlice(ir.Int64, []int64{n}, 1)
		if !c.HasAttr("extent") {
			return []*ir.Tensor{found, count}
		}
		dims := append([]int64{}, found.Dims...)
		if dims[axis] = c.Attr("extent").I; n > dims[axis] {
			fail("it finds %d elements, and its result has room for %d", n, dims[axis])
		}
		out := c.alloc(found.DType, dims)
		from, to := ir.Slice[int64](found), ir.Slice[int64](out)
		inner := int(ir.Count(dims[axis+1:]))
		width, wide := int(n)*inner, int(dims[axis])*inner
		for row := range int(ir.Count(dims[:axis])) {
			copy(to[row*wide:], from[row*width:(row+1)*width])
		}
		return []*ir.Tensor{out, count}
	}
}

// countUp is the list of the numbers from 0 to n - 1.
func countUp(c *call) []*ir.Tensor {
	out := c.alloc(ir.Int64, []int64{max(scalarInt(c.arg(0)), 0)})
	for i := range ir.Slice[int64](out) {
		ir.Slice[int64](out)[i] = int64(i)
	}
	return one(out)
}

// extent is the value of an expression of extents, in a graph that has these extents.
func extent(c *call) []*ir.Tensor { return one(ir.FromSlice(ir.Int64, []int64{c.Attr("extent").I}, 1)) }

// writeRows is the state with rows in the place of those from the attribute extent on.
func writeRows(c *call) []*ir.Tensor {
	state, rows := c.arg(0), c.arg(1)
	if len(rows.Dims) != len(state.Dims) {
		fail("rows of rank %d in a state of rank %d", len(rows.Dims), len(state.Dims))
	}
	axis := axisOf(c.Attr("axis").I, len(state.Dims))
	for d, n := range rows.Dims {
		if d != axis && n != state.Dims[d] {
			fail("rows %v in a state %v", rows.Dims, state.Dims)
		}
	}
	first := c.Attr("extent").I
	if first < 0 || first > state.Dims[axis]-rows.Dims[axis] {
		fail("%d rows from row %d on are not among the %d of the state", rows.Dims[axis], first, state.Dims[axis])
	}
	out := c.alloc(state.DType, state.Dims)
	e, strides := mustElems(out), rowMajor(state.Dims)
	e.put(mustElems(state), state.Dims, strides, 0)
	e.put(mustElems(rows), rows.Dims, strides, first*strides[axis])
	return one(out)
}

// require fails with its message unless its operand is 0.
func require(c *call) []*ir.Tensor {
	if scalarInt(c.arg(0)) != 0 {
		fail("%s", c.Attr("message").S)
	}
	return one(c.arg(0))
}
