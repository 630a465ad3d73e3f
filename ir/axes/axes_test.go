package axes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
)

var ranges = withSum([]axes.Range{{Name: "batch", Lo: 1, Hi: 4}, {Name: "seq", Lo: 1, Hi: 32, Values: []int64{1, 8, 32}}})

// withSum adds the range of the sum of both, as an extent that is computed from theirs.
func withSum(list []axes.Range) []axes.Range {
	return append(list, axes.SumRange(list, ir.Sym("batch").Add(ir.Sym("seq"))))
}

// analyse parses the body of a graph, with inputs like "%x: float32[batch,seq,8]" and results like "%y", and follows
// its axes. Dims in the body that depend on the extents are spelled @batch, @seq, or @(batch*seq).
func analyse(t *testing.T, inputs, body, results string) (*axes.Axes, *ir.Graph, error) {
	t.Helper()
	var points []axes.Point
	var shapes []ir.Shape
	for _, extents := range axes.Extents(ranges) {
		b, s := extents[0], extents[1]
		text := strings.NewReplacer("@batch", fmt.Sprint(b), "@seq", fmt.Sprint(s), "@both", fmt.Sprint(b*s),
			"@quad", fmt.Sprint(4*s), "@pairs", strings.TrimSuffix(strings.Repeat("1, 2, ", int(s)), ", "),
			"@row", fmt.Sprint(8*s), "@last", fmt.Sprint(8*(s-1)), "@mean", fmt.Sprint(1/float64(s)),
			"@ones", strings.TrimSuffix(strings.Repeat("1, ", int(s)), ", ")).Replace(body)
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			if !strings.Contains(line, "const") {
				lines[i] = strings.Replace(line, " = ", ": invalid? = ", 1)
			}
		}
		text = fmt.Sprintf("graph \"g\" (%s) {\n%s\nreturn %s\n}\n", inputs, strings.Join(lines, "\n"), results)
		g, err := ir.ParseText("g", []byte(text), ir.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		shapes = nil
		for _, v := range g.Inputs {
			shapes = append(shapes, v.Shape)
		}
		if err := ir.BindDims(g, map[string]int64{"batch": b, "seq": s}).Err(); err != nil {
			t.Fatal(err)
		}
		points = append(points, axes.Point{Graph: g, Extents: extents})
	}
	x, err := axes.Analyse(ranges, shapes, points)
	return x, points[0].Graph, err
}

// The extents that are looked at tell all ranges apart, and begin with the largest.
func TestExtents(t *testing.T) {
	all := append([]axes.Range{{Name: "a", Lo: 1, Hi: 2}, {Name: "b", Lo: 1, Hi: 4}, {Name: "c", Lo: 4, Hi: 4000}},
		ranges...)
	points := axes.Extents(all)
	for i := range all {
		if points[0][i] != all[i].Hi {
			t.Errorf("the first extent of %v is %d", all[i], points[0][i])
		}
		for j := range all {
			same := i != j
			for k := range points {
				same = same && points[k][i] == points[k][j]
				if k > 0 && points[k][i] < 2 {
					t.Errorf("%v is looked at where it has %d elements", all[i], points[k][i])
				}
			}
			if same {
				t.Errorf("%v and %v have the same extents", all[i], all[j])
			}
		}
	}
}

// A sum of two extents looks like no constant and like no extent of its own, and no run that is looked at has more rows
// than there can be.
func TestExtentsOfSums(t *testing.T) {
	for _, hi := range [][2]int64{{9, 3}, {40, 8}, {12, 4}, {5, 5}, {20, 2}} {
		two := []axes.Range{{Name: "past", Lo: 0, Hi: hi[0]}, {Name: "seq", Lo: 1, Hi: hi[1]}}
		all := append(two, axes.SumRange(two, ir.Sym("past").Add(ir.Sym("seq"))))
		points := axes.Extents(all)
		same := true
		for _, p := range points {
			same = same && p[2] == points[0][2]
			if p[2] != p[0]+p[1] || p[2] > all[2].Hi && hi[1] > 2 {
				t.Errorf("%v: the sum is %d of %v", hi, p[2], p[:2])
			}
		}
		if same {
			t.Errorf("%v: the sum is %d in all runs", hi, points[0][2])
		}
	}
}

// An extent that is one more than another is told apart from it, and the extents that are looked at stay in their ranges.
func TestExtentsOfTheNextStep(t *testing.T) {
	two := []axes.Range{{Name: "past", Lo: 0, Hi: 19}, {Name: "encoder", Lo: 1, Hi: 12}}
	all := append(two, axes.SumRange(two, ir.Sym("past").Add(ir.D(1))))
	for _, p := range axes.Extents(all) {
		if p[2] != p[0]+1 || p[0] > 19 || p[1] > 12 || p[1] < 2 {
			t.Errorf("looked at past=%d, past+1=%d, encoder=%d", p[0], p[2], p[1])
		}
	}
}

// ruleCase is an operator, and the axes of its result.
type ruleCase struct{ inputs, body, want string }

// Axes of results by the operators that make them.
func TestRules(t *testing.T) {
	followed(t, []ruleCase{
		{"%x: float32[batch,seq,8]", "%y = Relu(%x)", "batch seq 8"},
		{"%x: float32[batch,seq,8], %z: float32[seq,1]", "%y = Add(%x, %z)", "batch seq 8"},
		{"%x: float32[batch,seq,8]", "%w = const float32[8,3] splat(0.5)\n%y = MatMul(%x, %w)", "batch seq 3"},
		{"%x: float32[batch,8]", "%w = const float32[3,8] splat(0.5)\n%y = Gemm(%x, %w) {transB = 1}", "batch 3"},
		{"%x: float32[batch,seq,8]", "%y = rammer.View(%x) {offset = 0, shape = [@both, 2, 4], strides = [8, 4, 1]}",
			"batch·seq 2 4"},
		{"%x: float32[batch,seq,8]",
			"%y = rammer.View(%x) {offset = 0, shape = [@batch, 8, @seq], strides = [@row, 1, 8]}", "batch 8 seq"},
		{"%x: float32[batch,seq,8]", "%y = rammer.View(%x) {offset = 4, shape = [@batch, 4], strides = [@row, 1]}",
			"batch 4"},
		{"%x: float32[seq]", "%y = rammer.View(%x) {offset = 0, shape = [@batch, @seq], strides = [0, 1]}",
			"batch seq"},
		{"%x: float32[batch,seq,8]", "%s = const int64[2] {@both, 8}\n%y = Reshape(%x, %s)", "batch·seq 8"},
		{"%x: float32[batch,seq,8]", "%s = const int64[3] {@batch, @seq, 8}\n%t = Transpose(%x) {perm = [1, 0, 2]}\n" +
			"%k = const int64[2] {@both, 8}\n%y = Reshape(%t, %k)", "seq·batch 8"},
		{"%x: float32[batch,seq,8]", "%y = Softmax(%x)", "batch seq 8"},
		{"%x: float32[batch,seq,8]", "%k = const int64[1] {2}\n%y = ReduceMean(%x, %k) {keepdims = 0}", "batch seq"},
		{"%x: float32[batch,seq]", "%y = Softmax(%x)", "batch seq"},
		{"%x: float32[batch,seq,8]", "%k = const int64[2] {1, 2}\n%y = ReduceMean(%x, %k) {keepdims = 1}", "batch 1 1"},
		{"%x: float32[batch,seq,8]", "%y = ArgMax(%x) {axis = 1, keepdims = 0}", "batch 8"},
		{"%x: int64[batch,seq]", "%w = const float32[9,8] splat(0.5)\n%y = Gather(%w, %x)", "batch seq 8"},
		{"%x: float32[batch,2,seq,8]", "%y = rammer.Attention(%x, %x, %x)", "batch 2 seq 8"},
		{"%x: float32[batch,3,8,8]", "%w = const float32[4,3,3,3] splat(0.5)\n%y = Conv(%x, %w)", "batch 4 6 6"},
		{"%x: float32[seq]", "%c = const float32[@seq] {@ones}\n%y = Mul(%x, %c)", "seq"},
		{"%x: float32[batch,8], %z: float32[seq,8]", "%y = rammer.Append(%x, %z) {axis = 0}", "batch+seq 8"},
		{"%x: float32[batch,8], %z: float32[batch+seq,8]", "%a = rammer.Append(%x, %x) {axis = 1}\n%y = Add(%z, %z)",
			"batch+seq 8"},
		{"%x: float32[seq], %p: float32[40,8]",
			"%y = rammer.View(%p) {offset = 8, shape = [@seq, 8], strides = [8, 1]}", "seq 8"},
		{"%x: float32[batch,seq]", "%k = const int64[] {1}\n%y = CumSum(%x, %k)", "batch seq"},
		{"%x: int64[batch,seq]", "%d = const int64[] {3}\n%v = const float32[2] {0, 1}\n%y = OneHot(%x, %d, %v) {axis = 1}",
			"batch 3 seq"},
		{"%x: float32[seq,4,2]", "%y = rammer.View(%x) {offset = 0, shape = [@quad, 2], strides = [2, 1]}", "seq·4 2"},
		{"%x: float32[seq,2,2]", "%y = rammer.View(%x) {offset = 0, shape = [@quad], strides = [1]}", "seq·4"},
		{"%x: float32[seq,8,4]", "%c = const float32[@row] {@pairs, @pairs, @pairs, @pairs}\n" +
			"%r = rammer.View(%x) {offset = 0, shape = [@row, 4], strides = [4, 1]}\n" +
			"%t = Transpose(%r) {perm = [1, 0]}\n%y = Mul(%t, %c)", "4 seq·8"},
		{"%x: float32[seq]", "%n = rammer.Extent() {of = \"seq\", extent = 1}\n%y = Mul(%n, %n)", "1"},
		{"%x: float32[6,batch,8], %z: float32[batch,8]", "%k: invalid?, %h: invalid?, %v = rammer.RepeatBegin(%z, %x) " +
			"{loop = 1, trips = 3, carried = 1, axes = [0], reverse = [0]}\n%n = Tanh(%h)\n%e = Exp(%v)\n" +
			"%l: invalid?, %y = rammer.RepeatEnd(%k, %n, %e) {loop = 1, trips = 3, carried = 1, axes = [0], reverse = [0]}",
			"6 batch 8"},
	})
}

// Axes of results whose shape an operand says.
func TestShapeRules(t *testing.T) {
	followed(t, []ruleCase{
		{"%x: float32[seq,8]", "%s = const int64[2] {@seq, 4}\n%y = ConstantOfShape(%s)", "seq 4"},
		{"%x: float32[seq,8]", "%k = const int64[4] {0, 2, 0, 3}\n%y = Pad(%x, %k)", "seq 13"},
		{"%x: float32[seq,1,2,2]", "%k = const float32[4] {1, 1, 2, 3}\n%y = Resize(%x, _, %k)", "seq 1 4 6"},
		{"%x: float32[seq,1,2,2]", "%k = const int64[4] {@seq, 1, 5, 3}\n%y = Resize(%x, _, _, %k)", "seq 1 5 3"},
	})
}

func followed(t *testing.T, cases []ruleCase) {
	t.Helper()
	for _, c := range cases {
		x, g, err := analyse(t, c.inputs, c.body, "%y")
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		var got []string
		for _, a := range x.Of[g.Outputs[0]] {
			got = append(got, a.Text(ranges))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: the axes are %s, want %s", c.body, s, c.want)
		}
	}
}

// Of what follows a refused node nothing is said.
func TestRefusedOnce(t *testing.T) {
	_, _, err := analyse(t, "%x: float32[batch,seq]",
		"%a = Trilu(%x)\n%b = Trilu(%a)\n%y = Add(%b, %x)", "%y")
	if all := diag.All(err); len(all) != 1 || all[0].Op != "Trilu" {
		t.Errorf("%v", err)
	}
}

// What would let dead elements reach live ones is refused.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ inputs, body, want string }{
		{"%x: float32[batch,seq]", "%k = const int64[1] {@both}\n%r = Reshape(%x, %k)\n%y = Softmax(%r)",
			"over which it normalises is [batch·seq]"},
		{"%x: float32[batch,seq]", "%y = ReduceSum(%x)", "what it reduces is [batch·seq]"},
		{"%x: float32[batch,seq]", "%w = const float32[@seq] {@ones}\n%y = LayerNormalization(%x, %w)",
			"over which it normalises is [seq]"},
		{"%x: float32[batch,seq,8], %z: float32[8,seq]", "%y = MatMul(%z, %x)", "over which it sums is [seq,seq]"},
		{"%x: float32[batch,seq,8]", "%y = rammer.View(%x) {offset = @last, shape = [@batch, 8], strides = [@row, 1]}",
			"where its window starts depends on the extent of [seq]"},
		{"%x: float32[batch,seq,8]", "%y = rammer.View(%x) {offset = 4, shape = [@batch, 8], strides = [@row, 1]}",
			"runs over the end of [8]"},
		{"%x: float32[seq]", "%c = const float32[] {@mean}\n%y = Mul(%x, %c)", "elements of the constant c depend"},
		{"%x: float32[batch,seq]", "%y = Trilu(%x)", "no rule says"},
		{"%x: float32[seq,8]", "%k = const int64[4] {0, 0, 1, 0}\n%y = Pad(%x, %k)", "what it adds elements to is [seq]"},
		{"%x: float32[batch,seq,8]", "%s = const int64[2] {@both, 8}\n%a = Reshape(%x, %s)\n" +
			"%t = Transpose(%x) {perm = [1, 0, 2]}\n%b = Reshape(%t, %s)\n%y = Add(%a, %b)",
			"[batch·seq] beside [seq·batch]"},
		{"%x: float32[batch,seq]", "%k = const int64[] {1}\n%y = CumSum(%x, %k) {reverse = 1}", "adds up from the end"},
		{"%x: float32[seq,8]", "%y = rammer.Append(%x, %x) {axis = 0}", "no range has the extent of its result"},
		{"%x: float32[1,1,seq,2]", "%k = const float32[4] {1, 1, 2, 1}\n%y = Resize(%x, _, %k)", "a resized image is [1,1,seq,2]"},
		{"%x: float32[batch,3,seq,8]", "%y = MaxPool(%x) {kernel_shape = [2, 2]}", "an image is [3,seq,8]"},
		{"%x: float32[seq,8]", "%k: invalid?, %v = rammer.RepeatBegin(%x) {loop = 1, trips = 1, axes = [0], reverse = [0]}\n" +
			"%e = Exp(%v)\n%y = rammer.RepeatEnd(%k, %e) {loop = 1, trips = 1, axes = [0], reverse = [0]}",
			"along which it has turns is [seq]"},
		{"%x: float32[batch,seq,8]", "%k: invalid?, %h = rammer.RepeatBegin(%x) {loop = 1, trips = 2, carried = 1}\n" +
			"%s = const int64[2] {@both, 8}\n%r = Reshape(%h, %s)\n" +
			"%y = rammer.RepeatEnd(%k, %r) {loop = 1, trips = 2, carried = 1}", "leaves [batch·seq,8] where"},
	} {
		_, _, err := analyse(t, c.inputs, c.body, "%y")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "[dynamic-axis]") {
			t.Errorf("%s: %v", c.body, err)
		}
	}
}
