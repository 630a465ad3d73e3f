package ir

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// inferGraphs are graphs in text form. Inference must find the types that they declare.
var inferGraphs = map[string]string{
	"reshape target from shapes": `graph "g" (%x: float32[batch,seq,768]) {
  %one = const int64[1] {1}
  %zero = const int64[] {0}
  %heads = const int64[2] {12, 64}
  %n0 = const int64[1] {0}
  %two = const int64[1] {2}
  %shape: int64[3] = Shape(%x)
  %b: int64[] = Gather(%shape, %zero)
  %b1: int64[1] = Unsqueeze(%b, %n0)
  %s1: int64[1] = Slice(%shape, %one, %two)
  %target: int64[4] = Concat(%b1, %s1, %heads) {axis = 0}
  %y: float32[batch,seq,12,64] = Reshape(%x, %target)
  %t: float32[batch,12,seq,64] = Transpose(%y) {perm = [0, 2, 1, 3]}
  %k: float32[batch,12,64,seq] = Transpose(%y) {perm = [0, 2, 3, 1]}
  %m: float32[batch,12,seq,seq] = MatMul(%t, %k)
  return %m
}
`,
	"expand with minus one replaced": `graph "g" (%x: float32[batch,1]) {
  %minus = const int64[] {-1}
  %ones = const int64[2] {1, 1}
  %five = const int64[1] {5}
  %first = const int64[1] {0}
  %shape: int64[2] = Shape(%x)
  %bs: int64[1] = Gather(%shape, %first)
  %want: int64[2] = Concat(%bs, %five) {axis = 0}
  %is: bool[2] = Equal(%want, %minus)
  %to: int64[2] = Where(%is, %ones, %want)
  %y: float32[batch,5] = Expand(%x, %to)
  return %y
}
`,
	"halves of an axis": `graph "g" (%x: float32[4*n,3]) {
  %zero = const int64[] {0}
  %one = const int64[] {1}
  %two = const int64[] {2}
  %a0 = const int64[1] {0}
  %shape: int64[2] = Shape(%x)
  %n: int64[] = Gather(%shape, %zero)
  %half: int64[] = Div(%n, %two)
  %end: int64[1] = Unsqueeze(%half, %a0)
  %lo: float32[2*n,3] = Slice(%x, %a0, %end, %a0)
  %r: int64[2*n] = Range(%zero, %half, %one)
  return %lo, %r
}
`,
	"if": `graph "g" (%c: bool[], %x: float32[n,3]) {
  %a0 = const int64[1] {0}
  %flat = const int64[1] {-1}
  %y: float32[unk__1,3], %z: float32? = If(%c) {else_branch = graph "else" () {
    %e: float32[n,3] = Relu(%x)
    %s: float32[1,3] = ReduceSum(%x, %a0)
    return %e, %x
  }, then_branch = graph "then" () {
    %t: float32[2*n,3] = Concat(%x, %x) {axis = 0}
    %f: float32[3*n] = Reshape(%x, %flat)
    return %t, %f
  }}
  return %y
}
`,
	"loop that grows a value": `graph "g" (%m: int64[], %c: bool[], %x: float32[n,3], %k: float32[3]) {
  %a0 = const int64[1] {0}
  %grown: float32[unk__3,3], %kept: float32[3], %scan: float32[unk__2,1,3] = Loop(%m, %c, %x, %k) {body = graph "body" (%i: int64[], %go: bool[], %v: float32[unk__0,3], %w: float32[3]) {
    %row: float32[1,3] = Unsqueeze(%w, %a0)
    %more: float32[unk__0+1,3] = Concat(%v, %row) {axis = 0}
    return %go, %more, %w, %row
  }}
  return %grown
}
`,
	"loop with a known count": `graph "g" (%x: float32[n,3]) {
  %zero = const int64[] {0}
  %shape: int64[2] = Shape(%x)
  %m: int64[] = Gather(%shape, %zero)
  %rows: float32[n,3] = Loop(%m, _) {body = graph "body" (%i: int64[], %go: bool[]) {
    %row: float32[3] = Gather(%x, %i)
    return %go, %row
  }}
  return %rows
}
`,
	"loop that changes the rank": `graph "g" (%m: int64[], %c: bool[], %x: float32[3]) {
  %a0 = const int64[1] {0}
  %last: float32? = Loop(%m, %c, %x) {body = graph "body" (%i: int64[], %go: bool[], %v: float32?) {
    %w: float32? = Unsqueeze(%v, %a0)
    return %go, %w
  }}
  return %last
}
`,
	"scan": `graph "g" (%h: float32[b,4], %x: float32[b,t,4]) {
  %last: float32[b,4], %all: float32[b,t,4] = Scan(%h, %x) {body = graph "body" (%s: float32[b,4], %e: float32[b,4]) {
    %n: float32[b,4] = Add(%s, %e)
    return %n, %n
  }, num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1]}
  return %all
}
`,
	"fused": `graph "g" (%x: float32[b,3], %w: float32[3,4]) {
  %y: float32[b,4] = rammer.Fused(%x, %w) {anchor = "MatMul", body = graph "body" (%a: float32[b,3], %c: float32[3,4]) {
    %m: float32[b,4] = MatMul(%a, %c)
    %r: float32[b,4] = Relu(%m)
    return %r
  }}
  return %y
}
`,
}

func TestInferGraphs(t *testing.T) {
	for name, text := range inferGraphs {
		g := mustParse(t, text)
		forget(g)
		if list := InferShapes(g); len(list.Items) > 0 {
			t.Errorf("%s: %v", name, list)
		}
		if got := printed(t, g); got != text {
			t.Errorf("%s: got\n%s", name, got)
		}
	}
}

// forget clears the types that inference computes.
func forget(g *Graph) {
	for _, n := range g.Nodes {
		for _, v := range n.Outputs {
			if v != nil {
				v.DType, v.Shape = Float32, nil
			}
		}
		for _, name := range n.Attrs.Names() {
			if body := n.Attrs[name].G; body != nil {
				for _, v := range body.Inputs {
					v.DType, v.Shape = Float32, nil
				}
				forget(body)
			}
		}
	}
}

// TestBranchThatCannotBeTaken: a branch that is wrong for the shapes at hand is no error while the other one is right, and
// the other one says what the results are. If both are wrong, the errors of both are reported.
func TestBranchThatCannotBeTaken(t *testing.T) {
	const text = `graph "g" (%c: bool[], %x: float32[2,3]) {
  %y: float32? = If(%c) {else_branch = graph "else" () {
    %e: float32? = Softmax(%x) {axis = WRONG} name "of rank five"
    return %e
  }, then_branch = graph "then" () {
    %t: float32? = Softmax(%x) {axis = RIGHT} name "of rank two"
    return %t
  }}
  return %y
}
`
	g := mustParse(t, strings.NewReplacer("WRONG", "4", "RIGHT", "1").Replace(text))
	if list := InferShapes(g); len(list.Items) > 0 {
		t.Errorf("one branch is right: %v", list)
	}
	if got := g.Outputs[0].Shape.String(); got != "[2,3]" {
		t.Errorf("the result has the shape %s, want [2,3]", got)
	}
	if n := g.Nodes[0]; !n.Attrs["else_branch"].G.Untyped || n.Attrs["then_branch"].G.Untyped {
		t.Errorf("the wrong branch is not the one that is marked")
	}
	if err := Verify(g); err != nil {
		t.Error(err)
	}
	g = mustParse(t, strings.NewReplacer("WRONG", "4", "RIGHT", "5").Replace(text))
	if list := InferShapes(g); len(list.Items) != 2 {
		t.Errorf("both branches are wrong: got %v, want two errors", list)
	}
}

func TestBindDims(t *testing.T) {
	g := mustParse(t, `graph "g" (%x: float32[batch,(seq+1)/(2),unk__0], %k: int64[1]) {
  %y: float32? = Expand(%x, %k)
  %r: float32? = ConstantOfShape(%k)
  return %y, %r
}
`)
	if got, want := Symbols(g), []string{"batch", "seq", "unk__0"}; !slices.Equal(got, want) {
		t.Errorf("symbols %v, want %v", got, want)
	}
	InferShapes(g)
	if got := g.Outputs[1].Shape.String(); got != "[unk__2]" { // unk__0 is taken
		t.Errorf("fresh symbol: got %s", got)
	}
	if list := BindDims(g, map[string]int64{"batch": 2, "seq": 6, "other": 1}); len(list.Items) > 0 {
		t.Error(list)
	}
	if got := g.Inputs[0].Shape.String(); got != "[2,3,unk__0]" {
		t.Errorf("bound: got %s", got)
	}
	list := BindDims(g, map[string]int64{"unk__0": -3})
	if len(list.Items) == 0 || list.Items[0].ID != "bad-shape" || !strings.Contains(list.Items[0].Port, `"x"`) {
		t.Errorf("negative extent: got %v", list.Items)
	}
}

func TestInferReportsAllProblems(t *testing.T) {
	g := mustParse(t, `graph "g" (%x: float32[2,3], %huge: float32[4611686018427387904,2]) {
  %a: float32? = MatMul(%x, %x) name "first"
  %b: float32? = Relu(%a) name "follows"
  %c: float32? = Nope(%b)
  %d: float32? = Softmax(%x) {axis = 7} name "second"
  %e: float32? = Add(%c, %d)
  return %e
}
`)
	var got []string
	for _, d := range InferShapes(g).Items {
		got = append(got, d.ID+" "+d.Node+d.Port)
	}
	want := []string{
		`bad-shape graph input "huge"`, "bad-shape firstinput 1 (B)", "unsupported-op #2",
		"bad-attribute secondattribute axis",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestInferStaysSmall infers chains of nodes whose extents would double in length with every node.
func TestInferStaysSmall(t *testing.T) {
	var b strings.Builder
	b.WriteString("graph \"g\" (%x: float32[a,b]) {\n  %v0: int64[2] = Shape(%x)\n")
	last := "%v0"
	for i := range 60 {
		fmt.Fprintf(&b, "  %%s%d: int64[2] = Add(%s, %%v0)\n", i, last)
		fmt.Fprintf(&b, "  %%m%d: int64[2] = Mul(%%s%d, %s)\n", i, i, last)
		last = fmt.Sprintf("%%m%d", i)
	}
	b.WriteString("  %y: float32? = ConstantOfShape(" + last + ")\n  return %y\n}\n")
	g := mustParse(t, b.String())
	if list := InferShapes(g); len(list.Items) > 0 {
		t.Fatal(list)
	}
	for _, d := range g.Outputs[0].Shape {
		if n := len(d.String()); n > 2*maxDimText {
			t.Errorf("an extent has %d characters", n)
		}
	}
}

func TestOpsTable(t *testing.T) {
	for _, op := range Ops {
		if op.Doc == "" || op.Infer == nil || op.Kind == 0 || op.Since == 0 {
			t.Errorf("%s: the row is incomplete", op.Name)
		}
		if op.Domain == "" && op.Since > NewestOpset {
			t.Errorf("%s: not in opset %d", op.Name, NewestOpset)
		}
		for _, ports := range [][]Port{op.Inputs, op.Outputs} {
			for i, p := range ports {
				if p.Name == "" || p.Variadic && i != len(ports)-1 {
					t.Errorf("%s: port %d is wrong", op.Name, i)
				}
			}
		}
		for _, a := range op.Attrs {
			if a.Kind == 0 || a.Default.Kind != 0 && a.Default.Kind != a.Kind || a.Required && a.Default.Kind != 0 {
				t.Errorf("%s: attribute %s is wrong", op.Name, a.Name)
			}
			if a.Values != nil && !a.Required && !slices.Contains(a.Values, a.Default.S) {
				t.Errorf("%s: attribute %s has a default that is not legal", op.Name, a.Name)
			}
		}
		if found := LookupOp(op.Domain, op.Name); found == nil || found.Doc != op.Doc {
			t.Errorf("%s: not found", op.Name)
		}
	}
	if LookupOp("", "View") != nil || LookupOp(InternalDomain, "View") == nil {
		t.Error("domains are mixed up")
	}
}

func TestAttrDefaults(t *testing.T) {
	n := &Node{Op: "LeakyRelu"}
	if got := n.Attr("alpha").F; got != float64(float32(0.01)) {
		t.Errorf("alpha: got %v", got)
	}
	n.Attrs = Attrs{"alpha": FloatAttr(2)}
	if got := n.Attr("alpha").F; got != 2 {
		t.Errorf("alpha: got %v", got)
	}
}
