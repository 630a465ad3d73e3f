package driver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/profiler/measure"
	"github.com/rammerc/rammerc/profiler/timing"
	"github.com/rammerc/rammerc/profiler/tune"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// tuneSpace is the tune.Space of a model: what plans are, and how they are predicted, built and timed.
type tuneSpace struct {
	c      *Compilation
	job    *Job
	graphs []*tunedGraph // the first has the precisions that the flags ask for

	mu    sync.Mutex
	plans map[string]schedule.Proposal // by the text of the schedule
	texts map[string]string            // likewise: hashes of the plans
}

// tunedGraph is the model in certain precisions, lowered.
type tunedGraph struct {
	name    string // of the precisions, in schedules
	c       *Compilation
	ops     *roperator.Graph
	costs   profiler.Costs
	classes []tune.Class
	classOf map[*roperator.Candidate]string // of the candidate's rOperator
	idOf    map[*roperator.Candidate]string
}

// within is how many times slower than the best candidate of its rOperator one may be, by the costs, to be tried.
const within = 2.5

func newTuneSpace(c *Compilation, job *Job, ops *roperator.Graph, costs profiler.Costs) (*tuneSpace, error) {
	s := &tuneSpace{c: c, job: job, plans: map[string]schedule.Proposal{}, texts: map[string]string{}}
	return s, s.add("", c, ops, costs)
}

// addOthers adds the model in the other precisions that may be tried. What their candidates take is measured within the
// same budget as for the first precision, which they share.
func (s *tuneSpace) addOthers() error {
	others := s.c.others()
	for _, x := range others {
		d, err := s.c.in(x)
		if err != nil {
			return err
		}
		d.opt.ProfileBudget /= time.Duration(len(others))
		ops, err := Lower(&Job{}, d.graph, d.axes, d.spec, d.opt)
		if err != nil {
			return Explain(err, d.model)
		}
		costs, err := d.costs(s.job, ops)
		if err != nil {
			return err
		}
		if err := s.add(x.name(), d, ops, costs); err != nil {
			return err
		}
	}
	return nil
}

// add adds a lowered graph.
func (s *tuneSpace) add(name string, c *Compilation, ops *roperator.Graph, costs profiler.Costs) error {
	g := &tunedGraph{
		name: name, c: c, ops: ops, costs: costs,
		classOf: map[*roperator.Candidate]string{}, idOf: map[*roperator.Candidate]string{},
	}
	at := map[string]int{} // class → index in classes
	for _, op := range ops.Ops {
		name := ""
		for _, x := range op.Candidates {
			key, err := s.c.bench.keys.Of(ops, x)
			if err != nil {
				return err
			}
			g.idOf[x] = key.ID()
			name += key.ID()
		}
		name = db.Hash(name)
		for _, x := range op.Candidates {
			g.classOf[x] = name
		}
		worth, least := g.worthTrying(op)
		if i, ok := at[name]; ok {
			g.classes[i].Share += least
		} else if len(worth) > 1 {
			at[name] = len(g.classes)
			g.classes = append(g.classes, tune.Class{Name: name, Candidates: worth, Share: least})
		}
	}
	s.graphs = append(s.graphs, g)
	return nil
}

// graph is the model in the precisions of a schedule.
func (s *tuneSpace) graph(precisions string) *tunedGraph {
	i := slices.IndexFunc(s.graphs, func(g *tunedGraph) bool { return g.name == precisions })
	if i < 0 {
		return nil
	}
	return s.graphs[i]
}

// worthTrying lists the candidates that a schedule may demand of an rOperator, the best first, and the time that the best
// of them takes.
func (g *tunedGraph) worthTrying(op *roperator.ROperator) (ids []string, least float64) {
	least = math.Inf(1)
	veus := g.c.spec.VEUs()
	total := func(x *roperator.Candidate) float64 {
		if !measure.Standalone(x) {
			return math.Inf(1)
		}
		return g.costs.TaskTime(x) * float64((x.Tasks+veus-1)/veus)
	}
	for _, x := range op.Candidates {
		least = min(least, total(x))
	}
	sorted := slices.Clone(op.Candidates)
	slices.SortStableFunc(sorted, func(a, b *roperator.Candidate) int { return cmp.Compare(total(a), total(b)) })
	for _, x := range sorted {
		if t := total(x); t <= within*least && !math.IsInf(t, 1) && !slices.Contains(ids, g.idOf[x]) {
			ids = append(ids, g.idOf[x])
		}
	}
	if math.IsInf(least, 1) {
		least = 0
	}
	return ids, least
}

// Precisions, Kinds, Policies and Classes are what schedules differ in.
func (s *tuneSpace) Precisions() []string {
	var out []string
	for _, g := range s.graphs {
		out = append(out, g.name)
	}
	return out
}
func (s *tuneSpace) Kinds() []string                        { return schedule.KindsToTry(s.c.spec) }
func (s *tuneSpace) Policies() []string                     { return PolicyNames() }
func (s *tuneSpace) Classes(precisions string) []tune.Class { return s.graph(precisions).classes }

// demanded are costs under which the scheduler takes what a schedule demands: the other candidates of the class become
// so expensive that they come into question only where the demanded one does not fit.
type demanded struct {
	*tunedGraph
	picks map[string]string
}

const prohibitive = 1000

// TaskTime is the real one for demanded candidates, and for those of classes of which nothing is demanded.
func (d demanded) TaskTime(x *roperator.Candidate) float64 {
	t := d.costs.TaskTime(x)
	if pick := d.picks[d.classOf[x]]; pick != "" && pick != d.idOf[x] {
		return prohibitive * t
	}
	return t
}

// proposal makes and verifies the plan of a schedule.
func (s *tuneSpace) proposal(x tune.Schedule) (schedule.Proposal, error) {
	name := fmt.Sprint(x)
	s.mu.Lock()
	p, ok := s.plans[name]
	s.mu.Unlock()
	if ok {
		return p, nil
	}
	g := s.graph(x.Precision)
	if g == nil {
		return p, fmt.Errorf("the model is not tried in %s", x.Precision) // a trial with other flags was
	}
	opt := schedule.Options{Plan: x.Kind, Policy: x.Policy}
	list, err := schedule.Proposals(g.ops, g.c.spec, demanded{g, x.Picks}, opt, 1)
	if err != nil {
		return p, err
	}
	p = list[0]
	if err := vdevice.Verify(p.Plan); err != nil {
		return p, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans[name] = p
	return p, nil
}

// Predict makes the plan of a schedule, verifies it, and says what it takes by the costs.
func (s *tuneSpace) Predict(x tune.Schedule) (tune.Prediction, error) {
	p, err := s.proposal(x)
	if err != nil {
		return tune.Prediction{}, err
	}
	return tune.Prediction{Plan: s.hash(x, p), US: p.Modelled / 1000}, nil
}

// hash identifies the plan that a schedule makes.
func (s *tuneSpace) hash(x tune.Schedule, p schedule.Proposal) string {
	name := fmt.Sprint(x)
	s.mu.Lock()
	h := s.texts[name]
	s.mu.Unlock()
	if h == "" {
		h = db.Hash(x.Precision + "\n" + string(vdevice.FormatPlan(p.Plan)))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.texts[name] = h
	}
	return h
}

// A library that schedules share has so many plans, and so many rKernel instances and rOperators of all plans together,
// at most. Plans cost it little more than their tables: SqueezeNet's library takes 8 s of the compiler with one plan and
// 9 s with ten of the same instances.
const (
	perLibrary   = 32
	mostOfThem   = 48   // instances
	mostOperated = 4000 // rOperators
)

// Time builds the schedules and times them. Those that are timed alone are timed in more rounds, because it is decided
// then.
func (s *tuneSpace) Time(_ context.Context, list []tune.Schedule, alone bool) ([]tune.Trial, error) {
	trials := make([]tune.Trial, len(list))
	plans := make([]schedule.Proposal, len(list))
	for i, x := range list {
		p, err := s.proposal(x)
		if err != nil {
			return nil, err
		}
		plans[i] = p
		trials[i] = tune.Trial{Schedule: x, Plan: s.hash(x, p)}
	}
	dir, remove, err := s.job.Folders.Make("", "rammerc-tune-")
	if err != nil {
		return nil, err
	}
	defer remove()
	inputs := engine.RandomInputs(engine.InputPorts(s.c.graph), 1, 2)
	bench := &planBench{lab: s.c.lab, plans: plans, inputs: inputs}
	for _, x := range list {
		bench.opt = append(bench.opt, s.graph(x.Precision).c.emission())
	}
	comparison := &timing.Comparison{
		Bench: bench, Dir: dir, Rounds: 1, Precision: s.coarsest(), Groups: s.groups(plans, alone),
		Reference: func() (engine.Tensors, error) { return s.c.evaluate(inputs) },
		Progress:  s.job.Progress("timing schedules"), Waiting: s.job.Waiting, Building: s.job.Building,
	}
	if alone {
		comparison.Rounds = 4
	}
	results, err := comparison.Run()
	bench.Close()
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		trials[i].US, trials[i].Problem = r.MeasuredUS, r.Problem
	}
	return trials, nil
}

// coarsest is the least accurate precision of any node in any schedule.
func (s *tuneSpace) coarsest() precision.Precision {
	all := s.c.opt.PrecisionChoice()
	for _, g := range s.graphs {
		for _, p := range g.c.opt.PrecisionChoice().Used() {
			all.Rules = append(all.Rules, precision.Rule{Precision: p})
		}
	}
	return all.Coarsest()
}

// groups says which plans share a library; alone, none do. A CUDA kernel has registers for all instances that it serves,
// and rPrograms share one kernel with all launches of their library. So plans only share one with others of their graph
// whose blocks have equally many threads, and which are rPrograms, or crowd multiprocessors, likewise.
func (s *tuneSpace) groups(plans []schedule.Proposal, alone bool) []int {
	type alike struct {
		graph               *roperator.Graph
		threads             int
		persistent, crowded bool
	}
	out := make([]int, len(plans))
	filling, next := map[alike]*sharedLibrary{}, 0
	for i, p := range plans {
		key := alike{p.Plan.Graph, planThreads(p.Plan), p.Plan.Persistent(), p.Plan.Crowded()}
		l := filling[key]
		if alone || l == nil || !l.add(p.Plan) {
			l = &sharedLibrary{number: next, instances: map[string]bool{}}
			l.add(p.Plan)
			filling[key] = l
			next++
		}
		out[i] = l.number
	}
	return out
}

// sharedLibrary is one that is being filled with plans.
type sharedLibrary struct {
	number, plans, rOperators int
	instances                 map[string]bool
}

// add adds a plan if there is room for it, or nothing else is there.
func (l *sharedLibrary) add(plan *vdevice.Plan) bool {
	instances := maps.Clone(l.instances)
	for op, pick := range plan.Pick {
		instances[plan.Graph.Ops[op].Candidates[pick].Inst.Key()] = true
	}
	n := len(plan.Pick)
	if l.plans > 0 && (l.plans == perLibrary || len(instances) > mostOfThem || l.rOperators+n > mostOperated) {
		return false
	}
	l.plans, l.rOperators, l.instances = l.plans+1, l.rOperators+n, instances
	return true
}

// program is the key under which trials are kept: whatever decides which plans there are in the precisions of the flags.
func (s *tuneSpace) program() string { return s.graphs[0].program() }

// program is likewise that of one graph.
func (g *tunedGraph) program() string { return programHash(g.c, g.ops, g.idOf) }

func programHash(c *Compilation, ops *roperator.Graph, idOf map[*roperator.Candidate]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v %v\n", *c.spec, c.opt.PrecisionChoice())
	for _, op := range ops.Ops {
		for _, x := range op.Candidates {
			b.WriteString(idOf[x])
			for _, a := range x.Reads {
				fmt.Fprintf(&b, " %d+%d", a.View.Buf.ID, a.View.Offset)
			}
			b.WriteByte('\n')
		}
	}
	return db.Hash(b.String())
}
