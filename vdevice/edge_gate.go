package vdevice

import (
	"slices"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// gateEdges are edges by flags, for which the vEU waits before it tests a condition (jumps.go). They lead from the
// steps that compute the conditions to the first step of a region:
//
//	vEU 0   step 3: c (signal) ──┐
//	vEU 1                        └─▶ step 7: B if c (if 0:3 wait 2:5)
//
// Here vEU 1 waits for step 3 of vEU 0 and reads c. If that is true, it waits for step 5 of vEU 2 and runs B.
type gateEdges struct{ noRules }

// form checks that only first steps of regions have gates, and what the executor asks of steps with conditions.
func (gateEdges) form(v *verifier, _ int, s Segment) {
	if s.Kind != RProgram || v.l.Errors() > 0 {
		return
	}
	p := s.Program
	if p.Cluster > 0 && p.Conditional() {
		v.l.Add(v.problem(badJump, "a program in clusters has steps with conditions"))
	}
	for u, steps := range p.Steps {
		for o := range steps {
			at := At{int32(u), int32(o)}
			if len(steps[o].InOf(EdgeGate)) > 0 && len(p.jumps(at)) == 0 {
				v.l.Add(v.problem(badJump, "%s has gates, but is not the first step of a region", stepName(p, at)))
			}
			if why := p.refusesConditions(at); why != "" {
				v.l.Add(v.problem(badJump, "%s must have no conditions: %s", stepName(p, at), why))
			}
		}
	}
}

// refusesConditions says why the step at a place must not be jumped over; empty: it may be, or has no conditions. Readers
// of tagged words would wait for ever if nobody wrote them, and a run has one test at most, before its first step.
func (p *Program) refusesConditions(at At) string {
	s := p.stepAt(at)
	if len(p.conditionsOf(s)) == 0 {
		return ""
	}
	if s.Mode != ModePlain {
		return "it is in a run"
	}
	for _, a := range p.Candidate(s.Task.Op).Writes {
		if p.CarryOf(a.View.Buf.ID).HasTags() {
			return "its results travel in tagged words"
		}
	}
	return ""
}

// related checks that each condition is known where it is tested.
func (gateEdges) related(v *verifier, segment int, h *order) {
	if h.kind != RProgram {
		return
	}
	p := h.p
	for u, steps := range p.Steps {
		for o := range steps {
			at := At{int32(u), int32(o)}
			list := p.jumps(at)
			if len(list) == 0 {
				continue
			}
			mine := p.conditionsOf(&steps[o])
			first := len(mine) - len(list)
			for k, j := range list {
				if task, ok := h.untested(at, first+k, j); !ok {
					v.l.Add(v.problem(badJump, "segment %d: %s tests a condition that rTask %d of %s may not have computed",
						segment, stepName(p, at), task.Index, opName(p.Ops[task.Op])))
				}
			}
		}
	}
}

// untested finds an rTask that computes the condition of a jump and need not be complete before the test at a place, or
// that is jumped over where the test is not; ok if there is none. level is how many conditions are tested before.
func (h *order) untested(at At, level int, j jump) (task Task, ok bool) {
	s := h.p.stepAt(at)
	mine := h.p.conditionsOf(s)
	before := h.before(at)
	_, first := before.enter(mine)
	known := h.clocks.row(h.clockOf(s.InOf(EdgeGate), before.learned(mine[:first]), mine[:first]))
	for _, t := range h.p.testedBy(j.condition) {
		place := h.placeOf(t)
		own := h.p.conditionsOf(h.p.stepAt(place))
		done := known[place.VEU] > place.Order || place.VEU == at.VEU && place.Order < at.Order
		if !done || roperator.SharedConditions(own, mine[:level]) < len(own) {
			return t, false
		}
	}
	return Task{}, true
}

// before is what the vEU knew at the step before the one at a place.
func (h *order) before(at At) sight {
	if at.Order == 0 {
		return sight{rows: []int32{0}}
	}
	before := At{at.VEU, at.Order - 1}
	if x, ok := h.sights[before]; ok {
		return x
	}
	return sight{rows: []int32{h.row[h.base[before.VEU]+int(before.Order)]}}
}

// placeOf finds the step of an rTask.
func (h *order) placeOf(t Task) At {
	if h.places == nil {
		h.places = map[Task]At{}
		for u, steps := range h.p.Steps {
			for o := range steps {
				h.places[steps[o].Task] = At{int32(u), int32(o)}
			}
		}
	}
	return h.places[t]
}

func (gateEdges) encode(e *Encoder, s *Step, _ *schema.Step) {
	for _, from := range s.InOf(EdgeGate) {
		e.awaitFlag(from.At)
	}
}

// jumps lists the rows of the tests before the step at a place.
func (e *Encoder) jumps(at At) []schema.Jump {
	var out []schema.Jump
	for _, j := range e.p.jumps(at) {
		v := j.condition.View
		out = append(out, schema.Jump{
			At: e.moves.at.Plain(v.Buf, v.Ref().Offset), Steps: uint32(j.steps), Unless: j.condition.Not,
			Adds: slices.ContainsFunc(e.p.Steps[at.VEU][at.Order:][:j.steps], func(s Step) bool {
				_, adds := s.Adds()
				return adds
			}),
		})
	}
	if len(out) > 0 {
		out[0].Gates = uint16(len(e.p.stepAt(at).InOf(EdgeGate)))
	}
	return slices.Clip(out)
}
