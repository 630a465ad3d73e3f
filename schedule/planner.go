package schedule

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule/vdevice"
)

// planner makes plans of all kinds for one graph on one device.
type planner struct {
	g                       *roperator.Graph
	spec                    *vdevice.Spec
	costs                   profiler.Costs
	ops                     *opGraph
	plain, resident, staged [][]choice // per rOperator
	waves                   [][]int32  // of the policy
}

func newPlanner(g *roperator.Graph, spec *vdevice.Spec, costs profiler.Costs, policy Policy) (*planner, error) {
	choices, err := admit(g, spec, costs)
	if err != nil {
		return nil, err
	}
	p := &planner{g: g, spec: spec, costs: costs, ops: newOpGraph(g)}
	p.plain, p.resident, p.staged = splitChoices(choices)
	p.waves = policy.waves(p.ops)
	return p, nil
}

// scheduler is a fresh one; where operands may stay on chip it knows which do.
func (p *planner) scheduler(stays bool) *scheduler {
	s := newScheduler(p.g, p.spec, p.ops, p.plain)
	s.costs = p.costs
	if stays {
		s.stays = newResidence(p.g, p.resident, p.staged, p.waves, p.spec.VEUs())
	}
	return s
}

// plan makes a plan of the given kind. The arena is still to be laid out.
func (p *planner) plan(kind string) *vdevice.Plan {
	switch kind {
	case PlanRProgram:
		return p.rprogram()
	case PlanWaves:
		return p.inWaves()
	case PlanGraph, PlanBase:
		return p.graph(kind == PlanBase)
	case PlanParallel:
		return p.parallel()
	}
	return p.best()
}

func (p *planner) rprogram() *vdevice.Plan {
	s := p.scheduler(true)
	return s.segments(s.single(p.waves, vdevice.RProgram))
}

func (p *planner) inWaves() *vdevice.Plan {
	s := p.scheduler(false)
	return s.segments(s.single(p.waves, vdevice.Waves))
}

func (p *planner) graph(serial bool) *vdevice.Plan {
	s := p.scheduler(false)
	chosen := make([]*choice, len(p.g.Ops))
	for op := range chosen {
		chosen[op] = s.pickOne(int32(op), fastest)
	}
	seg := s.nodes(vdevice.Graph, allOps(p.g), chosen)
	seg.Serial = serial
	return s.ofNodes(seg, chosen)
}

// parallel uses the candidates that rOperators have in waves, where they share the device, too.
func (p *planner) parallel() *vdevice.Plan {
	s := p.scheduler(false)
	s.single(p.waves, vdevice.Waves)
	chosen := make([]*choice, len(p.g.Ops))
	for op := range chosen {
		chosen[op] = s.placed[op].choice
	}
	return s.ofNodes(s.nodes(vdevice.Parallel, allOps(p.g), chosen), chosen)
}

// mixed lets Algorithm 1 decide, launches being as many times as dear as the device's costs say, and
// launches what it leaves in waves as a parallel graph where that is modelled to be faster.
func (p *planner) mixed(dearer float64) *vdevice.Plan {
	s := p.scheduler(true)
	s.dearer = dearer
	groups := joinLaunches(s.algorithm1(p.waves))
	plan := s.segments(groups)
	for i, g := range groups {
		if g.kind == vdevice.Waves && len(g.waves) > 1 {
			plan.Segments[i] = s.faster(plan.Segments[i], g)
		}
	}
	return plan
}

func allOps(g *roperator.Graph) []int32 {
	out := make([]int32, len(g.Ops))
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// clearly is how much faster a form must be by the model to replace what Algorithm 1 made: the model is
// no more exact than that.
const clearly = 0.95

// best is the plan that the model prefers.
func (p *planner) best() *vdevice.Plan {
	best := p.mixed(1)
	least := p.time(best) * clearly
	for _, kind := range []string{PlanParallel, PlanGraph} {
		other := p.plan(kind)
		if t := p.time(other); t < least {
			best, least = other, t
		}
	}
	return best
}

// time is what the plan takes by the model.
func (p *planner) time(plan *vdevice.Plan) float64 {
	ns, err := vdevice.PlanTime(plan, func(t vdevice.Task) float64 {
		return p.costs.TaskTime(p.g.Ops[t.Op].Candidates[plan.Pick[t.Op]])
	})
	if err != nil {
		panic("BUG: a plan whose steps wait for each other: " + err.Error())
	}
	return ns
}

// Candidate is a plan that may be the fastest.
type Candidate struct {
	Name     string // "mixed", "graph", …
	Plan     *vdevice.Plan
	Modelled float64 // ns
}

// variants are the plans to try, the most different first. The mixed ones differ in what Algorithm 1
// decides where it is a close call: it merges waves as if launches were dearer or cheaper.
var variants = []struct {
	name string
	make func(*planner) *vdevice.Plan
}{
	{"mixed", func(p *planner) *vdevice.Plan { return p.mixed(1) }},
	{PlanGraph, func(p *planner) *vdevice.Plan { return p.graph(false) }},
	{PlanWaves, (*planner).inWaves},
	{PlanRProgram, (*planner).rprogram},
	{PlanParallel, (*planner).parallel},
	{"mixed, launches twice as dear", func(p *planner) *vdevice.Plan { return p.mixed(2) }},
	{"mixed, launches half as dear", func(p *planner) *vdevice.Plan { return p.mixed(0.5) }},
	{"mixed, launches four times as dear", func(p *planner) *vdevice.Plan { return p.mixed(4) }},
}

// Candidates makes up to most different plans to measure. The first is what Schedule makes for PlanAuto;
// for another kind of plan in opt it is the only one.
func Candidates(g *roperator.Graph, spec *vdevice.Spec, costs profiler.Costs, opt Options, most int) ([]Candidate, error) {
	first, err := Schedule(g, spec, costs, opt)
	if err != nil {
		return nil, err
	}
	policy, err := findPolicy(opt.Policy)
	if err != nil {
		return nil, err
	}
	p, err := newPlanner(g, spec, costs, policy)
	if err != nil {
		return nil, err
	}
	kind, err := findPlan(opt.Plan)
	if err != nil {
		return nil, err
	}
	out := []Candidate{{Name: kind, Plan: first, Modelled: p.time(first)}}
	texts := [][]byte{vdevice.FormatPlan(first)}
	for _, v := range variants {
		if kind != PlanAuto || len(out) >= most {
			break
		}
		plan := v.make(p)
		vdevice.LayoutArena(plan)
		text := vdevice.FormatPlan(plan)
		if k := slices.IndexFunc(texts, func(t []byte) bool { return bytes.Equal(t, text) }); k < 0 {
			texts = append(texts, text)
			out = append(out, Candidate{Name: v.name, Plan: plan, Modelled: p.time(plan)})
		} else if k == 0 && out[0].Name == PlanAuto {
			out[0].Name = fmt.Sprintf("%s (%s)", v.name, PlanAuto)
		}
	}
	return out, nil
}
