package driver

import (
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
)

func TestParseNumbers(t *testing.T) {
	for _, c := range []struct {
		text string
		want *ir.Tensor
		err  string
	}{
		{"3", ir.FromSlice(ir.Int64, []int64{3}), ""},
		{"[1,-2]", ir.FromSlice(ir.Int64, []int64{1, -2}, 2), ""},
		{"[]", ir.FromSlice(ir.Int64, []int64{}, 0), ""},
		{"[[1],[2],[3]]", ir.FromSlice(ir.Int64, []int64{1, 2, 3}, 3, 1), ""},
		{"[1, 2.5]", ir.FromSlice(ir.Float64, []float64{1, 2.5}, 2), ""},
		{"true", ir.FromSlice(ir.Int64, []int64{1}), ""},
		{"[1,[2]]", nil, "side by side"},
		{"[[1],2]", nil, "side by side"},
		{"[[1],[2,3]]", nil, "1 and of 2"},
		{"[1] 2", nil, "behind"},
		{"[\"a\"]", nil, "neither"},
		{"1,2", nil, "behind"},
		{"", nil, "want a number"},
	} {
		got, err := parseNumbers(c.text)
		switch {
		case err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: got error %v, want %q", c.text, err, c.err)
		case err == nil && c.want == nil:
			t.Errorf("%q: got %v, want an error", c.text, got)
		case err == nil && (got.DType != c.want.DType || !slices.Equal(got.Dims, c.want.Dims) ||
			!sameNumbers(got, c.want)):
			t.Errorf("%q: got %+v, want %+v", c.text, got, c.want)
		}
	}
}

func sameNumbers(a, b *ir.Tensor) bool {
	if a.DType == ir.Float64 {
		return slices.Equal(ir.Slice[float64](a), ir.Slice[float64](b))
	}
	return slices.Equal(ir.Slice[int64](a), ir.Slice[int64](b))
}

func TestBindFlags(t *testing.T) {
	o := ModelOptions{Binds: []string{"a=b=[1]", "x=1", "x=2", "=3", "y", "z=@nowhere.npy"}}
	var l diag.List
	out := o.bound(&l)
	if len(out) != 2 || out["a=b"] == nil || out["x"] == nil {
		t.Errorf("got %v", out)
	}
	if l.Errors() != 4 {
		t.Errorf("got %v, want four errors", l.Err())
	}
}
