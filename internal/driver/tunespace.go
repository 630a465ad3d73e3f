package driver

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/rammerc/rammerc/internal/engine"
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
	c       *Compilation
	job     *Job
	ops     *roperator.Graph
	costs   profiler.Costs
	classes []tune.Class
	classOf map[*roperator.Candidate]string // of the candidate's rOperator
	idOf    map[*roperator.Candidate]string

	mu    sync.Mutex
	plans map[string]schedule.Proposal // by the text of the schedule
	texts map[string]string            // likewise: hashes of the plans
}

// within is how many times slower than the best candidate of its rOperator one may be, by the costs, to be tried.
const within = 2.5

func newTuneSpace(c *Compilation, job *Job, ops *roperator.Graph, costs profiler.Costs) (*tuneSpace, error) {
	s := &tuneSpace{
		c: c, job: job, ops: ops, costs: costs, plans: map[string]schedule.Proposal{}, texts: map[string]string{},
		classOf: map[*roperator.Candidate]string{}, idOf: map[*roperator.Candidate]string{},
	}
	at := map[string]int{} // class → index in classes
	for _, op := range ops.Ops {
		name := ""
		for _, x := range op.Candidates {
			key, err := c.bench.keys.Of(ops, x)
			if err != nil {
				return nil, err
			}
			s.idOf[x] = key.ID()
			name += key.ID()
		}
		name = db.Hash(name)
		for _, x := range op.Candidates {
			s.classOf[x] = name
		}
		worth, least := s.worthTrying(op)
		if i, ok := at[name]; ok {
			s.classes[i].Share += least
		} else if len(worth) > 1 {
			at[name] = len(s.classes)
			s.classes = append(s.classes, tune.Class{Name: name, Candidates: worth, Share: least})
		}
	}
	return s, nil
}

// worthTrying lists the candidates that a schedule may demand of an rOperator, the best first, and the time that the best
// of them takes.
func (s *tuneSpace) worthTrying(op *roperator.ROperator) (ids []string, least float64) {
	least = math.Inf(1)
	veus := s.c.spec.VEUs()
	total := func(x *roperator.Candidate) float64 {
		if !measure.Standalone(x) {
			return math.Inf(1)
		}
		return s.costs.TaskTime(x) * float64((x.Tasks+veus-1)/veus)
	}
	for _, x := range op.Candidates {
		least = min(least, total(x))
	}
	sorted := slices.Clone(op.Candidates)
	slices.SortStableFunc(sorted, func(a, b *roperator.Candidate) int { return cmp.Compare(total(a), total(b)) })
	for _, x := range sorted {
		if t := total(x); t <= within*least && !math.IsInf(t, 1) && !slices.Contains(ids, s.idOf[x]) {
			ids = append(ids, s.idOf[x])
		}
	}
	if math.IsInf(least, 1) {
		least = 0
	}
	return ids, least
}

// Kinds, Policies and Classes are what schedules differ in.
func (s *tuneSpace) Kinds() []string       { return schedule.KindsToTry(s.c.spec) }
func (s *tuneSpace) Policies() []string    { return PolicyNames() }
func (s *tuneSpace) Classes() []tune.Class { return s.classes }

// demanded are costs under which the scheduler takes what a schedule demands: the other candidates of the class become
// so expensive that they come into question only where the demanded one does not fit.
type demanded struct {
	*tuneSpace
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
	opt := schedule.Options{Plan: x.Kind, Policy: x.Policy}
	list, err := schedule.Proposals(s.ops, s.c.spec, demanded{s, x.Picks}, opt, 1)
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
		h = db.Hash(string(vdevice.FormatPlan(p.Plan)))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.texts[name] = h
	}
	return h
}

// perLibrary is how many schedules share a library while they are searched: so few that all processors build.
const perLibrary = 3

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
	inputs := engine.RandomInputs(engine.GraphPorts(s.c.graph.Inputs), 1, 2)
	comparison := &timing.Comparison{
		Bench: &planBench{lab: s.c.lab, plans: plans, opt: s.c.emission(), inputs: inputs}, Dir: dir, Rounds: 1,
		Precision: s.c.opt.PrecisionChoice().Coarsest(), Groups: s.groups(plans, alone),
		Reference: func() (engine.Tensors, error) { return s.c.evaluate(inputs) },
		Progress:  s.job.Progress("timing schedules"), Waiting: s.job.Waiting,
	}
	if alone {
		comparison.Rounds = 4
	}
	results, err := comparison.Run()
	if err != nil {
		return nil, err
	}
	for i, r := range results {
		trials[i].US, trials[i].Problem = r.MeasuredUS, r.Problem
	}
	return trials, nil
}

// groups says which plans share a library: plans whose blocks have equally many threads, so few that many libraries are
// built at a time; alone, none do.
func (s *tuneSpace) groups(plans []schedule.Proposal, alone bool) []int {
	out := make([]int, len(plans))
	open, used, next := map[int]int{}, map[int]int{}, 0 // by threads: the library that is being filled; its plans
	for i, p := range plans {
		threads := planThreads(p.Plan)
		if n := used[threads]; alone || n == 0 || n == perLibrary {
			open[threads], used[threads] = next, 0
			next++
		}
		used[threads]++
		out[i] = open[threads]
	}
	return out
}

// program is the key under which trials of a graph are kept: whatever decides which plans there are.
func (s *tuneSpace) program() string { return programHash(s.c, s.ops, s.idOf) }

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
