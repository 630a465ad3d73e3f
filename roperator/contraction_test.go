package roperator

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// lowerText lowers a graph given as statements whose results need no types.
func lowerText(in, body string) (*Graph, error) {
	body = strings.ReplaceAll(body, "%y =", "%y: invalid? =")
	g, err := ir.ParseText("test", []byte(fmt.Sprintf("graph \"g\" (%s) {\n%s\nreturn %%y\n}\n", in, body)))
	if err != nil {
		return nil, err
	}
	if err := ir.InferShapes(g).Err(); err != nil {
		return nil, err
	}
	return Lower(g)
}

// zeros is a statement that defines a constant.
func zeros(name string, dims ...int) string {
	n, shape := 1, make([]string, len(dims))
	for i, d := range dims {
		n *= d
		shape[i] = fmt.Sprint(d)
	}
	return fmt.Sprintf("%%%s = const float32[%s] {%s}\n", name, strings.Join(shape, ","), strings.Repeat("0, ", n-1)+"0")
}

func oneOf[T any](rng *rand.Rand, choices ...T) T { return choices[rng.IntN(len(choices))] }

// TestContractionsTileTheirOutputs verifies products and convolutions of random sizes, each with all its
// candidates: write boxes must tile the output exactly, packed constants must be as long as announced.
func TestContractionsTileTheirOutputs(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range 150 {
		in, body := randomProduct(rng)
		if i%3 != 0 {
			in, body = randomConv(rng)
		}
		name := in + " " + body[strings.Index(body, "%y"):]
		g, err := lowerText(in, body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := Verify(g); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, b := range g.Buffers {
			if b.Kind == Const && b.Bytes() < 1<<20 && int64(len(b.Data())) != b.Bytes() {
				t.Errorf("%s: constant %s has %d bytes, want %d", name, b.Name, len(b.Data()), b.Bytes())
			}
		}
	}
}

func randomProduct(rng *rand.Rand) (in, body string) {
	m, n, k := oneOf(rng, 1, 3, 8, 9, 17, 64, 130), oneOf(rng, 1, 10, 65, 200), oneOf(rng, 1, 16, 63, 129, 1200)
	batch := oneOf(rng, "", "3,", "2,1,3,")
	in = fmt.Sprintf("%%a: float32[%s%d,%d]", batch, m, k)
	if rng.IntN(2) == 0 {
		return in, zeros("b", k, n) + "%y = MatMul(%a, %b)"
	}
	return in + fmt.Sprintf(", %%b: float32[%s%d,%d]", oneOf(rng, batch, ""), k, n), "%y = MatMul(%a, %b)"
}

func randomConv(rng *rand.Rand) (in, body string) {
	group := oneOf(rng, 1, 1, 2, 8)
	inC, outC := group*oneOf(rng, 1, 3, 16, 40), group*oneOf(rng, 1, 4, 9, 64)
	rank := oneOf(rng, 1, 2, 2, 3)
	op, first, second := "Conv", outC, inC/group
	if rng.IntN(3) == 0 {
		op, first, second = "ConvTranspose", inC, outC/group
	}
	shape := []string{fmt.Sprint(1 + rng.IntN(2)), fmt.Sprint(inC)}
	filter, strides, dilations, pads := []int{first, second}, "", "", ""
	for range rank {
		shape = append(shape, fmt.Sprint(6+rng.IntN(9)))
		filter = append(filter, 1+rng.IntN(3))
		strides += fmt.Sprintf(", %d", 1+rng.IntN(2))
		dilations += fmt.Sprintf(", %d", 1+rng.IntN(2))
		pads += fmt.Sprintf(", %d, %d", rng.IntN(2), rng.IntN(2))
	}
	in = "%x: float32[" + strings.Join(shape, ",") + "]"
	return in, zeros("w", filter...) + fmt.Sprintf("%%y = %s(%%x, %%w) {group = %d, strides = [%s], dilations = [%s], pads = [%s]}",
		op, group, strides[2:], dilations[2:], pads[2:])
}

// TestPackedColumnsAreAPermutation puts every weight at a place of its own.
func TestPackedColumnsAreAPermutation(t *testing.T) {
	for _, s := range []gemvShape{{1, 1, 32, 1}, {1, 4, 32, 8}, {1, 2, 8, 1}, {8, 4, 32, 1}, {1, 1, 32, 2}} {
		const k, n = 150, 21
		seen := make([]bool, tileCount(n, s.columns())*s.blockElems(k))
		for i := range int64(k) {
			for j := range int64(n) {
				at := s.place(k, i, j)
				if seen[at] {
					t.Fatalf("%+v: (%d, %d) lies on another weight", s, i, j)
				}
				seen[at] = true
				if at/s.blockElems(k) != j/s.columns() {
					t.Fatalf("%+v: (%d, %d) is in block %d", s, i, j, at/s.blockElems(k))
				}
			}
		}
	}
}

// TestSplits: sums are split where that fills the rounds of a wide device, and not where little is left to
// do between taking a tile up and adding it.
func TestSplits(t *testing.T) {
	for _, c := range []struct {
		name       string
		m, n, k    int64
		share      float64 // of the device
		split      bool
		leastShare float64 // of the rounds, by the shape that fills them best
	}{
		{"one tile, a long sum", 16, 64, 1 << 16, 1, true, 0.9},
		{"one tile, a short sum", 16, 64, 300, 1, false, 0},
		{"many tiles", 2048, 2048, 4096, 1, false, 0},
		{"a round that is not full", 32, 6075, 7392, 1, true, 0.9},
		{"a matrix of many elements and a short sum", 96, 1024, 512, 1, false, 0},
		{"few tiles", 96, 196, 480, 1, true, 0.4},
		{"few tiles beside others", 96, 196, 480, 0.2, false, 0},
	} {
		shapes := usefulShapes(c.m, c.n)
		tasks := func(s tileShape) int64 { return tileCount(c.m, s.bm) * tileCount(c.n, s.bn) }
		splits := splitsFor(shapes, tasks, c.k, c.m*c.n, c.share)
		if (splits > 1) != c.split {
			t.Errorf("%s: %d splits", c.name, splits)
		}
		share := 0.0
		for _, s := range shapes {
			n := tasks(s) * splits
			share = max(share, float64(n)/float64(tileCount(n, wideDevice)*wideDevice))
		}
		if share < c.leastShare {
			t.Errorf("%s: %d splits fill %.2f of the rounds", c.name, splits, share)
		}
	}
}

func TestUnsupportedContractionsAreNamed(t *testing.T) {
	for _, c := range []struct{ in, body, want string }{
		{"%a: float32[2,3], %b: float32[3,4], %c: float32[4,5]", `%y = Einsum(%a, %b, %c) {equation = "ij,jk,kl->il"}`, "3 operands"},
		{"%x: float32[1,1,2,2,2,2], %w: float32[1,1,1,1,1,1]", "%y = Conv(%x, %w)", "spatial"},
		{"%a: int8[2,3], %b: int8[3,4]", "%y = MatMul(%a, %b)", "int8"},
		{"%a: int32[2,3], %b: int32[3,4]", "%y = Gemm(%a, %b) {alpha = 0.5}", "alpha"},
	} {
		_, err := lowerText(c.in, c.body)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", c.body, err, c.want)
		}
	}
}
