package driver

import (
	"fmt"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/lower"
	"github.com/rammerc/rammerc/roperator"
)

// Lower cuts an optimised graph into rOperators for a device. x are its axes if dims have ranges, else nil.
func Lower(job *Job, g *ir.Graph, x *axes.Axes, spec *device.Spec, opt CompileOptions) (*roperator.Graph, error) {
	done := job.Stage("lower")
	if err := ConstantShapes(g); err != nil {
		return nil, diag.InFile(err, opt.Path)
	}
	ops, err := lower.General(g, x, spec, opt.PrecisionChoice())
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
