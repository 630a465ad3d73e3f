package driver

import (
	"fmt"
	"math"
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/lower"
	"github.com/rammerc/rammerc/roperator"
)

// Lower cuts an optimised graph into rOperators for a device. x are its axes if dims have ranges, else nil.
func Lower(job *Job, g *ir.Graph, x *axes.Axes, spec *device.Spec, opt CompileOptions) (*roperator.Graph, error) {
	return lowerStateful(job, g, x, nil, spec, opt)
}

// lowerStateful is Lower for a program that keeps states.
func lowerStateful(job *Job, g *ir.Graph, x *axes.Axes, states []lower.State, spec *device.Spec,
	opt CompileOptions) (*roperator.Graph, error) {
	done := job.Stage("lower")
	if err := ConstantShapes(g); err != nil {
		return nil, diag.InFile(err, opt.Path)
	}
	if err := fitsMemory(g, spec); err != nil {
		return nil, diag.InFile(err, opt.Path)
	}
	kernels, err := opt.catalogue()
	if err != nil {
		return nil, err
	}
	ops, err := lower.Stateful(g, x, states, spec, kernels, opt.PrecisionChoice())
	if err != nil {
		return nil, diag.InFile(err, opt.Path)
	}
	if opt.Check {
		if err := roperator.Verify(ops); err != nil {
			panic("BUG: lowering: " + err.Error())
		}
	}
	candidates := 0
	for _, op := range ops.Ops {
		candidates += len(op.Candidates)
	}
	done("%d rOperators, %d candidates", len(ops.Ops), candidates)
	return ops, nil
}

// fitsMemory refuses a model that cannot be in the device's memory: one with strings, or whose inputs, outputs and constants, or one of whose
// values, take more. What follows may then count on extents whose products do not overflow.
func fitsMemory(g *ir.Graph, spec *device.Spec) error {
	var l diag.List
	total := int64(0)
	for _, v := range slices.Concat(g.Inputs, g.Outputs, g.Consts) {
		total = addBytes(total, valueBytes(v))
	}
	for _, v := range slices.Concat(g.Inputs, g.Outputs) {
		if v.DType == ir.String {
			l.Add(&diag.Diagnostic{ID: "unsupported-type", Port: fmt.Sprintf("%q", v.Name), DType: "string",
				Message: "strings have no compiled form"})
			return l.Err()
		}
	}
	if total > spec.Memory {
		l.Add(&diag.Diagnostic{ID: "too-large", Message: fmt.Sprintf(
			"inputs, outputs and constants take %s, and %s has %s of memory", bytesText(total), spec.Name, bytesText(spec.Memory)),
		})
		return l.Err()
	}
	for _, n := range g.Nodes {
		for i, v := range n.Outputs {
			if v == nil || valueBytes(v) <= spec.Memory {
				continue
			}
			d := ir.NodeDiag(n, "too-large", fmt.Sprintf("%v%v takes %s, and %s has %s of memory", v.DType, v.Shape,
				bytesText(valueBytes(v)), spec.Name, bytesText(spec.Memory)))
			d.Port = fmt.Sprintf("output %d", i)
			l.Add(d)
		}
	}
	return l.Err()
}

// tooManyBytes stands for all numbers of bytes that no memory holds.
const tooManyBytes = math.MaxInt64

func addBytes(a, b int64) int64 {
	if a > tooManyBytes-b {
		return tooManyBytes
	}
	return a + b
}

// valueBytes is what a value takes, 0 if its shape is not known. An extent of 0 counts as 1: a tensor without elements
// can have other extents that no loop would come to the end of.
func valueBytes(v *ir.Value) int64 {
	dims, ok := v.Shape.Consts()
	if !ok {
		return 0
	}
	bytes := int64(max(v.DType.Size(), 1))
	for _, d := range dims {
		if d = max(d, 1); bytes > tooManyBytes/d {
			return tooManyBytes
		}
		bytes *= d
	}
	return bytes
}

func bytesText(n int64) string {
	if n == tooManyBytes {
		return "more than 8 EiB"
	}
	return limits.Bytes(n)
}

// ConstantShapes refuses values whose shape is only known when the model runs. It reports the nodes that make such
// values, and not those whose shapes are unknown because those of their inputs are.
func ConstantShapes(g *ir.Graph) error {
	var l diag.List
	open := map[*ir.Value]bool{}
	for _, n := range g.Nodes {
		inherited := false
		for _, v := range n.Inputs {
			inherited = inherited || open[v]
		}
		for i, v := range n.Outputs {
			if v == nil {
				continue
			}
			if _, ok := v.Shape.Consts(); ok {
				continue
			}
			open[v] = true
			if !inherited {
				l.Add(dataDependent(g, n, i))
			}
		}
	}
	return l.Err()
}

// dataDependent says that the shape of output i of n depends on data.
func dataDependent(g *ir.Graph, n *ir.Node, i int) *diag.Diagnostic {
	d := ir.NodeDiag(n, "data-dependent-shape", fmt.Sprintf("the shape %v depends on data", n.Outputs[i].Shape))
	d.Port = fmt.Sprintf("output %d", i)
	d.Help = "rammerc compiles static shapes: make what determines it a constant of the model; " +
		"the engine eval runs it as it is"
	if help := lower.BindHelp(g, n.Inputs...); help != "" {
		d.Help = help
	}
	return d
}

// Explain completes what stages behind the import report. They know graphs, but neither opsets nor commands.
func Explain(err error, m *onnx.Model) error {
	for _, d := range diag.All(err) {
		if m != nil && d.Op != "" && d.Opset == 0 {
			d.Opset = int(m.Opsets[d.Domain])
		}
		if d.ID == "unsupported-op" && d.Help == "" {
			d.Help = "the engine eval runs it as it is; rammerc ops says what has a compiled form"
		}
	}
	return err
}
