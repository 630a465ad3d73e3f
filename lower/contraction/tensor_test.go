package contraction

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
)

// TestTensorShapes: which arithmetic a contraction is offered follows from the precision and the device.
func TestTensorShapes(t *testing.T) {
	for _, c := range []struct {
		device    string
		precision precision.Precision
		products  int64
	}{
		{"h200", precision.Strict, 0}, {"h200", precision.FP32, 3}, {"h200", precision.TF32, 1},
		{"v100", precision.TF32, 0}, {"a100", precision.TF32, 1},
	} {
		spec, err := device.Find(c.device)
		if err != nil {
			t.Fatal(err)
		}
		to := target.Of(spec)
		scalar, tensor := 0, 0
		for _, s := range UsefulShapes(&to, c.precision, Float32s, 256, 256) {
			if s.Products() == 0 {
				scalar++
			} else if s.Products() == c.products {
				tensor++
			} else {
				t.Errorf("%s, %s: a shape of %d products", c.device, c.precision, s.Products())
			}
		}
		if scalar == 0 || (tensor > 0) != (c.products > 0) {
			t.Errorf("%s, %s: %d scalar shapes, %d on tensor cores", c.device, c.precision, scalar, tensor)
		}
	}
}

// TestTF32: rounding leaves 10 bits of mantissa and is off by half a unit of them at most, ties go away from zero, and
// what is not finite stays.
func TestTF32(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		x := float32(rng.NormFloat64() * math.Exp2(float64(rng.IntN(60)-30)))
		y := tf32(x)
		if math.Float32bits(y)&(1<<13-1) != 0 {
			t.Fatalf("%g becomes %g, which has more than 10 bits", x, y)
		}
		unit := math.Exp2(math.Floor(math.Log2(math.Abs(float64(x))))) / (1 << 10)
		if off := math.Abs(float64(x) - float64(y)); off > unit/2 {
			t.Fatalf("%g becomes %g, off by %g of a unit", x, y, off/unit)
		}
	}
	if got := tf32(1 + 1.0/(1<<11)); got != 1+1.0/(1<<10) {
		t.Errorf("a tie becomes %g", got)
	}
	for _, x := range []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0} {
		if got := tf32(x); math.Float32bits(got) != math.Float32bits(x) {
			t.Errorf("%g becomes %g", x, got)
		}
	}
}

// TestPackedPlaces: every element of a matrix has a place of its own inside the packed constant, which is the sum of
// the places of its row and of its depth; and the two planes of three products add up to the number.
func TestPackedPlaces(t *testing.T) {
	const rows, depth = 70, 50
	for _, s := range []TileShape{tileShapes[3], withProducts(tensorShapes[3], 1), withProducts(tensorShapes[3], 3),
		withProducts(groupShapes[5], 1), withProducts(groupShapes[5], 3)} {
		tk, tm := (depth+s.BK-1)/s.BK, (rows+s.BM-1)/s.BM
		packed := make([]byte, 4*tm*tk*s.PackedBlock(s.BM))
		want := map[int64]float32{}
		rng := rand.New(rand.NewPCG(3, 4))
		for r := range int64(rows) {
			for k := range int64(depth) {
				at := s.PackedPlace(s.BM, tk, r, k)
				if at != s.PackedPlace(s.BM, tk, r, 0)+s.PackedPlace(s.BM, tk, 0, k) {
					t.Fatalf("%+v: the place of (%d, %d) is not the sum of its row's and its depth's", s, r, k)
				}
				if _, taken := want[at]; taken {
					t.Fatalf("%+v: two elements at place %d", s, at)
				}
				want[at] = float32(rng.NormFloat64())
				binary.LittleEndian.PutUint32(packed[4*at:], math.Float32bits(want[at]))
			}
		}
		s.FinishPacked(packed, s.BM)
		bound := map[int64]float64{0: 0, 1: 1.0 / (1 << 11), 3: 1.0 / (1 << 22)}[s.Products()]
		for at, x := range want {
			got := float64(math.Float32frombits(binary.LittleEndian.Uint32(packed[4*at:])))
			if s.planes() == 2 {
				got += float64(math.Float32frombits(binary.LittleEndian.Uint32(packed[4*(at+s.BM*s.BK):])))
			}
			if off := math.Abs(got - float64(x)); off > bound*math.Abs(float64(x)) {
				t.Fatalf("%+v: %g is packed as %g", s, x, got)
			}
		}
	}
}

func withProducts(s TileShape, products int64) TileShape {
	s.products, s.multiplied = products, ir.Float32
	return s
}
