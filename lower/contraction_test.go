package lower

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// lowerText lowers a graph given as statements whose results need no types.
func lowerText(in, body string) (*roperator.Graph, error) {
	g, err := parseGraph(in, body)
	if err != nil {
		return nil, err
	}
	return lowerStatic(g, testTarget("h100"), testKernels(), precision.Choice{})
}

// parseGraph reads a graph from its inputs and statements; its output is %y.
func parseGraph(in, body string) (*ir.Graph, error) {
	body = strings.ReplaceAll(body, "%y =", "%y: invalid? =")
	g, err := ir.ParseText("test", []byte(fmt.Sprintf("graph \"g\" (%s) {\n%s\nreturn %%y\n}\n", in, body)),
		ir.ParseOptions{})
	if err != nil {
		return nil, err
	}
	return g, ir.InferShapes(g).Err()
}

// testTarget is a built-in device.
func testTarget(name string) target.Target {
	spec, err := device.Find(name)
	if err != nil {
		panic(err)
	}
	return target.Of(spec)
}

// lowerStatic lowers a graph of which all extents are known.
func lowerStatic(g *ir.Graph, t target.Target, kernels *rkernels.Catalogue, p precision.Choice) (*roperator.Graph, error) {
	return lowerGraph(g, nil, nil, t, kernels, p)
}

func testKernels() *rkernels.Catalogue {
	kernels, err := rkernels.BuiltIn()
	if err != nil {
		panic(err)
	}
	return kernels
}

// weights is a statement that defines a constant of small whole numbers, no two neighbours alike.
func weights(name string, dims ...int) string {
	n, shape := 1, make([]string, len(dims))
	for i, d := range dims {
		n *= d
		shape[i] = fmt.Sprint(d)
	}
	values := make([]string, n)
	for i := range values {
		values[i] = fmt.Sprint(i % 251)
	}
	return fmt.Sprintf("%%%s = const float32[%s] {%s}\n", name, strings.Join(shape, ","), strings.Join(values, ", "))
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
		if err := roperator.Verify(g); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, b := range g.Buffers {
			if b.Kind == roperator.Const && b.Bytes() < 1<<20 && int64(len(b.Data())) != b.Bytes() {
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
		return in, weights("b", k, n) + "%y = MatMul(%a, %b)"
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
	return in, weights("w", filter...) + fmt.Sprintf("%%y = %s(%%x, %%w) {group = %d, strides = [%s], dilations = [%s], pads = [%s]}",
		op, group, strides[2:], dilations[2:], pads[2:])
}

// Products of more tiles than there are vEUs may have strips of several tiles, of which each vEU has one at most: those of
// many rows, and those of few rows, which have tiles of their own.
func TestWideStrips(t *testing.T) {
	h200 := testTarget("h200")
	for _, rows := range []int{32, 512} {
		in := fmt.Sprintf("%%x: float16[%d,64]", rows)
		body := strings.Replace(weights("w", 64, 64*(h200.VEUs+4)), "float32", "float16", 1) + "%y = MatMul(%x, %w)"
		g, err := lowerStatic(parsed(t, in, body), h200, testKernels(), precision.Choice{})
		if err != nil {
			t.Fatal(err)
		}
		if err := roperator.Verify(g); err != nil {
			t.Errorf("%d rows: %v", rows, err)
		}
		several := 0
		for _, c := range g.Ops[len(g.Ops)-1].Candidates {
			isWide := slices.ContainsFunc(c.Args, func(f rkernels.Field) bool {
				return f.Name == "wide" && f.Value != arg.Int("wide", 1).Value
			})
			if isWide && c.Tasks <= h200.VEUs {
				several++
			}
		}
		if several == 0 {
			t.Errorf("%d rows: no candidate has strips of several tiles", rows)
		}
	}
}

func TestUnsupportedContractionsAreNamed(t *testing.T) {
	for _, c := range []struct{ in, body, want string }{
		{"%a: float32[2,3], %b: float32[3,4], %c: float32[4,5]", `%y = Einsum(%a, %b, %c) {equation = "ij,jk,kl->il"}`,
			"3 operands"},
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
