package onnx_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// function adds "Name(a,b) -> y" of domain f to the model.
func (b builder) function(signature string, opset int64, attrs []string, nodes ...*onnxpb.NodeProto) builder {
	head, outs, _ := strings.Cut(signature, " -> ")
	name, args, _ := strings.Cut(strings.TrimSuffix(head, ")"), "(")
	b.Functions = append(b.Functions, &onnxpb.FunctionProto{
		Name: proto.String(name), Domain: proto.String("f"), Input: names(args), Output: names(outs),
		Attribute: attrs, Node: nodes,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(opset)},
			{Domain: proto.String("f"), Version: proto.Int64(1)}},
	})
	return b
}

func TestFunctions(t *testing.T) {
	floatRef := func(name, of string) *onnxpb.AttributeProto { return ref(name, of, onnxpb.AttributeProto_FLOAT) }
	m := newModel(17).in("x float32[2,3]").out("y float32[2,3]", "z").
		function("Leaky(v) -> w", 17, []string{"slope"}, node("act: w = LeakyRelu(v)", floatRef("alpha", "slope"))).
		function("Twice(v,skip) -> w,v", 12, []string{"a"},
			node("t = f::Leaky(v)", floatRef("slope", "a")),
			node("second: w = f::Leaky(t)", floatRef("slope", "a"))).
		function("Unused(v) -> w", 17, nil, node("w = Nope(v)")).
		node("one: t = f::Twice(x)", attr("a", 0.5)).
		node("two: y,z = f::Twice(t,x)").
		mustParse(t)
	g := m.Graph
	if got := ops(g); got != "LeakyRelu LeakyRelu LeakyRelu LeakyRelu Identity" {
		t.Fatalf("got %s:\n%s", got, text(g))
	}
	for i, want := range []string{"one/#0/act", "one/second/act", "two/#0/act", "two/second/act"} {
		n := g.Nodes[i]
		if n.Name != want || n.Origins[0] != (ir.Origin{Name: want, OpType: "LeakyRelu"}) {
			t.Errorf("node %d is %q from %v, want %q", i, n.Name, n.Origins, want)
		}
		if got := n.HasAttr("alpha"); got != (i < 2) {
			t.Errorf("node %d: alpha is given: %v", i, got)
		}
	}
	if g.Outputs[0].Name != "y" || g.Outputs[1].Name != "z" {
		t.Errorf("the outputs are %s and %s", g.Outputs[0].Name, g.Outputs[1].Name)
	}
	var calls []string
	for _, f := range m.Functions {
		calls = append(calls, fmt.Sprintf("%s.%s %d", f.Domain, f.Name, f.Calls))
	}
	if got := strings.Join(calls, ", "); got != "f.Leaky 4, f.Twice 2, f.Unused 0" {
		t.Errorf("functions: %s", got)
	}
}

// TestFunctionOpset checks that a body is rewritten from the opset of its function, which may differ from the model's.
func TestFunctionOpset(t *testing.T) {
	m := newModel(17).in("x float32[2,3]").out("y float32[2]").
		function("Old(v) -> w", 11, nil, node("w = ReduceSum(v)", attr("axes", []int64{1}), attr("keepdims", 0))).
		node("y = f::Old(x)").mustParse(t)
	if got := m.Graph.Outputs[0].Shape.String(); got != "[2]" || len(m.Graph.Nodes[0].Inputs) != 2 {
		t.Errorf("got %s:\n%s", got, text(m.Graph))
	}
}

func TestFunctionDefaultsAndGraphs(t *testing.T) {
	branch := func(op string) *onnxpb.GraphProto {
		return &onnxpb.GraphProto{
			Name: proto.String(op), Node: []*onnxpb.NodeProto{node("r = " + op + "(x)")},
			Output: []*onnxpb.ValueInfoProto{info("r")},
		}
	}
	m := newModel(17).in("x float32[2]", "c bool").out("y", "z").
		function("Choose(cond,v) -> w", 17, []string{"yes", "no"},
			node("w = If(cond)", ref("then_branch", "yes", onnxpb.AttributeProto_GRAPH),
				ref("else_branch", "no", onnxpb.AttributeProto_GRAPH))).
		function("Elu(v) -> w", 17, nil, node("w = Elu(v)", ref("alpha", "alpha", onnxpb.AttributeProto_FLOAT)))
	m.Functions[1].AttributeProto = []*onnxpb.AttributeProto{attr("alpha", 0.25)}
	// The graphs that the caller hands in use the caller's x.
	m.node("y = f::Choose(c,c)", attr("yes", branch("Relu")), attr("no", branch("Exp"))).node("z = f::Elu(x)")
	g := m.mustParse(t).Graph
	if n := g.Nodes[0]; n.Op != "If" || ops(n.Attrs["then_branch"].G) != "Relu" ||
		n.Attrs["then_branch"].G.Nodes[0].Inputs[0] != g.Inputs[0] {
		t.Errorf("got:\n%s", text(g))
	}
	if got := g.Nodes[1].Float("alpha", 0); got != 0.25 {
		t.Errorf("alpha is %v", got)
	}
}

func TestBadFunctions(t *testing.T) {
	model := func() builder { return newModel(17).in("x float32[2]").out("y") }
	bomb := model()
	for i := range 40 {
		call := fmt.Sprintf("f::F%d", i+1)
		bomb.function(fmt.Sprintf("F%d(v) -> w", i), 17, nil, node("t = "+call+"(v)"), node("w = "+call+"(t)"))
	}
	bomb.function("F40(v) -> w", 17, nil, node("w = Relu(v)")).node("y = f::F0(x)")
	chain := model()
	for i := range 100 {
		chain.function(fmt.Sprintf("F%d(v) -> w", i), 17, nil, node(fmt.Sprintf("w = f::F%d(v)", i+1)))
	}
	chain.function("F100(v) -> w", 17, nil, node("w = Relu(v)")).node("y = f::F0(x)")
	for _, c := range []struct {
		name  string
		model builder
		ids   string
		text  string
	}{
		{"recursion", model().function("A(v) -> w", 17, nil, node("w = f::B(v)")).function("B(v) -> w", 17, nil,
			node("w = f::A(v)")).
			node("y = f::A(x)"), "recursive-function", "f.A → f.B → f.A"},
		{"too deep", chain, "recursive-function", "f.F0 → f.F1"},
		{"bomb", bomb, "function-too-large", ""},
		{"arity", model().function("A(v) -> w", 17, nil, node("w = Relu(v)")).node("y = f::A(x,x)"), "wrong-arity",
			"has 1 and 1"},
		{"attribute", model().function("A(v) -> w", 17, nil, node("w = Relu(v)")).node("y = f::A(x)", attr("q", 1)),
			"unknown-attribute", "attribute q"},
		{"undefined output", model().function("A(v) -> w", 17, nil, node("u = Relu(v)")).node("y = f::A(x)"),
			"unresolved-name", `output "w"`},
		{"no capture", model().function("A(v) -> w", 17, nil, node("w = Relu(x)")).node("call: y = f::A(x)"),
			"unresolved-name", `node "call/#0"`},
		{"twice", model().function("A(v) -> w", 17, nil, node("w = Relu(v)")).function("A(v) -> w", 17, nil,
			node("w = Relu(v)")).
			node("y = f::A(x)"), "duplicate-name", "function f.A"},
		{"old opset", model().function("A(v) -> w", 3, nil, node("w = Relu(v)")).node("y = f::A(x)"),
			"unsupported-opset", "function f.A: opset 3"},
		{"inside", model().function("A(v) -> w", 17, nil, node("bad: w = Nope(v)")).node("call: y = f::A(x)"),
			"unsupported-op", `node "call/bad" (Nope`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.model.parse(t, onnx.Options{})
			if got := errorIDs(t, err); got != c.ids || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %q, want %q with %q: %.500v", got, c.ids, c.text, err)
			}
		})
	}
}

func TestSubgraphs(t *testing.T) {
	body := &onnxpb.GraphProto{
		Name:        proto.String("body"),
		Input:       []*onnxpb.ValueInfoProto{info("i int64[]"), info("c bool[]"), info("s float32[2]")},
		Output:      []*onnxpb.ValueInfoProto{info("c2 bool[]"), info("s2 float32[2]"), info("s2 float32[2]")},
		Initializer: []*onnxpb.TensorProto{tensor("w", []float32{1, 2})},
		Node: []*onnxpb.NodeProto{
			node("s2 = Add(t,outer)"), // not in order
			node("t = Mul(s,w)"), node("c2 = Identity(c)"),
		},
	}
	m := newModel(17).in("x float32[2]", "n int64[]").out("y float32[2]", "ys").
		node("loop: y,ys = Loop(n,,x)", attr("body", body)).
		node("outer = Relu(x)").mustParse(t)
	g := m.Graph
	if got := ops(g); got != "Relu Loop" {
		t.Fatalf("got %s", got)
	}
	loop := g.Nodes[1]
	sub := loop.Attrs["body"].G
	if got := ops(sub); got != "Identity Mul Add" && got != "Mul Add Identity" {
		t.Errorf("the body is %s", got)
	}
	for _, n := range sub.Nodes {
		if n.Op == "Add" && n.Inputs[1] != g.Nodes[0].Outputs[0] {
			t.Error("the body does not capture the outer value")
		}
		if !strings.HasPrefix(n.Name, "loop/#") {
			t.Errorf("a node of the body is called %q", n.Name)
		}
	}
	if y := g.Outputs[0]; y.DType != ir.Float32 || y.Shape.String() != "[2]" {
		t.Errorf("y is %v%v", y.DType, y.Shape)
	}
}

// TestSubgraphNames lets both branches use the same names.
func TestSubgraphNames(t *testing.T) {
	branch := func(op string) *onnxpb.GraphProto {
		return &onnxpb.GraphProto{
			Node:   []*onnxpb.NodeProto{node("t = " + op + "(x)"), node("r = Neg(t)")},
			Output: []*onnxpb.ValueInfoProto{info("r")},
		}
	}
	m := newModel(17).in("x float32[2]", "c bool").out("y").
		node("y = If(c)", attr("then_branch", branch("Relu")), attr("else_branch", branch("Exp"))).mustParse(t)
	seen := map[string]bool{}
	ir.EachGraph(m.Graph, func(g *ir.Graph) {
		for _, n := range g.Nodes {
			if name := n.Outputs[0].Name; seen[name] {
				t.Errorf("two values are called %q", name)
			} else {
				seen[name] = true
			}
		}
	})
	bad := newModel(17).in("x float32[2]", "c bool").out("y").
		node("if: y = If(c)", attr("then_branch", branch("Relu")), attr("else_branch", branch("Nope")))
	_, err := bad.parse(t, onnx.Options{})
	if errorIDs(t, err) != "unsupported-op" || !strings.Contains(err.Error(), `node "if/#0" (Nope`) {
		t.Errorf("got %v", err)
	}
}

func TestFuzzSeed(t *testing.T) { fuzzModel().mustParse(t) }
