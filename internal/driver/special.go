package driver

import (
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// SampledSpecials is the value of --typical by which the compiler chooses the extents.
const SampledSpecials = "auto"

// mostSampled is how many special programs are made where --typical leaves their extents to the compiler.
const mostSampled = 5

// mostSpecials is how many special programs a library has at most.
const mostSpecials = 16

// newKernel is the part of its time by which an rKernel instance must be faster in a special program, if no program of
// the library has it yet. A new instance is more code and, with most, another packing of weights.
const newKernel = 0.06

// sharing are costs by which instances that a library has are preferred to others.
type sharing struct {
	profiler.Costs
	known map[string]bool
}

// TaskTime is that of the costs, with the price of a new instance.
func (s *sharing) TaskTime(c *roperator.Candidate) float64 {
	t := s.Costs.TaskTime(c)
	if !s.known[c.Inst.Key()] {
		t *= 1 + newKernel
	}
	return t
}

// planSpecials runs the stages up to the schedule for the special programs of a general one. Each is planned as the
// general program of a part of the ranges. A part for which the model cannot be a program is left to the general one.
func (c *Compilation) planSpecials(job *Job) error {
	points, err := c.specialExtents()
	if err != nil || len(points) == 0 {
		return err
	}
	done := job.Stage("specials")
	c.known = map[string]bool{}
	c.note(c.plan)
	var texts []string
	for i := len(points) - 1; i >= 0; i-- { // the largest first: its instances suit the next one best
		plan, err := c.special(points[i])
		text := rangesText(partOf(c.ranges, points[i]))
		if err != nil {
			job.Printf("  no special program for %s: %v\n", text, diag.Reason(err))
			continue
		}
		c.note(plan)
		c.specials = append([]*vdevice.Plan{plan}, c.specials...)
		texts = append([]string{text}, texts...)
	}
	done("%s: %s", progress.Count(len(texts), "special program"), strings.Join(texts, ", "))
	return nil
}

// note remembers the instances of a plan.
func (c *Compilation) note(plan *vdevice.Plan) {
	for op, pick := range plan.Pick {
		if pick >= 0 {
			c.known[plan.Graph.Ops[op].Candidates[pick].Inst.Key()] = true
		}
	}
}

// special plans the special program whose largest extents are given.
func (c *Compilation) special(extents []int64) (*vdevice.Plan, error) {
	d := &Compilation{opt: c.opt, spec: c.spec, known: c.known}
	d.opt.ModelOptions = c.opt.narrowed(c.ranges, extents)
	d.opt.Tries, d.opt.ProfileBudget, d.opt.Dump, d.opt.Typical = 1, 0, "", nil
	quiet := &Job{}
	if err := d.prepare(quiet); err != nil {
		return nil, err
	}
	ranges := partOf(c.ranges, extents)
	if d.axes != nil {
		numbers := make([]int, len(d.axes.Ranges))
		for i, r := range d.axes.Ranges {
			numbers[i] = slices.IndexFunc(ranges, func(x axes.Range) bool { return x.Name == r.Name })
		}
		d.axes = d.axes.Within(ranges, numbers)
	}
	if err := d.schedule(quiet); err != nil {
		return nil, err
	}
	d.plan.Graph.Ranges = ranges // also where all extents are fixed, so that nothing follows them
	return d.plan, nil
}

// partOf are the parts of ranges up to the given extents.
func partOf(ranges []axes.Range, extents []int64) []axes.Range {
	out := slices.Clone(ranges)
	for i := range out {
		r := &out[i]
		r.Hi = extents[i]
		if r.Values != nil {
			r.Values = r.Values[:slices.Index(r.Values, r.Hi)+1]
		}
		if r.Lo == r.Hi {
			r.Values = nil
		}
	}
	return out
}

// narrowed is o with the parts of the ranges up to the given extents.
func (o ModelOptions) narrowed(ranges []axes.Range, extents []int64) ModelOptions {
	parts := partOf(ranges, extents)
	dims := slices.Clone(o.Dims)
	for k, s := range dims {
		name, _, _ := cutLast(s, "=")
		if i := slices.IndexFunc(parts, func(r axes.Range) bool { return r.Name == name }); i >= 0 {
			dims[k] = parts[i].String()
		}
	}
	o.Dims = dims
	return o
}

// specialExtents are the largest extents of the special programs, the smallest program first: all combinations of what
// --typical names, or sampled ones.
func (c *Compilation) specialExtents() ([][]int64, error) {
	c.ranges = c.opt.ranges()
	if len(c.ranges) == 0 || IsPlanText(c.opt.Plan) {
		return nil, nil
	}
	named, err := c.opt.typical(c.ranges)
	if err != nil {
		return nil, err
	}
	points := [][]int64{nil}
	for i, r := range c.ranges {
		var more [][]int64
		for _, n := range append(named[i], r.Hi) {
			for _, p := range points {
				more = append(more, append(slices.Clone(p), n))
			}
		}
		points = more
	}
	points = points[:len(points)-1] // the last one is the general program
	if len(points) > mostSpecials {
		return nil, diag.New("bad-flag", "--typical asks for %d special programs, a library has at most %d", len(points),
			mostSpecials)
	}
	slices.SortStableFunc(points, func(a, b []int64) int {
		return int(work(a) - work(b))
	})
	return points, nil
}

// work is what the work of a program grows with.
func work(extents []int64) int64 {
	n := int64(1)
	for _, x := range extents {
		n *= x
	}
	return n
}

// sampled are the extents for which special programs are made where --typical leaves that to the compiler: the smaller values of lists,
// and of the range with the most extents the largest one halved again and again. So a run needs at least about half of
// the work that its program does. If these are too many, only the range with the most extents has special programs.
func sampled(ranges []axes.Range) [][]int64 {
	if len(ranges) == 0 {
		return nil
	}
	out, longest, programs := make([][]int64, len(ranges)), 0, 1
	for i, r := range ranges {
		if r.Hi/r.Lo > ranges[longest].Hi/ranges[longest].Lo {
			longest = i
		}
	}
	for i, r := range ranges {
		if r.Values != nil {
			out[i] = slices.Clone(r.Values[:len(r.Values)-1])
		} else if i == longest {
			for n := (r.Hi + 1) / 2; n > r.Lo && len(out[i]) < mostSampled; n = (n + 1) / 2 {
				out[i] = append([]int64{n}, out[i]...)
			}
		}
		programs *= len(out[i]) + 1
	}
	if programs > mostSampled+1 {
		for i := range out {
			if i != longest {
				out[i] = nil
			}
		}
		out[longest] = out[longest][max(0, len(out[longest])-mostSampled):]
	}
	return out
}

// typical are the extents of each range that --typical names, but the largest.
func (o *CompileOptions) typical(ranges []axes.Range) ([][]int64, error) {
	if slices.Equal(o.Typical, []string{SampledSpecials}) {
		return sampled(ranges), nil
	}
	var l diag.List
	out := make([][]int64, len(ranges))
	for _, text := range o.Typical {
		name, value, _ := cutLast(text, "=")
		r, err := parseDim(name, value)
		i := slices.IndexFunc(ranges, func(x axes.Range) bool { return x.Name == name })
		switch {
		case err != nil || r.Lo < r.Hi && r.Values == nil:
			l.Add(diag.New("bad-flag", "--typical %q: want NAME=32,128, or %s alone", text, SampledSpecials))
			continue
		case i < 0:
			l.Add(diag.New("unknown-dim", "--typical %s: no dim of that name has a range", text))
			continue
		}
		if r.Values == nil {
			r.Values = []int64{r.Lo}
		}
		for _, n := range r.Values {
			if !ranges[i].Allows(n) {
				l.Add(diag.New("bad-flag", "--typical %s=%d: the dim has the range %s", name, n, ranges[i]))
			} else if n < ranges[i].Hi {
				out[i] = append(out[i], n)
			}
		}
	}
	for i := range out {
		slices.Sort(out[i])
		out[i] = slices.Compact(out[i])
	}
	return out, l.Err()
}
