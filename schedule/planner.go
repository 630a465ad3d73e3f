package schedule

import (
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// planner makes plans of all kinds for one rOperator graph on one device.
type planner struct {
	g                       *roperator.Graph
	spec                    *device.Spec
	costs                   profiler.Costs
	prediction              profiler.Costs // of finished plans
	ops                     *opGraph
	plain, resident, staged [][]choice // per rOperator
	alone                   [][]choice // likewise, for launches of a single rOperator
	forClusters             [][]choice // likewise, for data that stay in a cluster
	worded                  [][]choice // likewise, for rows in tagged words
	waves                   [][]int32  // of the policy
	together                [][]int32  // the same for rPrograms: rOperators of one branch follow each other (branches.go)
	cluster                 int        // vEUs in a cluster of an rProgram; 0: there are none
	fastOnly                bool       // rOperators have the candidates that are fastest by themselves
	groupsAlone             bool       // a wave may have tiles of warp groups for a single one of several rOperators

	parts   []*part      // of a graph with loops; nil for others
	shared  map[int]bool // of a part: buffers that other parts access, too
	foreign map[int]bool // of a part: those that other parts write
}

func newPlanner(g *roperator.Graph, spec *device.Spec, costs profiler.Costs, policy Policy) (*planner, error) {
	choices, alone, err := admit(g, spec, costs)
	if err != nil {
		return nil, err
	}
	p := &planner{g: g, spec: spec, costs: costs, prediction: profiler.PredictionOf(costs), ops: newOpGraph(g), alone: alone}
	if len(g.Loops) > 0 {
		return p, newParts(p, spec, costs, policy)
	}
	p.plain, p.resident, p.staged, p.forClusters, p.worded = splitChoices(choices)
	p.waves = policy.waves(p)
	p.together = p.ops.together(p.waves)
	return p, nil
}

// scheduler makes a new scheduler. If resident says so, it decides first which operands are kept on chip, and which
// data travel in tagged words.
func (p *planner) scheduler(resident bool) *scheduler {
	s := newScheduler(p.g, p.spec, p.ops, p.plain)
	s.alone = p.alone
	s.costs, s.fastOnly, s.groupsAlone, s.shared = p.costs, p.fastOnly, p.groupsAlone, p.shared
	if resident {
		s.inClusters(p.cluster)
		s.residence = newResidence(p.g, p.resident, p.staged, p.forClusters, p.together, s.spec.VEUs(), s.cluster,
			p.foreign)
	}
	return s
}

// planKind is a kind of plan. To add one, write a function and a row of the table below.
type planKind struct {
	name, doc string
	make      func(*planner) *vdevice.Plan // its arena is still to be laid out
	try       int                          // when plans are timed, it is the so manieth to be tried; 0: never
	wide      bool                         // it differs from others only where rOperators can run side by side
	cluster   int                          // it takes clusters of so many vEUs; 0: none
}

// suits reports whether the device has what the kind takes.
func (k *planKind) suits(spec *device.Spec) bool {
	return k.cluster == 0 || spec.Clusters.Of(k.cluster) > 0
}

var kinds []planKind

func init() { // some kinds choose among others
	kinds = []planKind{
		{name: PlanAuto, make: (*planner).best,
			doc: "the fastest of the kinds below: by timing on the GPU at hand, otherwise by the cost model"},
		{name: PlanRProgram, make: (*planner).rprogram, try: 6, doc: "all waves in one persistent rProgram"},
		{name: PlanWaves, make: (*planner).inWaves, try: 2, doc: "one launch for each wave"},
		{name: "waves-2", make: crowded(2), try: 3,
			doc: "as waves, with up to two thread blocks on each multiprocessor"},
		{name: "waves-4", make: crowded(4), try: 10,
			doc: "as waves, with up to four thread blocks on each multiprocessor"},
		{name: PlanGraph, make: (*planner).graph, try: 9,
			doc: "one launch for each rOperator, in sequence, whatever the policy is"},
		{name: PlanParallel, make: (*planner).parallel, try: 7, wide: true,
			doc: "one launch for each rOperator, on several streams, as in Opara with fewer streams"},
		{name: PlanBase, make: (*planner).base,
			doc: "RammerBase: as graph, but no launch starts before the previous one has ended"},
		{name: "base-selected", make: (*planner).baseSelected,
			doc: "as base, with the rKernels that are selected for waves"},
		{name: "opara", make: (*planner).opara, try: 4, wide: true,
			doc: "one launch for each rOperator, on streams and in the order of Opara's algorithms"},
		{name: "nimble", make: (*planner).nimble, try: 5, wide: true,
			doc: "one launch for each rOperator, on streams by Nimble's matching"},
		{name: PlanMixed, make: mixed(1), try: 1,
			doc: "Algorithm 1 of the paper: costs decide which waves form an rProgram and how the others are launched"},
		{name: "mixed-2", make: mixed(2), try: 12,
			doc: "as mixed, with the cost of a launch doubled, which favours rPrograms"},
		{name: "mixed-half", make: mixed(0.5), try: 13,
			doc: "as mixed, with the cost of a launch halved, which favours launches"},
		{name: "mixed-4", make: mixed(4), try: 14, doc: "as mixed, with the cost of a launch multiplied by four"},
		{name: "mixed-fast", make: (*planner).mixedFast,
			doc: "as mixed, with the rKernels that are fastest by themselves"},
		{name: "barriers", make: (*planner).withBarriers, try: 11, wide: true,
			doc: "as rprogram, with a barrier of all vEUs between waves"},
		{name: PlanCriticalPath, make: (*planner).criticalPath, try: 8,
			doc: "list scheduling by upward ranks: an rTask starts when its own inputs are there"},
		{name: "clusters-8", make: clustered(8), try: 15, cluster: 8,
			doc: "as rprogram, with vEUs in clusters of 8, which pass tagged data through shared memory"},
		{name: "clusters-4", make: clustered(4), try: 16, cluster: 4, doc: "as clusters-8, with clusters of 4"},
		{name: "clusters-2", make: clustered(2), cluster: 2, doc: "as clusters-8, with clusters of 2"},
		{name: "rows", make: (*planner).withRows, try: 17,
			doc: "as rprogram, with rows of 16-bit values in tagged words, which rTasks poll themselves"},
	}
}

func (p *planner) rprogram() *vdevice.Plan {
	s := p.scheduler(true)
	return s.segments(s.single(p.together, vdevice.RProgram))
}

// withRows makes an rProgram whose rows travel in tagged words where all that read them can poll them. Parts of a graph
// with loops have none, since others may read what they leave.
func (p *planner) withRows() *vdevice.Plan {
	s := p.scheduler(true)
	if p.shared == nil {
		s.residence.handRows(p.g, p.worded)
	}
	return s.segments(s.single(p.together, vdevice.RProgram))
}

// clustered makes an rProgram whose vEUs are in clusters of the given size, which the device must have. If no data
// would stay in a cluster, it makes one without clusters.
func clustered(size int) func(*planner) *vdevice.Plan {
	return func(p *planner) *vdevice.Plan {
		if plan := p.tryClusters(size); plan != nil {
			return plan
		}
		return p.rprogram()
	}
}

// tryClusters is the rProgram in clusters of the given size. It is nil if the device has no such clusters, if no data
// would stay in one, or if there are branches to jump over, which clusters cannot do.
func (p *planner) tryClusters(size int) *vdevice.Plan {
	handsOver := func(choices [][]choice) bool {
		return slices.ContainsFunc(choices, func(c []choice) bool { return len(c) > 0 })
	}
	if p.ops.conditional() || p.spec.Clusters.Of(size) == 0 || !handsOver(p.forClusters) && !handsOver(p.staged) && !handsOver(p.resident) {
		return nil
	}
	q := *p
	q.cluster = size
	if plan := q.rprogram(); plan.Stats().Slots > 0 {
		return plan
	}
	return nil
}

func (p *planner) inWaves() *vdevice.Plan { return p.inCrowdedWaves(1) }

// inCrowdedWaves has launches with up to so many thread blocks on each multiprocessor, where they hide each other's
// latencies. It need not be crowded anywhere.
func (p *planner) inCrowdedWaves(blocks int) *vdevice.Plan {
	s := p.scheduler(false)
	s.spec = s.spec.Crowd(blocks)
	return s.segments(s.single(p.waves, vdevice.Waves))
}

// crowded is inCrowdedWaves, or, if that is nowhere better, the plan with one block.
func crowded(blocks int) func(*planner) *vdevice.Plan {
	return func(p *planner) *vdevice.Plan {
		if plan := p.inCrowdedWaves(blocks); plan.Crowded() {
			return plan
		}
		return p.inWaves()
	}
}

func (p *planner) graph() *vdevice.Plan { return p.launches(nil, p.fastest()) }

// opara and nimble are as in the papers: they have the fastest candidate of each rOperator by itself, and in their CUDA
// graphs no launch starts before those end that it depends on. parallel lets launches of a stream overlap.
func (p *planner) opara() *vdevice.Plan { return serial(p.launches(opara, p.fastest())) }

func (p *planner) nimble() *vdevice.Plan { return serial(p.launches(nimble, p.fastest())) }

func (p *planner) base() *vdevice.Plan { return serial(p.graph()) }

// baseSelected is RammerBase with the candidates that rOperators have in waves (Rammer §5.2.4).
func (p *planner) baseSelected() *vdevice.Plan { return serial(p.launches(nil, p.ofWaves())) }

// parallel uses the candidates that rOperators have in waves, since rOperators share the device there too.
func (p *planner) parallel() *vdevice.Plan { return p.launches(likeOpara, p.ofWaves()) }

// serial keeps launches from overlapping.
func serial(plan *vdevice.Plan) *vdevice.Plan {
	for i := range plan.Segments {
		plan.Segments[i].Serial = true
	}
	return plan
}

// launches is a plan with a launch for each rOperator.
func (p *planner) launches(how *streaming, chosen []*choice) *vdevice.Plan {
	s := p.scheduler(false)
	return s.ofNodes(s.nodes(how, allOps(p.g), chosen), chosen)
}

// fastest is the fastest candidate of each rOperator in a launch of its own.
func (p *planner) fastest() []*choice {
	chosen := make([]*choice, len(p.g.Ops))
	for op := range chosen {
		chosen[op] = fastest(p.plain[op])
		if len(p.alone[op]) == 0 {
			continue
		}
		if ch := fastest(p.alone[op]); ch.opTime < chosen[op].opTime {
			chosen[op] = ch
		}
	}
	return chosen
}

// ofWaves is the candidate that each rOperator has in waves.
func (p *planner) ofWaves() []*choice {
	s := p.scheduler(false)
	s.single(p.waves, vdevice.Waves)
	chosen := make([]*choice, len(p.g.Ops))
	for op := range chosen {
		chosen[op] = s.placed[op].choice
	}
	return chosen
}

// mixedFast is Algorithm 1 with the fastest candidate of each rOperator (Rammer §5.2.4).
func (p *planner) mixedFast() *vdevice.Plan {
	q := *p
	q.fastOnly = true
	return mixed(1)(&q)
}

// withBarriers is the rProgram with a barrier of all vEUs between waves (Rammer §5.2.5). Nothing travels in tagged
// words, which would be ordered without the barriers.
func (p *planner) withBarriers() *vdevice.Plan {
	s := p.scheduler(false)
	s.barriers = true
	return s.segments(s.single(p.together, vdevice.RProgram))
}

// mixed lets Algorithm 1 decide which waves form an rProgram; weight is how many times it counts the cost of a
// launch. What is left in waves becomes a parallel graph where that is faster by the model.
func mixed(weight float64) func(*planner) *vdevice.Plan {
	return func(p *planner) *vdevice.Plan {
		s := p.scheduler(true)
		s.launchWeight = weight
		groups := joinLaunches(s.algorithm1(p.together))
		plan := s.segments(groups)
		for i, g := range groups {
			if g.kind == vdevice.Waves && len(g.waves) > 1 {
				plan.Segments[i] = s.faster(plan.Segments[i], g)
			}
		}
		return plan
	}
}

func allOps(g *roperator.Graph) []int32 {
	out := make([]int32, len(g.Ops))
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// inOneRProgram reports whether Algorithm 1 has joined all waves. The plan is that of rprogram then.
func inOneRProgram(plan *vdevice.Plan) bool {
	return len(plan.Segments) == 1 && plan.Segments[0].Kind == vdevice.RProgram
}

// launchesOfWaves is the plan in waves with one or with two blocks on a multiprocessor. Without streamed weights it is the
// former: one kernel is better then, in which only one block fits a multiprocessor. Several of them made EfficientNet 9 %
// and ConvNeXt 4 % slower.
func (p *planner) launchesOfWaves() *vdevice.Plan {
	one := p.inWaves()
	if p.parts == nil && !p.mayStream() {
		return one
	}
	two := p.inCrowdedWaves(2)
	if !two.Crowded() || !two.Streams() {
		return one
	}
	if !manyTasks(one) {
		best, _ := p.fastestOf(one, two)
		return best
	}
	if Time(two, p.prediction) < Time(one, p.prediction) {
		return two
	}
	return one
}

// mayStream reports whether some candidate streams weights.
func (p *planner) mayStream() bool {
	return slices.ContainsFunc(p.plain, func(choices []choice) bool {
		return slices.ContainsFunc(choices, func(c choice) bool { return c.c.Inst.StreamStep() > 0 })
	})
}

// manyTasks reports whether launches have twice as many rTasks as the device has vEUs, on average. Then blocks that share a
// multiprocessor are the same rTasks in other places, and of these predictions know more than the costs by which single
// candidates are chosen. Otherwise two blocks take smaller tiles.
func manyTasks(plan *vdevice.Plan) bool {
	const twice = 2
	s := plan.Stats()
	return s.RTasks > twice*s.Launches*plan.Spec.VEUs()
}

// fastestOf is the plan that takes the least time by the model, the first one of equals, and that time.
func (p *planner) fastestOf(plans ...*vdevice.Plan) (best *vdevice.Plan, least float64) {
	best, least = plans[0], p.time(plans[0])
	for _, plan := range plans[1:] {
		if t := p.time(plan); t < least {
			best, least = plan, t
		}
	}
	return best, least
}

// branches reports that some wave has several rOperators, so that an order of rTasks other than that of waves may be
// better.
func (p *planner) branches() bool {
	if p.parts != nil {
		return slices.ContainsFunc(p.parts, func(x *part) bool { return x.branches() })
	}
	return len(p.g.Ops) > len(p.waves)
}

// laidOut decides what the kinds of plans have in common: how steps are run, which launches have multiprocessors to
// themselves, and where buffers live.
func (p *planner) laidOut(plan *vdevice.Plan) *vdevice.Plan {
	decideModes(plan)
	decideAlone(plan)
	vdevice.LayoutArena(plan)
	return plan
}
