package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/lower"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// compiled is the plan of a data set, with the inputs to run it on and the outputs to expect.
type compiled struct {
	t       *test
	plan    *vdevice.Plan
	set     *dataSet
	bound   []string
	outputs []string // names, in the order of the model

	// allowed is how far outputs may be off because of the precision, by name.
	allowed map[string]float64
}

// target is the device, the kind of plan, and the precision.
type target struct {
	spec      *device.Spec
	plan      string
	precision precision.Precision
}

// compile makes the plan of a data set, whose inputs determine all shapes. If a first attempt fails because the
// compiler must know an input's value, that input is bound to its value in the data set, and the second attempt counts.
// Few tests need that: a run reads most operands.
func (t *test) compile(dir string, to target) (*compiled, Result) {
	m, err := t.load(onnx.Options{})
	if err != nil {
		return nil, t.refused(importing, err)
	}
	c := &compiled{t: t, outputs: names(m.Graph.Outputs)}
	if c.set, err = t.readSet(dir, m); err != nil {
		if t.traits.outside != "" {
			return nil, Result{Name: t.Name, Status: Skip, Reason: t.traits.outside}
		}
		return nil, failed(t.Case, err)
	}
	refusal := c.attempt(to)
	if refusal.Status != Skip {
		c.bound = t.bound()
		return c, refusal
	}
	for _, v := range neededInputs(m.Graph, c.set.in) {
		c.bound = append(c.bound, v.Name)
	}
	if len(c.bound) > 0 {
		refusal = c.attempt(to)
	}
	c.bound = append(t.bound(), c.bound...)
	return c, refusal
}

// attempt makes a plan with the inputs that are bound so far. If it cannot, the result says why.
func (c *compiled) attempt(to target) Result {
	opt := onnx.Options{Shapes: map[string][]int64{}, Bind: map[string]*ir.Tensor{}, RequireStatic: true}
	for name, x := range c.set.in {
		opt.Shapes[name] = x.Dims
	}
	for _, name := range c.bound {
		opt.Bind[name] = c.set.in[name]
		delete(opt.Shapes, name)
	}
	m, err := c.t.load(opt)
	if err != nil {
		return c.t.refused(importing, err)
	}
	found := &axes.Found{}
	seed := uint64(len(c.t.data))
	options := graphopt.Options{Check: true, Seed: seed, Precision: precision.All(to.precision)}
	if seed%2 == 0 {
		options.ConvolvesOnTensorCores = func(precision.Precision) bool { return false }
	}
	exact := ir.Clone(m.Graph)
	options.Extent = found.Extent
	if err := graphopt.Run(m.Graph, options); err != nil {
		return c.t.refused(compiling, err)
	}
	x, err := c.axes(m.Graph, found.Ranges, opt, options)
	if err != nil {
		return c.t.refused(compiling, err)
	}
	options.Extent = nil
	options.Precision = precision.Choice{}
	if err := graphopt.Run(exact, options); err != nil {
		return c.t.refused(compiling, err)
	}
	if c.plan, err = planFor(m.Graph, x, to); err != nil { // before bounds, which evaluate what can be compiled
		return c.t.refused(compiling, err)
	}
	if c.allowed, err = c.bounds(exact, to.precision); err != nil {
		return c.t.refused(compiling, err)
	}
	return Result{}
}

// axes are those of a graph that finds elements in a run, nil for others.
func (c *compiled) axes(g *ir.Graph, ranges []axes.Range, load onnx.Options, passes graphopt.Options) (*axes.Axes, error) {
	if len(ranges) == 0 {
		return nil, nil
	}
	points := []axes.Point{{Graph: g}}
	for k, extents := range axes.Extents(ranges) {
		if k == 0 {
			points[0].Extents = extents
			continue
		}
		m, err := c.t.load(load)
		if err != nil {
			return nil, err
		}
		found := &axes.Found{At: map[string]int64{}}
		for i, r := range ranges {
			found.At[r.Name] = extents[i]
		}
		passes.Extent = found.Extent
		if err := graphopt.Run(m.Graph, passes); err != nil {
			return nil, err
		}
		points = append(points, axes.Point{Graph: m.Graph, Extents: extents})
	}
	var shapes []ir.Shape
	for _, v := range g.Inputs {
		shapes = append(shapes, v.Shape)
	}
	return axes.Analyse(ranges, shapes, points)
}

// bounds are those of the outputs in a precision. There are none for graphs whose shapes depend on data, which are refused
// later.
func (c *compiled) bounds(g *ir.Graph, p precision.Precision) (map[string]float64, error) {
	if p == precision.Strict || wantStatic(g) != nil {
		return nil, nil
	}
	return bounds(g, c.set.in, p)
}

// usual reports whether c, which was compiled in a precision that is not the default, is the program of the default one.
func (to target) usual(t *test, dir string, c *compiled) bool {
	if to.precision == precision.FP32 {
		return false
	}
	to.precision = precision.FP32
	d, r := t.compile(dir, to)
	return r.Status == "" && slices.Equal(c.bound, d.bound) && fingerprint(c.plan) == fingerprint(d.plan)
}

// fingerprint tells programs apart: by their steps, the rKernel instances with their arguments, and the types of buffers.
// Constants of one name, type and size are packed from the same data.
func fingerprint(p *vdevice.Plan) string {
	var b strings.Builder
	b.Write(vdevice.FormatPlan(p))
	for id, pick := range p.Pick {
		if pick >= 0 {
			c := p.Graph.Ops[id].Candidates[pick]
			fmt.Fprintf(&b, "%s %d %v\n", c.Inst.Key(), c.Tasks, c.Args)
		}
	}
	for _, buf := range p.Graph.Buffers {
		fmt.Fprintf(&b, "%s %v %v %d\n", buf.Name, buf.Kind, buf.DType, buf.Elems)
	}
	return b.String()
}

// planFor lowers and schedules g, and verifies both. x are its axes if a run finds extents.
func planFor(g *ir.Graph, x *axes.Axes, to target) (*vdevice.Plan, error) {
	if err := wantStatic(g); err != nil {
		return nil, err
	}
	ops, err := lower.General(g, x, to.spec, precision.All(to.precision))
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

// wantStatic reports values whose shape depends on data as an error, as the command compile does.
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
