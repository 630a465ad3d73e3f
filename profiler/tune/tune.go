// Package tune searches for the fastest schedule of a program by timing schedules on the device at hand.
//
// A Schedule is a few decisions, from which a whole plan is made: the precisions of the model, a kind of plan, a
// policy, and for some classes of rOperators the candidate that they must have. What plans are, how they are predicted,
// built and timed, is the caller's (Space). Search first sweeps through the candidates of all classes at once (sweep.go),
// times what comes of that together with the kinds and policies that are promising, then changes the best so far:
//
//	candidates swept ─▶ timed with kinds × policies ─▶ the fastest few ─▶ changed at random ─▶ the most promising ─┐
//	                                                         ▲                                                    │
//	                                                         └─────────────────── timed ◀─────────────────────────┘
//
// Each timing is a Trial, which the caller keeps; a search that is started again goes on from the trials that it is
// given. All choices come from a seed.
package tune

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Schedule says how a plan is made.
type Schedule struct {
	// Precision names the precisions of the model's nodes; "" stands for what the flags ask for.
	Precision string `json:"precision,omitempty"`

	Kind   string `json:"kind"`   // of plan
	Policy string `json:"policy"` // that makes its waves
	// Picks has the candidate that rOperators of a class must have, by class; others are the scheduler's choice.
	Picks map[string]string `json:"picks,omitempty"`
}

// Class is a set of rOperators that have the same candidates.
type Class struct {
	Name       string   // of the class, of content
	Candidates []string // names, of content; the most promising by the costs first
	Share      float64  // of the program's time, as predicted
}

// Trial is a schedule that was timed.
type Trial struct {
	Schedule Schedule `json:"schedule"`
	Plan     string   `json:"plan"`              // hash of the plan that it makes
	US       float64  `json:"us,omitempty"`      // median of an inference, in microseconds
	Problem  string   `json:"problem,omitempty"` // why it could not be timed
	// Final says that the schedule was compared with the one that the search began with, each as a library of its own.
	Final bool `json:"final,omitempty"`
}

// Prediction is what the scheduler makes of a schedule.
type Prediction struct {
	Plan string  // hash: schedules with equal plans are the same
	US   float64 // by the costs
}

// Space is what is searched.
type Space interface {
	Precisions() []string // the first is ""
	Kinds() []string
	Policies() []string
	Classes(precision string) []Class
	// Predict makes the plan of a schedule and verifies it. It is called from several goroutines.
	Predict(Schedule) (Prediction, error)
	// Attribute builds schedules with tracing, runs them, and says of each what classes took of its time; nil for those
	// that could not be traced. It ends early when ctx does.
	Attribute(ctx context.Context, list []Schedule) ([][]Part, error)
	// Time times schedules and returns a trial for each, in order. If alone, each is built by itself, as it will be used.
	// It ends early when ctx does; then some have a Problem.
	Time(ctx context.Context, list []Schedule, alone bool) ([]Trial, error)
}

// Options say how to search.
type Options struct {
	Seed  uint64
	Batch int // how many schedules are timed together
	// Until is when the search is to end. A batch is not begun if less is left than twice what the last one took: the
	// comparison at the end takes about as long as a batch.
	Until time.Time
	// Known are the trials of earlier searches. Keep takes each new one.
	Known []Trial
	Keep  func([]Trial) error
	// Show is told after every batch.
	Show func(Status)
}

// Status is how far a search is.
type Status struct {
	Tries    int           // that were timed, with those of earlier searches
	FirstUS  float64       // of the schedule that the search began with
	BestUS   float64       // of the best so far
	Best     Schedule      //
	Batch    time.Duration // what the last batch took
	TimeLeft time.Duration
}

// Result is what a search found.
type Result struct {
	First, Best Trial // what it began with, and what is fastest; equal if nothing faster was found
	Tries       int
	Problems    int
}

type search struct {
	space Space
	opt   Options
	r     *rand.Rand

	trials []Trial
	plans  map[string]bool // that were timed
	first  Schedule
	took   time.Duration // the latest batch
	// poor has the candidates that were slower by far than others in a sweep, by precisions and class.
	poor map[string]map[string][]string
}

// Search looks for a faster schedule than first until opt.Until. The result is never slower than first: at the end both
// are built alone and timed once more, and the faster one is the result.
func Search(ctx context.Context, space Space, first Schedule, opt Options) (Result, error) {
	s := &search{space: space, opt: opt, first: first, plans: map[string]bool{},
		poor: map[string]map[string][]string{}}
	for _, t := range opt.Known {
		if !t.Final {
			s.note(t)
		}
	}
	s.r = rand.New(rand.NewPCG(opt.Seed, uint64(len(s.trials))))
	if err := s.run(ctx); err != nil {
		return Result{}, err
	}
	return s.conclude(ctx)
}

func (s *search) note(t Trial) {
	s.trials = append(s.trials, t)
	s.plans[t.Plan] = true
}

// run sweeps through the candidates, times what came of that together with kinds and policies, and then batches of
// children until the time is up or nothing new comes up.
func (s *search) run(ctx context.Context) error {
	swept, err := s.sweep(ctx)
	if err != nil {
		return err
	}
	next := s.fresh(append(swept, s.begin()...), 0)
	if len(next) == 0 { // a search before has timed them
		next = s.children()
	}
	for ; s.goesOn(ctx, next); next = s.children() {
		if err := s.batches(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// goesOn reports whether there is something to time, and time for it and for the comparison at the end.
func (s *search) goesOn(ctx context.Context, next []Schedule) bool {
	left := time.Until(s.opt.Until)
	return len(next) > 0 && left > 0 && left >= 2*s.took && ctx.Err() == nil
}

// batches times a list, some at a time.
func (s *search) batches(ctx context.Context, list []Schedule) error {
	for s.goesOn(ctx, list) {
		n := min(len(list), s.opt.Batch)
		begun := time.Now()
		if err := s.time(ctx, list[:n]); err != nil {
			return err
		}
		list, s.took = list[n:], time.Since(begun)
		s.show(s.took)
	}
	return nil
}

func (s *search) time(ctx context.Context, list []Schedule) error {
	got, err := s.space.Time(ctx, list, false)
	if err != nil {
		return err
	}
	if ctx.Err() != nil { // what it had no time for is no trial
		got = slices.DeleteFunc(got, func(t Trial) bool { return t.Problem != "" })
	}
	for _, t := range got {
		s.note(t)
	}
	return s.opt.Keep(got)
}

func (s *search) show(took time.Duration) {
	st := Status{Tries: len(s.trials), Batch: took, TimeLeft: time.Until(s.opt.Until)}
	if best := s.best(1); len(best) > 0 {
		st.BestUS, st.Best = best[0].US, best[0].Schedule
	}
	for _, t := range s.trials {
		if same(t.Schedule, s.first) {
			st.FirstUS = t.US
		}
	}
	s.opt.Show(st)
}

func same(a, b Schedule) bool {
	return a.Precision == b.Precision && a.Kind == b.Kind && a.Policy == b.Policy && maps.Equal(a.Picks, b.Picks)
}

// mostBegun is how many plans of kinds and policies are timed before candidates are looked at, and mostOther how many in
// each of the other precisions. There are more, but most are slower by far.
const mostBegun, mostOther = 16, 3

// begin lists what is timed before anything is known: first, and the most promising kinds and policies.
func (s *search) begin() []Schedule {
	out := s.fresh([]Schedule{s.first}, 0)
	for _, precision := range s.space.Precisions() {
		list, most := []Schedule{}, mostOther
		if precision == s.first.Precision {
			list, most = append(list, s.first), mostBegun
		}
		for _, policy := range s.space.Policies() {
			for _, kind := range s.space.Kinds() {
				list = append(list, Schedule{Precision: precision, Kind: kind, Policy: policy})
			}
		}
		for _, x := range s.fresh(list, most) {
			if !same(x, s.first) {
				out = append(out, x)
			}
		}
	}
	return out
}

// fresh keeps schedules whose plans are legal and were not timed, the most promising first; most 0 keeps all.
func (s *search) fresh(list []Schedule, most int) []Schedule {
	type promise struct {
		s Schedule
		p Prediction
	}
	var out []promise
	seen := maps.Clone(s.plans)
	for i, p := range s.predict(list) {
		if p.Plan != "" && !seen[p.Plan] {
			seen[p.Plan] = true
			out = append(out, promise{list[i], p})
		}
	}
	if most > 0 {
		slices.SortStableFunc(out, func(a, b promise) int { return cmp.Compare(a.p.US, b.p.US) })
		out = out[:min(most, len(out))]
	}
	var kept []Schedule
	for _, x := range out {
		kept = append(kept, x.s)
	}
	return kept
}

// predict predicts schedules on all processors. Those that are not legal, or come too late, have no plan.
func (s *search) predict(list []Schedule) []Prediction {
	out := make([]Prediction, len(list))
	var next atomic.Int32
	var wg sync.WaitGroup
	for range min(len(list), runtime.NumCPU()) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := int(next.Add(1)) - 1; i < len(list) && time.Now().Before(s.opt.Until); i = int(next.Add(1)) - 1 {
				if p, err := s.space.Predict(list[i]); err == nil {
					out[i] = p
				}
			}
		}()
	}
	wg.Wait()
	return out
}

// best lists the fastest trials, at most so many.
func (s *search) best(most int) []Trial {
	var out []Trial
	for _, t := range s.trials {
		if t.US > 0 {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b Trial) int { return cmp.Compare(a.US, b.US) })
	return out[:min(most, len(out))]
}

// clear is the part of the first schedule's time that another may take at most to replace it: less is chance.
const clear = 0.99

// conclude compares the best schedule with the first one, each as a library of its own.
func (s *search) conclude(ctx context.Context) (Result, error) {
	r := Result{Tries: len(s.trials)}
	for _, t := range s.trials {
		if t.Problem != "" {
			r.Problems++
		}
	}
	list := []Schedule{s.first}
	for _, t := range s.best(2) {
		if !same(t.Schedule, s.first) {
			list = append(list, t.Schedule)
		}
	}
	got, err := s.space.Time(ctx, list, true)
	if err != nil {
		return r, err
	}
	r.First, r.Best = got[0], got[0]
	timed := slices.DeleteFunc(got[1:], func(t Trial) bool { return t.US == 0 })
	if len(timed) > 0 {
		t := slices.MinFunc(timed, func(a, b Trial) int { return cmp.Compare(a.US, b.US) })
		if r.First.US == 0 || t.US <= clear*r.First.US {
			r.Best = t
		}
	}
	if r.Best.US > 0 {
		r.Best.Final = true
		return r, s.opt.Keep([]Trial{r.Best})
	}
	return r, nil
}
