package onnx_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

func TestNotAModel(t *testing.T) {
	digits, err := os.ReadFile(filepath.Join(digitsDir, "digits_branchy.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		data string
		want string
	}{
		{"empty", "", "the file is empty"},
		{"gzip", "\x1f\x8b\x08\x00abc", "gzip"},
		{"zip", "PK\x03\x04abcdefg", "zip archive (a PyTorch"},
		{"pickle", "\x80\x02}q\x00.", "pickle"},
		{"hdf5", "\x89HDF\r\n\x1a\nabc", "HDF5"},
		{"tflite", "\x1c\x00\x00\x00TFL3\x00\x00", "TensorFlow Lite"},
		{"ort", "\x1c\x00\x00\x00ORTM\x00\x00", "ONNX Runtime's own"},
		{"safetensors", "\x20\x00\x00\x00\x00\x00\x00\x00{\"a\":1}", "safetensors"},
		{"numpy", "\x93NUMPY\x01\x00", "NumPy"},
		{"json", "{\"ir_version\": 8}", "JSON"},
		{"text protobuf", "ir_version: 8\ngraph {\n}\n", "text form"},
		{"text", "hello\n", "a text file"},
		{"lfs", "version https://git-lfs.github.com/spec/v1\n", "Git LFS"},
		{"html", "<!DOCTYPE html><html>", "HTML"},
		{"truncated", string(digits[:len(digits)/2]), "truncated"},
		{"cut tag", string(digits[:1]), "truncated"},
		{"no graph", "\x08\x08", "no graph"},
		{"zeros", strings.Repeat("\x00", 100), "offset 0"},
		{"bombs", strings.Repeat("\x3a\x00", 3<<20), "too many empty parts"},
	} {
		_, err := onnx.Parse("f.onnx", []byte(c.data), "", onnx.Options{})
		if got := errorIDs(t, err); got != "bad-file" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want bad-file with %q", c.name, err, c.want)
		}
	}
}

// TestEveryPrefix cuts a model off at every byte. The rest must be an error or, where a field ends, another model.
func TestEveryPrefix(t *testing.T) {
	digits, err := os.ReadFile(filepath.Join(digitsDir, "digits_attention.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(digits); n += 97 {
		if _, err := onnx.Parse("f.onnx", digits[:n], "", onnx.Options{}); err == nil {
			t.Errorf("the first %d bytes are a model", n)
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "none.onnx"): "no such file",
		dir:                             "is a folder",
	} {
		_, err := onnx.Load(path, onnx.Options{})
		if errorIDs(t, err) != "cannot-read" || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// deep makes a model of nested If nodes.
func deep(levels int) *onnxpb.GraphProto {
	g := &onnxpb.GraphProto{Name: proto.String("leaf"), Output: []*onnxpb.ValueInfoProto{info("x")}}
	for i := range levels {
		n := node(fmt.Sprintf("y%d = If(c)", i), attr("then_branch", g), attr("else_branch", g))
		g = &onnxpb.GraphProto{
			Name: proto.String("level"), Node: []*onnxpb.NodeProto{n},
			Output: []*onnxpb.ValueInfoProto{info(fmt.Sprintf("y%d", i))},
		}
	}
	return g
}

func TestDeepNesting(t *testing.T) {
	// Both branches hold a copy of the levels inside, so that few levels suffice here.
	m := newModel(17).in("c bool", "x float32[2]")
	g := deep(5)
	m.Graph.Node, m.Graph.Output = g.Node, g.Output
	m.mustParse(t)
	chain := []byte{0x0a, 0x00} // a node, wrapped in graph attributes until the decoder's limit
	for range 200 {
		chain = wrap(0x0a, wrap(0x2a, wrap(0x32, chain)))
	}
	_, err := onnx.Parse("f.onnx", wrap(0x3a, chain), "", onnx.Options{})
	if errorIDs(t, err) != "bad-file" || !strings.Contains(err.Error(), "nested") {
		t.Errorf("got %.200v, want a message about nesting", err)
	}
}

// wrap makes data the field with the given tag.
func wrap(tag byte, data []byte) []byte {
	out := []byte{tag}
	n := len(data)
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(append(out, byte(n)), data...)
}

// TestProblems imports models with one problem each.
//
// Long: a table of cases, one line each.
func TestProblems(t *testing.T) {
	x := func(opset int64) builder { return newModel(opset).in("x float32[2,3]").out("y") }
	huge := x(17).node("y = Relu(x)")
	huge.Graph.Input[0] = info("x float32[4611686018427387904,4611686018427387904]")
	double := x(17).node("y = Relu(x)").node("y = Relu(x)")
	noOpset := x(17).node("y = Relu(x)")
	noOpset.OpsetImport = nil
	old, future := x(6).node("y = Relu(x)"), x(99).node("y = Relu(x)")
	ir2 := x(17).node("y = Relu(x)")
	*ir2.IrVersion = 2
	sequence := x(17).node("y = Relu(x)")
	sequence.Graph.Input[0].Type = &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SequenceType{}}
	fp8 := x(17).node("y = Relu(x)")
	fp8.Graph.Input[0] = info("x float8e4m3fn[2]")
	for _, c := range []struct {
		name  string
		model builder
		ids   string
		text  string
	}{
		{"unsupported operator", x(17).node("n: y = ImageDecoder(x)"), "unsupported-op",
			`node "n" (ImageDecoder, opset 17, float32)`},
		{"made-up operator", x(17).node("y = Relux(x)"), "unsupported-op", `node "#0" (Relux, opset 17`},
		{"microsoft", x(17).node("y = com.microsoft::BeamSearch(x)"), "unsupported-op", "without optimising"},
		{"ml", x(17).node("y = ai.onnx.ml::CategoryMapper(x)"), "unsupported-op", "classical"},
		{"operators of passes", x(17).node("y = rammer::Reference(x)", attr("file", "a.py")), "unsupported-op",
			"operators of domain rammer are not supported"},
		{"too new for the opset", x(17).node("y = Gelu(x)"), "unsupported-op", "from opset 20"},
		{"too old for the opset", x(17).node("y = Upsample(x)"), "unsupported-op", "does not exist in opset 17"},
		{"rewritten, too new", x(17).node("y = Swish(x)"), "unsupported-op", "does not exist in opset 17"},
		{"arity", x(17).node("y = Relu(x,x)"), "bad-arity", "input 1"},
		{"missing input", x(17).node("y = Add(x)"), "missing-input", "input 1 (B)"},
		{"absent input", x(17).node("y = Add(,x)"), "missing-input", "input 0 (A)"},
		{"outputs", x(17).node("y,z = Relu(x)"), "bad-arity", "output 1"},
		{"outputs of what becomes others", x(17).node("y,m,z = Dropout(x)").node("v = Relu(z)"), "bad-arity", "output 2"},
		{"outputs of a sequence", x(17).node("l,m = SequenceEmpty()").node("y = Relu(m)"), "bad-arity", "output 1"},
		{"unknown attribute", x(17).node("y = Relu(x)", attr("broadcast", 1)), "bad-attribute", "attribute broadcast"},
		{"attribute kind", x(17).node("y = Softmax(x)", attr("axis", 1.5)), "bad-attribute", "axis"},
		{"attribute twice", x(17).node("y = Softmax(x)", attr("axis", 1), attr("axis", 1)), "duplicate-attribute",
			"axis"},
		{"missing attribute", x(17).node("y = Cast(x)"), "bad-attribute", "attribute to"},
		{"cast to complex64", x(17).node("y = Cast(x)", attr("to", 14)), "unsupported-dtype", "complex64"},
		{"attribute reference", x(17).node("y = Softmax(x)", ref("axis", "a", onnxpb.AttributeProto_INT)),
			"bad-attribute", "in none"},
		{"old attribute", x(17).node("y = Squeeze(x)", attr("axes", []int64{0})), "bad-attribute", "axes"},
		{"new input", x(11).init(tensor("a", []int64{1})).node("y = ReduceSum(x,a)", attr("axes", []int64{0})),
			"bad-arity", "opset 11"},
		{"unresolved input", x(17).node("y = Add(x,q)"), "unresolved-name", `"q"`},
		{"unresolved output", x(17).node("z = Relu(x)"), "unresolved-name", `output "y"`},
		{"cycle", x(17).node("p: a = Add(x,b)").node("q: b = Relu(a)").node("y = Relu(a)"), "cyclic-graph",
			`"p" (Add) → "q" (Relu) → "p" (Add)`},
		{"self", x(17).node("p: y = Add(x,y)"), "cyclic-graph", `"p" (Add) → "p" (Add)`},
		{"duplicate value", double, "duplicate-name", `"y"`},
		{"duplicate input", x(17).in("x float32[2]").node("y = Relu(x)"), "duplicate-name", `input "x"`},
		{"duplicate output", x(17).out("y").node("y = Relu(x)"), "duplicate-name", `output "y"`},
		{"no output", newModel(17).in("x float32[2]").node("y = Relu(x)"), "no-output", ""},
		{"no opset", noOpset, "bad-opset", "ai.onnx"},
		{"old opset", old, "unsupported-opset", "opset 6"},
		{"future opset", future, "unsupported-opset", "opset 99"},
		{"old IR", ir2, "unsupported-ir-version", "IR version 2"},
		{"absurd dims", huge, "bad-type", "absurdly"},
		{"negative dim", newModel(17).in("x float32[-2,3]").out("y").node("y = Relu(x)"), "bad-type", "negative"},
		{"absurd rank", newModel(17).in("x float32[" + strings.Repeat("n,", 99) + "n]").out("y").node("y = Relu(x)"),
			"bad-type", "rank is 100"},
		{"no type", newModel(17).in("x").out("y").node("y = Relu(x)"), "bad-type", "missing"},
		{"sequence", sequence, "unbound-dim unsupported-dtype", "how many tensors"},
		{"float8", fp8, "bad-type", "float8e4m3fn"},
		{"rank", newModel(17).in("x float32[2]", "w float32[2,2,3]").out("y").node("c: y = Conv(x,w)"), "bad-rank",
			`node "c" (Conv, opset 17)`},
		{"element type", newModel(17).in("x int64[2]").out("y").node("y = Exp(x)"), "bad-type", "int64"},
		{"training", x(13).node("y,a,b,c,d = BatchNormalization(x,x,x,x,x)"), "training-mode", "meant for training"},
		{"empty constant", x(17).node("y = Constant()"), "bad-attribute", "exactly one"},
		{"scan of opset 8", x(8).node("y = Scan(x,x)", attr("body", &onnxpb.GraphProto{}), attr("num_scan_inputs", 1)),
			"unsupported-op", "different lengths"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.model.parse(t, onnx.Options{})
			if got := errorIDs(t, err); got != c.ids || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %q, want %q with %q: %v", got, c.ids, c.text, err)
			}
		})
	}
}

// TestAllProblems checks that all problems of a model are reported at once, without those that only follow from
// another.
func TestAllProblems(t *testing.T) {
	m := newModel(17).in("x float32[2,3]", "i int64[2]").out("y", "gone").
		init(&onnxpb.TensorProto{Name: proto.String("w"), DataType: proto.Int32(1), Dims: []int64{5}}).
		node("a: t = ImageDecoder(x)").
		node("b: u = Add(t,nowhere)").
		node("c: v = Exp(i)").
		node("d: s = Mul(v,w)").
		node("e: y = Concat(u,s)")
	_, err := m.parse(t, onnx.Options{})
	want := "bad-tensor unsupported-op unresolved-name unresolved-name bad-type bad-attribute"
	if got := errorIDs(t, err); got != want {
		t.Errorf("got %q, want %q:\n%v", got, want, err)
	}
}

func TestManyProblems(t *testing.T) {
	m := newModel(17).in("x float32[2]").out("y")
	for i := range 3000 {
		m.node(fmt.Sprintf("y%d = Nope(x)", i))
	}
	m.node("y = Relu(x)")
	_, err := m.parse(t, onnx.Options{})
	if n := len(diag.All(err)); n > 1100 || !strings.Contains(err.Error(), "more problems") {
		t.Errorf("%d diagnostics", n)
	}
}

// TestLongNames checks that names stay short. A node of a subgraph has the name of the node around it in its own, so
// that long names in nested subgraphs could take any amount of memory.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("ü", 1<<16)
	branch := &onnxpb.GraphProto{Output: []*onnxpb.ValueInfoProto{info("y0")}}
	for i := range 2000 {
		branch.Node = append(branch.Node, node(fmt.Sprintf("y%d = Nope(x)", i)))
	}
	m := newModel(17).in("x float32[2]", "c bool").out("y").
		node(long+": y = If(c)", attr("then_branch", branch), attr("else_branch", branch))
	_, err := m.parse(t, onnx.Options{})
	if n := len(err.Error()); n > 1<<20 || !utf8.ValidString(err.Error()) {
		t.Errorf("the messages have %d bytes", n)
	}
}

func TestUnsortedNodes(t *testing.T) {
	m := newModel(17).in("x float32[2]").out("y").
		node("y = Neg(b)").node("b = Exp(a)").node("z = Abs(x)").node("a = Relu(x)").mustParse(t)
	if got := ops(m.Graph); got != "Abs Relu Exp Neg" {
		t.Errorf("got %s", got)
	}
}

func TestDeterminism(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(digitsDir, "digits_lstm_dyn.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for i := range 3 {
		m, err := onnx.Parse("m", data, "", onnx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := []byte(text(m.Graph)); i == 0 {
			first = got
		} else if !bytes.Equal(got, first) {
			t.Error("two imports differ")
		}
	}
}
