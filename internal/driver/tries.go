package driver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

// DefaultTries is how many plans `compile --plan auto` times when --tries does not say.
const DefaultTries = 8

// bench is how a device times plans.
type bench struct {
	// build compiles NAME.cu in dir into libNAME.so; it is called from several goroutines.
	build func(dir, name string) error
	open  runner.Options
	// clock is what the plan takes, in microseconds; raw are its inputs.
	clock func(plan string, l *library, raw [][]byte) (float64, error)
}

// warmUpRuns and timedRuns are how often a plan runs to be timed; its time is the median.
const (
	warmUpRuns = 50
	timedRuns  = 300
	rounds     = 2 // of all plans; the better median counts
)

// bench is the GPU at hand if it is what the plan is for, else nil.
func (o *CompileOptions) bench(arch string) *bench {
	switch {
	case o.Offline:
		return nil
	case o.lab != nil:
		return o.lab
	}
	if arch == TargetEmu || toolchain.LocalArch(context.Background()) != arch {
		return nil
	}
	nvcc, err := toolchain.FindNVCC("")
	if err != nil {
		return nil
	}
	return &bench{
		build: func(dir, name string) error {
			_, err := nvcc.BuildLibrary(context.Background(), dir, name, []string{arch})
			return err
		},
		open: runner.Options{OnDevice: true},
		clock: func(_ string, l *library, raw [][]byte) (float64, error) {
			ms, err := l.lib.Bench(raw, warmUpRuns, timedRuns)
			if err != nil {
				return 0, err
			}
			sort.Float64s(ms)
			return 1000 * ms[len(ms)/2], nil
		},
	}
}

// candidates are the plans to choose from: one, unless they can be timed.
func (c *compilation) candidates(ops *roperator.Graph, costs profiler.Costs) ([]schedule.Candidate, *bench, error) {
	if isPlanText(c.opt.Plan) {
		p, err := readPlanText(c.opt.Plan, ops, c.spec, costs)
		return []schedule.Candidate{p}, nil, err
	}
	most, b := 1, (*bench)(nil)
	if c.opt.Plan == "" || c.opt.Plan == schedule.PlanAuto {
		if c.opt.Tries > 1 {
			b = c.opt.bench(c.spec.Arch)
		}
		if b != nil {
			most = c.opt.Tries
		}
	}
	plans, err := schedule.Candidates(ops, c.spec, costs, schedule.Options{Plan: c.opt.Plan, Policy: c.opt.Policy}, most)
	return plans, b, err
}

// try builds the plans, compares what they compute, times them and returns which is the fastest. Where
// nothing can be timed that is the first, which the model prefers.
func (c *compilation) try(ui *UI, b *bench, plans []schedule.Candidate) (best int, err error) {
	dir, remove, err := ui.tempDir("", "rammerc-plans-")
	if err != nil {
		return 0, err
	}
	defer remove()
	done := ui.Stage("try")
	t := &tryout{c: c, bench: b, plans: plans, dir: dir, tries: make([]codegen.Try, len(plans)), libs: make([]variantLib, len(plans))}
	for i, p := range plans {
		t.tries[i] = codegen.Try{Plan: p.Kind, ModelledUS: p.Modelled / 1000}
	}
	t.build(ui)
	if err := t.time(ui); err != nil {
		return 0, err
	}
	best = t.fastest()
	t.tries[best].Chosen = true
	c.tried = t.tries
	if t.tries[best].MeasuredUS > 0 {
		done("%s is the fastest of %s: %.1f µs measured", plans[best].Kind, count(len(plans), "plan"), t.tries[best].MeasuredUS)
	} else {
		done("none of %s could be timed: the model decides", count(len(plans), "plan"))
	}
	for _, x := range t.tries {
		ui.Printf("    %s\n", describeTry(x))
		if x.Problem != "" {
			ui.Warn([]*diag.Diagnostic{{
				Severity: diag.Warning, ID: "plan-skipped", File: c.opt.Path, Message: fmt.Sprintf("plan %q was not timed: %s", x.Plan, x.Problem),
			}})
		}
	}
	return best, nil
}

func describeTry(x codegen.Try) string {
	measured, mark := "not timed", " "
	if x.MeasuredUS > 0 {
		measured = fmt.Sprintf("%.1f µs", x.MeasuredUS)
	}
	if x.Chosen {
		mark = "*"
	}
	return fmt.Sprintf("%s %-12s %12s  (%.1f µs predicted)", mark, x.Plan, measured, x.ModelledUS)
}

// tryout is the state of a comparison of plans.
type tryout struct {
	c     *compilation
	bench *bench
	plans []schedule.Candidate
	dir   string
	tries []codegen.Try
	libs  []variantLib              // per plan; without a path for those that were not built
	outs  [][]map[string]*ir.Tensor // per plan: what it computed
}

// variantLib is where a built plan is.
type variantLib struct{ path, prefix, weights string }

// sheaf is a library in the making that holds some of the plans.
type sheaf struct {
	dir, name string
	plans     []int
	err       error
}

// build makes libraries of the plans. Plans whose vEUs have equally many threads, and so equally many
// registers a thread, share a program; where that does not build each of its plans gets its own.
func (t *tryout) build(ui *UI) {
	byThreads := map[int]*sheaf{}
	var sheaves []*sheaf
	for i := range t.plans {
		n := planThreads(t.plans[i].Plan)
		if byThreads[n] == nil {
			byThreads[n] = &sheaf{}
			sheaves = append(sheaves, byThreads[n])
		}
		byThreads[n].plans = append(byThreads[n].plans, i)
	}
	t.buildAll(ui, sheaves)
	var alone []*sheaf
	for _, s := range sheaves {
		for _, i := range s.plans {
			if s.err != nil && len(s.plans) > 1 {
				alone = append(alone, &sheaf{plans: []int{i}})
			}
		}
	}
	t.buildAll(ui, alone)
}

func planThreads(plan *vdevice.Plan) int {
	n := 0
	for _, s := range plan.Segments {
		n = max(n, s.Program.Needs().Threads)
	}
	return n
}

// buildAll emits the sheaves one after another and compiles them side by side, on as many processors as
// there are.
func (t *tryout) buildAll(ui *UI, sheaves []*sheaf) {
	if len(sheaves) == 0 {
		return
	}
	finished := make(chan *sheaf, len(sheaves))
	free := make(chan struct{}, runtime.NumCPU())
	for _, s := range sheaves {
		s.err = t.emit(s)
		go func() {
			free <- struct{}{}
			if s.err == nil {
				s.err = t.bench.build(s.dir, s.name)
			}
			<-free
			finished <- s
		}()
	}
	end := ui.Waiting("building " + count(plansOf(sheaves), "plan"))
	for range sheaves {
		t.take(<-finished)
	}
	end()
}

func plansOf(sheaves []*sheaf) int {
	n := 0
	for _, s := range sheaves {
		n += len(s.plans)
	}
	return n
}

// emit writes a sheaf's sources and weights into a folder of its own.
func (t *tryout) emit(s *sheaf) error {
	dir, err := os.MkdirTemp(t.dir, "")
	if err != nil {
		return err
	}
	s.dir, s.name = dir, "tried"
	plans := make([]*vdevice.Plan, len(s.plans))
	for k, i := range s.plans {
		plans[k] = t.plans[i].Plan
	}
	opt := codegen.Options{Name: s.name, Version: Version().Version, Model: filepath.Base(t.c.opt.Path)}
	return codegen.EmitVariants(plans, opt, codegen.Dir(dir))
}

// take notes how a build ended.
func (t *tryout) take(s *sheaf) {
	for k, i := range s.plans {
		if s.err != nil {
			t.tries[i].Problem = "it does not build: " + firstLine(s.err)
			continue
		}
		t.tries[i].Problem = ""
		t.libs[i] = variantLib{
			path: filepath.Join(s.dir, "lib"+s.name+".so"), prefix: codegen.VariantName(s.name, k), weights: filepath.Join(s.dir, s.name+".weights"),
		}
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return line
}

// time runs all plans that were built, in rounds, so that what the device does by the way hits all alike,
// and compares what they compute after the first.
func (t *tryout) time(ui *UI) error {
	defer ui.alone()()
	progress, n := ui.Progress("timing plans"), 0
	t.outs = make([][]map[string]*ir.Tensor, len(t.plans))
	for round := range rounds {
		for i := range t.plans {
			if t.libs[i].path != "" && t.tries[i].Problem == "" {
				t.run(i)
			}
			n++
			progress(n, rounds*len(t.plans))
		}
		if round == 0 {
			if err := t.compare(); err != nil {
				return err
			}
		}
	}
	return nil
}

// run times plan i and keeps what it computes, or notes what is wrong with it.
func (t *tryout) run(i int) {
	us, err := t.measure(i)
	switch {
	case err != nil:
		t.discard(i, err)
	case t.tries[i].MeasuredUS == 0 || us < t.tries[i].MeasuredUS:
		t.tries[i].MeasuredUS = us
	}
}

func (t *tryout) discard(i int, err error) {
	t.tries[i].Problem, t.tries[i].MeasuredUS = firstLine(err), 0
}

func (t *tryout) measure(i int) (us float64, err error) {
	lib := t.libs[i]
	opt := t.bench.open
	opt.Name, opt.Weights = lib.prefix, lib.weights
	l, err := openLibrary(lib.path, opt)
	if err != nil {
		return 0, err
	}
	defer l.close()
	in := t.inputs()
	for range 2 { // launched one by one, then as a CUDA graph
		out, err := l.run(in)
		if err != nil {
			return 0, err
		}
		t.outs[i] = append(t.outs[i], out)
	}
	raw, err := l.raw(in)
	if err != nil {
		return 0, err
	}
	return t.bench.clock(t.plans[i].Kind, l, raw)
}

func (t *tryout) inputs() map[string]*ir.Tensor {
	return randomInputs(graphPorts(t.c.graph.Inputs), 1, 2)
}

// compare discards plans that compute something else than they should. The evaluator says what that is,
// where --verify asks it or plans disagree.
func (t *tryout) compare() error {
	var want map[string]*ir.Tensor
	sure := true
	for _, outs := range t.outs {
		for _, out := range outs {
			if want == nil {
				want = out
			}
			sure = sure && different(out, want) == nil
		}
	}
	if sure && !t.c.opt.Verify || want == nil {
		return nil
	}
	m, err := load(&UI{}, t.c.opt.ModelOptions, true)
	if err != nil {
		return err
	}
	if want, err = eval.RunWith(m.Graph, t.inputs(), eval.Options{}); err != nil {
		return evalError(err, t.c.opt.Path)
	}
	for i, outs := range t.outs {
		for _, out := range outs {
			if err := different(out, want); err != nil {
				t.discard(i, err)
			}
		}
	}
	return nil
}

// different says which output differs by more than the tolerance.
func different(got, want map[string]*ir.Tensor) error {
	for _, name := range sortedNames(want) {
		if got[name] == nil {
			return fmt.Errorf("output %s is missing", name)
		}
		if d := tolerance.Compare(name, got[name], want[name]); !d.Within(tolerance.LimitFor(want[name].DType)) {
			return fmt.Errorf("output %s is wrong: it differs by more than the tolerance", name)
		}
	}
	return nil
}

// fastest is the plan with the least time, the first if none has any.
func (t *tryout) fastest() int {
	best := 0
	for i, x := range t.tries {
		if x.MeasuredUS > 0 && (t.tries[best].MeasuredUS == 0 || x.MeasuredUS < t.tries[best].MeasuredUS) {
			best = i
		}
	}
	return best
}
