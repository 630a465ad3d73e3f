package vdevice

import (
	"bytes"
	"fmt"
	"math"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/schema"
)

// counterEdges are edges by counters. A counter is a word in global memory to which every one of several steps adds
// one when it is complete. A step that waits for a counter waits until all of them have added:
//
//	vEU 0   step 4 (adds 7) ──┐
//	vEU 1   step 2 (adds 7) ──┼─▶ counter 7 = 3 ──▶ any number of steps (counters 7)
//	vEU 2   step 9 (adds 7) ──┘
//
// Polling one counter is cheaper than polling the flags of many, but additions to one word queue up. The Builder
// chooses (edge_counter_groups.go).
type counterEdges struct{ noRules }

func (counterEdges) meetings(p *Program) int { return p.Counters }

// form checks that every counter has steps that add to it and steps that wait for it. Which steps a counter stands
// for is not written down anywhere else, so an addition that is left out shows as an access without order, or here
// when it was the only one.
func (counterEdges) form(v *verifier, segment int, s Segment) {
	p := s.Program
	added, waited := make([]bool, p.Counters), make([]bool, p.Counters)
	for u, steps := range p.Steps {
		for o := range steps {
			out := steps[o].OutOf(EdgeCounter)
			if len(out) > 1 {
				v.l.Add(&diag.Diagnostic{ID: badCounter,
					Message: fmt.Sprintf("%s adds to %d counters, want one at most",
						stepName(p, At{int32(u), int32(o)}), len(out))})
			}
			for _, e := range out {
				added[e.Number()] = true
			}
			for _, e := range steps[o].InOf(EdgeCounter) {
				waited[e.Number()] = true
			}
		}
	}
	for c := range added {
		if !added[c] {
			v.l.Add(v.problem(badCounter, "segment %d: no step adds to counter %d", segment, c))
		} else if !waited[c] {
			v.l.Add(v.problem(badCounter, "segment %d: no step waits for counter %d", segment, c))
		}
	}
}

// arrives is when the last addition has come through the queue at the counter's word.
func (counterEdges) arrives(s *simulation, _ At, e Edge) (float64, At) {
	m := s.h.meeting(e)
	last := s.last[s.h.meetingID(e)]
	return last.end + s.h.p.Spec.AddTime(len(m.at)), last.at
}

func (counterEdges) settle(b *Builder) {
	b.groups.count(b.p)
	b.groups = counterGroups{}
}

func (counterEdges) count(stats *Stats, s Segment) {
	stats.Counters += s.Program.Counters
	for _, steps := range s.Program.Steps {
		for o := range steps {
			stats.Additions += len(steps[o].OutOf(EdgeCounter))
		}
	}
}

func (counterEdges) printSegment(b *bytes.Buffer, s Segment) {
	if n := s.Program.Counters; n > 0 {
		fmt.Fprintf(b, " counters %d", n)
	}
}

func (counterEdges) parseSegment(p *planParser, s *Segment) {
	if p.optional("counters") {
		s.Program.Counters = int(p.number(0, math.MaxInt32))
	}
}

func (counterEdges) encode(e *Encoder, s *Step, row *schema.Step) {
	for _, from := range s.InOf(EdgeCounter) {
		e.awaitSum(from)
	}
	for _, to := range s.OutOf(EdgeCounter) {
		row.Add = e.line(to)
	}
}

// Adds is the counter that the step's completion adds one to, if there is one.
func (s *Step) Adds() (counter int32, ok bool) {
	for i := range s.Out {
		if s.Out[i].Kind == EdgeCounter {
			return s.Out[i].Number(), true
		}
	}
	return 0, false
}
