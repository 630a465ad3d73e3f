package graphopt

import (
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// readCase is a graph whose result has the declared shape dims, with values of its last input, v, that suit that, and
// others.
type readCase struct {
	inputs, body, result string
	dims                 []int64
	good, bad            [][]int64 // of the last input, v
}

var readCases = []readCase{
	{"%x: float32[2,6], %v: int64[2]", `%both = const int64[2] {0, 0}
%dims: int64[2] = Shape(%x)
%more: int64[2] = Sub(%v, %dims)
%pads: int64[4] = Concat(%both, %more) {axis = 0}
%y: float32[unk__0,unk__1] = Pad(%x, %pads)`, "float32[unk__0,unk__1]", []int64{3, 4}, [][]int64{{3, 4}}, [][]int64{{4, 3}}},
	{"%x: float32[2,3,2], %v: int64[1]", `%y: float32[unk__0,unk__1] = ReduceMax(%x, %v) {keepdims = 0}`,
		"float32[unk__0,unk__1]", []int64{2, 3}, [][]int64{{2}, {-1}}, [][]int64{{0}, {1}, {3}}},
	{"%x: float32[3,3,3], %v: int64[2]", `%y: float32[unk__0] = ReduceSum(%x, %v) {keepdims = 0}`,
		"float32[unk__0]", []int64{3}, [][]int64{{0, 1}, {2, 1}, {-3, 2}}, [][]int64{{1, 1}, {0, 3}}},
	{"%x: float32[7], %v: int64[1]", `%end = const int64[1] {-1}
%axis = const int64[1] {0}
%step = const int64[1] {-2}
%y: float32[unk__0] = Slice(%x, %v, %end, %axis, %step)`, "float32[unk__0]", []int64{0}, [][]int64{{3}, {6}, {-9}}, nil},
	{"%x: float32[7], %v: int64[1]", `%end = const int64[1] {-100}
%axis = const int64[1] {0}
%step = const int64[1] {-2}
%y: float32[unk__0] = Slice(%x, %v, %end, %axis, %step)`, "float32[unk__0]", []int64{3}, [][]int64{{4}, {5}, {-3}},
		[][]int64{{6}, {100}, {0}}},
	{"%x: float32[2,6], %v: int64[2]", `%y: float32[unk__0,unk__1] = Reshape(%x, %v)`, "float32[unk__0,unk__1]",
		[]int64{3, 4}, [][]int64{{3, 4}, {-1, 4}, {3, -1}}, [][]int64{{0, 4}, {4, 3}, {-1, -1}}},
	{"%x: float32[3,1], %v: int64[2]", `%y: float32[unk__0,unk__1] = Expand(%x, %v)`, "float32[unk__0,unk__1]",
		[]int64{3, 4}, [][]int64{{3, 4}, {1, 4}}, [][]int64{{3, 1}, {3, 5}}},
	{"%x: float32[1,1], %v: int64[3]", `%places = const int64[2] {0, 2}
%shape: int64[2] = Gather(%v, %places)
%y: float32[unk__0,unk__1] = Expand(%x, %shape)`, "float32[unk__0,unk__1]",
		[]int64{3, 4}, [][]int64{{3, 7, 4}, {3, 0, 4}}, [][]int64{{3, 4, 3}, {4, 3, 4}}},
	{"%x: float32[1], %v: int64[1]", `%bins = const int64[] {8}
%rate = const int64[] {8192}
%low = const float32[] {0}
%high = const float32[] {4096}
%w: float32[unk__0,8] = MelWeightMatrix(%bins, %v, %rate, %low, %high)
%y: float32[unk__0,8] = Mul(%w, %x)`, "float32[unk__0,8]",
		[]int64{9, 8}, [][]int64{{16}, {17}}, [][]int64{{15}, {18}, {0}}},
	{"%x: float32[4], %v: int64[2]", `%y: float32[unk__0] = Pad(%x, %v) {mode = "reflect"}`, "float32[unk__0]",
		[]int64{7}, [][]int64{{3, 0}, {1, 2}, {-1, 4}}, [][]int64{{1, 1}}},
}

// Operands that only a run knows are read where the result has a declared shape. Values that suit it give what the
// evaluator makes of the graph as it was; others are refused.
func TestReadOperands(t *testing.T) {
	for _, c := range readCases {
		text := "graph \"g\" (" + c.inputs + ") {\n" + c.body + "\n%z: " + c.result +
			" = rammer.Declared(%y) {dims = [" + dimTexts(c.dims) + "]}\nreturn %z\n}\n"
		before, err := ir.ParseText("g.rir", []byte(text), ir.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		after := ir.Clone(before)
		if err := Run(after, Options{Check: true}); err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		if dims, ok := after.Outputs[0].Shape.Consts(); !ok || !slices.Equal(dims, c.dims) {
			t.Errorf("%s: the shape is %v", c.body, after.Outputs[0].Shape)
			continue
		}
		c.compare(t, before, after)
	}
}

// compare runs the graph before and after the pass.
func (c *readCase) compare(t *testing.T, before, after *ir.Graph) {
	t.Helper()
	x := ir.NewTensor(ir.Float32, after.Inputs[0].Shape.MustConsts()...)
	for i := range ir.Slice[float32](x) {
		ir.Slice[float32](x)[i] = float32(i*i%11) + 0.5
	}
	for _, list := range c.good {
		in := map[string]*ir.Tensor{"x": x, "v": ir.FromSlice(ir.Int64, list, int64(len(list)))}
		want, err := eval.Run(before, in, eval.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := eval.Run(after, in, eval.Options{})
		if err != nil || !slices.Equal(ir.Slice[float32](got["z"]), ir.Slice[float32](want["z"])) {
			t.Errorf("%s: with %v: %v, want %v (%v)", c.body, list, got["z"], want["z"], err)
		}
	}
	for _, list := range c.bad {
		in := map[string]*ir.Tensor{"x": x, "v": ir.FromSlice(ir.Int64, list, int64(len(list)))}
		if _, err := eval.Run(after, in, eval.Options{}); err == nil || !strings.Contains(err.Error(), "v: ") {
			t.Errorf("%s: with %v: %v", c.body, list, err)
		}
	}
}

func dimTexts(list []int64) string {
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = ir.D(n).String()
	}
	return strings.Join(parts, ", ")
}
