package graphopt

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// untypedResult finds results without types in the text of a graph.
var untypedResult = regexp.MustCompile(`(?m)^%\w+(, %\w+)* = `)

func graphOf(t *testing.T, in, body, out string) *ir.Graph {
	t.Helper()
	body = untypedResult.ReplaceAllStringFunc(body, func(s string) string {
		return strings.NewReplacer(",", ": invalid?,", " =", ": invalid? =").Replace(s)
	})
	body = strings.ReplaceAll(body, ": invalid? = const", " = const")
	g, err := ir.ParseText("case", fmt.Appendf(nil, "graph \"g\" (%s) {\n%s\nreturn %s\n}\n", in, body, out),
		ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range g.Nodes {
		n.Name = fmt.Sprint("n", i)
	}
	if err := ir.InferShapes(g).Err(); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestDecompose checks that every operator of the table is replaced, and that the new operators give the same results.
//
// Long: a table of cases, most of them one line.
func TestDecompose(t *testing.T) {
	covered := map[string]bool{}
	check := func(in, body string) {
		t.Helper()
		t.Run(body, func(t *testing.T) {
			before := graphOf(t, in, body, "%y")
			after := ir.Clone(before)
			err := Run(after, Options{Check: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range after.Nodes {
				if Replaces(n.Domain, n.Op) && !isPool(n) {
					t.Errorf("%s is left", n.Op)
				}
			}
			for _, n := range before.Nodes {
				covered[n.Op] = true
			}
			sameResults(t, before, after, 1, 1e-5)
		})
	}
	for _, flags := range []string{"{}", "{onesided = 1}", "{inverse = 1}", "{inverse = 1, onesided = 1}"} {
		parts := "2"
		if flags == "{onesided = 1}" {
			parts = "1"
		}
		for _, n := range []string{"7", "8"} {
			check("%x: float32[2,"+n+",3,"+parts+"]", "%a = const int64[] {1}\n%y = DFT(%x, _, %a) "+flags)
		}
		for _, length := range []string{"3", "6", "9"} {
			check("%x: float32[2,6,"+parts+"]", "%l = const int64[] {"+length+"}\n%y = DFT(%x, %l) "+flags)
		}
	}
	check("%x: float16[5,1]", "%y = DFT(%x)")
	check("%x: float32[2,20,1], %w: float32[6]", "%s = const int64[] {3}\n%y = STFT(%x, %s, %w)")
	check("%x: float32[2,20,2]", "%s = const int64[] {4}\n%l = const int64[] {5}\n%y = STFT(%x, %s, _, %l) {onesided = 0}")
	check("%x: float32[1,20,1]", "%s = const int64[] {4}\n%w = const float32[4] {0.5, 1, 2, -1}\n%y = STFT(%x, %s, %w)")
	for align := range 2 {
		attrs := fmt.Sprintf(" {align_corners = %d}", align)
		check("%x: float32[2,2,3]", "%s = const int64[4] {2, 1, 3, 5}\n%y = AffineGrid(%x, %s)"+attrs)
		check("%x: float32[1,3,4]", "%s = const int64[5] {1, 1, 2, 1, 3}\n%y = AffineGrid(%x, %s)"+attrs)
	}
	check("%x: float32[5,6,7]", "%s = const int64[2] {8, 4}\n%y = CenterCropPad(%x, %s) {axes = [0, -1]}")
	check("%x: int32[5,6]", "%s = const int64[2] {2, 9}\n%y = CenterCropPad(%x, %s)")
	check("%x: float32[2,8,9]", "%i = const int64[2] {5, 5}\n%b = const int64[2] {2, 2}\n%y = Col2Im(%x, %i, %b) {dilations = [2, 2]}")
	check("%x: float32[1,12,9]", "%i = const int64[2] {5, 4}\n%b = const int64[2] {2, 3}\n%y = Col2Im(%x, %i, %b) {pads = [0, 1, 1, 0], strides = [2, 1]}")
	check("%x: float32[4,3]", "%c = const bool[3] {true, false, true}\n%y = Compress(%x, %c) {axis = 0}")
	check("%x: float32[2,3]", "%c = const bool[5] {true, false, false, true, true}\n%y = Compress(%x, %c)")
	for n := 1; n <= 4; n++ {
		check(fmt.Sprintf("%%x: float32[3,%d,%d]", n, n), "%y = Det(%x)")
	}
	check("%x: float32[1,2,4,4]", "%a, %i = MaxPool(%x) {kernel_shape = [2, 2], strides = [2, 2]}\n%y = MaxUnpool(%a, %i) {kernel_shape = [2, 2], strides = [2, 2]}")
	check("%x: float32[1,1,4,4]", "%a, %i = MaxPool(%x) {kernel_shape = [2, 2], strides = [2, 2]}\n%s = const int64[4] {1, 1, 5, 6}\n%y = MaxUnpool(%a, %i, %s) {kernel_shape = [2, 2], strides = [2, 2]}")
	check("%x: float32[4,3,2]", "%l = const int64[3] {4, 1, 3}\n%y = ReverseSequence(%x, %l)")
	check("%x: float32[3,4]", "%l = const int64[3] {2, 4, 0}\n%y = ReverseSequence(%x, %l) {batch_axis = 0, time_axis = 1}")
	check("%x: float32[2,4,5,6], %w: float32[6,2,3,2], %o: float32[2,24,3,6], %b: float32[6], %m: float32[2,12,3,6]",
		"%y = DeformConv(%x, %w, %o, %b, %m) {group = 2, offset_group = 2, pads = [0, 0, 0, 1]}")
	check("%x: float32[1,1,4,4], %w: float32[1,1,2,2], %o: float32[1,8,2,2]",
		"%y = DeformConv(%x, %w, %o) {dilations = [2, 2]}")
	check("%x: float32[3]", "%r = RandomNormal() {shape = [3], seed = 4f}\n%y = Add(%x, %r)")
	check("%x: float32[3]", "%r = RandomUniform() {shape = [3], high = 2f}\n%y = Add(%x, %r)")
	check("%x: float32[2,3]", "%r = RandomNormalLike(%x) {scale = 0.5f}\n%y = Add(%x, %r)")
	check("%x: float32[2,3]", "%r = RandomUniformLike(%x) {seed = 1f}\n%y = Add(%x, %r)")
	check("%x: float32[40,30]", "%p = Sigmoid(%x)\n%y = Bernoulli(%p)")
	check("%x: float32[40,7]", "%y = Multinomial(%x) {sample_size = 9}")
	check("%x: float32[3,4]", "%s = const float32[4] {0, 0, 0, 0}\n"+
		"%y, %z = Scan(%s, %x) {num_scan_inputs = 1, body = graph \"b\" (%a: float32[4], %r: float32[4]) {\n"+
		"%n: float32[4] = Add(%a, %r)\n%m: float32[4] = Mul(%n, %r)\nreturn %n, %m\n}}")
	for op := range decompositions {
		if !covered[op] && ir.LookupOp("", op).Kind != ir.KindPool {
			t.Errorf("no case for %s", op)
		}
	}
}

// isPool reports pools, which are replaced only if they have many axes. TestPoolsOfManyAxes checks them.
func isPool(n *ir.Node) bool {
	op := ir.LookupOp(n.Domain, n.Op)
	return op != nil && op.Kind == ir.KindPool
}
