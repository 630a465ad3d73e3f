package driver

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schedule"
	"github.com/rammerc/rammerc/vdevice"
)

func compiler(t *testing.T) *toolchain.Cxx {
	t.Helper()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skipf("needs a C++ compiler: %v", err)
	}
	return cxx
}

// emulated is a laboratory whose device is the emulator; what plans take is made up, 100 µs of those not named.
func emulated(cxx *toolchain.Cxx, us map[string]float64) *laboratory {
	return &laboratory{
		build: func(dir, name string) error { return builds.Build(cxx, dir, name, "-O0") },
		clock: func(plan string, l *engine.Library, raw [][]byte) (float64, error) {
			switch t, ok := us[plan]; {
			case !ok:
				return 100, nil
			case t < 0:
				return 0, errors.New("the clock stopped")
			default:
				return t, nil
			}
		},
		open: runner.Options{Seed: 7},
	}
}

func tryDigits(t *testing.T, o CompileOptions) *Compiled {
	t.Helper()
	o.Path, o.Target, o.Out = "../../testdata/models/digits_branchy.onnx", TargetEmu, filepath.Join(t.TempDir(), "out")
	r, err := Compile(&Job{}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryOf(t *testing.T, tries []codegen.Try, kind string) codegen.Try {
	t.Helper()
	for _, x := range tries {
		if x.Plan == kind {
			return x
		}
	}
	t.Fatalf("%s was not tried: %+v", kind, tries)
	return codegen.Try{}
}

// The plan that takes least by the clock is the one compiled, whatever the model says; what was tried
// is in the result and in plan.json.
func TestFastestPlanIsTaken(t *testing.T) {
	t.Parallel()
	cxx := compiler(t)
	us := map[string]float64{
		schedule.PlanMixed: 30, schedule.PlanAuto: 30, schedule.PlanGraph: 20, schedule.PlanWaves: -1,
		schedule.PlanRProgram: 50, schedule.PlanParallel: 10, "mixed-2": 50, "mixed-half": 50, "mixed-4": 50,
		schedule.PlanCriticalPath: 50, "waves-2": 50,
	}
	r := tryDigits(t, CompileOptions{Tries: DefaultTries, Emit: EmitSources, lab: emulated(cxx, us)})
	best := tryOf(t, r.Tried, schedule.PlanParallel)
	if !best.Chosen || best.MeasuredUS != 10 || best.Problem != "" || best.ModelledUS <= 0 {
		t.Errorf("parallel takes least, but %+v", r.Tried)
	}
	if x := tryOf(t, r.Tried, schedule.PlanWaves); x.Problem != "the clock stopped" || x.MeasuredUS != 0 || x.Chosen {
		t.Errorf("a plan that cannot be timed: %+v", x)
	}
	if len(r.Warnings) != 1 || r.Warnings[0].ID != "plan-skipped" ||
		!strings.Contains(r.Warnings[0].Message, "the clock stopped") {
		t.Errorf("warnings are %v", r.Warnings)
	}
	data, err := os.ReadFile(filepath.Join(r.Dir, r.Name+".plan.json"))
	if err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Tried    []codegen.Try
		Segments []struct{ Kind string }
	}
	if err := json.Unmarshal(data, &plan); err != nil || len(plan.Tried) != len(r.Tried) ||
		plan.Segments[0].Kind != "parallel" {
		t.Errorf("%d tries, segments %v, %v", len(plan.Tried), plan.Segments, err)
	}
}

// A plan that is faster by no more than chance does not replace the one that --tries 1 takes.
func TestFirstPlanIsKept(t *testing.T) {
	t.Parallel()
	cxx := compiler(t)
	one := tryDigits(t, CompileOptions{Tries: 1, Emit: EmitSources})
	us := map[string]float64{}
	for _, kind := range schedule.Plans() {
		us[kind] = 19.9
	}
	first := ""
	o := CompileOptions{Tries: DefaultTries, Emit: EmitSources, lab: emulated(cxx, us)}
	clock := o.lab.clock
	o.lab.clock = func(plan string, l *engine.Library, raw [][]byte) (float64, error) {
		if first == "" || plan == first {
			first = plan
			return 20, nil
		}
		return clock(plan, l, raw)
	}
	r := tryDigits(t, o)
	if x := tryOf(t, r.Tried, first); !x.Chosen || x.MeasuredUS != 20 || len(r.Tried) < 3 {
		t.Errorf("%+v", r.Tried)
	}
	for _, ext := range []string{".cu", ".weights"} {
		a, errA := os.ReadFile(filepath.Join(one.Dir, one.Name+ext))
		b, errB := os.ReadFile(filepath.Join(r.Dir, r.Name+ext))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs from that of one try: %v, %v", ext, errA, errB)
		}
	}
}

// What is emitted is what was timed, byte for byte.
func TestTimedProgramIsTheOneEmitted(t *testing.T) {
	t.Parallel()
	b := emulated(compiler(t), map[string]float64{schedule.PlanParallel: 10})
	build := b.build
	var mu sync.Mutex
	built := map[string]bool{}
	b.build = func(dir, name string) error {
		source, err := os.ReadFile(filepath.Join(dir, name+".cu"))
		if err != nil {
			return err
		}
		mu.Lock()
		built[string(source)] = true
		mu.Unlock()
		return build(dir, name)
	}
	r := tryDigits(t, CompileOptions{Tries: DefaultTries, Emit: EmitSources, lab: b})
	source, err := os.ReadFile(filepath.Join(r.Dir, r.Name+".cu"))
	if err != nil || !built[string(source)] || len(built) != len(r.Tried) {
		t.Errorf("%d sources were built for %d plans; the one that is emitted is among them: %v (%v)", len(built),
			len(r.Tried), built[string(source)], err)
	}
}

// A plan that does not build is reported and passed over.
func TestPlanThatDoesNotBuild(t *testing.T) {
	t.Parallel()
	b := emulated(compiler(t), map[string]float64{schedule.PlanMixed: 30, schedule.PlanParallel: 10,
		schedule.PlanWaves: 20, "waves-2": 20})
	build := b.build
	b.build = func(dir, name string) error {
		source, err := os.ReadFile(filepath.Join(dir, name+".cu"))
		if err == nil && strings.Contains(string(source), ".kind = rt::kParallel") {
			err = errors.New("too many registers\nand more")
		}
		if err != nil {
			return err
		}
		return build(dir, name)
	}
	r := tryDigits(t, CompileOptions{Tries: DefaultTries, Emit: EmitSources, lab: b})
	if x := tryOf(t, r.Tried, schedule.PlanParallel); x.Problem != "it does not build: too many registers" || x.Chosen {
		t.Errorf("%+v", x)
	}
	if !slices.ContainsFunc(r.Tried, func(x codegen.Try) bool { return x.Chosen && x.MeasuredUS == 20 }) {
		t.Errorf("waves take least of what builds, but %+v", r.Tried)
	}
}

// Nothing is timed without a device, offline, for another kind of plan, or when one try is all there is.
func TestNothingToTry(t *testing.T) {
	t.Parallel()
	fail := &laboratory{build: func(string, string) error { panic("BUG: a plan is built") }}
	for name, o := range map[string]CompileOptions{
		"no device": {Tries: 8},
		"one try":   {Tries: 1, lab: fail},
		"no tries":  {lab: fail},
		"one kind":  {Tries: 8, Plan: schedule.PlanWaves, lab: fail},
		"offline":   {Tries: 8, Offline: true, lab: fail},
	} {
		o.Emit = EmitSources
		if r := tryDigits(t, o); len(r.Tried) > 0 {
			t.Errorf("%s: tried %+v", name, r.Tried)
		}
	}
}

// When none can be timed the model decides.
func TestModelDecidesWhenNothingBuilds(t *testing.T) {
	t.Parallel()
	b := &laboratory{build: func(string, string) error { return errors.New("no compiler today") }}
	r := tryDigits(t, CompileOptions{Tries: 2, Emit: EmitSources, lab: b})
	if len(r.Tried) != 2 || !r.Tried[0].Chosen || len(r.Warnings) != 2 {
		t.Errorf("%+v, warnings %v", r.Tried, r.Warnings)
	}
}

// reversed are costs by which what the model prefers is bad.
type reversed struct{ *model.Costs }

func (r reversed) TaskTime(c *roperator.Candidate) float64 { return 1e6 / r.Costs.TaskTime(c) }

// Beside the plan of the costs, those are timed that the model alone, the device's rates alone and the costs in programs
// would make.
func TestPlansOfOtherCostsAreTried(t *testing.T) {
	t.Parallel()
	o := CompileOptions{Device: "h200", Offline: true}
	o.Precision = "fp16"
	o.Path = "../../testdata/models/digits_branchy.onnx"
	spec, err := o.Spec(&Job{})
	if err != nil {
		t.Fatal(err)
	}
	c := &Compilation{opt: o, spec: spec}
	if err := c.prepare(&Job{}); err != nil {
		t.Fatal(err)
	}
	ops, err := Lower(&Job{}, c.graph, nil, spec, o)
	if err != nil {
		t.Fatal(err)
	}
	modelled, bare := model.New(spec, ops), *spec
	bare.Kernels = nil
	text := func(costs profiler.Costs) []byte {
		p, err := schedule.Schedule(ops, spec, costs, schedule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return vdevice.FormatPlan(p)
	}
	byModel, byRates, byPrograms := text(modelled), text(model.New(&bare, ops)), text(modelled.InPrograms())
	if bytes.Equal(byModel, byRates) || bytes.Equal(byModel, byPrograms) || bytes.Equal(byRates, byPrograms) {
		t.Fatal("two of the costs make the same plan: another model is needed here")
	}
	for _, x := range []struct {
		costs profiler.Costs
		want  [][]byte // behind the first
	}{
		{reversed{modelled}, [][]byte{byModel, byRates, byPrograms}}, {modelled, [][]byte{byRates, byPrograms}},
	} {
		plans, err := schedule.Proposals(ops, spec, x.costs, schedule.Options{}, 5)
		if err != nil {
			t.Fatal(err)
		}
		first := plans[0].Plan
		if plans, err = c.withOthers(plans, ops, x.costs, schedule.Options{}, 5); err != nil {
			t.Fatal(err)
		}
		if len(plans) <= len(x.want) || len(plans) > 5 || plans[0].Plan != first {
			t.Fatalf("%d plans", len(plans))
		}
		for i, p := range plans[1:] {
			text := vdevice.FormatPlan(p.Plan)
			if i < len(x.want) && !bytes.Equal(text, x.want[i]) {
				t.Errorf("plan %d is not that of the other costs", i+1)
			}
			if i >= len(x.want) && slices.ContainsFunc(x.want, func(w []byte) bool { return bytes.Equal(w, text) }) {
				t.Errorf("plan %d is one of those before again", i+1)
			}
		}
	}
}
