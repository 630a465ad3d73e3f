package schedule

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// scheduler carries out Algorithm 1 of the paper (Rammer §3.3).
type scheduler struct {
	g            *roperator.Graph
	device       *device.Spec
	spec         *device.Spec // the device, as far as it is used
	ops          *opGraph
	choices      [][]choice // per rOperator: what may be picked
	alone        [][]choice // the planner's
	residence    *residence
	costs        profiler.Costs
	cluster      int          // vEUs in a cluster; 0: there are none
	launchWeight float64      // launches count so many times in Algorithm 1; 0 is 1
	fastOnly     bool         // the planner's
	groupsAlone  bool         // the planner's
	shared       map[int]bool // the planner's
	barriers     bool         // all rTasks of a wave come after all of the wave before

	placed []*placedOp // per rOperator: nil until its wave is committed
	cache  *tileCache
	empty  map[vdevice.SegmentKind]*placer // before the first wave
}

func newScheduler(g *roperator.Graph, spec *device.Spec, ops *opGraph, choices [][]choice) *scheduler {
	n := len(g.Ops)
	return &scheduler{
		g: g, device: spec, spec: spec, ops: ops, choices: choices, residence: &residence{},
		placed: make([]*placedOp, n), cache: newTileCache(n), empty: map[vdevice.SegmentKind]*placer{},
	}
}

// group is a segment that is being made: its waves, with their rTasks placed.
type group struct {
	kind  vdevice.SegmentKind
	waves [][]*placedOp
	// warpGroups is what the instances need that multiply by warp groups.
	warpGroups vdevice.Needs
}

// current is the segment that waves are added to (P_curr in the paper).
type current struct {
	group  *group
	placer *placer
}

func (s *scheduler) newCurrent(kind vdevice.SegmentKind) *current {
	if s.empty[kind] == nil {
		s.empty[kind] = newPlacer(s.spec, s.placed, s.residence, kind)
	}
	return &current{&group{kind: kind}, s.empty[kind].fork()}
}

// trial is a wave that was placed at the end of a current segment to see how long that takes. Nothing has been
// changed yet.
type trial struct {
	placer *placer
	ops    []*placedOp
}

func (s *scheduler) commit(c *current, t *trial) {
	c.placer.drop()
	c.placer = t.placer
	for _, o := range t.ops {
		o.group = c.group
		s.placed[o.op] = o
		o.choice.addWarpGroups(&c.group.warpGroups)
	}
	c.group.waves = append(c.group.waves, t.ops)
}

// segments builds the groups' programs.
func (s *scheduler) segments(groups []*group) *vdevice.Plan {
	plan := s.newPlan()
	for _, g := range groups {
		plan.Segments = append(plan.Segments, vdevice.Segment{Kind: g.kind, Program: s.build(g, plan.Pick)})
	}
	return plan
}

func (s *scheduler) newPlan() *vdevice.Plan {
	return &vdevice.Plan{Spec: s.device, Graph: s.g, Pick: make([]int, len(s.g.Ops))}
}

// single puts all waves into one group.
func (s *scheduler) single(waves [][]int32, kind vdevice.SegmentKind) []*group {
	cur := s.newCurrent(kind)
	for i, w := range waves {
		cur.placer.wave = i
		if kind == vdevice.Waves && i > 0 {
			cur.placer.launch()
		}
		s.commit(cur, s.crowdedWave(w, cur))
	}
	if len(waves) == 0 {
		return nil
	}
	return []*group{cur.group}
}

// worthCrowding is how many times the start of an overlapping launch a wave must save for its blocks to share
// multiprocessors. The next launch then finds no room to begin early: Inception, whose waves take a few microseconds,
// took 2.5 % longer where each of them took what was best for itself.
const worthCrowding = 2

// crowdedWave is scheduleWave with as many blocks on a multiprocessor as are best: those that the device has vEUs there,
// or as many times more as s.spec allows, in powers of two, where that clearly saves time. It cannot where each rTask has
// a vEU of its own already.
func (s *scheduler) crowdedWave(wave []int32, cur *current) *trial {
	base, most := cur.placer, max(1, s.spec.Crowded)
	_, tasks := s.pick(wave, fastest)
	var best *trial
	for crowd := 1; crowd <= most; crowd *= 2 {
		limit := s.spec.VEUs() / most * crowd
		if best != nil && tasks <= limit/2 {
			break
		}
		base.limit, base.ring = limit, vdevice.UsualRing(s.device.Crowd(crowd), cur.group.kind)
		t := s.scheduleWave(wave, cur, base)
		if best == nil {
			best = t
			continue
		}
		saves, from := best.placer.makespan()-t.placer.makespan(), best.placer.makespan()-base.makespan()
		if saves > max(leastRefinement*from, worthCrowding*s.spec.Cost.PDL) {
			best, t = t, best
		}
		t.placer.drop()
	}
	return best
}

// algorithm1 adds each wave to the current rProgram, or starts another one with it, whichever takes less time.
func (s *scheduler) algorithm1(waves [][]int32) []*group {
	var done []*group
	var cur *current
	for i, w := range waves {
		if cur != nil && s.continues(w, cur) {
			cur.placer.wave = i
			s.commit(cur, s.scheduleWave(w, cur, cur.placer))
			continue
		}
		fresh := s.newCurrent(vdevice.RProgram)
		fresh.placer.wave = i
		p2 := s.scheduleWave(w, fresh, fresh.placer)
		if cur != nil {
			cur.placer.wave = i
			p1 := s.scheduleWave(w, cur, cur.placer)
			waves, follows := len(cur.group.waves), len(done) > 0 && len(done[len(done)-1].waves) == 1
			joined := s.launchTime(waves+1, follows) + p1.placer.makespan()
			apart := s.launchTime(waves, follows) + cur.placer.makespan() + s.launchTime(1, waves == 1) +
				p2.placer.makespan()
			if joined <= apart {
				p2.placer.drop()
				fresh.placer.drop()
				s.commit(cur, p1)
				continue
			}
			p1.placer.drop()
			cur.placer.drop()
			done = append(done, cur.group)
		}
		cur = fresh
		s.commit(cur, p2)
	}
	if cur != nil {
		done = append(done, cur.group)
	}
	return done
}

// launchTime is what the launch of a group of so many waves costs, in ns. A group of a single wave becomes an ordinary
// launch, and that may come early if it follows another one.
func (s *scheduler) launchTime(waves int, followsWave bool) float64 {
	kind := vdevice.RProgram
	if waves == 1 {
		kind = vdevice.Waves
	}
	ns := vdevice.LaunchCost(&s.spec.Cost, kind, !followsWave, followsWave)
	if s.launchWeight > 0 {
		ns *= s.launchWeight
	}
	return ns
}

// continues reports that the wave must be added to the current rProgram: it uses weights that vEUs hold there, or takes
// data that only travel inside it.
func (s *scheduler) continues(wave []int32, cur *current) bool {
	for _, op := range wave {
		if g := s.residence.group[op]; g != nil && g.ops[0] != op {
			if o := s.placed[g.ops[0]]; o != nil && o.group == cur.group {
				return true
			}
		}
		if !s.residence.handed[op] {
			continue
		}
		for _, p := range s.ops.preds[op] {
			if o := s.placed[p]; o != nil && s.residence.handed[p] && o.group == cur.group {
				return true
			}
		}
	}
	return false
}

// joinLaunches replaces successive rPrograms of one wave each by one segment with a launch for each wave. There are
// as many launches as before, but they are ordinary ones and share one set of tables.
func joinLaunches(groups []*group) []*group {
	var out []*group
	for _, g := range groups {
		if len(g.waves) > 1 {
			out = append(out, g)
			continue
		}
		g.kind = vdevice.Waves
		if k := len(out) - 1; k >= 0 && out[k].kind == vdevice.Waves {
			out[k].waves = append(out[k].waves, g.waves[0])
			continue
		}
		out = append(out, g)
	}
	return out
}

// scheduleWave selects candidates for the wave's rOperators and places their rTasks after base, which has cur's
// earlier waves. If the rTasks of the fastest candidates do not fill the device, it takes these. Otherwise it takes
// the best of three selections: the fastest candidates, the most efficient ones, and, beyond the paper, those that
// are fastest on the share of the device that each rOperator can expect. Where the fastest ones are too many kinds of
// tiles of warp groups, there is a selection without such tiles, and with groupsAlone one for each rOperator in which it
// is the only one that has them. A launch of one rOperator may also have a candidate that is for these.
func (s *scheduler) scheduleWave(wave []int32, cur *current, base *placer) *trial {
	found := map[*choice]*deps{}
	fast, tasks := s.pick(wave, fastest)
	best := s.try(fast, cur, base, found)
	var others [][]picked
	if tasks >= s.spec.VEUs() && !s.fastOnly {
		slim, _ := s.pick(wave, efficient)
		others = append(others, slim, s.fitting(wave), s.crowding(wave, base.usable()))
	}
	if s.groupsFactor(fast, cur) > 1 && !s.fastOnly {
		without := s.withoutGroups(wave)
		others = append(others, without)
		if s.groupsAlone {
			others = append(others, groupsOfOne(fast, without)...)
		}
	}
	if ch := s.byItself(wave, cur.group.kind, base.usable()); ch != nil {
		others = append(others, []picked{{wave[0], ch}})
	}
	if others == nil {
		return best
	}
	tried := [][]picked{fast}
	for _, other := range others {
		if slices.ContainsFunc(tried, func(x []picked) bool { return slices.Equal(x, other) }) {
			continue
		}
		tried = append(tried, other)
		t := s.try(other, cur, base, found)
		if t.placer.makespan() < best.placer.makespan() {
			best, t = t, best
		}
		t.placer.drop()
	}
	return s.refine(best, cur, base, found)
}

// try places a wave with the given candidates after base, those with the longest rTasks first.
func (s *scheduler) try(wave []picked, cur *current, base *placer, found map[*choice]*deps) *trial {
	order := slices.Clone(wave)
	slices.SortStableFunc(order, func(a, b picked) int { return cmp.Compare(b.choice.taskTime, a.choice.taskTime) })
	t := &trial{placer: base.fork()}
	tasks := 0
	for _, x := range order {
		tasks += x.choice.c.Tasks
	}
	t.placer.factor = s.groupsFactor(wave, cur)
	if cur.group.kind == vdevice.Waves {
		t.placer.blocks = min(tasks, t.placer.usable())
	}
	for _, x := range order {
		d := found[x.choice]
		if d == nil {
			d = s.depsOf(x, cur)
			found[x.choice] = d
		}
		t.ops = append(t.ops, t.placer.place(x.op, x.choice, d))
	}
	return t
}

// depsOf finds what the rTasks depend on inside the current rProgram. In segments of launches there is nothing to
// wait for, since each launch comes after those before it.
func (s *scheduler) depsOf(x picked, cur *current) *deps {
	var preds []producer
	if n := len(cur.group.waves); s.barriers && n > 0 {
		return afterAll(cur.group.waves[n-1], x.choice.c.Tasks)
	}
	if cur.group.kind == vdevice.RProgram {
		for _, p := range s.ops.preds[x.op] {
			if o := s.placed[p]; o != nil && o.group == cur.group {
				preds = append(preds, producer{p, o.choice.c})
			}
		}
	}
	return findDeps(s.g, s.cache, preds, x.choice.c, s.residence.tagged)
}

// build makes a group's program.
func (s *scheduler) build(g *group, pick []int) *vdevice.Program {
	b := vdevice.NewBuilder(s.spec, s.g)
	if g.kind == vdevice.RProgram {
		b.JumpOver()
	}
	for _, wave := range g.waves {
		b.NextWave()
		for _, o := range wave {
			pick[o.op] = o.choice.index
			b.Pick(o.op, o.choice.index)
			appendOp(b, o)
		}
	}
	if g.kind == vdevice.RProgram {
		s.carry(b, g)
	}
	p := b.Program()
	if g.kind == vdevice.RProgram && s.cluster > 0 {
		s.placeSlots(p)
	}
	return p
}

// carry says which of the buffers that the group's rTasks write travel in tagged words, and whether some rTask needs
// them in plain memory as well.
func (s *scheduler) carry(b *vdevice.Builder, g *group) {
	plain := maps.Clone(s.shared)
	if plain == nil {
		plain = map[int]bool{}
	}
	for id := range s.g.Ops {
		o := s.placed[id]
		imported := o.choice.c.Imported()
		for i, a := range o.choice.c.Reads {
			if imported == nil || !imported[i] || o.group != g {
				plain[a.View.Buf.ID] = true
			}
		}
	}
	for _, wave := range g.waves {
		for _, o := range wave {
			for _, a := range o.choice.c.Writes {
				buf := a.View.Buf
				switch {
				case !s.residence.tagged[buf.ID]:
				case plain[buf.ID] || buf.Kind == roperator.Output:
					b.Carry(buf.ID, vdevice.TaggedAndPlain, len(s.g.Buffers))
				default:
					b.Carry(buf.ID, vdevice.Tagged, len(s.g.Buffers))
				}
			}
		}
	}
}

func appendOp(b *vdevice.Builder, o *placedOp) {
	fronts := make([]*vdevice.Front, len(o.deps.sets))
	for _, t := range o.order {
		appendTask(b, o, vdevice.Task{Op: o.op, Index: t}, fronts)
	}
}

// appendTask appends an rTask of o with its edges. fronts are those of o's task sets that are known already.
func appendTask(b *vdevice.Builder, o *placedOp, task vdevice.Task, fronts []*vdevice.Front) {
	for _, set := range o.deps.combos[o.deps.of[task.Index]] {
		if fronts[set] == nil {
			fronts[set] = b.Front(o.deps.sets[set].tasks)
		}
		b.After(o.deps.sets[set].kind, task, fronts[set])
	}
	b.Append(task, o.veu[task.Index])
}
