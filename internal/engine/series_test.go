package engine

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
)

func TestSeriesIsCutAlongTheFirstAxis(t *testing.T) {
	dir := t.TempDir()
	files := 0
	write := func(name string, dims ...int64) string {
		files++
		x := ir.NewTensor(ir.Int32, dims...)
		for i := range ir.Slice[int32](x) {
			ir.Slice[int32](x)[i] = int32(i)
		}
		path := filepath.Join(dir, fmt.Sprintf("%s%d.npy", name, files))
		if err := tensorio.WriteNPY(path, x); err != nil {
			t.Fatal(err)
		}
		return name + "=" + path
	}
	inputs := []Port{{Name: "x", DType: ir.Int32, Dims: []int64{2, 3}}, {Name: "k", DType: ir.Int32, Dims: []int64{5}}}
	outputs := []Port{{Name: "y", DType: ir.Int32, Dims: []int64{2}}}
	x, k, y := write("x", 7, 3), write("k", 5), write("y", 7)
	set, err := Series(inputs, outputs, []string{x, k}, []string{y}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if set.N != 4 {
		t.Fatalf("%d inferences of 7 samples by 2", set.N)
	}
	for i, want := range []string{
		"[0 1 2 3 4 5] [0 1 2 3 4] [0 1] keep 0", "[6 7 8 9 10 11] [0 1 2 3 4] [2 3] keep 0",
		"[12 13 14 15 16 17] [0 1 2 3 4] [4 5] keep 0", "[18 19 20 18 19 20] [0 1 2 3 4] [6 6] keep 1",
	} {
		a := set.At(i)
		if got := fmt.Sprint(a.In["x"].Data, a.In["k"].Data, a.Want["y"].Data, " keep ",
			a.Keep); strings.Join(strings.Fields(got), " ") != want {
			t.Errorf("inference %d: got %s, want %s", i, got, want)
		}
	}
	if got := keepRows(ir.FromSlice(ir.Int32, []int32{1, 2, 3, 4}, 2, 2), 1); fmt.Sprint(got.Dims,
		got.Data) != "[1 2] [1 2]" {
		t.Errorf("kept %v %v", got.Dims, got.Data)
	}

	for _, c := range []struct{ in, expect, want string }{
		{write("x", 8, 3), y, "x has 8 samples for batches of 2, y has 7 for batches of 2"},
		{write("x", 8, 4), y, "is int32[8,4], want int32[2,3] or more samples"},
		{x, write("y", 7, 1), "is int32[7,1], want int32[2] or more samples"},
		{strings.Replace(x, "x=", "z=", 1), y, `there is no input "z"`},
	} {
		if _, err := Series(inputs, outputs, []string{c.in, k}, []string{c.expect}, nil); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if _, err := Series(inputs, outputs, []string{x}, nil, nil); len(diag.All(err)) != 1 ||
		diag.All(err)[0].Port != "input k" {
		t.Errorf("missing input: %v", err)
	}
}

// Inputs without a file are the same for every inference.
func TestSeriesTakesDrawnInputs(t *testing.T) {
	inputs := []Port{{Name: "x", DType: ir.Int32, Dims: []int64{1}}, {Name: "k", DType: ir.Int32, Dims: []int64{5}}}
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := tensorio.WriteNPY(path, ir.FromSlice(ir.Int32, []int32{7, 8, 9}, 3)); err != nil {
		t.Fatal(err)
	}
	drawn := Tensors{"x": ir.NewTensor(ir.Int32, 1), "k": ir.NewTensor(ir.Int32, 5)}
	set, err := Series(inputs, nil, []string{"x=" + path}, nil, drawn)
	if err != nil || set.N != 3 {
		t.Fatalf("%v, %v", set, err)
	}
	for i := range 3 {
		if in := set.At(i).In; in["k"] != drawn["k"] || fmt.Sprint(in["x"].Data) != fmt.Sprintf("[%d]", 7+i) {
			t.Errorf("inference %d: %v", i, in)
		}
	}
}

func TestRandomInputsCoverTheirRange(t *testing.T) {
	const n = 4000
	var ports []Port
	for _, d := range []ir.DType{ir.Float32, ir.Float64, ir.Float16, ir.BFloat16, ir.Int8, ir.Int16, ir.Int32, ir.Int64,
		ir.Uint8, ir.Uint16, ir.Uint32, ir.Uint64, ir.Bool} {
		ports = append(ports, Port{Name: d.String(), DType: d, Dims: []int64{n}})
	}
	for _, limit := range []int64{1, 50, 1000} {
		for _, p := range ports {
			lo, hi := most(RandomInputs([]Port{p}, 3, limit)[p.Name])
			wantLo, wantHi := 0.0, float64(limit-1)
			switch {
			case p.DType.IsFloat():
				wantLo, wantHi = -1, 1
			case p.DType == ir.Bool:
				wantHi = 1
			case p.DType == ir.Int8: // bytes are codes, of which none is too large
				wantLo, wantHi = -128, 127
			case p.DType == ir.Uint8:
				wantHi = 255
			}
			if slack := 0.02 * (1 + wantHi); lo < wantLo || hi > wantHi || lo > wantLo+slack || hi < wantHi-slack {
				t.Errorf("%v below %d: got %g … %g, want %g … %g", p.DType, limit, lo, hi, wantLo, wantHi)
			}
		}
	}
}

func most(t *ir.Tensor) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for i := range t.Len() {
		x := tolerance.At(t, i)
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}
