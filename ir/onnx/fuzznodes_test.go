package onnx_test

import (
	"fmt"
	"math/rand/v2"
	"sort"
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

// fuzzOps lists every operator of the table and of the rewrites, sorted.
func fuzzOps() []string {
	set := map[string]bool{"Constant": true}
	for _, op := range ir.Ops {
		if op.Domain == "" {
			set[op.Name] = true
		}
	}
	for _, r := range onnx.Rewrites() {
		set[r.Op] = true
	}
	var list []string
	for op := range set {
		list = append(list, op)
	}
	sort.Strings(list)
	return list
}

// arity is a number of inputs or outputs, in most cases one that the operator allows.
func (c *choices) arity(op string) int {
	row := ir.LookupOp("", op)
	if row == nil {
		return 1 + c.pick(3)
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

// attrs are some of the attributes that the operator has or had in older opsets, in most cases of the right kind.
func (c *choices) attrs(op string) []*onnxpb.AttributeProto {
	var specs []ir.AttrSpec
	row := ir.LookupOp("", op)
	if row != nil {
		specs = row.Attrs
	}
	specs = append(specs[:len(specs):len(specs)], []ir.AttrSpec{
		{Name: "axes", Kind: ir.AttrInts},
		{Name: "axis", Kind: ir.AttrInt},
		{Name: "pads", Kind: ir.AttrInts},
		{Name: "starts", Kind: ir.AttrInts},
		{Name: "ends", Kind: ir.AttrInts},
		{Name: "split", Kind: ir.AttrInts},
		{Name: "k", Kind: ir.AttrInt},
		{Name: "value", Kind: ir.AttrFloat},
		{Name: "scales", Kind: ir.AttrFloats},
		{Name: "num_groups", Kind: ir.AttrInt},
		{Name: "spatial", Kind: ir.AttrInt},
		{Name: "p", Kind: ir.AttrInt},
	}[:c.pick(13)]...)
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
	allOps := fuzzOps()
	m := newModel(int64(7 + c.pick(21)))
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
	for i := range 1 + c.pick(4) {
		n := &onnxpb.NodeProto{OpType: proto.String(allOps[c.pick(len(allOps))])}
		for range c.arity(n.GetOpType()) {
			n.Input = append(n.Input, values[c.pick(len(values))])
		}
		for k := range 1 + []int{0, 0, 0, 0, 0, 1, 2}[c.pick(7)] {
			n.Output = append(n.Output, fmt.Sprintf("y%d_%d", i, k))
		}
		n.Attribute = c.attrs(n.GetOpType())
		m.Graph.Node = append(m.Graph.Node, n)
		values = append(values, n.Output...)
		m.out(n.Output[0])
	}
	return m
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
