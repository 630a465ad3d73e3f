package driver

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/trace"
	"github.com/rammerc/rammerc/profiler/timing"
	"github.com/rammerc/rammerc/profiler/tune"
	"github.com/rammerc/rammerc/schedule"
)

// A traced program runs tracedRuns times, each after warmUpTraced other inferences. What rOperators took is the mean.
const (
	tracedRuns   = 3
	warmUpTraced = 20
)

// Attribute builds the schedules with tracing, all at the same time, runs one after another, and says what the classes of
// rOperators added to the time of each. A schedule that does not build or run has no parts: it is not worth more.
func (s *tuneSpace) Attribute(ctx context.Context, list []tune.Schedule) ([][]tune.Part, error) {
	out := make([][]tune.Part, len(list))
	if s.c.lab.traced == nil {
		return out, nil
	}
	dir, remove, err := s.job.Folders.Make("", "rammerc-sweep-")
	if err != nil {
		return nil, err
	}
	defer remove()
	plans := make([]schedule.Proposal, len(list))
	dirs := make([]string, len(list))
	for i, x := range list {
		if plans[i], err = s.proposal(x); err != nil {
			return nil, err
		}
		if dirs[i], err = os.MkdirTemp(dir, ""); err != nil {
			return nil, err
		}
		if err := codegen.Emit(plans[i].Plan, s.graph(x.Precision).c.emission(), codegen.Dir(dirs[i])); err != nil {
			return nil, err
		}
	}
	one, end := s.job.Building("building traced plans", len(dirs))
	built := s.buildTraced(ctx, dirs, one)
	end()
	defer timing.Alone(s.job.Waiting)()
	for i := range list {
		if built[i] && ctx.Err() == nil {
			if ns, err := s.contributions(dirs[i]); err == nil {
				out[i] = s.graph(list[i].Precision).parts(plans[i], ns)
			}
		}
	}
	return out, nil
}

// buildTraced compiles the sources in the folders and reports which of them it could compile; one is called after each.
func (s *tuneSpace) buildTraced(ctx context.Context, dirs []string, one func()) []bool {
	built := make([]bool, len(dirs))
	free := make(chan struct{}, runtime.NumCPU())
	var wg sync.WaitGroup
	for i, dir := range dirs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			free <- struct{}{}
			defer func() { <-free }()
			built[i] = ctx.Err() == nil && s.c.lab.traced(dir, s.c.Name()) == nil
			one()
		}()
	}
	wg.Wait()
	return built
}

// contributions runs the traced library in a folder. It returns what each rOperator adds to the time, in nanoseconds.
func (s *tuneSpace) contributions(dir string) ([]float64, error) {
	name := s.c.Name()
	opt := s.c.lab.open
	opt.Name, opt.Weights = name, filepath.Join(dir, name+".weights")
	text, err := os.ReadFile(filepath.Join(dir, name+".plan.json"))
	if err != nil {
		return nil, err
	}
	plan, err := trace.ReadPlan(text)
	if err != nil {
		return nil, err
	}
	l, err := engine.OpenLibrary(filepath.Join(dir, "lib"+name+".so"), opt)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	raw, err := l.Raw(engine.RandomInputs(engine.InputPorts(s.c.graph), 1, 2))
	if err != nil {
		return nil, err
	}
	sum := make([]float64, len(plan.Ops))
	for range tracedRuns {
		recorded, err := l.Trace(raw, warmUpTraced)
		if err != nil {
			return nil, err
		}
		rows, err := trace.Decode(recorded)
		if err != nil {
			return nil, err
		}
		t, err := trace.Join(rows, plan)
		if err != nil {
			return nil, err
		}
		for op, ns := range t.Contributions() {
			sum[op] += ns / tracedRuns
		}
	}
	return sum, nil
}

// parts adds up by class what the rOperators of a plan took.
func (g *tunedGraph) parts(p schedule.Proposal, ns []float64) []tune.Part {
	at := map[[2]string]int{}
	var out []tune.Part
	for op, pick := range p.Plan.Pick {
		c := p.Plan.Graph.Ops[op].Candidates[pick]
		key := [2]string{g.classOf[c], g.idOf[c]}
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, tune.Part{Class: key[0], Candidate: key[1]})
		}
		out[i].Count++
		out[i].US += ns[op] / 1000
	}
	return out
}
