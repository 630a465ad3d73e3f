package trace

import "github.com/rammerc/rammerc/schema"

// clocks translate the cycles of every multiprocessor to nanoseconds of the device.
type clocks struct {
	slope float64 // nanoseconds a cycle, the same for all
	sm    map[uint32]*fit
}

// fit are the means of one multiprocessor's samples, relative to its first.
type fit struct {
	clock0, time0 uint64
	n             float64
	clock, time   float64 // sums, then means
}

// fitClocks regresses device time on cycles. Both run evenly, but the device's time is read in coarse steps:
// the slope comes from all multiprocessors together, the offset of each from the mean of its own samples.
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

// samples visits all pairs of cycles and device time.
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

// at is the device time of a clock, in nanoseconds after the origin.
func (c *clocks) at(sm uint32, clock, origin uint64) float64 {
	f := c.sm[sm]
	return float64(int64(f.time0-origin)) + f.time + c.slope*(float64(int64(clock-f.clock0))-f.clock)
}
