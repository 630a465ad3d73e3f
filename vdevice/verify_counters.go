package vdevice

import (
	"fmt"

	"github.com/rammerc/rammerc/internal/diag"
)

// counters checks the form of counters: steps add to counters that are there and wait for them in order,
// each once; every counter has somebody who adds and somebody who waits. Whom a counter stands for is
// its additions, so that an addition left out shows as an access without order, or here when it was the
// only one.
func (v *verifier) counters(segment int, p *Program) {
	report := func(format string, args ...any) {
		v.l.Add(&diag.Diagnostic{ID: badCounter, Message: fmt.Sprintf(format, args...)})
	}
	added, waited := make([]bool, p.Counters), make([]bool, p.Counters)
	for u, steps := range p.Steps {
		for o := range steps {
			s, here := &steps[o], At{int32(u), int32(o)}
			if s.Adds < 0 || int(s.Adds) > p.Counters {
				report("%s adds to counter %d, which is not there", stepName(p, here), s.Adds-1)
			} else if s.Adds > 0 {
				added[s.Adds-1] = true
			}
			last := int32(-1)
			for _, c := range s.Counters {
				if c < 0 || int(c) >= p.Counters {
					report("%s waits for counter %d, which is not there", stepName(p, here), c)
					continue
				}
				if c <= last {
					report("%s waits for counter %d, out of order: counters are sorted, each is there once", stepName(p, here), c)
				}
				last = c
				waited[c] = true
			}
		}
	}
	for c := range added {
		if !added[c] {
			report("segment %d: no step adds to counter %d", segment, c)
		} else if !waited[c] {
			report("segment %d: no step waits for counter %d", segment, c)
		}
	}
}
