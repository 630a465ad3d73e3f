package driver

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/vdevice"
)

// mostApart is how many programs a library of lists has at most.
const mostApart = 64

// apart are the combinations of extents, the smallest first, of which each can have a program of its own where no program
// can be general; nil if the dims are not lists, or if the model is to be more than a function of its inputs.
func (o *CompileOptions) apart(reason error) [][]int64 {
	if !onlyDynamic(reason) || len(o.States) > 0 || o.Generate != "" || o.ErrorBudget > 0 || o.asksForSpecials() ||
		IsPlanText(o.Plan) {
		return nil
	}
	return o.combinations()
}

// combinations are those of the extents of lists, the smallest first; nil if there are none, too many, or other ranges.
func (o *CompileOptions) combinations() [][]int64 {
	ranges := o.ranges()
	if len(ranges) == 0 {
		return nil
	}
	points := [][]int64{nil}
	for _, r := range ranges {
		if r.Values == nil || len(points)*len(r.Values) > mostApart {
			return nil
		}
		var more [][]int64
		for _, p := range points {
			for _, n := range r.Values {
				more = append(more, append(slices.Clone(p), n))
			}
		}
		points = more
	}
	slices.SortStableFunc(points, func(a, b []int64) int { return int(work(a) - work(b)) })
	return points
}

// ApartTexts says which programs a library has of which none can be general.
func (o *CompileOptions) ApartTexts() []string {
	var out []string
	for _, p := range o.combinations() {
		out = append(out, rangesText(pointOf(o.ranges(), p)))
	}
	return out
}

// planApart is Plan for a model of which no program can be general, for reasons such as that a convolution slides along
// a dim with several extents. Each combination of the extents gets a program that knows no other one; they share the
// rKernels and constants, as special programs do, and stand in the place of these. The largest stands in that of the
// general program.
func planApart(job *Job, opt CompileOptions, spec *device.Spec, points [][]int64) (*Compilation, error) {
	ranges := opt.ranges()
	open, err := LoadOpen(&Job{}, opt.ModelOptions)
	if err != nil {
		return nil, err
	}
	last := len(points) - 1
	c, err := fixedProgram(opt, spec, ranges, points[last], job)
	if err != nil {
		return nil, err
	}
	var counted []axes.Range
	if c.axes != nil {
		counted = c.axes.Ranges
	}
	if err := c.behindDims(ranges, counted); err != nil {
		return nil, err
	}
	if err := c.schedule(job); err != nil {
		return nil, err
	}
	done := job.Stage("programs")
	c.known = map[string]bool{}
	c.note(c.plan)
	if err := c.tellExtents(open.Graph.Inputs, ranges, counted); err != nil {
		return nil, diag.InFile(err, opt.Path)
	}
	for i := last - 1; i >= 0; i-- { // the largest first: its instances suit the next one best
		d, err := fixedProgram(opt, spec, ranges, points[i], &Job{})
		if err != nil {
			return nil, err
		}
		if err := d.behindDims(ranges, counted); err != nil {
			return nil, err
		}
		d.known, d.packing, d.opt.Tries, d.opt.ProfileBudget = c.known, newPacking, 1, 0
		if err := d.schedule(&Job{}); err != nil {
			return nil, err
		}
		c.note(d.plan)
		if err := d.tellExtents(open.Graph.Inputs, pointOf(ranges, points[i]), counted); err != nil {
			return nil, diag.InFile(err, opt.Path)
		}
		c.specials = append([]*vdevice.Plan{d.plan}, c.specials...)
	}
	done("one for each of %d combinations of %s: none can be general", len(points), rangesText(ranges))
	c.opt.ModelOptions, c.ranges, c.apart = opt.ModelOptions, ranges, true
	return c, nil
}

// fixedProgram is the model with one extent for each dim, optimised. Only that of the largest extents is dumped.
func fixedProgram(opt CompileOptions, spec *device.Spec, ranges []axes.Range, extents []int64, job *Job) (*Compilation,
	error) {
	c := &Compilation{opt: opt, spec: spec}
	c.opt.ModelOptions = opt.with(ranges, extents)
	if !slices.Equal(extents, largest(ranges)) {
		c.opt.Dump = ""
	}
	if err := c.prepare(job); err != nil {
		return nil, err
	}
	return c, nil
}

// behindDims numbers the extents that a run of the program finds as those of the largest extents are numbered: behind
// the dims. Programs have other bounds for them, but what one finds all must find, or their outputs would differ.
func (c *Compilation) behindDims(dims, counted []axes.Range) error {
	if c.axes == nil {
		return nil
	}
	numbers := make([]int, len(c.axes.Ranges))
	for i, r := range c.axes.Ranges {
		at := slices.IndexFunc(counted, func(x axes.Range) bool { return x.Name == r.Name })
		if at < 0 {
			return &diag.Diagnostic{ID: "dynamic-found", File: c.opt.Path, Message: fmt.Sprintf(
				"with %s a run finds %s itself, and with the largest extents of %s it does not: give one value to each",
				strings.Join(c.opt.Dims, " "), r.Name, rangesText(dims))}
		}
		numbers[i] = len(dims) + at
	}
	c.axes = c.axes.Within(slices.Concat(dims, c.foundOf(counted)), numbers)
	return nil
}

// foundOf are the ranges with the bounds that they have in this program.
func (c *Compilation) foundOf(counted []axes.Range) []axes.Range {
	out := slices.Clone(counted)
	for i := range out {
		if c.axes == nil {
			break
		}
		for _, r := range c.axes.Ranges {
			if r.Name == out[i].Name {
				out[i] = r
			}
		}
	}
	return out
}

// pointOf are ranges that have one extent each.
func pointOf(ranges []axes.Range, extents []int64) []axes.Range {
	out := make([]axes.Range, len(ranges))
	for i, r := range ranges {
		out[i] = axes.Range{Name: r.Name, Lo: extents[i], Hi: extents[i]}
	}
	return out
}

// tellExtents says which dims of the program's inputs tell the extents of ranges, behind which those are that a run
// finds. inputs are those of the model with symbols.
func (c *Compilation) tellExtents(inputs []*ir.Value, ranges, counted []axes.Range) error {
	g := c.plan.Graph
	g.Ranges = slices.Concat(ranges, c.foundOf(counted))
	for i := range g.Inputs {
		p := &g.Inputs[i]
		at := slices.IndexFunc(inputs, func(v *ir.Value) bool { return v.Name == p.Name })
		if at < 0 || len(inputs[at].Shape) != len(p.Dims) {
			continue
		}
		list := axes.StaticAxes(p.Dims)
		for d, extent := range inputs[at].Shape {
			r := slices.IndexFunc(ranges, func(r axes.Range) bool { return extent.Equal(ir.Sym(r.Name)) })
			if _, fixed := extent.Const(); r >= 0 {
				list[d] = axes.Axis{{Symbol: r, N: p.Dims[d]}}
			} else if !fixed {
				return &diag.Diagnostic{ID: "dynamic-dim", Port: "input " + p.Name, Message: fmt.Sprintf(
					"axis %d has the extent %s, which is not a dim of its own", d, extent)}
			}
		}
		p.Axes = list
	}
	return nil
}
