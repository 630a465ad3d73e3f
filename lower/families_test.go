package lower

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/roperator"
)

// TestFamiliesTileTheirOutputs verifies every family except contractions with random parameters, at sizes
// that have many rTasks: write boxes must tile outputs exactly once, views stay inside their buffers, and
// nothing is read that nobody wrote. internal/golden shows that read boxes hold what rTasks need.
func TestFamiliesTileTheirOutputs(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	for _, family := range []struct {
		name string
		make func(rng *rand.Rand) (in, body string)
		runs int
	}{
		{"map", randomMap, 30}, {"copy", randomCopy, 30}, {"reduce", randomReduce, 60}, {"norm", randomNorm, 40},
		{"pool", randomPool, 40}, {"indexed", randomIndexed, 60}, {"lines", randomLines, 30},
	} {
		for range family.runs {
			in, body := family.make(rng)
			g, err := lowerText(in, body)
			if err != nil {
				t.Errorf("%s: %s %s: %v", family.name, in, body, err)
				continue
			}
			if err := roperator.Verify(g); err != nil {
				t.Errorf("%s: %s %s: %v", family.name, in, body, err)
			}
			for _, op := range g.Ops {
				checkWork(t, op)
			}
		}
	}
}

// checkWork demands that costs are stated and that candidates differ.
func checkWork(t *testing.T, op *roperator.ROperator) {
	t.Helper()
	for i, c := range op.Candidates {
		if c.Work.WriteBytes <= 0 {
			t.Errorf("%s: candidate %d writes nothing: %+v", op.Kind, i, c.Work)
		}
		if i > 0 && c.Tasks == op.Candidates[i-1].Tasks && c.Inst.Key() == op.Candidates[i-1].Inst.Key() {
			t.Errorf("%s: candidates %d and %d are equal", op.Kind, i-1, i)
		}
		if t1, t2 := c.Inst.Threads(), c.Inst.Shared(); t1%32 != 0 || t1 > 1024 || t2 > 96<<10 {
			t.Errorf("%s: %d threads, %d bytes shared", op.Kind, t1, t2)
		}
	}
}

func extents(rng *rand.Rand, rank int) []int {
	dims := make([]int, rank)
	for d := range dims {
		dims[d] = oneOf(rng, 1, 2, 3, 5, 8, 17, 32, 33)
	}
	if rank > 0 {
		dims[rng.IntN(rank)] = oneOf(rng, 1, 64, 100, 129, 400)
	}
	return dims
}

func list(dims []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(dims), " ", ","), "[]")
}

func randomType(rng *rand.Rand) string { return oneOf(rng, "float32", "float32", "float64", "float16") }

// randomMap adds a tensor, a transposed one and a broadcast one.
func randomMap(rng *rand.Rand) (in, body string) {
	rank := 1 + rng.IntN(5)
	dims := extents(rng, rank)
	perm := rng.Perm(rank)
	turned, thin := make([]int, rank), append([]int{}, dims...)
	for i, p := range perm {
		turned[p] = dims[i]
	}
	for d := range thin {
		if rng.IntN(2) == 0 {
			thin[d] = 1
		}
	}
	d := randomType(rng)
	in = fmt.Sprintf("%%x: %[1]s[%[2]s], %%t: %[1]s[%[3]s], %%b: %[1]s[%[4]s]", d, list(dims), list(turned),
		list(thin[rng.IntN(rank):]))
	return in, fmt.Sprintf("%%p: invalid? = Transpose(%%t) {perm = [%s]}\n%%s: invalid? = Add(%%x, %%p)\n%%y = Mul(%%s, %%b)", list(perm))
}

func randomCopy(rng *rand.Rand) (in, body string) {
	rank := 1 + rng.IntN(5)
	return fmt.Sprintf("%%x: %s[%s]", randomType(rng), list(extents(rng, rank))),
		fmt.Sprintf("%%y = Transpose(%%x) {perm = [%s]}", list(rng.Perm(rank)))
}

func randomReduce(rng *rand.Rand) (in, body string) {
	rank := 1 + rng.IntN(6)
	in = fmt.Sprintf("%%x: %s[%s]", randomType(rng), list(extents(rng, rank)))
	if rng.IntN(4) == 0 {
		return in, fmt.Sprintf("%%y = ArgMax(%%x) {axis = %d, keepdims = %d}", rng.IntN(rank), rng.IntN(2))
	}
	axes := rng.Perm(rank)[:1+rng.IntN(rank)]
	op := oneOf(rng, "ReduceSum", "ReduceMean", "ReduceL2", "ReduceLogSumExp", "ReduceMax")
	return in, fmt.Sprintf("%%a = const int64[%d] {%s}\n%%y = %s(%%x, %%a) {keepdims = %d}", len(axes), list(axes), op,
		rng.IntN(2))
}

func randomNorm(rng *rand.Rand) (in, body string) {
	rank := 3 + rng.IntN(2)
	dims := extents(rng, rank)
	d := randomType(rng)
	in = fmt.Sprintf("%%x: %s[%s]", d, list(dims))
	switch rng.IntN(5) {
	case 0:
		return in, fmt.Sprintf("%%y = LRN(%%x) {size = %d}", 1+rng.IntN(6))
	case 1:
		return in + fmt.Sprintf(", %%s: %s[%d], %%b: %[1]s[%[2]d]", d, dims[rank-1]),
			"%y = LayerNormalization(%x, %s, %b)"
	case 2:
		return in + fmt.Sprintf(", %%s: %s[%d], %%b: %[1]s[%[2]d]", d, dims[1]),
			"%y = InstanceNormalization(%x, %s, %b)"
	case 3:
		in += fmt.Sprintf(", %%s: %s[%d], %%b: %[1]s[%[2]d], %%m: %[1]s[%[2]d], %%v: %[1]s[%[2]d]", d, dims[1])
		return in, "%y = BatchNormalization(%x, %s, %b, %m, %v)"
	}
	return in, fmt.Sprintf("%%y = %s(%%x) {axis = %d}", oneOf(rng, "Softmax", "LogSoftmax"), rng.IntN(rank))
}

func randomPool(rng *rand.Rand) (in, body string) {
	rank := 1 + rng.IntN(3)
	var dims, kernel, strides, dilations, pads, behind []int
	for range rank {
		k := 1 + rng.IntN(4)
		dims = append(dims, 10+rng.IntN(50))
		kernel, strides, dilations = append(kernel, k), append(strides, 1+rng.IntN(3)), append(dilations, 1+rng.IntN(2))
		pads, behind = append(pads, rng.IntN(k)), append(behind, rng.IntN(k))
	}
	attrs := fmt.Sprintf("kernel_shape = [%s], strides = [%s], dilations = [%s], pads = [%s], ceil_mode = %d",
		list(kernel), list(strides), list(dilations), list(append(pads, behind...)), rng.IntN(2))
	in = fmt.Sprintf("%%x: %s[%d,%d,%s]", randomType(rng), 1+rng.IntN(2), 1+rng.IntN(20), list(dims))
	if rng.IntN(2) == 0 {
		return in, "%y: invalid?, %i: invalid? = MaxPool(%x) {" + attrs + "}"
	}
	return in, "%y = AveragePool(%x) {" + attrs + "}"
}

func randomIndexed(rng *rand.Rand) (in, body string) {
	rank := 1 + rng.IntN(4)
	dims := extents(rng, rank)
	axis := rng.IntN(rank)
	in = fmt.Sprintf("%%x: %s[%s]", randomType(rng), list(dims))
	switch rng.IntN(8) {
	case 0:
		return in + fmt.Sprintf(", %%i: int64[%s]", list(extents(rng, rng.IntN(3)))),
			fmt.Sprintf("%%y = Gather(%%x, %%i) {axis = %d}", axis)
	case 1:
		shape := append([]int{}, dims...)
		shape[axis] = 1 + rng.IntN(90)
		return in + fmt.Sprintf(", %%i: int32[%s]", list(shape)),
			fmt.Sprintf("%%y = GatherElements(%%x, %%i) {axis = %d}", axis)
	case 2:
		return in + fmt.Sprintf(", %%i: int64[7,%d]", axis+1), "%y = GatherND(%x, %i)"
	case 3:
		updates := append([]int{7}, dims[axis+1:]...)
		return fmt.Sprintf("%%x: float32[%s], %%i: int64[7,%d], %%u: float32[%s]", list(dims), axis+1, list(updates)),
			"%y = ScatterND(%x, %i, %u)"
	case 4:
		pads := make([]int, 2*rank)
		for i := range pads {
			pads[i] = rng.IntN(4)
		}
		return in, fmt.Sprintf("%%p = const int64[%d] {%s}\n%%y = Pad(%%x, %%p) {mode = %q}", 2*rank, list(pads),
			oneOf(rng, "constant", "reflect", "edge", "wrap"))
	case 5:
		repeats := make([]int, rank)
		for i := range repeats {
			repeats[i] = 1 + rng.IntN(3)
		}
		return in, fmt.Sprintf("%%r = const int64[%d] {%s}\n%%y = Tile(%%x, %%r)", rank, list(repeats))
	case 6:
		return in + ", %i: int64[9,30], %v: float32[2]",
			fmt.Sprintf("%%d = const int64[] {40}\n%%y = OneHot(%%i, %%d, %%v) {axis = %d}", rng.IntN(3))
	}
	scales := make([]string, rank)
	for i := range scales {
		scales[i] = "1"
	}
	scales[axis], scales[rng.IntN(rank)] = "1.7", "0.6"
	return in, fmt.Sprintf("%%s = const float32[%d] {%s}\n%%y = Resize(%%x, _, %%s) {mode = %q}", rank,
		strings.Join(scales, ", "),
		oneOf(rng, "nearest", "linear", "cubic"))
}

func randomLines(rng *rand.Rand) (in, body string) {
	rank := 1 + rng.IntN(4)
	dims := extents(rng, rank)
	axis := rng.IntN(rank)
	in = fmt.Sprintf("%%x: %s[%s]", randomType(rng), list(dims))
	if rng.IntN(2) == 0 {
		return in, fmt.Sprintf("%%a = const int64[] {%d}\n%%y = CumSum(%%x, %%a) {reverse = %d}", axis, rng.IntN(2))
	}
	return in, fmt.Sprintf("%%k = const int64[1] {%d}\n%%y: invalid?, %%i: invalid? = TopK(%%x, %%k) {axis = %d}",
		1+rng.IntN(dims[axis]), axis)
}

// TestUnsupported lists what has no compiled form and how that is said.
func TestUnsupported(t *testing.T) {
	for _, c := range []struct{ in, body, want string }{
		{"%x: float32[3,4], %k: int64[]", "%y = Trilu(%x, %k)", "input 1 (k) must be constant"},
		{"%x: float32[3,4], %k: int64[]", "%y = CumSum(%x, %k)", "input 1 (axis) must be constant"},
		{"%x: float32[1,2,3,3,3,3]", "%y = MaxPool(%x) {kernel_shape = [2, 2, 2, 2]}", "4 spatial axes"},
	} {
		_, err := lowerText(c.in, c.body)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", c.body, err, c.want)
		}
	}
}
