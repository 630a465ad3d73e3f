package hostile

import (
	"fmt"
	"math"
	"strings"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// extremes are numbers where a small one is meant.
var extremes = []int64{math.MinInt64, -1, 0, 3, 1 << 31, 1 << 40, math.MaxInt64}

// symbolic adds an input of float32 whose extents are numbers or names.
func (g graph) symbolic(name string, dims ...any) graph {
	v := valueInfo(name, onnxpb.TensorProto_FLOAT, make([]int64, len(dims)))
	for i, d := range dims {
		dim := v.Type.GetTensorType().Shape.Dim[i]
		switch d := d.(type) {
		case int:
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}
		case string:
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d}
		}
	}
	g.Input = append(g.Input, v)
	return g
}

// states are caches and recurrent states that a library is to keep, with flags and extents that do not fit them.
func states(*Sources) []Case {
	var out []Case
	add := func(name string, g graph, flags ...string) {
		out = append(out, Case{"states", numbered(name, len(out)), []File{{Name: "m.onnx", Data: g.model()}},
			append([]string{"compile", "m.onnx", "-q", "--target", "emu", "--emit", "cu"}, flags...)})
	}
	cache := func(axis int64) graph {
		return newGraph().symbolic("x", 2, "n", 4).symbolic("past", 2, "past_n", 4).
			node("Concat", []string{"past", "x"}, []string{"present"}, integer("axis", axis)).
			node("Relu", []string{"x"}, []string{"y"}).output("y", "present")
	}
	for _, state := range []string{"past=present", "auto", "past=y", "y=past", "x=present", "past", "=",
		"past=present=y",
		"past=\x1b[2J", strings.Repeat("x", 100000) + "=present"} {
		add("flag", cache(1), "--dim", "n=1..4", "--dim", "past_n=0..12", "--state", state)
	}
	add("twice", cache(1), "--dim", "n=1..4", "--dim", "past_n=0..12", "--state", "past=present", "--state",
		"past=present")
	for _, n := range append(extremes, 1<<31-1) {
		add("past", cache(1), "--dim", "n=1..4", "--dim", fmt.Sprint("past_n=0..", n), "--state", "past=present")
		add("new", cache(1), "--dim", fmt.Sprint("n=1..", n), "--dim", "past_n=0..12", "--state", "past=present")
		add("one", cache(1), "--dim", fmt.Sprint("n=", n), "--dim", fmt.Sprint("past_n=", n), "--state", "past=present")
		add("axis", cache(n), "--dim", "n=1..4", "--dim", "past_n=0..12", "--state", "past=present")
		add("typical", cache(1), "--dim", "n=1..4", "--dim", "past_n=0..12", "--state", "past=present", "--typical",
			fmt.Sprint("past_n=", n))
	}
	circle := newGraph().input("a", 4).input("b", 4).node("Relu", []string{"a"}, []string{"c"}).
		node("Relu", []string{"b"}, []string{"d"}).output("c", "d")
	add("circle", circle, "--state", "a=d", "--state", "b=c")
	add("shared", circle, "--state", "a=c", "--state", "b=c")
	add("shapes", newGraph().input("a", 4).node("Concat", []string{"a", "a"}, []string{"c"},
		integer("axis", 0)).output("c"),
		"--state", "a=c")
	return out
}

// foundExtents are models whose extents a run finds, in places where extents should be numbers.
func foundExtents(*Sources) []Case {
	var out []Case
	add := func(name string, g graph) { out = append(out, onModel("found extents", name, g.model())...) }
	found := func(rows int64) graph {
		return newGraph().input("x", rows).int64s("zero", []int64{1}, 0).int64s("all", []int64{1}, -1).
			node("NonZero", []string{"x"}, []string{"at"}).node("Shape", []string{"at"}, []string{"shape"}).
			int64s("second", nil, 1).node("Gather", []string{"shape", "second"}, []string{"n"}).
			node("Reshape", []string{"n", "all"}, []string{"n1"})
	}
	for _, rows := range []int64{0, 1, 40, 1 << 31} {
		add(fmt.Sprint("Expand-", rows), found(rows).node("Expand", []string{"x", "n1"}, []string{"y"}).output("y"))
		add(fmt.Sprint("Range-", rows), found(rows).int64s("from", nil, 0).int64s("by", nil, 1).
			node("Range", []string{"from", "n", "by"}, []string{"y"}).output("y"))
		add(fmt.Sprint("TopK-", rows), found(rows).node("TopK", []string{"x", "n1"}, []string{"y", "i"}).output("y"))
		add(fmt.Sprint("Slice-", rows), found(rows).
			node("Slice", []string{"x", "n1", "all"}, []string{"y"}).output("y"))
		add(fmt.Sprint("again-", rows), found(rows).node("NonZero", []string{"at"}, []string{"y"}).output("y"))
	}
	for _, n := range extremes {
		boxes := newGraph().input("boxes", 1, 20, 4).input("scores", 1, 3, 20).int64s("most", []int64{1}, n)
		add(fmt.Sprint("NonMaxSuppression-", n), boxes.
			node("NonMaxSuppression", []string{"boxes", "scores", "most"}, []string{"y"}).output("y"))
		add(fmt.Sprint("Compress-", n), found(40).node("Cast", []string{"x"}, []string{"c"}, integer("to", 9)).
			node("Compress", []string{"x", "c"}, []string{"y"}, integer("axis", n)).output("y"))
		add(fmt.Sprint("ConstantOfShape-", n), found(40).int64s("k", []int64{1}, n).
			node("Mul", []string{"n1", "k"}, []string{"m"}).node("ConstantOfShape", []string{"m"},
			[]string{"y"}).output("y"))
	}
	add("chain", foundAgain(found(40)))
	return out
}

// foundAgain finds elements among those that it has found, over and over.
func foundAgain(g graph) graph {
	last := "x"
	for i := range 30 {
		next := numbered("f", i)
		g = g.node("Cast", []string{last}, []string{next + "c"}, integer("to", int64(onnxpb.TensorProto_BOOL))).
			node("Compress", []string{last, next + "c"}, []string{next})
		last = next
	}
	return g.node("Relu", []string{last}, []string{"y"}).output("y")
}

// decidedBranches are branches and loops whose conditions a run computes, in rPrograms that jump over them.
func decidedBranches(*Sources) []Case {
	var out []Case
	add := func(name string, g graph) {
		for _, c := range onModel("branches that a run decides", name, g.model()) {
			out = append(out, c)
			if strings.HasSuffix(c.Name, "/compile") {
				c.Name, c.Args = name+"/rprogram", append(c.Args[:len(c.Args):len(c.Args)], "--plan", "rprogram")
				out = append(out, c)
			}
		}
	}
	condition := func(g graph) graph {
		return g.floats("limit", nil, 0.5).node("ReduceSum", []string{"x"}, []string{"sum"}, integer("keepdims", 0)).
			node("Greater", []string{"sum", "limit"}, []string{"yes"})
	}
	for _, depth := range []int{1, 3, 8, 12} {
		add(numbered("nested", depth), condition(newGraph().input("x", 4)).node("If", []string{"yes"}, []string{"y"},
			subgraph("then_branch", branches(depth, "t")), subgraph("else_branch", branches(depth, "e"))).output("y"))
	}
	for _, depth := range []int{4, 10} {
		add(numbered("nested-otherwise", depth), condition(newGraph().input("x", 4)).node("If", []string{"yes"}, []string{"y"},
			subgraph("then_branch", otherBranches(depth, "t")), subgraph("else_branch", otherBranches(depth, "e"))).output("y"))
	}
	for _, trips := range extremes {
		body := newGraph().node("Sin", []string{"v"}, []string{"vo"}).floats("half", nil, 0.5).
			node("ReduceSum", []string{"vo"}, []string{"s"}, integer("keepdims", 0)).
			node("Greater", []string{"s", "half"}, []string{"co"})
		body.Input = []*onnxpb.ValueInfoProto{valueInfo("i", onnxpb.TensorProto_INT64, nil),
			valueInfo("c", onnxpb.TensorProto_BOOL, nil), valueInfo("v", onnxpb.TensorProto_FLOAT, []int64{4})}
		body.Output = []*onnxpb.ValueInfoProto{valueInfo("co", onnxpb.TensorProto_BOOL, nil),
			valueInfo("vo", onnxpb.TensorProto_FLOAT, []int64{4})}
		add(fmt.Sprint("loop-", trips), condition(newGraph().input("x", 4).int64s("trips", nil, trips)).
			node("Loop", []string{"trips", "yes", "x"}, []string{"y"}, subgraph("body", body)).output("y"))
	}
	wide := condition(newGraph().input("x", 4))
	last := "x"
	for i := range 300 {
		then, other := newGraph(), newGraph()
		then = then.node("Sin", []string{last}, []string{numbered("t", i)}).output(numbered("t", i))
		other = other.node("Cos", []string{last}, []string{numbered("e", i)}).output(numbered("e", i))
		wide = wide.node("If", []string{"yes"}, []string{numbered("v", i)}, subgraph("then_branch", then),
			subgraph("else_branch", other))
		last = numbered("v", i)
	}
	add("row-of-300", wide.node("Relu", []string{last}, []string{"y"}).output("y"))
	return out
}

// otherBranches are so many Ifs within each other, each of which computes a condition of its own.
func otherBranches(depth int, name string) graph {
	g := newGraph()
	if depth == 0 {
		return g.node("Relu", []string{"x"}, []string{name}).output(name)
	}
	return g.node("Sin", []string{"sum"}, []string{name + "s"}).
		node("Less", []string{name + "s", "limit"}, []string{name + "c"}).
		node("If", []string{name + "c"}, []string{name}, subgraph("then_branch", otherBranches(depth-1, name+"t")),
			subgraph("else_branch", otherBranches(depth-1, name+"e"))).output(name)
}

// answers are flags with which no decoder can generate.
func answers(*Sources) []Case {
	var out []Case
	decoder := newGraph().symbolic("past", 1, "past_n", 4)
	decoder.Input = append(decoder.Input, valueInfo("input_ids", onnxpb.TensorProto_INT64, []int64{1, 1}))
	decoder = decoder.node("Cast", []string{"input_ids"}, []string{"f"}, integer("to", 1)).
		int64s("axis", []int64{1}, 2).node("Unsqueeze", []string{"f", "axis"}, []string{"u"}).
		int64s("shape", []int64{3}, 1, 1, 4).node("Expand", []string{"u", "shape"}, []string{"row"}).
		node("Concat", []string{"past", "row"}, []string{"present"}, integer("axis", 1)).
		node("Relu", []string{"row"}, []string{"logits"}).output("logits", "present")
	for _, flags := range [][]string{
		{"greedy"}, {""}, {"best"}, {"greedy", "--state", "past=present"}, {"greedy", "--end-token", "-1"},
		{"greedy", "--end-token", "9223372036854775807"}, {"greedy", "--typical", "auto"}, {"beam=0"},
		{"beam-99999999999"},
		{"\x1b[2J"}, {strings.Repeat("x", 100000)}, {"greedy", "--dim", "past_n=0..99999999999999999999"},
	} {
		for _, most := range extremes {
			args := append([]string{"compile", "m.onnx", "-q", "--target", "emu", "--emit", "cu", "--max-tokens",
				fmt.Sprint(most), "--generate"}, flags...)
			out = append(out, Case{"answers", numbered("flags", len(out)),
				[]File{{Name: "m.onnx", Data: decoder.model()}}, args})
		}
	}
	return out
}

// kernelSpec says what an existing kernel does not, for convert.
const kernelSpec = `kernel: k
name: mine
launch: {grid: [blocks], block: [64]}
arguments:
  - {name: x, role: input, type: int32, shape: [blocks, 64]}
  - {name: y, role: output, type: int32, shape: [blocks, 64]}
  - {name: n, role: value, value: blocks}
example: {dims: {blocks: 3}, large: {blocks: 8192}}
`

// kernelSpecs are specifications of kernels to convert. The kernel itself is not there: what is right in all of them is
// refused for that, with and without the parser.
func kernelSpecs(*Sources) []Case {
	texts := append(damaged([]byte(kernelSpec), 40, 13), otherNumbers([]byte(kernelSpec), 30, 14)...)
	texts = append(texts, bomb("kernel"), []byte(strings.Repeat("[", 10000)), []byte(strings.Repeat("a:\n ", 5000)),
		[]byte(kernelSpec))
	args := []string{"convert", "k.cu", "--spec", "s.yaml", "-o", "out"}
	var out []Case
	for i, data := range texts {
		out = append(out, Case{"kernels to convert", numbered("spec", i), []File{{Name: "s.yaml", Data: data}}, args})
	}
	return append(out,
		Case{"kernels to convert", "sparse-spec", []File{{Name: "s.yaml", Data: []byte(kernelSpec),
			Size: 1 << 40}}, args},
		Case{"kernels to convert", "sparse-source", []File{{Name: "s.yaml", Data: []byte(kernelSpec)},
			{Name: "k.cu", Data: []byte("__global__ void k() {}"), Size: 1 << 40}}, args})
}
