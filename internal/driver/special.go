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

// A candidate whose rKernel instance the library does not have yet must be faster by newKernel of its time, to be worth
// the code, and one that wants weights in another packing by newPacking, to be worth the memory. Nobody asked for
// programs of sampled extents: these take other packings only where there is no candidate without, and at most
// sampledWeights of what the weights take already.
const (
	newKernel      = 0.03
	newPacking     = 0.3
	noPacking      = 1000
	sampledWeights = 1.0 / 16
)

// sharing are costs by which candidates are preferred whose code and weights the library has already.
type sharing struct {
	profiler.Costs
	ops     *roperator.Graph
	known   map[string]bool // keys of instances, and of packed constants
	packing float64         // newPacking or noPacking
	prices  map[*roperator.Candidate]float64
}

// TaskTime is that of the costs, with the price of what is new.
func (s *sharing) TaskTime(c *roperator.Candidate) float64 {
	price, ok := s.prices[c]
	if !ok {
		price = s.price(c)
		s.prices[c] = price
	}
	return price * s.Costs.TaskTime(c)
}

func (s *sharing) price(c *roperator.Candidate) float64 {
	price := 1.0
	if !s.known[c.Inst.Key()] {
		price += newKernel
	}
	c.Refs(func(id int) {
		if b := s.ops.Buffers[id]; b.Kind == roperator.Const && !s.known[constantKey(b)] {
			price = max(price, 1+s.packing)
		}
	})
	return price
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
	lack := ""
	switch {
	case c.opt.Finds():
		lack = "a run finds extents itself, and what it finds has another bound in each"
	case len(c.states) > 0:
		lack = "all programs of a library would have to share its states"
	}
	if lack != "" {
		if !c.opt.samples() {
			job.Printf("  no special programs: %s\n", lack)
		}
		return nil
	}
	done := job.Stage("specials")
	c.known = map[string]bool{}
	weights := c.newBytes(c.plan)
	c.note(c.plan)
	kept := []planned{{c.plan, largest(c.ranges), c.summary.PredictedUS}}
	var texts []string
	for i := len(points) - 1; i >= 0; i-- { // the largest first: its instances suit the next one best
		p, err := c.special(points[i])
		text := rangesText(partOf(c.ranges, points[i]))
		if err != nil {
			if !c.opt.samples() {
				job.Printf("  no special program for %s: %v\n", text, diag.Reason(err))
			}
			continue
		}
		if c.opt.samples() && (!p.pays(kept) || float64(c.newBytes(p.plan)) > sampledWeights*float64(weights)) {
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
		if pick >= 0 {
			c.known[plan.Graph.Ops[op].Candidates[pick].Inst.Key()] = true
		}
	}
	eachConstant(plan, func(b *roperator.Buffer) { c.known[constantKey(b)] = true })
}

// newBytes is what the constants of a plan take that the library does not have yet.
func (c *Compilation) newBytes(plan *vdevice.Plan) int64 {
	sum, seen := int64(0), map[string]bool{}
	eachConstant(plan, func(b *roperator.Buffer) {
		if k := constantKey(b); !c.known[k] && !seen[k] {
			seen[k] = true
			sum += b.Bytes()
		}
	})
	return sum
}

// eachConstant visits the constants that the candidates of a plan refer to, some of them more than once.
func eachConstant(plan *vdevice.Plan, visit func(b *roperator.Buffer)) {
	for op, pick := range plan.Pick {
		if pick < 0 {
			continue
		}
		plan.Graph.Ops[op].Candidates[pick].Refs(func(id int) {
			if b := plan.Graph.Buffers[id]; b.Kind == roperator.Const {
				visit(b)
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
	d := &Compilation{opt: c.opt, spec: c.spec, known: c.known, packing: newPacking}
	if c.opt.samples() {
		d.packing = noPacking
	}
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
