package driver

import (
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir/axes"
)

// SampledSpecials is the value of --typical by which the compiler chooses the extents, and GeneralAlone the one by which
// there are no special programs.
const (
	SampledSpecials = "auto"
	GeneralAlone    = "none"
)

// mostSampled is how many special programs are made where --typical leaves their extents to the compiler.
const mostSampled = 5

// mostSpecials is how many special programs a library has at most.
const mostSpecials = 16

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
		if r.Hi/least(r) > ranges[longest].Hi/least(ranges[longest]) {
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
		case i != longest && least(r) < r.Hi:
			out[i] = []int64{least(r)}
		case i == longest:
			for n := (r.Hi + divisor - 1) / divisor; n > least(r) && len(out[i]) < most; n = (n + divisor - 1) / divisor {
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

// least is the least extent that a special program is planned for.
func least(r axes.Range) int64 { return max(r.Lo, 1) }

// samples reports whether the compiler chooses the extents of special programs.
func (o *CompileOptions) samples() bool { return slices.Equal(o.Typical, []string{SampledSpecials}) }

// asksForSpecials reports whether --typical names extents.
func (o *CompileOptions) asksForSpecials() bool {
	return len(o.Typical) > 0 && !o.samples() && !slices.Equal(o.Typical, []string{GeneralAlone})
}

// typical are the extents of each range that --typical names, but the largest.
func (o *CompileOptions) typical(ranges []axes.Range) ([][]int64, error) {
	if o.samples() {
		return sampled(ranges), nil
	}
	var l diag.List
	out := make([][]int64, len(ranges))
	if !o.asksForSpecials() {
		return out, nil
	}
	for _, text := range o.Typical {
		name, value, _ := cutLast(text, "=")
		r, err := parseDim(name, value)
		i := slices.IndexFunc(ranges, func(x axes.Range) bool { return x.Name == name })
		switch {
		case err != nil || r.Lo < r.Hi && r.Values == nil:
			l.Add(diag.New("bad-flag", "--typical %q: want NAME=32,128, or %s or %s alone", text,
				SampledSpecials, GeneralAlone))
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
