package trace

import (
	"math"
	"testing"

	"github.com/rammerc/rammerc/schema"
)

// A GPU that lowers its frequency by 0.6 % from the third millisecond on has times that are right to the step of its
// timer, also on a multiprocessor that only works at the end. One line through all samples is several microseconds off.
func TestClocksFollowTheFrequency(t *testing.T) {
	const sms, launches, grain, change = 16, 600, 32, 3e6
	cycles := func(ns float64) float64 { return 1.98 * (min(ns, change) + 0.994*max(0, ns-change)) }
	start := func(sm uint32) uint64 { return 1 << 40 * uint64(sm+1) }
	clock := func(sm uint32, ns float64) uint64 { return start(sm) + uint64(math.Round(cycles(ns))) }
	time := func(ns float64) uint64 { return (7_000_000_000 + uint64(ns)) / grain * grain }
	raw := &Raw{}
	for l := range launches {
		for sm := range uint32(sms) {
			if sm == sms-1 && l < launches*9/10 {
				continue
			}
			begin := float64(l)*10_000 + 13*float64(sm)
			end := begin + 9_000
			raw.Launches = append(raw.Launches, schema.TraceLaunch{SM: sm, Begun: clock(sm, begin),
				BegunTime: time(begin), Ended: clock(sm, end), EndedTime: time(end)})
		}
	}
	c := fitClocks(raw)
	worst, line := 0.0, 0.0
	for l := range raw.Launches {
		row := &raw.Launches[l]
		right := float64(row.BegunTime-7_000_000_000) + grain/2
		worst = max(worst, math.Abs(c.at(row.SM, row.Begun, 7_000_000_000)-right))
		line = max(line, math.Abs(c.line(row.SM, row.Begun)-right))
	}
	if worst > 4*grain {
		t.Errorf("a time is wrong by %.0f ns", worst)
	}
	if line < 2_000 {
		t.Errorf("the line alone is only wrong by %.0f ns: the test proves nothing", line)
	}
}
