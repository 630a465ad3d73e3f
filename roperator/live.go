package roperator

import "github.com/rammerc/rammerc/ir/axes"

// Where live elements lie in buffers, and from when on an rTask has none of them to write.

// Axis is dim d of the view as an axis: the factors of its buffer that the dim walks through, or else as many elements
// in all runs.
func (v View) Axis(d int) axes.Axis {
	factors := v.Buf.Factors
	stride := int64(1)
	for last := len(factors) - 1; last >= 0; last-- {
		if stride == v.Strides[d] {
			for first := last; first >= 0; first-- {
				if run := factors[first : last+1]; run.Largest() == v.Shape[d] {
					return run
				}
			}
		}
		stride *= factors[last].N
	}
	return axes.StaticAxis(v.Shape[d])
}

// FirstLive is for each of so many ranges a lower bound of the smallest index that an rTask writes along axes of that
// range. Where an extent is not above it, the rTask writes no live element.
func (c *Candidate) FirstLive(buffers []*Buffer, ranges, task int) []int64 {
	out := make([]int64, ranges)
	for i, box := range c.AppendWrites(nil, task) {
		first := box.firstLive(buffers[box.Buf], ranges)
		for s := range out {
			if i == 0 || first[s] < out[s] {
				out[s] = first[s]
			}
		}
	}
	return out
}

// firstLive is FirstLive of one box.
func (a *Box) firstLive(buf *Buffer, ranges int) []int64 {
	out := make([]int64, ranges)
	stride := int64(1)
	for i := len(buf.Factors) - 1; i >= 0; i-- {
		f := buf.Factors[i]
		if f.Symbol != axes.Static {
			out[f.Symbol] = max(out[f.Symbol], a.firstIndex(buf.Canon, stride, f.N))
		}
		stride *= f.N
	}
	return out
}

// firstIndex is the smallest index along a dim of n elements that are stride apart, of those that the box has: 0 if the
// coordinates of the box do not tell.
func (a *Box) firstIndex(canon []int64, stride, n int64) int64 {
	lo, hi := int64(0), int64(0) // of addresses, up to multiples of stride·n
	for i, weight := range canon {
		switch {
		case weight%(stride*n) == 0:
		case weight > stride*n:
			return 0
		default:
			lo += int64(a.Lo[i]) * weight
			hi += int64(a.Hi[i]-1) * weight
		}
	}
	if hi/(stride*n) != lo/(stride*n) {
		return 0
	}
	return lo % (stride * n) / stride
}
