package conformance

import (
	"fmt"

	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/schedule/vdevice"
)

// compiled is a data set's plan, with what it is to be run on.
type compiled struct {
	t       *test
	plan    *vdevice.Plan
	set     *dataSet
	bound   []string
	outputs []string // names, in the order of the model
}

// target says what to plan for.
type target struct {
	spec *vdevice.Spec
	plan string
}

// compile plans the case's data set; shapes are those of its inputs. Where the compiler must know an
// input, the input is bound to its value, and the second attempt counts.
func (t *test) compile(dir string, to target) (*compiled, Result) {
	first, refusal := t.attempt(dir, to, false)
	if first != nil || refusal.Status == Fail {
		return first, refusal
	}
	if second, r := t.attempt(dir, to, true); second != nil || r.Status != "" {
		return second, r
	}
	return nil, refusal
}

// attempt is compile with or without bound inputs. It gives neither a plan nor a status when there is
// no input to bind.
func (t *test) attempt(dir string, to target, binding bool) (*compiled, Result) {
	m, err := t.load(onnx.Options{})
	if err != nil {
		return nil, t.refused(importing, err)
	}
	g := m.Graph
	c := &compiled{t: t, outputs: names(g.Outputs)}
	if c.set, err = readSet(dir, names(g.Inputs), c.outputs); err != nil {
		if t.traits.outside != "" {
			return nil, Result{Name: t.Name, Status: Skip, Reason: t.traits.outside}
		}
		return nil, failed(t.Case, err)
	}
	for _, v := range g.Inputs {
		v.Shape = ir.Dims(c.set.in[v.Name].Dims...)
	}
	if binding {
		values := neededInputs(g)
		if len(values) == 0 {
			return nil, Result{}
		}
		c.bound = names(values)
		bind(g, values, c.set.in)
	}
	if err := ir.InferShapes(g).Err(); err != nil {
		return nil, t.refused(compiling, err)
	}
	if err := graphopt.Run(g, graphopt.Options{Check: true, Seed: uint64(len(t.data))}); err != nil {
		return nil, t.refused(compiling, err)
	}
	c.plan, err = planFor(g, to)
	if err != nil {
		return nil, t.refused(compiling, err)
	}
	return c, Result{}
}

// planFor lowers and schedules g, and verifies both.
func planFor(g *ir.Graph, to target) (*vdevice.Plan, error) {
	if err := wantStatic(g); err != nil {
		return nil, err
	}
	ops, err := roperator.Lower(g)
	if err != nil {
		return nil, err
	}
	if err := roperator.Verify(ops); err != nil {
		return nil, fmt.Errorf("BUG: lowering: %v", err)
	}
	plan, err := schedule.Schedule(ops, to.spec, model.New(to.spec, ops), schedule.Options{Plan: to.plan})
	if err != nil {
		return nil, err
	}
	if err := vdevice.Verify(plan); err != nil {
		return nil, fmt.Errorf("BUG: schedule: %v", err)
	}
	return plan, nil
}

// wantStatic refuses graphs with values whose shape depends on data.
func wantStatic(g *ir.Graph) error {
	for _, n := range g.Nodes {
		for _, v := range n.Outputs {
			if v == nil {
				continue
			}
			if _, ok := v.Shape.Consts(); !ok {
				return &diag.Diagnostic{
					ID: "data-dependent-shape", Node: n.Name, Op: n.Op,
					Message: fmt.Sprintf("the shape %v depends on data", v.Shape),
				}
			}
		}
	}
	return nil
}
