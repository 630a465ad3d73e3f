package roperator

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// An rTask accesses whole words if its part of each row begins and ends at one.
func TestWholeWords(t *testing.T) {
	buf := &Buffer{DType: ir.BFloat16, Elems: 96}
	part := func(v View, lo, hi []int64) Access {
		return Access{View: v, Box: func(_ int, l, h []int64) { copy(l, lo); copy(h, hi) }}
	}
	rows := View{Buf: buf, Shape: []int64{3, 32}, Strides: []int64{32, 1}}
	odd := View{Buf: buf, Shape: []int64{3, 31}, Strides: []int64{31, 1}}
	columns := View{Buf: buf, Shape: []int64{32, 3}, Strides: []int64{1, 32}}
	behind := View{Buf: buf, Offset: 1, Shape: []int64{32}, Strides: []int64{1}}
	for _, c := range []struct {
		what string
		a    Access
		per  int64
		want bool
	}{
		{"all of a view", Access{View: rows}, 2, true},
		{"whole rows", part(rows, []int64{1, 0}, []int64{3, 32}), 2, true},
		{"pairs of columns", part(rows, []int64{0, 2}, []int64{3, 8}), 2, true},
		{"an odd first column", part(rows, []int64{0, 1}, []int64{1, 3}), 2, false},
		{"an odd last column", part(rows, []int64{0, 2}, []int64{1, 5}), 2, false},
		{"one element", part(rows, []int64{0, 2}, []int64{1, 3}), 2, false},
		{"nothing", part(rows, []int64{0, 3}, []int64{1, 3}), 2, true},
		{"rows of odd length", Access{View: odd}, 2, false},
		{"one row of even length among such", part(odd, []int64{0, 0}, []int64{1, 30}), 2, true},
		{"a row behind one of odd length", part(odd, []int64{1, 0}, []int64{2, 30}), 2, false},
		{"neighbours that are not the last dim", part(columns, []int64{4, 0}, []int64{6, 3}), 2, true},
		{"a view that begins inside of a word", Access{View: behind}, 2, false},
		{"words of one element", part(rows, []int64{0, 1}, []int64{1, 2}), 1, true},
	} {
		if got := c.a.WholeWords(0, c.per); got != c.want {
			t.Errorf("%s: whole words: %t, want %t", c.what, got, c.want)
		}
	}
}

// Tagged words carry 32 bits.
func TestPerWord(t *testing.T) {
	for d, want := range map[ir.DType]int64{ir.Float32: 1, ir.Int32: 1, ir.Float16: 2, ir.BFloat16: 2, ir.Int64: 0,
		ir.Float64: 0, ir.Int8: 0, ir.Bool: 0} {
		if got := PerWord(d); got != want {
			t.Errorf("a word has %d elements of type %v, want %d", got, d, want)
		}
	}
}
