package trace

import (
	"cmp"
	"slices"
	"sort"

	"github.com/rammerc/rammerc/schema"
)

// clocks translates the cycle counters of all multiprocessors to one time. Each multiprocessor counts cycles (clock64)
// from a start of its own; the device has a timer in nanoseconds (globaltimer), which all see alike.
//
// One line from cycles to nanoseconds is not enough. A GPU lowers its frequency when products heat it, by several parts
// in a thousand within milliseconds: in a program of 6 ms the line was off by 20 µs, more than most steps take. All
// multiprocessors run at the same frequency at any moment, so one drift, a function of the time, corrects all.
type clocks struct {
	slope  float64 // nanoseconds per cycle, the mean over the whole run
	sm     map[uint32]*fit
	origin uint64 // the earliest sample's time; nodes count from here
	nodes  []node // in ascending order of line; empty: no drift
}

// fit holds the means of one multiprocessor's samples. They are relative to its first sample, because the differences
// of large counters would lose digits in a float64.
type fit struct {
	clock0, time0 uint64
	n             float64
	clock, time   float64 // sums, then means
}

// node is a point of the drift: where the line says line, the device's timer says line + drift on average, both in
// nanoseconds.
type node struct{ line, drift float64 }

// driftSamples is how many samples make a node of the drift. The device's timer only moves every 32 ns or more, so few
// samples would be too coarse; a wave of 132 blocks begins and ends with 264.
const driftSamples = 256

// fitClocks finds the line that leads from cycles to the device's time, by linear regression, and the drift from it.
// The device's timer moves in steps, so a single sample is not exact. All multiprocessors have the same slope, which
// comes from the samples of all; the offset of each comes from the mean of its own.
func fitClocks(raw *Raw) *clocks {
	c := &clocks{slope: 1, sm: map[uint32]*fit{}}
	first := true
	raw.samples(func(sm uint32, clock, time uint64) {
		f := c.sm[sm]
		if f == nil {
			f = &fit{clock0: clock, time0: time}
			c.sm[sm] = f
		}
		f.n++
		f.clock += float64(int64(clock - f.clock0))
		f.time += float64(int64(time - f.time0))
		if first || time < c.origin {
			c.origin, first = time, false
		}
	})
	for _, f := range c.sm {
		f.clock /= f.n
		f.time /= f.n
	}
	var xx, xy float64
	raw.samples(func(sm uint32, clock, time uint64) {
		f := c.sm[sm]
		x := float64(int64(clock-f.clock0)) - f.clock
		y := float64(int64(time-f.time0)) - f.time
		xx += x * x
		xy += x * y
	})
	if xx > 0 && xy > 0 {
		c.slope = xy / xx
	}
	// A multiprocessor that worked only early or late has an offset that contains the drift of that time, so offsets
	// and drift are found in turns. Three turns leave less than the timer's own step.
	for range 3 {
		c.fitDrift(raw)
	}
	return c
}

// fitDrift finds the drift from how far the samples lie from the line, then moves the offset of each multiprocessor by
// what its samples still differ on average.
func (c *clocks) fitDrift(raw *Raw) {
	var points []node
	raw.samples(func(sm uint32, clock, time uint64) {
		line := c.line(sm, clock)
		points = append(points, node{line, float64(int64(time-c.origin)) - line})
	})
	slices.SortFunc(points, func(a, b node) int { return cmp.Compare(a.line, b.line) })
	c.nodes = nil
	if len(points) < 2*driftSamples {
		return
	}
	for group := range slices.Chunk(points, driftSamples) {
		if len(group) < driftSamples {
			break
		}
		var mean node
		for _, p := range group {
			mean.line += p.line / driftSamples
			mean.drift += p.drift / driftSamples
		}
		c.nodes = append(c.nodes, mean)
	}
	moved := map[uint32]float64{}
	raw.samples(func(sm uint32, clock, time uint64) {
		line := c.line(sm, clock)
		moved[sm] += (float64(int64(time-c.origin)) - line - c.drift(line)) / c.sm[sm].n
	})
	for sm, by := range moved {
		c.sm[sm].time += by
	}
}

// samples visits all pairs of a cycle counter and the device's time that were read at the same moment.
func (raw *Raw) samples(visit func(sm uint32, clock, time uint64)) {
	for i := range raw.Launches {
		l := &raw.Launches[i]
		visit(l.SM, l.Begun, l.BegunTime)
		if l.Ended > 0 {
			visit(l.SM, l.Ended, l.EndedTime)
		}
	}
	for i := range raw.Steps {
		s := &raw.Steps[i]
		visit(s.SM, s.Clock[schema.TraceBegun], s.Time)
	}
}

// line is when the cycle counter of a multiprocessor had the value clock, in nanoseconds after c.origin, if the
// frequency had been the same all the time.
func (c *clocks) line(sm uint32, clock uint64) float64 {
	f := c.sm[sm]
	return float64(int64(f.time0-c.origin)) + f.time + c.slope*(float64(int64(clock-f.clock0))-f.clock)
}

// drift is what the frequency's changes add to a time of the line, in nanoseconds. Between two nodes it is
// interpolated; before the first and after the last the nearest two go on.
func (c *clocks) drift(line float64) float64 {
	if len(c.nodes) < 2 {
		return 0
	}
	i := sort.Search(len(c.nodes), func(i int) bool { return c.nodes[i].line > line })
	i = min(max(i, 1), len(c.nodes)-1)
	a, b := c.nodes[i-1], c.nodes[i]
	if a.line == b.line {
		return a.drift
	}
	return a.drift + (b.drift-a.drift)*(line-a.line)/(b.line-a.line)
}

// at is when the cycle counter of a multiprocessor had the value clock, in nanoseconds of the device's time after
// origin.
func (c *clocks) at(sm uint32, clock, origin uint64) float64 {
	line := c.line(sm, clock)
	return float64(int64(c.origin-origin)) + line + c.drift(line)
}
