package ir

import (
	"math"
	"math/rand"
	"testing"
)

// TestInferRandomNodes infers nodes with random inputs and attributes. Inference must not panic, must give the same
// result each time, and must find only possible shapes.
func TestInferRandomNodes(t *testing.T) {
	for seed := range int64(20000) {
		r := &randomNodes{rand.New(rand.NewSource(seed))}
		op := &Ops[r.Intn(len(Ops))]
		g := r.graph(op, 2)
		text := func() (string, int) {
			list := InferShapes(g)
			return g.String(), len(list.Items)
		}
		first, problems := text()
		if second, again := text(); first != second || problems != again {
			t.Fatalf("seed %d: inference differs from itself:\n%s\n%s", seed, first, second)
		}
		for _, v := range g.Outputs {
			if v == nil {
				continue
			}
			if _, message := shapeProblem(v.Shape); message != "" {
				t.Fatalf("seed %d: %s\n%s", seed, message, first)
			}
			if dims, ok := v.Shape.Consts(); v.Elems != nil && (!ok || boundedCount(dims) != int64(len(v.Elems))) {
				t.Fatalf("seed %d: %d elements for shape %v", seed, len(v.Elems), v.Shape)
			}
		}
	}
}

func FuzzInferNode(f *testing.F) {
	f.Add(int64(1), uint(3))
	f.Fuzz(func(_ *testing.T, seed int64, op uint) {
		r := &randomNodes{rand.New(rand.NewSource(seed))}
		InferShapes(r.graph(&Ops[op%uint(len(Ops))], 2))
	})
}

type randomNodes struct{ *rand.Rand }

// graph makes a graph that applies op to random inputs with random attributes. Its bodies are made in the same way.
func (r *randomNodes) graph(op *Op, depth int) *Graph {
	g := &Graph{Name: "random"}
	n := &Node{Op: op.Name, Domain: op.Domain, Attrs: Attrs{}}
	count := len(op.Inputs) + r.Intn(3) - r.Intn(2)*r.Intn(3)
	for i := range max(count, 0) {
		p := op.InputPort(i)
		if p == nil || r.Intn(12) == 0 {
			n.Inputs = append(n.Inputs, nil)
			continue
		}
		v := r.value(p)
		v.Name = "x" + string(rune('a'+i))
		if v.Const != nil {
			g.Consts = append(g.Consts, v)
		} else {
			g.Inputs = append(g.Inputs, v)
		}
		n.Inputs = append(n.Inputs, v)
	}
	for i := range len(op.Outputs) + r.Intn(2) {
		v := &Value{Name: "y" + string(rune('a'+i)), Def: n}
		n.Outputs = append(n.Outputs, v)
		g.Outputs = append(g.Outputs, v)
	}
	for _, a := range op.Attrs {
		if a.Required || r.Intn(2) == 0 {
			n.Attrs[a.Name] = r.attr(a, depth)
		}
	}
	g.Nodes = []*Node{n}
	return g
}

func (r *randomNodes) value(p *Port) *Value {
	types := p.Types
	if types == nil {
		types = numericTypes
	}
	d := types[0]
	if r.Intn(5) == 0 {
		d = types[r.Intn(len(types))]
	}
	rank := r.Intn(5)
	if types[0] == Int64 || types[0] == Int32 {
		rank = r.Intn(2)
	}
	if r.Intn(3) == 0 || types[0] == Int64 && r.Intn(3) > 0 {
		return r.constant(d, rank)
	}
	v := &Value{DType: d, Shape: Shape{}}
	for range rank {
		v.Shape = append(v.Shape, r.dim())
	}
	if r.Intn(20) == 0 {
		v.Shape = nil
	}
	return v
}

func (r *randomNodes) constant(d DType, rank int) *Value {
	dims := make([]int64, rank)
	for i := range dims {
		dims[i] = int64(r.Intn(4))
	}
	t := NewTensor(d, dims...)
	switch data := t.Data.(type) {
	case []int64:
		for i := range data {
			data[i] = r.int()
		}
	case []int32:
		for i := range data {
			data[i] = int32(r.int())
		}
	case []float32:
		for i := range data {
			data[i] = []float32{0, 1, -1, 0.5, 3, float32(math.NaN()), float32(math.Inf(1)), 1e30}[r.Intn(8)]
		}
	}
	return &Value{DType: d, Shape: Dims(dims...), Const: t}
}

func (r *randomNodes) dim() Dim {
	switch r.Intn(4) {
	case 0:
		return Sym([]string{"a", "b", "unk__0"}[r.Intn(3)])
	case 1:
		return Sym("a").Add(D(int64(r.Intn(3)) - 1))
	case 2:
		return D(r.int())
	}
	return D(int64(1 + r.Intn(4)))
}

func (r *randomNodes) int() int64 {
	extreme := []int64{math.MinInt64, math.MaxInt64, math.MinInt64 + 1, 1 << 62, 1 << 31, -1 << 31, 1 << 24, 1 << 20}
	if r.Intn(12) == 0 {
		return extreme[r.Intn(len(extreme))]
	}
	return int64(r.Intn(8)) - 2
}

func (r *randomNodes) attr(spec AttrSpec, depth int) Attr {
	kind := spec.Kind
	if r.Intn(30) == 0 {
		kind = AttrKind(1 + r.Intn(int(AttrGraph)))
	}
	a := Attr{Kind: kind, I: r.int(), F: r.NormFloat64(), S: "ij,jk->ik", T: r.constant(Int64, r.Intn(2)).Const}
	if len(spec.Values) > 0 && r.Intn(10) > 0 {
		a.S = spec.Values[r.Intn(len(spec.Values))]
	}
	for range r.Intn(5) {
		a.Ints = append(a.Ints, r.int())
		a.Floats = append(a.Floats, r.NormFloat64())
		a.Strs = append(a.Strs, recurrentActivations[r.Intn(len(recurrentActivations))])
	}
	if kind == AttrGraph {
		if depth == 0 {
			return Attr{Kind: AttrGraph, G: &Graph{}}
		}
		a.G = r.graph(&Ops[r.Intn(len(Ops))], depth-1)
		if r.Intn(2) == 0 {
			a.G.Outputs = append(a.G.Outputs, a.G.Outputs...)
		}
	}
	return a
}
