package schedule

import (
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// time is how long the plan takes by the model. It may be one in which launches share a kernel that should not.
func (p *planner) time(plan *vdevice.Plan) float64 {
	if plan.GroupsSpill() {
		return groupsWait * Time(plan, p.costs)
	}
	return Time(plan, p.costs)
}

// Time is how long the plan takes by the costs, in ns.
func Time(plan *vdevice.Plan, costs profiler.Costs) float64 {
	ns, err := vdevice.PlanTime(plan, func(t vdevice.Task) float64 {
		return costs.TaskTime(plan.Graph.Ops[t.Op].Candidates[plan.Pick[t.Op]])
	})
	if err != nil {
		panic("BUG: a plan whose steps wait for each other: " + err.Error())
	}
	return ns
}

// Parts is what the rTasks on the longest chain of the plan take by the costs, in ns, by the name of their candidate's
// rKernel. The rest of Time are launches, waits and the dispatch of steps.
func Parts(plan *vdevice.Plan, costs profiler.Costs, name func(*roperator.Candidate) string) map[string]float64 {
	parts := map[string]float64{}
	for _, s := range plan.Segments {
		p := s.Program
		t, err := vdevice.SimulateSegment(s, func(t vdevice.Task) float64 { return costs.TaskTime(p.Candidate(t.Op)) })
		if err != nil {
			panic("BUG: a plan whose steps wait for each other: " + err.Error())
		}
		for _, at := range t.Critical {
			c := p.Candidate(p.Steps[at.VEU][at.Order].Task.Op)
			parts[name(c)] += t.End[at.VEU][at.Order] - t.Start[at.VEU][at.Order] - p.Spec.Cost.Step
		}
	}
	return parts
}
