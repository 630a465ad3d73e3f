package trace

import "github.com/rammerc/rammerc/schema"

// clocks translates the cycle counters of all multiprocessors to one time. Each multiprocessor counts cycles (clock64)
// from a start of its own; the device has a timer in nanoseconds (globaltimer), which all see alike.
type clocks struct {
	slope float64 // nanoseconds per cycle; all multiprocessors run at one frequency
	sm    map[uint32]*fit
}

// fit holds the means of one multiprocessor's samples. They are relative to its first sample, because the differences
// of large counters would lose digits in a float64.
type fit struct {
	clock0, time0 uint64
	n             float64
	clock, time   float64 // sums, then means
}

// fitClocks finds the line that leads from cycles to the device's time, by linear regression. Both run evenly, but the
// device's timer only moves every 32 ns or more, so a single sample is not exact. All multiprocessors have the same
// slope, which comes from the samples of all; the offset of each comes from the mean of its own.
func fitClocks(raw *Raw) *clocks {
	c := &clocks{slope: 1, sm: map[uint32]*fit{}}
	raw.samples(func(sm uint32, clock, time uint64) {
		f := c.sm[sm]
		if f == nil {
			f = &fit{clock0: clock, time0: time}
			c.sm[sm] = f
		}
		f.n++
		f.clock += float64(int64(clock - f.clock0))
		f.time += float64(int64(time - f.time0))
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
	return c
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

// at is when the cycle counter of a multiprocessor had the value clock, in nanoseconds of the device's time after
// origin.
func (c *clocks) at(sm uint32, clock, origin uint64) float64 {
	f := c.sm[sm]
	return float64(int64(f.time0-origin)) + f.time + c.slope*(float64(int64(clock-f.clock0))-f.clock)
}
