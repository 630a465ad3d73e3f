package driver

import (
	"fmt"
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

// A candidate whose rKernel instance the library does not have yet must be faster by newKernel of its time, to be worth
// the code, and one that wants weights in another packing by newPacking, to be worth the memory.
const (
	newKernel  = 0.03
	newPacking = 0.3
)

// sharing are costs by which candidates are preferred whose code and weights the library has already.
type sharing struct {
	profiler.Costs
	ops   *roperator.Graph
	known map[string]bool // keys of instances, and of packed constants
}

// TaskTime is that of the costs, with the price of what is new.
func (s *sharing) TaskTime(c *roperator.Candidate) float64 {
	price := 1.0
	if !s.known[c.Inst.Key()] {
		price += newKernel
	}
	c.Refs(func(id int) {
		if b := s.ops.Buffers[id]; b.Kind == roperator.Const && !s.known[constantKey(b)] {
			price = max(price, 1+newPacking)
		}
	})
	return price * s.Costs.TaskTime(c)
}

// constantKey names a constant in the same way in the graphs of all programs of a library.
func constantKey(b *roperator.Buffer) string {
	return fmt.Sprintf("%s %v %d", b.Name, b.DType, b.Elems)
}

// planSpecials runs the stages up to the schedule for the special programs of a general one. Each is planned as the
// general program of a part of the ranges. A part for which the model cannot be a program is left to the general one.
func (c *Compilation) planSpecials(job *Job) error {
	points, err := c.specialExtents()
	if err != nil || len(points) == 0 {
		return err
	}
	if c.opt.Finds() {
		job.Printf("  no special programs: a run finds extents itself, and what it finds has another bound in each\n")
		return nil
	}
	if len(c.states) > 0 {
		job.Printf("  no special programs: all programs of a library would have to share its states\n")
		return nil
	}
	done := job.Stage("specials")
	c.known = map[string]bool{}
	c.note(c.plan)
	kept := []planned{{c.plan, largest(c.ranges), c.summary.PredictedUS}}
	var texts []string
	for i := len(points) - 1; i >= 0; i-- { // the largest first: its instances suit the next one best
		p, err := c.special(points[i])
		text := rangesText(partOf(c.ranges, points[i]))
		if err != nil {
			job.Printf("  no special program for %s: %v\n", text, diag.Reason(err))
			continue
		}
		if c.opt.samples() && !p.pays(kept) {
			continue
		}
		kept = append(kept, p)
		c.note(p.plan)
		c.specials = append([]*vdevice.Plan{p.plan}, c.specials...)
		texts = append([]string{fmt.Sprintf("%s (%.1f µs)", text, p.us)}, texts...)
	}
	done("%s: %s", progress.Count(len(texts), "special program"), strings.Join(texts, ", "))
	return nil
}

// planned is a program of a library: the largest extents that it takes, and its predicted time in microseconds.
type planned struct {
	plan    *vdevice.Plan
	extents []int64
	us      float64
}

// mostLoss is by how much of its time a special program may be predicted to be slower than one for larger extents. It
// need not be faster: predictions for few rows have been wrong by a quarter, and what is compared is the time of the
// larger program at its own extents.
const mostLoss = 0.1

// pays reports whether p is not much slower than any of the others that take its extents.
func (p *planned) pays(others []planned) bool {
	for _, o := range others {
		takes := true
		for i, n := range p.extents {
			takes = takes && n <= o.extents[i]
		}
		if takes && p.us > (1+mostLoss)*o.us {
			return false
		}
	}
	return true
}

// note remembers the instances and the constants of a plan.
func (c *Compilation) note(plan *vdevice.Plan) {
	for op, pick := range plan.Pick {
		if pick < 0 {
			continue
		}
		x := plan.Graph.Ops[op].Candidates[pick]
		c.known[x.Inst.Key()] = true
		x.Refs(func(id int) {
			if b := plan.Graph.Buffers[id]; b.Kind == roperator.Const {
				c.known[constantKey(b)] = true
			}
		})
	}
}

// ProgramTexts says which programs a library has whose dims have ranges. With sampled extents there may be fewer special
// programs: none is made that is predicted to be slower than another that can do its work.
func (o *CompileOptions) ProgramTexts() []string {
	c := &Compilation{opt: *o}
	points, err := c.specialExtents()
	if err != nil || len(c.ranges) == 0 {
		return nil
	}
	out := []string{"general " + rangesText(c.ranges)}
	for i := len(points) - 1; i >= 0; i-- {
		out = append(out, "special "+rangesText(partOf(c.ranges, points[i])))
	}
	return out
}

// special plans the special program whose largest extents are given.
func (c *Compilation) special(extents []int64) (p planned, err error) {
	d := &Compilation{opt: c.opt, spec: c.spec, known: c.known}
	d.opt.ModelOptions = c.opt.narrowed(c.ranges, extents)
	d.opt.Tries, d.opt.ProfileBudget, d.opt.Dump, d.opt.Typical = 1, 0, "", nil
	quiet := &Job{}
	if err := d.prepare(quiet); err != nil {
		return p, err
	}
	ranges := c.partsOf(extents)
	if d.axes != nil {
		numbers := make([]int, len(d.axes.Ranges))
		for i, r := range d.axes.Ranges {
			if numbers[i] = sameRange(ranges, r); numbers[i] < 0 {
				return p, fmt.Errorf("no extent of the general program is %s", r.Name)
			}
		}
		d.axes = d.axes.Within(ranges, numbers)
	}
	if err := d.schedule(quiet); err != nil {
		return p, err
	}
	d.plan.Graph.Ranges = ranges // also where all extents are fixed, so that nothing follows them
	return planned{d.plan, extents, d.summary.PredictedUS}, nil
}

// partsOf are the ranges of the general program up to the given extents, with those of sums.
func (c *Compilation) partsOf(extents []int64) []axes.Range {
	parts := partOf(c.ranges, extents)
	out := slices.Clone(parts)
	for _, r := range c.axes.Ranges[len(parts):] {
		out = append(out, axes.SumRange(parts, r.Sum))
	}
	return out
}

// sameRange is the number of the range that is r in a program in which the extents of some ranges are fixed; -1 if there
// is none.
func sameRange(ranges []axes.Range, r axes.Range) int {
	fixed := map[string]int64{}
	for _, x := range ranges {
		if x.Lo == x.Hi && !x.Derived() {
			fixed[x.Name] = x.Lo
		}
	}
	return slices.IndexFunc(ranges, func(x axes.Range) bool {
		if r.Derived() {
			return x.Sum.Bind(fixed).Equal(r.Sum)
		}
		return x.Name == r.Name
	})
}

// largest are the largest extents of ranges.
func largest(ranges []axes.Range) []int64 {
	out := make([]int64, len(ranges))
	for i, r := range ranges {
		out[i] = r.Hi
	}
	return out
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

// sampled are the extents for which special programs are made where --typical leaves that to the compiler. Of lists they
// are the smaller values. Of a single range they are the largest extent halved again and again, so that a run needs at
// least about half of the work that its program does. Of several ranges the one with the most extents is divided by four
// instead, and of the others the smallest extent counts. If these are too many, they are those of one range alone.
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
	divisor, most := int64(2), mostSampled
	if len(ranges) > 1 {
		divisor, most = 4, 2
	}
	for i, r := range ranges {
		switch {
		case r.Values != nil:
			out[i] = slices.Clone(r.Values[:len(r.Values)-1])
		case i != longest:
			out[i] = []int64{r.Lo}
		default:
			for n := (r.Hi + divisor - 1) / divisor; n > r.Lo && len(out[i]) < most; n = (n + divisor - 1) / divisor {
				out[i] = append([]int64{n}, out[i]...)
			}
		}
		programs *= len(out[i]) + 1
	}
	if programs > mostSampled+1 {
		one := make([][]int64, len(ranges))
		one[longest] = out[longest][max(0, len(out[longest])-mostSampled):]
		return one
	}
	return out
}

// samples reports whether the compiler chooses the extents of special programs.
func (o *CompileOptions) samples() bool { return slices.Equal(o.Typical, []string{SampledSpecials}) }

// typical are the extents of each range that --typical names, but the largest.
func (o *CompileOptions) typical(ranges []axes.Range) ([][]int64, error) {
	if o.samples() {
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
