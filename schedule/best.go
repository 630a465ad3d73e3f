package schedule

import (
	"slices"

	"github.com/rammerc/rammerc/vdevice"
)

// clearly is the part of the time of a plan of waves that another plan may take at most to replace it. The model is no
// more exact than that.
const clearly = 0.95

// best is the plan that the model prefers. Where a wave has too many kinds of tiles of warp groups it is one of two, of
// which the predictions of finished plans know more than the costs by which candidates are chosen: ResNeXt takes 4 % less
// with groupsAlone, but Inception with eight images 22 % more (bench/results/h200-changes.json).
func (p *planner) best() *vdevice.Plan {
	many := p.preferred()
	plan := p.withFewerInstances(many)
	if !p.groupsMeet() {
		return plan
	}
	q := *p
	q.groupsAlone = true
	other := q.preferred()
	if Time(other, p.prediction) >= Time(many, p.prediction) {
		return plan
	}
	if other = q.withFewerInstances(other); Time(other, p.prediction) < Time(plan, p.prediction) {
		return other
	}
	return plan
}

// groupsMeet reports whether the fastest candidates of some wave are too many kinds of tiles of warp groups.
func (p *planner) groupsMeet() bool {
	s := p.scheduler(false)
	fresh := s.newCurrent(vdevice.Waves)
	return p.parts == nil && slices.ContainsFunc(p.waves, func(wave []int32) bool {
		fast, _ := s.pick(wave, fastest)
		return s.groupsFactor(fast, fresh) > 1
	})
}

// preferred is, of the plans that differ only in how the waves are launched, the fastest, or another plan if it is clearly
// faster than that.
func (p *planner) preferred() *vdevice.Plan {
	joined := mixed(1)(p)
	inOrder, toCompare := joined, []*vdevice.Plan{joined, p.launchesOfWaves()}
	if !inOneRProgram(joined) {
		inOrder = p.rprogram()
		toCompare = append(toCompare, inOrder)
	}
	best, least := p.fastestOf(toCompare...)
	others := []*vdevice.Plan{p.graph()}
	if len(p.g.Ops) <= mostOnStreams {
		others = []*vdevice.Plan{p.parallel(), p.graph()}
	}
	for _, size := range []int{8, 4} {
		if plan := p.tryClusters(size); plan != nil {
			others = append(others, plan)
		}
	}
	if p.branches() && len(p.g.Ops) <= mostOnStreams {
		others = append(others, p.otherOrders(inOrder)...)
	}
	if other, t := p.fastestOf(others...); t < clearly*least {
		best = other
	}
	return best
}
