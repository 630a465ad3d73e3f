package difftest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/lower"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// static is the case's graph with the extents of its inputs in place of symbols.
func (c *Case) static() (*ir.Graph, error) {
	g := ir.Clone(c.Graph)
	return g, ir.BindDims(g, bindings(c)).Err()
}

// lower is the rOperator graph of the case for a device. With optimise the graph passes through graphopt first, which
// counts what operators find; without it they have no compiled form.
func (c *Case) lower(optimise bool, deviceName string) (*roperator.Graph, error) {
	g, err := c.static()
	if err != nil {
		return nil, err
	}
	var x *axes.Axes
	if optimise {
		if g, x, err = c.counted(g); err != nil {
			return nil, err
		}
	}
	if err := wantStatic(g); err != nil {
		return nil, err
	}
	spec, err := device.Find(deviceName)
	if err != nil {
		return nil, err
	}
	return lower.General(g, x, spec, precision.Choice{})
}

// counted is what graphopt makes of g, and its axes if a run finds extents.
func (c *Case) counted(g *ir.Graph) (*ir.Graph, *axes.Axes, error) {
	found := &axes.Found{}
	h, err := c.optimized(g, found.Extent)
	if err != nil || len(found.Ranges) == 0 {
		return h, nil, err
	}
	var shapes []ir.Shape
	for _, v := range h.Inputs {
		shapes = append(shapes, v.Shape)
	}
	var points []axes.Point
	for k, extents := range axes.Extents(found.Ranges) {
		at := &axes.Found{At: map[string]int64{}}
		for i, r := range found.Ranges {
			at.At[r.Name] = extents[i]
		}
		p := h
		if k > 0 {
			if p, err = c.optimized(g, at.Extent); err != nil {
				return nil, nil, err
			}
		}
		points = append(points, axes.Point{Graph: p, Extents: extents})
	}
	x, err := axes.Analyse(found.Ranges, shapes, points)
	if slices.ContainsFunc(diag.All(err), func(d *diag.Diagnostic) bool { return d.Node == "" }) {
		h, err = c.optimized(g, nil) // which names what finds elements
		return h, nil, err
	}
	return h, x, err
}

// wantStatic reports values whose extents depend on data, as the command compile does.
func wantStatic(g *ir.Graph) error {
	var l diag.List
	for _, n := range g.Nodes {
		for _, v := range n.Outputs {
			if v == nil {
				continue
			}
			if _, ok := v.Shape.Consts(); ok {
				continue
			}
			d := &diag.Diagnostic{ID: unsupportedID, Node: n.Name, Op: n.Op, Message: "a shape depends on data"}
			if len(n.Origins) > 0 {
				d.Node = n.Origins[0].Name
			}
			l.Add(d)
			break
		}
	}
	return l.Err()
}

const unsupportedID = "unsupported-op"

// unsupported lists the nodes that cannot be compiled according to err, and says why the first cannot. The list is
// empty if err is about something else.
func unsupported(err error) (nodes []string, why string) {
	for _, d := range diag.All(err) {
		if !slices.Contains([]string{unsupportedID, "not-constant", "dynamic-axis", "dynamic-structure"}, d.ID) {
			return nil, ""
		}
		nodes = append(nodes, d.Node)
		if why == "" {
			why = d.Op + ": " + d.Message
		}
	}
	return nodes, why
}

// errNothing says that no part of a case can be compiled.
var errNothing = errors.New("nothing is left")

// compilable returns the part of the case that can be compiled, that part lowered, and why the rest cannot be compiled.
func (c *Case) compilable(optimise bool, deviceName string) (part *Case, g *roperator.Graph, why string, err error) {
	for part = c; part != nil; {
		g, err = part.lower(optimise, deviceName)
		if err == nil {
			return part, g, why, nil
		}
		nodes, reason := unsupported(err)
		if len(nodes) == 0 {
			return nil, nil, "", err
		}
		if why == "" {
			why = reason
		}
		less := part.WithoutNamed(nodes...)
		if less != nil && len(less.Graph.Nodes) == len(part.Graph.Nodes) {
			return nil, nil, "", fmt.Errorf("no node is called %q: %w", nodes, err)
		}
		part = less
	}
	return nil, nil, why, errNothing
}

// runLower lowers the case, once optimised and once as it is, and verifies the rOperator graphs.
func runLower(c *Case) Result {
	skip := ""
	for _, optimise := range []bool{true, false} {
		_, g, why, err := c.compilable(optimise, "h200")
		if optimise {
			skip = why
		}
		if errors.Is(err, errNothing) {
			continue
		}
		if err == nil {
			err = roperator.Verify(g)
		}
		if err != nil {
			return Result{Err: fmt.Errorf("optimised %v: %w", optimise, err)}
		}
	}
	return Result{Skip: skip}
}

// runSchedule makes and verifies plans for a small and a large device. The seed chooses the policy and the kind of
// plan.
func runSchedule(c *Case) Result {
	for i, device := range []string{"emu4", "h200"} {
		_, g, _, err := c.compilable(true, device)
		if errors.Is(err, errNothing) {
			return Result{Skip: err.Error()}
		}
		if err != nil {
			return Result{Err: err}
		}
		if _, err := planFor(g, device, c.Seed/uint64(1+i)); err != nil {
			return Result{Err: fmt.Errorf("%s: %w", device, err)}
		}
	}
	return Result{}
}

// moodyCosts multiplies costs by random factors, so that schedules choose candidates that they would not choose
// otherwise.
type moodyCosts struct {
	profiler.Costs
	seed uint64
}

// TaskTime is the real one times a factor from 1/64 to 64, which depends on the seed and the candidate.
func (m moodyCosts) TaskTime(c *roperator.Candidate) float64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s %d", m.seed, c.Inst.Name(), c.Tasks)
	return m.Costs.TaskTime(c) * math.Exp2(float64(h.Sum64()>>32%13)-6)
}

// planFor makes a plan of g for a device and verifies it. The seed chooses policy, kind of plan and costs.
func planFor(g *roperator.Graph, deviceName string, seed uint64) (*vdevice.Plan, error) {
	spec, err := device.Find(deviceName)
	if err != nil {
		return nil, err
	}
	policies, plans := schedule.Policies(), schedule.PlansFor(spec)
	opt := schedule.Options{
		Policy: policies[seed%uint64(len(policies))].Name, Plan: plans[seed/2%uint64(len(plans))],
	}
	costs := profiler.Costs(model.New(spec, g))
	if seed/6%2 == 1 {
		costs = moodyCosts{costs, seed}
	}
	plan, err := schedule.Schedule(g, spec, costs, opt)
	if err != nil {
		return nil, err
	}
	if err := vdevice.Verify(plan); err != nil {
		return nil, fmt.Errorf("%+v: %w", opt, err)
	}
	return plan, nil
}
