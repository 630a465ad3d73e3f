package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// BenchmarkChains takes models of 100,000 nodes, each of which reads the result of the one before, through every stage,
// and reports the seconds of processors that each stage takes. Operators of one kind fuse, fold or stay as they are, so
// the kinds differ in which stages have much to do.
func BenchmarkChains(b *testing.B) {
	for _, op := range []string{"Relu", "Sigmoid", "Tanh", "Softmax", "Add", "MatMul"} {
		path := filepath.Join(b.TempDir(), op+".onnx")
		if err := os.WriteFile(path, chainModel(op, 100_000), 0o666); err != nil {
			b.Fatal(err)
		}
		for _, target := range []string{"emu", "sm_90"} {
			b.Run(op+"/"+target, func(b *testing.B) {
				for b.Loop() {
					compileInStages(b, path, target)
				}
			})
		}
	}
}

// compileInStages compiles a model as Compile does, up to its sources.
func compileInStages(b *testing.B, path, target string) {
	stage := func(name string, run func() error) {
		before := processorSeconds(b)
		if err := run(); err != nil {
			b.Fatalf("%s: %v", name, err)
		}
		b.ReportMetric(processorSeconds(b)-before, name+"-s")
	}
	o := CompileOptions{Target: target, Offline: true, Name: "chain"}
	o.Path = path
	job := &Job{}
	spec, err := o.Spec(job)
	if err != nil {
		b.Fatal(err)
	}
	c := &Compilation{opt: o, spec: spec}
	var ops *roperator.Graph
	var plans []schedule.Proposal
	stage("import", func() (err error) { c.model, err = Load(job, o.ModelOptions, true); return err })
	c.graph = c.model.Graph
	stage("optimise", func() error { return Optimise(job, c.graph, nil, spec, o) })
	stage("lower", func() (err error) { ops, err = c.lowered(job); return err })
	stage("schedule", func() (err error) { plans, err = c.candidates(job, ops); return err })
	stage("verify", func() error { return vdevice.Verify(plans[0].Plan) })
	stage("emit", func() error { return c.emitTo(codegen.Dir(b.TempDir())) })
}

// chainModel is an ONNX model of n nodes of one kind in a row, on a matrix of 8 rows and columns. Those of two inputs
// take a constant as the second one.
func chainModel(op string, n int) []byte {
	matrix := func(name string) *onnxpb.ValueInfoProto {
		eight := func() *onnxpb.TensorShapeProto_Dimension {
			return &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 8}}
		}
		return &onnxpb.ValueInfoProto{Name: &name, Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{
				ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)),
				Shape:    &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{eight(), eight()}},
			},
		}}}
	}
	g := &onnxpb.GraphProto{Name: proto.String("chain")}
	g.Input, g.Output = append(g.Input, matrix("v0")), append(g.Output, matrix(fmt.Sprint("v", n)))
	constant := &onnxpb.TensorProto{
		Name: proto.String("c"), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Dims: []int64{8, 8},
	}
	for i := range 64 {
		constant.FloatData = append(constant.FloatData, float32(i)/64)
	}
	binary := op == "Add" || op == "MatMul"
	if binary {
		g.Initializer = append(g.Initializer, constant)
	}
	for i := range n {
		node := &onnxpb.NodeProto{
			OpType: &op, Input: []string{fmt.Sprint("v", i)}, Output: []string{fmt.Sprint("v", i+1)},
		}
		if binary {
			node.Input = append(node.Input, "c")
		}
		g.Node = append(g.Node, node)
	}
	data, err := proto.Marshal(&onnxpb.ModelProto{
		IrVersion: proto.Int64(8), Graph: g,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(17)}},
	})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return data
}

// processorSeconds is how long this process has computed, on all processors.
func processorSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
