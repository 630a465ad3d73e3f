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
// the places of its row and of its depth.
func TestPackedPlaces(t *testing.T) {
	for _, s := range []TileShape{tileShapes[3], withProducts(tensorShapes[3], 1), withProducts(tensorShapes[3], 3),
		withProducts(groupShapes[5], 1), splitShapes[3]} {
		packed, want := packedMatrix(t, s, 1)
		packed = s.FinishPacked(packed, s.BM)
		if s.Products() == 3 {
			continue // TestSplitConstants
		}
		bound := map[int64]float64{0: 0, 1: 1.0 / (1 << 11)}[s.Products()]
		for at, e := range want {
			got := math.Float32frombits(binary.LittleEndian.Uint32(packed[4*at:]))
			if off := math.Abs(float64(got) - float64(e.x)); off > bound*math.Abs(float64(e.x)) {
				t.Fatalf("%+v: %g is packed as %g", s, e.x, got)
			}
		}
	}
}

// TestProductLines: the columns of a tile are those of its product in another order, in which runs of neighbours belong
// to one of the four threads that have sums of a row, from the first of its columns on.
func TestProductLines(t *testing.T) {
	for d, near := range map[ir.DType]int64{ir.Float32: 4, ir.Float16: 8, ir.Int8: 8} {
		s, lines, seen := TileShape{multiplied: d, groups: true, products: 1}, int64(96), map[int64]bool{}
		for line := range lines {
			at := s.productLine(line)
			if at < 0 || at >= lines || seen[at] {
				t.Fatalf("%v: column %d is column %d of the product", d, line, at)
			}
			seen[at] = true
			// Of each eight columns of the product a thread has two.
			thread, number := at%8/2, at/8*2+at%2
			if want := line / near % 4; thread != want {
				t.Errorf("%v: thread %d has column %d, want thread %d", d, thread, line, want)
			}
			if want := line/(4*near)*near + line%near; number != want {
				t.Errorf("%v: column %d is number %d of its thread, want %d", d, line, number, want)
			}
		}
	}
}

// element is one of a matrix: row r, depth k.
type element struct {
	r, k int64
	x    float32
}

// packedMatrix has random elements of about the given size at their places, before FinishPacked.
func packedMatrix(t *testing.T, s TileShape, size float64) (packed []byte, want map[int64]element) {
	const rows, depth = 70, 50
	tk, tm := (depth+s.BK-1)/s.BK, (rows+s.BM-1)/s.BM
	packed = make([]byte, 4*tm*tk*s.PackedBlock(s.BM))
	want = map[int64]element{}
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
			want[at] = element{r, k, float32(size * rng.NormFloat64())}
			binary.LittleEndian.PutUint32(packed[4*at:], math.Float32bits(want[at].x))
		}
	}
	return packed, want
}

// TestSplitConstants: the parts of a number stand where its thread takes them, and their sum divided by the scale is the
// number but for a unit in its last place, however large or small the constant is.
func TestSplitConstants(t *testing.T) {
	le := binary.LittleEndian
	for _, s := range []TileShape{withProducts(tensorShapes[3], 3), splitShapes[3]} {
		for _, size := range []float64{1, 1e-30, 1e36} {
			packed, want := packedMatrix(t, s, size)
			blocks := int64(len(packed))
			packed = s.FinishPacked(packed, s.BM)
			if got := int64(len(packed)) / 4; got != s.PackedElements(blocks/4) {
				t.Fatalf("%+v: %d elements for blocks of %d", s, got, blocks/4)
			}
			inverse := float64(math.Float32frombits(le.Uint32(packed[blocks:])))
			tk := (50 + s.BK - 1) / s.BK
			for _, e := range want {
				block := 4 * s.PackedBlock(s.BM) * (e.r/s.BM*tk + e.k/s.BK)
				line, place := e.r%s.BM, e.k%s.BK/16*16+pairedDepth(e.k%16)
				hi, behind := block+2*(2*line*s.BK+place), 2*s.BK
				if s.groups {
					hi, behind = block+place/8*(16*s.BM)+16*line+place%8*2, 2*s.BM*s.BK
				}
				got := (ir.FromFloat16(le.Uint16(packed[hi:])) + ir.FromFloat16(le.Uint16(packed[hi+behind:]))) * inverse
				if off := math.Abs(got - float64(e.x)); off > math.Abs(float64(e.x))/(1<<22)+size/(1<<36) {
					t.Fatalf("%+v: %g is packed as %g", s, e.x, got)
				}
			}
		}
	}
}

// pairedDepth is where a fragment 16 deep has depth k of memory: lane q has depths q and q + 4 of either half of it,
// which are neighbours 2q and 2q + 1 to the instruction.
func pairedDepth(k int64) int64 { return k/8*8 + k%4*2 + k%8/4 }

func withProducts(s TileShape, products int64) TileShape {
	s.products, s.multiplied = products, ir.Float32
	return ForConstant([]TileShape{s})[0]
}
