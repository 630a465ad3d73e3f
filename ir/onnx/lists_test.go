package onnx_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// sequenceOf declares a sequence of tensors, "name float32[2]".
func sequenceOf(text string) *onnxpb.ValueInfoProto {
	v := info(text)
	v.Type = &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SequenceType{
		SequenceType: &onnxpb.TypeProto_Sequence{ElemType: v.Type},
	}}
	return v
}

// optionalOf declares an optional value.
func optionalOf(v *onnxpb.ValueInfoProto) *onnxpb.ValueInfoProto {
	v.Type = &onnxpb.TypeProto{Value: &onnxpb.TypeProto_OptionalType{
		OptionalType: &onnxpb.TypeProto_Optional{ElemType: v.Type},
	}}
	return v
}

// body is a graph with the given inputs, outputs and nodes.
func body(in, out []*onnxpb.ValueInfoProto, nodes ...*onnxpb.NodeProto) *onnxpb.GraphProto {
	return &onnxpb.GraphProto{Name: proto.String("body"), Input: in, Output: out, Node: nodes}
}

func infos(texts ...string) []*onnxpb.ValueInfoProto {
	var out []*onnxpb.ValueInfoProto
	for _, s := range texts {
		out = append(out, info(s))
	}
	return out
}

// listCase is a model on sequences, the inputs of a run, and the outputs that it should have.
type listCase struct {
	name  string
	model builder
	dims  map[string]int64
	in    map[string]*ir.Tensor
	want  map[string]string // dims and elements as text
	ops   string            // operators that are left, "" for any
}

func vector(v ...float32) *ir.Tensor { return ir.FromSlice(ir.Float32, v, int64(len(v))) }

func number[T int64 | bool](v T) *ir.Tensor {
	if b, ok := any(v).(bool); ok {
		return ir.FromSlice(ir.Bool, []bool{b})
	}
	return ir.FromSlice(ir.Int64, []int64{any(v).(int64)})
}

// appending is a loop that appends x times its turn to a sequence as long as the turn is below n.
func appending(turns string, n int64) builder {
	in := append(infos("i int64[]", "c bool[]"), sequenceOf("s float32"))
	out := append(infos("on bool[]"), sequenceOf("t float32"))
	b := body(in, out, node("f = Cast(i)", attr("to", 1)), node("z = Mul(x,f)"), node("t = SequenceInsert(s,z)"),
		node("i1 = Add(i,one)"), node("on = Less(i1,n)"))
	return newModel(17).in("x float32[2]").out("y float32").init(tensor("n", []int64{n}, []int64{}...),
		tensor("one", []int64{1}, []int64{}...), tensor("five", []int64{5}, []int64{}...)).
		node("e = SequenceEmpty()").node("l = Loop("+turns+",,e)", attr("body", b)).
		node("y = ConcatFromSequence(l)", attr("axis", 0))
}

func listCases() []listCase {
	two := map[string]*ir.Tensor{"a": vector(1, 2), "b": vector(3, 4)}
	pair := func() builder {
		return newModel(17).in("a float32[2]", "b float32[2]").node("s = SequenceConstruct(a,b)")
	}
	with := func(name string, v *ir.Tensor) map[string]*ir.Tensor {
		return map[string]*ir.Tensor{"a": two["a"], "b": two["b"], name: v}
	}
	give := func(in string) *onnxpb.GraphProto {
		return body(nil, []*onnxpb.ValueInfoProto{sequenceOf("r float32")}, node("r = SequenceConstruct("+in+")"))
	}
	branches := pair().in("c bool[]").node("r = If(c)", attr("then_branch", give("a,b")), attr("else_branch", give("b,a"))).
		node("y = ConcatFromSequence(r)", attr("axis", 0)).out("y float32")
	mapped := newModel(17).node("r = SequenceMap(s,b)", attr("body", body(infos("p float32[2]", "q float32[2]"),
		infos("z float32[2]"), node("z = Add(p,q)"))))
	mapped.Graph.Input = append([]*onnxpb.ValueInfoProto{sequenceOf("s float32[2]")}, infos("b float32[2]")...)
	mapped.Graph.Output = []*onnxpb.ValueInfoProto{sequenceOf("r float32[2]")}
	maybe := newModel(18).node("h = OptionalHasElement(o)").
		node("y = If(h)", attr("then_branch", body(nil, []*onnxpb.ValueInfoProto{optionalOf(info("g float32"))},
			node("g = OptionalGetElement(o)"))),
			attr("else_branch", body(nil, []*onnxpb.ValueInfoProto{optionalOf(info("w float32"))}, node("w = Neg(b)"))))
	maybe.Graph.Input = append([]*onnxpb.ValueInfoProto{optionalOf(info("o float32[2]"))}, infos("b float32[2]")...)
	maybe.Graph.Output = infos("y float32")
	return []listCase{
		{"a position of the run", pair().in("p int64[]").node("y = SequenceAt(s,p)").out("y float32"), nil,
			with("p", number(int64(-1))), map[string]string{"y": "[2] [3 4]"}, "Unsqueeze Unsqueeze Concat Reshape Gather Identity"},
		{"insert and erase", pair().init(tensor("zero", []int64{0})).node("t = SequenceInsert(s,b,zero)").
			node("u = SequenceErase(t)").node("n = SequenceLength(u)").
			node("y = ConcatFromSequence(u)", attr("axis", 1), attr("new_axis", 1)).out("y float32", "n int64"), nil, two,
			map[string]string{"y": "[2 2] [3 1 4 2]", "n": "[] [2]"}, ""},
		{"parts", newModel(17).in("x float32[5]").init(tensor("two", []int64{2}, []int64{}...)).
			node("s = SplitToSequence(x,two)").node("y = SequenceAt(s,two)").out("y float32"), nil,
			map[string]*ir.Tensor{"x": vector(1, 2, 3, 4, 5)}, map[string]string{"y": "[1] [5]"}, ""},
		{"a loop of known length", appending("five", 9), nil, map[string]*ir.Tensor{"x": vector(1, 10)},
			map[string]string{"y": "[10] [0 0 1 10 2 20 3 30 4 40]"}, ""},
		{"a loop with a known end", appending("", 3), nil, map[string]*ir.Tensor{"x": vector(1, 10)},
			map[string]string{"y": "[6] [0 0 1 10 2 20]"}, ""},
		{"branches", branches, nil, with("c", number(false)), map[string]string{"y": "[4] [3 4 1 2]"}, "If Concat Identity"},
		{"ports", mapped, map[string]int64{"s": 2}, map[string]*ir.Tensor{"s[0]": two["a"], "s[1]": two["b"], "b": two["b"]},
			map[string]string{"r[0]": "[2] [4 6]", "r[1]": "[2] [6 8]"}, ""},
		{"something", maybe, nil, map[string]*ir.Tensor{"o": two["a"], "b": two["b"]}, map[string]string{"y": "[2] [1 2]"}, ""},
		{"nothing", maybe, map[string]int64{"o": 0}, map[string]*ir.Tensor{"b": two["b"]},
			map[string]string{"y": "[2] [-3 -4]"}, ""},
	}
}

// TestLists evaluates models on sequences and optional values.
func TestLists(t *testing.T) {
	for _, c := range listCases() {
		t.Run(c.name, func(t *testing.T) {
			m, err := c.model.parse(t, onnx.Options{Dims: c.dims})
			if err != nil {
				t.Fatal(err)
			}
			if got := ops(m.Graph); c.ops != "" && got != c.ops {
				t.Errorf("got %s, want %s", got, c.ops)
			}
			out, err := eval.Run(m.Graph, c.in, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for name, x := range out {
				got[name] = fmt.Sprint(x.Dims, " ", x.Data)
				if len(x.Dims) == 0 {
					got[name] = fmt.Sprint("[] ", x.Data)
				}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestListProblems imports models on sequences that have no meaning, or none that is known.
func TestListProblems(t *testing.T) {
	pair := func() builder {
		return newModel(17).in("a float32[2]", "b float32[3]").node("s = SequenceConstruct(a,b)")
	}
	unbounded := appending("", 1<<60)
	open := appending("k", 9).in("k int64[]")
	given := newModel(17).node("y = SequenceLength(s)").out("y int64")
	given.Graph.Input = []*onnxpb.ValueInfoProto{sequenceOf("s float32[2]")}
	uneven := pair().in("c bool[]").node("r = If(c)",
		attr("then_branch", body(nil, []*onnxpb.ValueInfoProto{sequenceOf("q float32")}, node("q = SequenceConstruct(a,b)"))),
		attr("else_branch", body(nil, []*onnxpb.ValueInfoProto{sequenceOf("q float32")}, node("q = SequenceConstruct(a)")))).
		node("y = SequenceLength(r)").out("y int64")
	for _, c := range []struct {
		name  string
		model builder
		id    string
		text  string
	}{
		{"outside", pair().init(tensor("p", []int64{2}, []int64{}...)).node("y = SequenceAt(s,p)").out("y"), "bad-value",
			"has 2 tensors, and none at 2"},
		{"of different shapes", pair().in("p int64[]").node("y = SequenceAt(s,p)").out("y"), "not-constant", "position"},
		{"no tensor", pair().node("y = Relu(s)").out("y"), "unsupported-dtype", "sequence"},
		{"no sequence", pair().node("y = SequenceLength(a)").out("y"), "bad-type", "no sequence"},
		{"nested", pair().node("y = SequenceConstruct(s,s)").out("y"), "bad-type", "no tensor"},
		{"empty", pair().node("e = SequenceEmpty()").node("y = ConcatFromSequence(e)", attr("axis", 0)).out("y"), "bad-value",
			"empty"},
		{"without an end", unbounded, "function-too-large", "too many tensors"},
		{"of unknown length", open, "not-constant", "how many turns"},
		{"how many", given, "unbound-dim", "--dim s=2"},
		{"uneven", uneven, "not-constant", "different lengths"},
		{"nothing", newModel(18).node("o = Optional()").node("y = OptionalGetElement(o)").out("y"), "bad-value", "holds nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.model.parse(t, onnx.Options{})
			if got := errorIDs(t, err); got != c.id || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %q, want %q with %q: %v", got, c.id, c.text, err)
			}
		})
	}
}
