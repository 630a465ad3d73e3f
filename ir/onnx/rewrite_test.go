package onnx_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/tensorio"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// rewriteCase is an operator in an older form: the operators it becomes, and what checks its numbers
// where another ONNX runtime is at hand.
type rewriteCase struct {
	name  string
	model builder
	ops   string // not compared when empty
	noORT string // why that runtime cannot judge
}

// rewriteCases are operators that the importer writes in another way, with the operators that should be left.
//
// Long: a table of cases, most of them one line.
func rewriteCases() []rewriteCase {
	one := func(opset int64, in, out string, call string, attrs ...*onnxpb.AttributeProto) builder {
		return newModel(opset).in(in).out(strings.Split(out, "; ")...).node(call, attrs...)
	}
	x := func(opset int64, call string, attrs ...*onnxpb.AttributeProto) builder {
		return one(opset, "x float32[2,3,4]", "y float32", call, attrs...)
	}
	img := func(opset int64, call string, attrs ...*onnxpb.AttributeProto) builder {
		return one(opset, "x float32[1,4,6,6]", "y float32", call, attrs...)
	}
	list := func(v ...int64) []int64 { return v }
	var cases []rewriteCase
	add := func(name string, m builder, ops string) {
		cases = append(cases, rewriteCase{name: name, model: m, ops: ops})
	}
	for _, op := range []string{"L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"} {
		add("Reduce"+op, x(11, "y = Reduce"+op+"(x)", attr("axes", list(0, 2)), attr("keepdims", 0)), "Reduce"+op)
	}
	add("ReduceSum all", x(11, "y = ReduceSum(x)"), "ReduceSum")
	add("ReduceMean 13", x(13, "y = ReduceMean(x)", attr("axes", list(1))), "ReduceMean")
	add("Squeeze", one(7, "x float32[1,3,1]", "y float32", "y = Squeeze(x)", attr("axes", list(0))), "Squeeze")
	add("Unsqueeze", x(11, "y = Unsqueeze(x)", attr("axes", list(0, 3))), "Unsqueeze")
	for _, axis := range []int{0, 1, 2} {
		ops := "Flatten Softmax Reshape"
		if axis == 2 {
			ops = "Softmax"
		}
		add(fmt.Sprintf("Softmax %d", axis), x(11, "y = Softmax(x)", attr("axis", axis)), ops)
		add(fmt.Sprintf("LogSoftmax %d", axis), x(7, "y = LogSoftmax(x)", attr("axis", axis)),
			strings.ReplaceAll(ops, "Soft", "LogSoft"))
	}
	add("Softmax default", x(11, "y = Softmax(x)"), "Flatten Softmax Reshape")
	add("Softmax 13", x(13, "y = Softmax(x)", attr("axis", 1)), "Softmax")
	add("Hardmax 11", x(11, "y = Hardmax(x)"), "Flatten ArgMax Shape OneHot Reshape")
	add("Hardmax 13", x(13, "y = Hardmax(x)", attr("axis", 1)), "ArgMax Shape OneHot")
	add("Clip 7", x(7, "y = Clip(x)", attr("min", -0.5), attr("max", 0.25)), "Clip")
	add("Clip one side", x(7, "y = Clip(x)", attr("max", 0.25)), "Clip")
	add("Pad 10", x(10, "y = Pad(x)", attr("pads", list(0, 1, 0, 0, 0, 2)), attr("value", 0.5)), "Pad")
	add("Pad reflect", x(7, "y = Pad(x)", attr("pads", list(0, 1, 0, 0, 0, 2)), attr("mode", "reflect")), "Pad")
	add("Slice 7", x(7, "y = Slice(x)", attr("starts", list(1, -3)), attr("ends", list(2, 9)),
		attr("axes", list(1, 2))), "Slice")
	add("Split 11", one(11, "x float32[2,6]", "y float32; z float32", "y,z = Split(x)", attr("axis", 1),
		attr("split", list(2, 4))), "Split")
	add("Split equal", one(13, "x float32[2,6]", "y float32; z float32", "y,z = Split(x)", attr("axis", 1)), "Split")
	add("Split unused", one(13, "x float32[2,6]", "y float32", "y,z, = Split(x)", attr("axis", 1)), "Split")
	cases[len(cases)-1].noORT = "it crashes on outputs left out"
	words := tensor("x", list(0, 1, 0, 1, 1, 0, 2, 2, 2, 0, 1, 5, 1, 0), 2, 7)
	for _, mode := range []string{"TF", "IDF", "TFIDF"} {
		add("TfIdfVectorizer "+mode, newModel(9).init(words).out("y float32").node("y = TfIdfVectorizer(x)", attr("mode", mode),
			attr("min_gram_length", 1), attr("max_gram_length", 2), attr("max_skip_count", 1), attr("ngram_counts", list(0, 2)),
			attr("ngram_indexes", list(1, 0, 4, 2)), attr("pool_int64s", list(0, 1, 0, 1, 2, 2)),
			attr("weights", []float32{0.5, 2, 3, 0.25})), "")
	}
	add("TopK 7", one(7, "x float32[3,5]", "y float32; i int64", "y,i = TopK(x)", attr("k", 2)), "TopK")
	add("TopK 10", one(10, "x float32[3,5]", "y float32; i int64",
		"y,i = TopK(x,k)").init(tensor("k", list(2))), "TopK")
	add("Dropout 7", x(7, "y = Dropout(x)", attr("ratio", 0.3)), "Identity")
	add("Dropout mask", one(12, "x float32[2,3]", "y float32; m bool", "y,m = Dropout(x)"), "ConstantOfShape Identity")
	add("Dropout 13", x(13, "y = Dropout(x,r,t)").init(tensor("r", []float32{0.5}, []int64{}...),
		tensor("t", []bool{false})), "Identity")
	cases[len(cases)-1].model.Graph.Initializer[0].Dims = nil
	cases[len(cases)-1].model.Graph.Initializer[1].Dims = nil
	add("Upsample 7", img(7, "y = Upsample(x)", attr("scales", []float32{1, 1, 2, 3}), attr("mode", "nearest")),
		"Resize")
	add("Upsample 9", img(9, "y = Upsample(x,s)", attr("mode", "linear")).init(tensor("s", []float32{1, 1, 2, 2})),
		"Resize")
	add("Resize 10 up", img(10, "y = Resize(x,s)").init(tensor("s", []float32{1, 1, 2, 1.5})), "Resize")
	add("Resize 10 down", img(10, "y = Resize(x,s)").init(tensor("s", []float32{1, 1, 0.6, 0.6})), "Resize")
	add("Resize 10 mixed", img(10, "y = Resize(x,s)").init(tensor("s", []float32{1, 1, 0.6, 2})), "Resize Resize")
	add("Resize 10 linear", img(10, "y = Resize(x,s)",
		attr("mode", "linear")).init(tensor("s", []float32{1, 1, 1.5, 2})), "Resize")
	add("Resize 11", img(11, "y = Resize(x,r,r,t)", attr("mode", "nearest")).
		init(tensor("r", []float32{}), tensor("t", list(1, 4, 9, 12))), "Resize")
	add("BatchNormalization 7", img(7, "y = BatchNormalization(x,s,b,m,v)").init(channels("s", 4), channels("b", 4),
		channels("m", 4), channels("v", 4)), "BatchNormalization")
	add("BatchNormalization 14", img(14, "y = BatchNormalization(x,s,b,m,v)", attr("training_mode", 0)).
		init(channels("s", 4), channels("b", 4), channels("m", 4), channels("v", 4)), "BatchNormalization")
	add("BatchNormalization per position", x(7, "y = BatchNormalization(x,s,b,m,v)", attr("spatial", 0)).
		init(positions("s"), positions("b"), positions("m"), positions("v")), "Sub Add Sqrt Div Mul Add")
	cases[len(cases)-1].noORT = "it refuses spatial=0"
	add("LpNormalization", x(11, "y = LpNormalization(x)", attr("axis", 1), attr("p", 1)), "ReduceL1 Equal Where Div")
	add("MeanVarianceNormalization", img(13, "y = MeanVarianceNormalization(x)"),
		"ReduceMean Sub Mul ReduceMean Sqrt Add Div")
	add("GroupNormalization 18", img(18, "y = GroupNormalization(x,s,b)", attr("num_groups", 2)).init(channels("s", 2),
		channels("b", 2)),
		"Reshape InstanceNormalization Reshape")
	cases[len(cases)-1].noORT = "it refuses the deprecated form"
	add("GroupNormalization 21", img(21, "y = GroupNormalization(x,s,b)", attr("num_groups", 2)).init(channels("s", 4),
		channels("b", 4)),
		"Reshape InstanceNormalization Reshape Unsqueeze Unsqueeze Mul Add")
	add("Scatter", one(9, "x float32[3,3]", "y float32", "y = Scatter(x,i,u)").
		init(tensor("i", list(1, 0, 2, 0, 2, 1), 2, 3), tensor("u", []float32{1, 2, 3, 4, 5, 6}, 2, 3)),
		"ScatterElements")
	add("RMSNormalization", x(23, "y = RMSNormalization(x,s)").init(channels("s", 4)),
		"Mul ReduceMean Add Sqrt Div Mul")
	add("Swish", x(24, "y = Swish(x)", attr("alpha", 0.5)), "Mul Sigmoid Mul")
	cases[len(cases)-1].noORT = "opset 24 is new"
	add("GridSample 16", img(16, "y = GridSample(x,g)", attr("mode", "bicubic")).init(grid("g")), "GridSample")
	add("RoiAlign 10", img(10, "y = RoiAlign(x,r,b)", attr("output_height", 2), attr("output_width", 3),
		attr("sampling_ratio", 2)).
		init(tensor("r", []float32{0, 1, 4, 5}, 1, 4), tensor("b", list(0))), "RoiAlign")
	add("DFT 17", one(17, "x float32[2,5,1]", "y float32", "y = DFT(x)", attr("onesided", 1)), "DFT")
	for _, call := range []string{"Bernoulli(x)", "Multinomial(x)", "RandomNormalLike(x)", "RandomUniformLike(x)"} {
		add(call, one(15, "x float32[2,3]", "y float32", "y = "+call), call[:len(call)-3])
		cases[len(cases)-1].noORT = "it draws other numbers"
	}
	for _, op := range []string{"RandomNormal", "RandomUniform"} {
		add(op, newModel(15).out("y").node("y = "+op+"()", attr("shape", list(2, 3))), op)
		cases[len(cases)-1].noORT = "it draws other numbers"
	}
	add("Range 27", newModel(27).out("y").init(tensor("a", list(0), []int64{}...), tensor("b", list(5)),
		tensor("c", list(2))).
		node("y = Range(a,b,c)", attr("stash_type", 1)), "Range")
	for _, w := range cases[len(cases)-1].model.Graph.Initializer {
		w.Dims = nil
	}
	cases[len(cases)-1].noORT = "opset 27 is new"
	return append(cases, expansionCases()...)
}

func channels(name string, n int) *onnxpb.TensorProto {
	data := make([]float32, n)
	for i := range data {
		data[i] = 0.5 + float32(i)/4
	}
	return tensor(name, data)
}

func positions(name string) *onnxpb.TensorProto {
	t := channels(name, 12)
	t.Dims = []int64{3, 4}
	return t
}

// grid has places for two rows of three samples, some of them outside.
func grid(name string) *onnxpb.TensorProto {
	return tensor(name, []float32{-1, -1, -0.3, 0.2, 0.9, -0.4, 0.1, 1.2, -1.5, 0.6, 1, 1}, 1, 2, 3, 2)
}

// TestRewrites checks which operators older forms become.
func TestRewrites(t *testing.T) {
	for _, c := range rewriteCases() {
		t.Run(c.name, func(t *testing.T) {
			m := c.model.mustParse(t)
			if got := ops(m.Graph); got != c.ops && c.ops != "" {
				t.Errorf("got %s, want %s", got, c.ops)
			}
			for _, n := range m.Graph.Nodes {
				if len(n.Origins) != 1 || n.Origins[0].Name != "#0" {
					t.Errorf("%s comes from %v", n.Op, n.Origins)
				}
			}
		})
	}
}

// TestRewriteRules checks that there is a case for every rule.
func TestRewriteRules(t *testing.T) {
	covered := map[string]bool{"Cast": true, "Reshape": true, "ReduceLogSum": true, "Scan": true, // tested elsewhere or alike
		"MatMulNBits": true, "ZipMap": true}
	for _, op := range strings.Fields(`ConcatFromSequence Identity Optional OptionalGetElement OptionalHasElement SequenceAt
		SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength SequenceMap SplitToSequence`) {
		covered[op] = true // lists_test.go
	}
	for _, c := range rewriteCases() {
		covered[c.model.Graph.Node[0].GetOpType()] = true
	}
	for _, r := range onnx.Rewrites() {
		if !covered[r.Op] && r.Domain != "com.microsoft.nchwc" { // whose models have several nodes, see nchwc_test.go
			t.Errorf("no case for %v", r)
		}
	}
}

// ortScript runs every model of a folder with ONNX Runtime on its inputs, N.npz, and writes N.out.npz,
// or N.err where it cannot.
const ortScript = `
import glob, numpy, onnxruntime
onnxruntime.set_default_logger_severity(4)
for f in sorted(glob.glob("*.onnx")):
    try:
        s = onnxruntime.InferenceSession(f, providers=["CPUExecutionProvider"])
        y = s.run(None, dict(numpy.load(f[:-5] + ".npz")))
        numpy.savez(f[:-5] + ".out.npz", **{o.name: v for o, v in zip(s.get_outputs(), y)})
    except Exception as e:
        open(f[:-5] + ".err", "w").write(str(e))
`

// saturates reports whether the processor has no instructions that add products of bytes in 32 bits. There ONNX Runtime
// adds them in 16 bits, which saturate.
func saturates() bool {
	info, err := os.ReadFile("/proc/cpuinfo")
	return err == nil && runtime.GOARCH == "amd64" && !strings.Contains(string(info), "vnni")
}

// TestRewritesAgainstONNXRuntime evaluates the rewritten graphs, and compares the results with those of ONNX Runtime
// for the original models.
func TestRewritesAgainstONNXRuntime(t *testing.T) {
	python := os.Getenv("RAMMER_PYTHON")
	if python == "" {
		python = "python3"
	}
	if exec.Command(python, "-c", "import onnxruntime, numpy").Run() != nil {
		t.Skipf("%s has no onnxruntime; RAMMER_PYTHON names another Python", python)
	}
	dir := t.TempDir()
	cases := rewriteCases()
	inputs := make([]map[string]*ir.Tensor, len(cases))
	for i, c := range cases {
		if c.noORT != "" {
			continue
		}
		inputs[i] = randomInputs(c.model.mustParse(t).Graph)
		base := filepath.Join(dir, fmt.Sprintf("%03d", i))
		if err := os.WriteFile(base+".onnx", c.model.bytes(t), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := tensorio.WriteNPZ(base+".npz", inputs[i]); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(python, "-c", ortScript)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i, c := range cases {
		if c.noORT != "" {
			continue // see TestRewriteFormulas
		}
		t.Run(c.name, func(t *testing.T) {
			if saturates() && (c.name == "MatMulInteger" || c.name == "QLinearConv") {
				t.Skip("ONNX Runtime adds pairs of uint8 · int8 in 16 bits, saturating, where the processor has no VNNI")
			}
			base := filepath.Join(dir, fmt.Sprintf("%03d", i))
			if reason, err := os.ReadFile(base + ".err"); err == nil {
				t.Fatalf("ONNX Runtime: %s", reason)
			}
			want, err := tensorio.ReadAll(base+".out.npz", nil)
			if err != nil || len(want) != len(c.model.Graph.Output) {
				t.Fatalf("%d reference outputs, %v", len(want), err)
			}
			got, err := eval.Run(c.model.mustParse(t).Graph, inputs[i], eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for name, w := range want {
				if d := tolerance.Compare(name, got[name], w); !d.Within(tolerance.LimitFor(w.DType)) {
					t.Errorf("got %v, want %v: %+v", got[name], w, d)
				}
			}
		})
	}
}

func randomInputs(g *ir.Graph) map[string]*ir.Tensor {
	rng := rand.New(rand.NewPCG(1, 2))
	out := map[string]*ir.Tensor{}
	for _, v := range g.Inputs {
		x := ir.NewTensor(v.DType, v.Shape.MustConsts()...)
		switch data := x.Data.(type) {
		case []float32:
			for i := range data {
				data[i] = rng.Float32()*2 - 1
			}
		case []int8:
			fillRandom(data, rng, 7) // several of them in sums of products of 16 bits, as some machines have them
		case []uint8:
			fillRandom(data, rng, 8)
		case []int16:
			fillRandom(data, rng, 15)
		case []uint16:
			fillRandom(data, rng, 15)
		}
		out[v.Name] = x
	}
	return out
}

func fillRandom[T int8 | uint8 | int16 | uint16](data []T, rng *rand.Rand, bits uint) {
	for i := range data {
		data[i] = T(rng.Uint32N(1 << bits))
	}
}

// TestRewriteFormulas checks operators that ONNX Runtime does not support, by the formulas of the ONNX specification.
func TestRewriteFormulas(t *testing.T) {
	run := func(name string) (x, y []float32) {
		for _, c := range rewriteCases() {
			if c.name != name {
				continue
			}
			g := c.model.mustParse(t).Graph
			in := randomInputs(g)
			out, err := eval.Run(g, in, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if in["x"] != nil {
				x = ir.Slice[float32](in["x"])
			}
			return x, ir.Slice[float32](out["y"])
		}
		t.Fatalf("no case %s", name)
		return nil, nil
	}
	check := func(name string, want func(x []float32, i int) float64) {
		x, y := run(name)
		for i := range y {
			if w := want(x, i); math.Abs(float64(y[i])-w) > 1e-5 {
				t.Errorf("%s: element %d is %v, want %v", name, i, y[i], w)
			}
		}
	}
	check("Swish", func(x []float32, i int) float64 {
		v := float64(x[i])
		return v / (1 + math.Exp(-v/2))
	})
	check("BatchNormalization per position", func(x []float32, i int) float64 {
		p := 0.5 + float64(i%12)/4 // of all four statistics
		return (float64(x[i])-p)/math.Sqrt(p+1e-5)*p + p
	})
	check("GroupNormalization 18", func(x []float32, i int) float64 {
		group := i / 72 // two channels of 6x6
		mean, square := 0.0, 0.0
		for _, v := range x[group*72 : group*72+72] {
			mean += float64(v) / 72
			square += float64(v) * float64(v) / 72
		}
		p := 0.5 + float64(group)/4
		return (float64(x[i])-mean)/math.Sqrt(square-mean*mean+1e-5)*p + p
	})
	check("Split unused", func(x []float32, i int) float64 { return float64(x[i/2*6+i%2]) })
}
