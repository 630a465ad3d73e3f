package onnx_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// choices turns fuzzed bytes into decisions. When the bytes are used up, every decision is the first alternative.
type choices []byte

func (c *choices) pick(n int) int {
	if len(*c) == 0 || n <= 1 {
		return 0
	}
	b := (*c)[0]
	*c = (*c)[1:]
	return int(b) % n
}

var (
	fuzzExtents = strings.Fields("2 2 2 2 2 2 2 2 1 1 1 4 4 6 3 n n ? 0")
	fuzzTypes   = strings.Fields("float32 float32 float32 float32 float32 float32 int64 int64 bool float16 uint8 int32 string")
	fuzzInts    = []int64{1, 1, 1, 1, 0, 0, 0, 2, 2, -1, -1, 3, 4, -2, 7, 100, 1 << 62, -1 << 63}
)

// fuzzOp is an operator of a domain.
type fuzzOp struct{ domain, name string }

// fuzzOps lists every operator of the table and of the rewrites, and those that have graphs, sorted.
func fuzzOps() []fuzzOp {
	set := map[fuzzOp]bool{{"", "Constant"}: true, {"", "If"}: true, {"", "Loop"}: true, {"", "Scan"}: true}
	for _, op := range ir.Ops {
		if op.Domain == "" {
			set[fuzzOp{"", op.Name}] = true
		}
	}
	for _, r := range onnx.Rewrites() {
		set[fuzzOp{r.Domain, r.Op}] = true
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b fuzzOp) int {
		return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.name, b.name))
	})
}

// arity is a number of inputs, in most cases one that the operator allows.
func (c *choices) arity(op fuzzOp) int {
	row := ir.LookupOp(op.domain, op.name)
	if row == nil {
		return 1 + c.pick([]int{3, 3, 3, 12}[c.pick(4)])
	}
	switch c.pick(8) {
	case 6:
		return len(row.Inputs)
	case 7:
		return c.pick(6)
	}
	return row.MinInputs()
}

func (c *choices) ints() []int64 {
	out := make([]int64, c.pick(6))
	for i := range out {
		out[i] = fuzzInts[c.pick(len(fuzzInts))]
	}
	return out
}

func (c *choices) dims() string {
	dims := ""
	for i := range []int{4, 4, 4, 2, 3, 1, 0, 5}[c.pick(8)] {
		if i > 0 {
			dims += ","
		}
		if c.pick(100) == 99 {
			dims += []string{"-1,", "4611686018427387904,"}[c.pick(2)]
		}
		dims += fuzzExtents[c.pick(len(fuzzExtents))]
	}
	return dims
}

// fuzzAttrs are attributes that operators had in older opsets, or that those have which have no row in the table.
var fuzzAttrs = []ir.AttrSpec{
	{Name: "axes", Kind: ir.AttrInts}, {Name: "axis", Kind: ir.AttrInt}, {Name: "pads", Kind: ir.AttrInts},
	{Name: "starts", Kind: ir.AttrInts}, {Name: "ends", Kind: ir.AttrInts}, {Name: "split", Kind: ir.AttrInts},
	{Name: "k", Kind: ir.AttrInt}, {Name: "value", Kind: ir.AttrFloat}, {Name: "scales", Kind: ir.AttrFloats},
	{Name: "num_groups", Kind: ir.AttrInt}, {Name: "spatial", Kind: ir.AttrInt}, {Name: "p", Kind: ir.AttrInt},
	{Name: "num_heads", Kind: ir.AttrInt}, {Name: "kv_num_heads", Kind: ir.AttrInt}, {Name: "K", Kind: ir.AttrInt},
	{Name: "N", Kind: ir.AttrInt}, {Name: "bits", Kind: ir.AttrInt}, {Name: "block_size", Kind: ir.AttrInt},
	{Name: "activation", Kind: ir.AttrString, Values: []string{"silu", "none", "Relu", "Clip"}},
	{Name: "channels_last", Kind: ir.AttrInt}, {Name: "groups", Kind: ir.AttrInt}, {Name: "group", Kind: ir.AttrInt},
	{Name: "unidirectional", Kind: ir.AttrInt}, {Name: "do_rotary", Kind: ir.AttrInt},
	{Name: "training_mode", Kind: ir.AttrInt}, {Name: "num_scan_inputs", Kind: ir.AttrInt},
	{Name: "kernel_shape", Kind: ir.AttrInts}, {Name: "qk_matmul_output_mode", Kind: ir.AttrInt},
}

// attrs are some of the attributes that the operator has or had in older opsets, in most cases of the right kind.
func (c *choices) attrs(op fuzzOp) []*onnxpb.AttributeProto {
	var specs []ir.AttrSpec
	if row := ir.LookupOp(op.domain, op.name); row != nil {
		specs = append(specs, row.Attrs...)
	}
	specs = append(specs, fuzzAttrs[:c.pick(len(fuzzAttrs)+1)]...)
	var out []*onnxpb.AttributeProto
	for _, s := range specs {
		if s.Kind == ir.AttrGraph || !s.Required && c.pick(10) != 1 {
			continue
		}
		out = append(out, attr(s.Name, c.value(s)))
	}
	return out
}

func (c *choices) value(s ir.AttrSpec) any {
	kind := s.Kind
	if c.pick(20) == 19 {
		kind = ir.AttrKind(c.pick(int(ir.AttrTensor))) + 1
	}
	switch kind {
	case ir.AttrInt:
		return int(fuzzInts[c.pick(len(fuzzInts))])
	case ir.AttrFloat:
		return float64(c.pick(5)) - 1.5
	case ir.AttrString:
		if len(s.Values) > 0 {
			return s.Values[c.pick(len(s.Values))]
		}
		return []string{"ij,jk->ik", "", "...i->i", "i,i", "ii->i"}[c.pick(5)]
	case ir.AttrFloats:
		return []float32{1, 1, float32(c.pick(4)), 0.5}
	case ir.AttrStrings:
		return []string{"Tanh", "Relu"}
	case ir.AttrTensor:
		return tensor("", []float32{1})
	}
	return c.ints()
}

// fuzzGraph builds a model of a few nodes out of decisions.
func fuzzGraph(c *choices) builder {
	m := newModel(int64(7 + c.pick(21)))
	for _, domain := range []string{"com.microsoft", "com.microsoft.nchwc", "ai.onnx.ml", "ai.onnx.preview"} {
		m.OpsetImport = append(m.OpsetImport,
			&onnxpb.OperatorSetIdProto{Domain: proto.String(domain), Version: proto.Int64(1)})
	}
	values, typ := []string{""}, ""
	for i := range 3 {
		name := fmt.Sprintf("x%d", i)
		if i == 0 || c.pick(3) == 2 { // otherwise of the same type as the one before
			typ = fmt.Sprintf("%s[%s]", fuzzTypes[c.pick(len(fuzzTypes))], c.dims())
		}
		m.in(name + " " + typ)
		values = append(values, name)
	}
	for i := range 2 {
		name := fmt.Sprintf("c%d", i)
		m.init(tensor(name, c.ints()))
		values = append(values, name)
	}
	m.init(tensor("f", []float32{1, 0.5, -2, 0}, [][]int64{{4}, {2, 2}, {1, 2, 2}, {4, 1}}[c.pick(4)]...))
	f := &fuzzNodes{choices: c, ops: fuzzOps()}
	f.fill(m.Graph, append(values, "f"), 1+c.pick(4), "")
	return m
}

// fuzzNodes adds random nodes to graphs.
type fuzzNodes struct {
	*choices
	ops []fuzzOp
}

// fill adds n nodes to a graph, in which the values are known, and makes some of their results the graph's.
func (c *fuzzNodes) fill(g *onnxpb.GraphProto, values []string, n int, prefix string) {
	for i := range n {
		op := c.ops[(c.pick(2)*256+c.pick(256))%len(c.ops)] // There are more than one byte chooses among.
		n := &onnxpb.NodeProto{OpType: proto.String(op.name), Domain: proto.String(op.domain)}
		for range c.arity(op) {
			n.Input = append(n.Input, values[c.pick(len(values))])
		}
		for k := range []int{1, 1, 1, 1, 1, 2, 3, 0}[c.pick(8)] {
			n.Output = append(n.Output, fmt.Sprintf("%sy%d_%d", prefix, i, k))
		}
		if len(n.Output) > 1 && c.pick(4) == 3 {
			n.Output[c.pick(len(n.Output))] = ""
		}
		n.Attribute = append(c.attrs(op), c.bodies(op, values, prefix)...)
		g.Node = append(g.Node, n)
		for k, name := range n.Output {
			if name == "" {
				continue
			}
			values = append(values, name)
			if k == 0 || c.pick(3) == 2 {
				g.Output = append(g.Output, info(name))
			}
		}
	}
	if prefix != "" && c.pick(3) == 2 { // a branch or body gives what another graph defines
		g.Output = append(g.Output, info(values[1+c.pick(len(values)-1)]))
	}
}

// bodies are the graphs of an operator that has some.
func (c *fuzzNodes) bodies(op fuzzOp, values []string, prefix string) []*onnxpb.AttributeProto {
	attrs := map[string][]string{
		"If": {"then_branch", "else_branch"}, "Loop": {"body"}, "Scan": {"body"}, "SequenceMap": {"body"},
		"FlexAttention": {"score_mod", "prob_mod"},
	}[op.name]
	if strings.Count(prefix, "_") > 1 {
		return nil // Graphs in graphs in graphs are deep enough.
	}
	var out []*onnxpb.AttributeProto
	for k, name := range attrs {
		p := fmt.Sprintf("%sb%d_", prefix, k)
		g := &onnxpb.GraphProto{Name: proto.String(p)}
		inner := slices.Clone(values)
		for i := range []int{0, 2, 3, 1}[c.pick(4)] {
			decl := p + fmt.Sprint("i", i)
			inner = append(inner, decl)
			if op.name == "Loop" && i < 2 {
				decl += []string{" int64[]", " bool[]"}[i]
			}
			g.Input = append(g.Input, info(decl))
		}
		c.fill(g, inner, c.pick(3), p)
		out = append(out, attr(name, g))
	}
	return out
}

// FuzzNodes makes the demands of FuzzParse for models that are well formed, with random operators and attributes.
func FuzzNodes(f *testing.F) {
	f.Add([]byte{10, 0, 3, 0, 0, 0})
	f.Add([]byte("the quick brown fox jumps over the lazy dog, twice and thrice"))
	f.Fuzz(func(t *testing.T, data []byte) { tryNodes(t, data) })
}

// TestRandomNodes is a short run of FuzzNodes on random decisions.
func TestRandomNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	imported := 0
	for range 3000 {
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		if tryNodes(t, data) {
			imported++
		}
	}
	if imported < 10 {
		t.Errorf("only %d models were imported", imported)
	}
}

// tryNodes imports the model that data decides on and reports whether it could.
func tryNodes(t *testing.T, data []byte) bool {
	c := choices(data)
	m, err := onnx.Parse("f.onnx", fuzzGraph(&c).bytes(t), "", onnx.Options{})
	if err != nil {
		if len(diag.All(err)) == 0 {
			t.Fatalf("an error without diagnostics: %v", err)
		}
		return false
	}
	if err := ir.Verify(m.Graph); err != nil {
		t.Fatalf("the graph does not verify: %v\n%s", err, text(m.Graph))
	}
	return true
}
