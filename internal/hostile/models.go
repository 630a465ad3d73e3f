package hostile

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// largeModels ask for more memory than their file justifies.
func largeModels(*Sources) []Case {
	var out []Case
	add := func(name string, g graph) { out = append(out, onModel("large models", name, g.model())...) }
	for _, n := range []int64{1 << 28, 1 << 31, 1 << 40, 1 << 62} {
		add(fmt.Sprint("ConstantOfShape-", n), newGraph().int64s("n", []int64{1}, n).
			node("ConstantOfShape", []string{"n"}, []string{"y"}).output("y"))
		add(fmt.Sprint("Expand-", n), newGraph().input("x", 1).int64s("n", []int64{1}, n).
			node("Expand", []string{"x", "n"}, []string{"y"}).output("y"))
		add(fmt.Sprint("Tile-", n), newGraph().input("x", 2).int64s("n", []int64{1}, n/2).
			node("Tile", []string{"x", "n"}, []string{"y"}).output("y"))
		add(fmt.Sprint("Pad-", n), newGraph().input("x", 2).int64s("n", []int64{2}, 0, n).
			node("Pad", []string{"x", "n"}, []string{"y"}).output("y"))
		add(fmt.Sprint("Range-", n), newGraph().int64s("from", nil, 0).int64s("to", nil, n).int64s("by", nil, 1).
			node("Range", []string{"from", "to", "by"}, []string{"y"}).output("y"))
		add(fmt.Sprint("RandomNormal-", n), newGraph().
			node("RandomNormal", nil, []string{"y"}, ints("shape", n)).output("y"))
		add(fmt.Sprint("input-", n), newGraph().input("x", n).node("Relu", []string{"x"}, []string{"y"}).output("y"))
		add(fmt.Sprint("Resize-", n), newGraph().input("x", 1, 1, 2, 2).int64s("n", []int64{4}, 1, 1, n, 1).
			node("Resize", []string{"x", "", "", "n"}, []string{"y"}, text("mode", "nearest")).output("y"))
	}
	for _, n := range []int64{1 << 14, 1 << 16, 1 << 31} {
		add(fmt.Sprint("outer-product-", n), newGraph().input("a", n, 1).input("b", 1, n).
			node("MatMul", []string{"a", "b"}, []string{"y"}).output("y"))
		add(fmt.Sprint("LSTM-", n), newGraph().input("x", 4, 1, 2).input("w", 1, 4*n, 2).input("r", 1, 4*n, n).
			node("LSTM", []string{"x", "w", "r"}, []string{"y"}, integer("hidden_size", n)).output("y"))
		add(fmt.Sprint("GridSample-", n), newGraph().input("x", 1, 1, 2, 2).int64s("n", []int64{4}, 1, n, n, 2).
			node("ConstantOfShape", []string{"n"}, []string{"g"}).
			node("GridSample", []string{"x", "g"}, []string{"y"}).output("y"))
	}
	for _, op := range []string{"Concat", "Sum"} {
		for _, constant := range []bool{true, false} {
			add(fmt.Sprintf("doubling-%s-%v", op, constant), doubling(op, constant))
		}
	}
	for _, size := range []int64{1 << 32, 1 << 40} {
		out = append(out, onModel("large models", fmt.Sprint("sparse-external-", size), externalModel(size/4),
			File{Name: "weights.bin", Size: size})...)
	}
	for _, size := range []int64{1 << 30, 1<<31 - 1, 1 << 40} {
		relu := newGraph().input("x", 2).node("Relu", []string{"x"}, []string{"y"}).output("y").model()
		out = append(out, Case{"large models", fmt.Sprint("sparse-model-", size),
			[]File{{"m.onnx", relu, size}}, []string{"inspect", "m.onnx"}})
	}
	return out
}

// doubling is a chain in which each node doubles what it is given.
func doubling(op string, constant bool) graph {
	g := newGraph().input("x", 64)
	last := "x"
	if constant {
		g, last = g.floats("c", []int64{64}, make([]float32, 64)...), "c"
	}
	for i := range 40 {
		next := numbered("d", i)
		if op == "Concat" {
			g = g.node("Concat", []string{last, last}, []string{next}, integer("axis", 0))
		} else {
			g = g.node("Unsqueeze", []string{last, "axis"}, []string{next + "u"}).
				node("Concat", []string{next + "u", next + "u"}, []string{next}, integer("axis", 0))
		}
		last = next
	}
	return g.int64s("axis", []int64{1}, 0).node("Relu", []string{last}, []string{"y"}).output("y")
}

// externalModel has a constant of n float32 in a file of its own.
func externalModel(n int64) []byte {
	g := newGraph().input("x", n).node("Mul", []string{"x", "w"}, []string{"y"}).output("y")
	g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
		Name: proto.String("w"), DataType: proto.Int32(1), Dims: []int64{n},
		DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
		ExternalData: []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("weights.bin")}},
	})
	return g.model()
}

// endlessModels ask for more work than their file justifies.
func endlessModels(*Sources) []Case {
	var out []Case
	add := func(name string, g graph) { out = append(out, onModel("endless models", name, g.model())...) }
	for _, x := range []struct{ depth, trips int64 }{{3, 30}, {5, 10}, {8, 10}, {20, 2}, {1, 1 << 40}, {1, math.MaxInt64}} {
		add(fmt.Sprintf("loops-%dx%d", x.depth, x.trips), loops(x.depth, x.trips))
	}
	add("branches-14", newGraph().input("x", 4).yes("yes").node("If", []string{"yes"}, []string{"y"},
		subgraph("then_branch", branches(14, "t")), subgraph("else_branch", branches(14, "e"))).output("y"))
	for _, n := range []int{1000, 10000} {
		for _, op := range []string{"Sum", "Concat", "Max"} {
			add(fmt.Sprintf("%s-of-%d", op, n), wide(op, n))
		}
		add(numbered("chain", n), chain(n))
	}
	return out
}

// loops are so many loops within each other, with so many trips each.
func loops(depth, trips int64) graph {
	body := func(inner graph, level int64) graph {
		in := []*onnxpb.ValueInfoProto{
			valueInfo(fmt.Sprint("i", level), onnxpb.TensorProto_INT64, nil),
			valueInfo(fmt.Sprint("c", level), onnxpb.TensorProto_BOOL, nil),
			valueInfo(fmt.Sprint("x", level), onnxpb.TensorProto_FLOAT, []int64{4}),
		}
		inner.Input = in
		inner.Output = []*onnxpb.ValueInfoProto{
			valueInfo(fmt.Sprint("c", level, "o"), onnxpb.TensorProto_BOOL, nil),
			valueInfo(fmt.Sprint("x", level, "o"), onnxpb.TensorProto_FLOAT, []int64{4}),
		}
		return inner.node("Identity", []string{fmt.Sprint("c", level)}, []string{fmt.Sprint("c", level, "o")})
	}
	g := body(newGraph().node("Sin", []string{fmt.Sprint("x", depth)}, []string{fmt.Sprint("x", depth, "o")}), depth)
	for level := depth - 1; level >= 0; level-- {
		outer := newGraph().node("Loop", []string{"trips", "yes", fmt.Sprint("x", level)},
			[]string{fmt.Sprint("x", level, "o")}, subgraph("body", g))
		if level == 0 {
			outer.Node[0].Input[2], outer.Node[0].Output[0] = "x", "y"
			return outer.input("x", 4).int64s("trips", nil, trips).yes("yes").output("y")
		}
		g = body(outer, level)
	}
	return g
}

// branches are so many Ifs within each other.
func branches(depth int, name string) graph {
	g := newGraph()
	if depth == 0 {
		return g.node("Relu", []string{"x"}, []string{name}).output(name)
	}
	return g.node("If", []string{"yes"}, []string{name}, subgraph("then_branch", branches(depth-1, name+"t")),
		subgraph("else_branch", branches(depth-1, name+"e"))).output(name)
}

// wide is one node of n inputs, each of which another node makes.
func wide(op string, n int) graph {
	g := newGraph().input("x", 4)
	var in []string
	for i := range n {
		in = append(in, numbered("a", i))
		g = g.node("Relu", []string{"x"}, in[i:])
	}
	if op == "Concat" {
		return g.node(op, in, []string{"y"}, integer("axis", 0)).output("y")
	}
	return g.node(op, in, []string{"y"}).output("y")
}

func chain(n int) graph {
	g := newGraph().input("x", 4)
	last := "x"
	for i := range n {
		next := numbered("a", i)
		g = g.node([]string{"Sin", "Relu"}[i%2], []string{last}, []string{next})
		last = next
	}
	return g.node("Relu", []string{last}, []string{"y"}).output("y")
}

// wrongModels are wrong, or strange, in one way that a stage must see.
func wrongModels(*Sources) []Case {
	var out []Case
	add := func(name string, g graph) { out = append(out, onModel("wrong models", name, g.model())...) }
	for i, dims := range [][3]int64{{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {0, 0, 0}} {
		for _, equation := range []string{"ij,jk->ik", "ij,jk->", "ij,kj->ik", "ii,jk->k", "ij,jk->kj"} {
			add(fmt.Sprint("Einsum-", i, "-", equation), newGraph().input("a", dims[0], dims[1]).input("b", dims[1], dims[2]).
				node("Einsum", []string{"a", "b"}, []string{"y"}, text("equation", equation)).output("y"))
		}
		add(numbered("MatMul-empty", i), newGraph().input("a", dims[0], dims[1]).input("b", dims[1], dims[2]).
			node("MatMul", []string{"a", "b"}, []string{"y"}).output("y"))
	}
	add("Constant-string", newGraph().node("Constant", nil, []string{"y"}, text("value_float", "no float")).output("y"))
	add("string-output", newGraph().node("Constant", nil, []string{"y"}, &onnxpb.AttributeProto{
		Name: proto.String("value_string"), Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte("text"),
	}).output("y"))
	add("Dropout-outputs", newGraph().input("x", 4).
		node("Dropout", []string{"x"}, []string{"y", "m", "z"}).output("y", "z"))
	for _, box := range []float32{1e30, float32(math.NaN()), float32(math.Inf(1)), -1e30} {
		g := newGraph().input("x", 1, 1, 4, 4).floats("boxes", []int64{1, 4}, 0, 0, box, box).int64s("batch", []int64{1}, 0)
		add(fmt.Sprint("RoiAlign-", box), g.node("RoiAlign", []string{"x", "boxes", "batch"}, []string{"y"},
			integer("output_height", 2), integer("output_width", 2), integer("sampling_ratio", 0)).output("y"))
	}
	for _, n := range []int64{-1, 0, 1 << 31, 1 << 62, math.MinInt64} {
		add(fmt.Sprint("axis-", n), newGraph().input("x", 2, 3).
			node("Softmax", []string{"x"}, []string{"y"}, integer("axis", n)).output("y"))
		add(fmt.Sprint("pool-", n), newGraph().input("x", 1, 1, 4, 4).node("MaxPool", []string{"x"}, []string{"y"},
			ints("kernel_shape", n, 2), ints("strides", 1, n)).output("y"))
		add(fmt.Sprint("conv-", n), newGraph().input("x", 1, 1, 4, 4).input("w", 1, 1, 2, 2).
			node("Conv", []string{"x", "w"}, []string{"y"}, ints("dilations", n, 1), ints("pads", 0, n, 0, 0)).output("y"))
		add(fmt.Sprint("reshape-", n), newGraph().input("x", 2, 3).int64s("s", []int64{2}, n, -1).
			node("Reshape", []string{"x", "s"}, []string{"y"}).output("y"))
		add(fmt.Sprint("slice-", n), newGraph().input("x", 4).int64s("from", []int64{1}, n).int64s("to", []int64{1}, n).
			node("Slice", []string{"x", "from", "to"}, []string{"y"}).output("y"))
		add(fmt.Sprint("gather-", n), newGraph().input("x", 4).int64s("i", []int64{1}, n).
			node("Gather", []string{"x", "i"}, []string{"y"}).output("y"))
	}
	return out
}
