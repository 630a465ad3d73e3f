package roperator

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
)

// The first live index of an rTask is a lower bound of those of all elements that it writes, and exact where tiles do
// not run over the end of an axis.
func TestFirstLive(t *testing.T) {
	const batch, seq, cols = 3, 10, 4
	buf := &Buffer{DType: ir.Float32, Elems: batch * seq * cols,
		Factors: axes.Axis{{Symbol: 0, N: batch}, {Symbol: 1, N: seq}, {Symbol: axes.Static, N: cols}}}
	rows := Contiguous(buf, []int64{batch * seq, cols})
	entries := Contiguous(buf, []int64{batch, seq, cols})
	for _, c := range []struct {
		what  string
		view  View
		tasks int
		box   func(task int, lo, hi []int64)
		exact bool
	}{
		{"five rows", rows, 6, func(task int, lo, hi []int64) {
			lo[0], hi[0], lo[1], hi[1] = 5*int64(task), 5*int64(task)+5, 0, cols
		}, true},
		{"rows that run over entries", rows, 5, func(task int, lo, hi []int64) {
			lo[0], hi[0], lo[1], hi[1] = 6*int64(task), 6*int64(task)+6, 0, cols
		}, false},
		{"two rows and columns of all entries", entries, 10, func(task int, lo, hi []int64) {
			i := int64(task)
			lo[0], hi[0], lo[1], hi[1], lo[2], hi[2] = 0, batch, i/2*2, i/2*2+2, i%2*2, i%2*2+2
		}, true},
	} {
		cand := &Candidate{Tasks: c.tasks, Writes: []Access{{View: c.view, Box: c.box}}}
		g := &Graph{Buffers: []*Buffer{buf}, Ops: []*ROperator{{Candidates: []*Candidate{cand}}}}
		g.Canonise()
		for task := range c.tasks {
			want := firstWritten(c.view, c.box, task, seq, cols)
			for s, got := range cand.FirstLive(g.Buffers, 2, task) {
				if got > want[s] || c.exact && got != want[s] {
					t.Errorf("%s: rTask %d begins at index %d of range %d, want %d", c.what, task, got, s, want[s])
				}
			}
		}
	}
}

// firstWritten finds the smallest indices of batch and seq that an rTask writes, element by element.
func firstWritten(v View, box func(task int, lo, hi []int64), task int, seq, cols int64) [2]int64 {
	lo, hi := make([]int64, len(v.Shape)), make([]int64, len(v.Shape))
	box(task, lo, hi)
	out := [2]int64{1 << 40, 1 << 40}
	var walk func(d int, at int64)
	walk = func(d int, at int64) {
		if d == len(lo) {
			row := at / cols
			out[0], out[1] = min(out[0], row/seq), min(out[1], row%seq)
			return
		}
		for i := lo[d]; i < hi[d]; i++ {
			walk(d+1, at+i*v.Strides[d])
		}
	}
	walk(0, v.Offset)
	return out
}

// A dim of a view is an axis where it walks through whole factors of its buffer.
func TestViewAxis(t *testing.T) {
	factors := axes.Axis{{Symbol: 0, N: 3}, {Symbol: 1, N: 10}, {Symbol: axes.Static, N: 4}}
	buf := &Buffer{DType: ir.Float32, Elems: 120, Factors: factors}
	for _, c := range []struct {
		view View
		dim  int
		want axes.Axis
	}{
		{Contiguous(buf, []int64{3, 10, 4}), 1, factors[1:2]},
		{Contiguous(buf, []int64{30, 4}), 0, factors[:2]},
		{Contiguous(buf, []int64{3, 10, 4}).Permute([]int64{2, 0, 1}), 1, factors[:1]},
		{Contiguous(buf, []int64{15, 8}), 0, axes.StaticAxis(15)},
		{Contiguous(buf, []int64{3, 10, 4}).Slice(1, 0, 5), 1, axes.StaticAxis(5)},
	} {
		if got := c.view.Axis(c.dim); !got.Equal(c.want) {
			t.Errorf("dim %d of %v is %v, want %v", c.dim, c.view.Shape, got, c.want)
		}
	}
}
