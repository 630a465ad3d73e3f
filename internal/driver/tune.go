package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/outdir"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/profiler/measure"
	"github.com/rammerc/rammerc/profiler/tune"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// TuneOptions are the flags of `rammerc tune`.
type TuneOptions struct {
	CompileOptions
	Budget time.Duration // for all: measuring rTasks, and timing schedules
	Search uint64        // seed of the search
	Batch  int           // how many schedules are built and timed together
	// CandidatesOnly measures rTasks and searches for no schedule; DryRun does neither.
	CandidatesOnly, DryRun bool
}

// Tuned is what `rammerc tune` reports.
type Tuned struct {
	Schema   string          `json:"schema"`
	Model    string          `json:"model"`
	Profiled *measure.Report `json:"profiled,omitempty"`
	Space    TuneSpace       `json:"space"`
	Known    int             `json:"known_trials"` // of earlier searches
	Tries    int             `json:"tries"`        // with those
	Problems int             `json:"problems"`
	FirstUS  float64         `json:"first_us,omitempty"` // what compile would have made
	BestUS   float64         `json:"best_us,omitempty"`
	Best     *tune.Schedule  `json:"best,omitempty"`
	Plan     string          `json:"plan,omitempty"` // file that compile will use
}

// TuneSpace says how large the search is.
type TuneSpace struct {
	Precisions []string `json:"precisions"` // beside those of the flags
	Kinds      []string `json:"kinds"`
	Policies   []string `json:"policies"`
	Classes    int      `json:"classes"`    // rOperators with different candidates, of which there is a choice
	Candidates int      `json:"candidates"` // of all classes
	Missing    int      `json:"missing"`    // candidates that the database lacks
	SecondsFor float64  `json:"seconds_for_missing"`
}

// DefaultTuneBudget and DefaultTuneBatch are what tune does without --budget and --batch.
const (
	DefaultTuneBudget = 10 * time.Minute
	DefaultTuneBatch  = 48
)

// candidateShare is the part of the budget that measuring rTasks may take.
const candidateShare = 0.4

// Tune measures the candidates of a model and searches for its fastest schedule, on the GPU at hand. compile uses what
// it finds.
func Tune(job *Job, opt TuneOptions) (r *Tuned, err error) {
	defer job.Guard(&err)
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	begun := time.Now()
	job.Printf("%s\n", opt.Path)
	spec, err := opt.Spec(job)
	if err != nil {
		return nil, err
	}
	opt.ProfileBudget = time.Duration(candidateShare * float64(opt.Budget))
	if opt.CandidatesOnly {
		opt.ProfileBudget = opt.Budget
	}
	if opt.DryRun {
		opt.ProfileBudget = 0
	}
	if err := opt.noRanges("tune"); err != nil {
		return nil, err
	}
	c := &Compilation{opt: opt.CompileOptions, spec: spec}
	if err := c.prepare(job); err != nil {
		return nil, err
	}
	ops, err := lowerStateful(job, c.graph, c.axes, c.lowerStates(), c.spec, c.opt)
	if err != nil {
		return nil, Explain(err, c.model)
	}
	if len(c.others()) > 0 {
		c.opt.ProfileBudget /= 2 // the other half is for all other precisions
	}
	if c.bench, err = c.opt.bench(spec.Arch, spec.Product); err != nil {
		return nil, err
	}
	asked, _ := c.programOf(ops) // before candidates are removed that are known to be wrong
	costs, err := c.costs(job, ops)
	if err != nil {
		return nil, diag.InFile(err, opt.Path)
	}
	c.lab = c.opt.laboratory(spec.Arch)
	if c.bench == nil || c.lab == nil {
		return nil, &toolchain.Missing{
			Tool: "the GPU that the schedule is for, " + spec.Product + ",",
			Help: "schedules are timed: run tune where it is, with nvcc and without --offline",
		}
	}
	return c.tune(job, opt, asked, ops, costs, begun.Add(opt.Budget))
}

// Validate reports flags that make no sense.
func (o *TuneOptions) Validate() error {
	var l diag.List
	o.Problems(&l)
	if o.Budget <= 0 {
		l.Add(diag.New("bad-flag", "--budget %v: want a time above 0", o.Budget))
	}
	if o.Batch < 1 {
		l.Add(diag.New("bad-flag", "--batch %d: want a number of schedules, at least 1", o.Batch))
	}
	return l.Err()
}

// tune searches from where the candidates have been measured. asked is the key of the program that the flags ask for.
func (c *Compilation) tune(job *Job, opt TuneOptions, asked string, ops *roperator.Graph, costs profiler.Costs,
	until time.Time) (*Tuned, error) {
	space, err := newTuneSpace(c, job, ops, costs)
	if err != nil {
		return nil, err
	}
	if err := space.addOthers(); err != nil {
		return nil, err
	}
	r := &Tuned{Schema: "rammerc/tune/v1", Model: filepath.Base(opt.Path), Profiled: c.profiled}
	if r.Space, err = c.describeSpace(space, costs); err != nil {
		return nil, err
	}
	log := tune.Beside(c.bench.base, tune.Key{Machine: c.bench.keys.Machine(), Program: space.program()})
	known, err := log.Trials()
	if err != nil {
		return nil, err
	}
	r.Known = len(known)
	if opt.DryRun || opt.CandidatesOnly {
		return r, nil
	}
	done := job.Stage("search")
	first := tune.Schedule{Kind: schedule.PlanAuto, Policy: opt.Policy}
	got, err := tune.Search(context.Background(), space, first, tune.Options{
		Seed: opt.Search, Batch: opt.Batch, Until: until, Known: known,
		Keep: func(t []tune.Trial) error { return log.Append(r.Model, t) },
		Show: func(s tune.Status) {
			job.Printf("    best %.1f µs (%s, %s), at first %.1f µs; %s in all, %s for the last %d, %s left\n",
				s.BestUS,
				s.Best.Kind, progress.Count(len(s.Best.Picks), "demand"), s.FirstUS,
				progress.Count(s.Tries, "schedule"),
				progress.Duration(s.Batch), opt.Batch, progress.Duration(max(0, s.TimeLeft)))
		},
	})
	if err != nil {
		return nil, err
	}
	r.Tries, r.Problems, r.FirstUS, r.BestUS = got.Tries, got.Problems, got.First.US, got.Best.US
	done("%.1f µs instead of %.1f µs, after %s", r.BestUS, r.FirstUS, progress.Count(r.Tries, "schedule"))
	if got.Best.US == 0 {
		return r, nil
	}
	r.Best = &got.Best.Schedule
	best, err := space.proposal(got.Best.Schedule)
	if err != nil {
		return nil, err
	}
	g := space.graph(got.Best.Schedule.Precision)
	r.Plan = c.tunedFile(g.program())
	if err := os.MkdirAll(filepath.Dir(r.Plan), 0o777); err != nil {
		return nil, err
	}
	if err := outdir.WriteFile(r.Plan, vdevice.FormatPlan(best.Plan)); err != nil {
		return nil, err
	}
	return r, c.keepPrecisions(asked, g.name)
}

// keepPrecisions notes in which precisions a program was fastest, for compile; "" stands for those of the flags.
func (c *Compilation) keepPrecisions(program, name string) error {
	file := c.precisionsFile(program)
	if name != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		return outdir.WriteFile(file, []byte(name+"\n"))
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// precisionsFile is the file beside the plan of a program that names other precisions, in which it was faster.
func (c *Compilation) precisionsFile(program string) string {
	return strings.TrimSuffix(c.tunedFile(program), ".rprog") + ".precision"
}

// tunedPrecisions are the precisions in which a search found the program of ops to be faster than in those of the flags,
// if compile may choose the plan and these precisions are still among those that may be tried.
func (c *Compilation) tunedPrecisions(ops *roperator.Graph) (inPrecisions, bool) {
	program, ok := c.programOf(ops)
	if !ok {
		return inPrecisions{}, false
	}
	text, err := os.ReadFile(c.precisionsFile(program))
	if err != nil {
		return inPrecisions{}, false
	}
	list := c.others()
	i := slices.IndexFunc(list, func(x inPrecisions) bool { return x.name() == strings.TrimSpace(string(text)) })
	if i < 0 {
		return inPrecisions{}, false
	}
	return list[i], true
}

// programOf is the key of the program of ops; ok is false where no search has left a plan that compile may take.
func (c *Compilation) programOf(ops *roperator.Graph) (key string, ok bool) {
	if c.bench == nil || c.opt.Plan != "" && c.opt.Plan != schedule.PlanAuto {
		return "", false
	}
	ids := map[*roperator.Candidate]string{}
	for _, op := range ops.Ops {
		for _, x := range op.Candidates {
			id, err := c.bench.keys.Of(ops, x)
			if err != nil {
				return "", false
			}
			ids[x] = id.ID()
		}
	}
	return programHash(c, ops, ids), true
}

// secondsFor is about what a candidate takes to be measured, with its part of a build on one processor.
const secondsFor = 0.3

func (c *Compilation) describeSpace(s *tuneSpace, costs profiler.Costs) (TuneSpace, error) {
	classes := s.Classes("")
	d := TuneSpace{Precisions: s.Precisions()[1:], Kinds: s.Kinds(), Policies: s.Policies(), Classes: len(classes)}
	for _, x := range classes {
		d.Candidates += len(x.Candidates)
	}
	session := measure.Session{DB: c.bench.base, Keys: c.bench.keys, VEUs: c.spec.VEUs()}
	var err error
	d.Missing, err = session.Missing(measure.Program{Graph: s.graphs[0].ops, Costs: costs})
	d.SecondsFor = secondsFor * float64(d.Missing)
	return d, err
}

// tunedFile is where the plan is kept that a search has found for a program.
func (c *Compilation) tunedFile(program string) string {
	m := c.bench.keys.Machine()
	name := fmt.Sprintf("%s-%s.rprog", program, tune.Key{Machine: m, Program: program}.ID())
	return filepath.Join(filepath.Dir(c.bench.base.Path()), "tuned", name)
}

// tunedPlan is the plan that a search has found for this program on this machine, if compile may choose the plan.
func (c *Compilation) tunedPlan(ops *roperator.Graph, costs profiler.Costs) (schedule.Proposal, bool) {
	none := schedule.Proposal{}
	program, ok := c.programOf(ops)
	if !ok {
		return none, false
	}
	file := c.tunedFile(program)
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return none, false
	}
	p, err := ReadPlan(file, ops, c.spec, costs)
	if err != nil {
		return none, false // made by another version of the scheduler's text form
	}
	p.Kind = "tuned"
	return p, true
}

// Text prints what was found.
func (r *Tuned) Text(w io.Writer) {
	fmt.Fprintf(w, "%s: %s with %s in all; kinds of plan: %s; policies: %s; other precisions: %s\n", r.Model,
		progress.Count(r.Space.Classes, "choice"), progress.Count(r.Space.Candidates, "candidate"),
		strings.Join(r.Space.Kinds, ", "), strings.Join(r.Space.Policies, ", "),
		cmp.Or(strings.Join(r.Space.Precisions, ", "), "none"))
	if r.Space.Missing > 0 {
		fmt.Fprintf(w, "%s not measured yet, about %.0f s of one processor\n",
			progress.Count(r.Space.Missing, "candidate"), r.Space.SecondsFor)
	}
	if r.BestUS == 0 {
		fmt.Fprintf(w, "%s known\n", progress.Count(r.Known, "trial"))
		return
	}
	fmt.Fprintf(w, "%.1f µs instead of %.1f µs (%.2f times as fast), after %s, %d of which could not be timed\n",
		r.BestUS,
		r.FirstUS, r.FirstUS/r.BestUS, progress.Count(r.Tries, "schedule"), r.Problems)
	fmt.Fprintf(w, "%s%s, policy %s, %s\n%s\n", strings.TrimPrefix(r.Best.Precision+" ", " "), r.Best.Kind, r.Best.Policy,
		progress.Count(len(r.Best.Picks), "demand"), r.Plan)
}
