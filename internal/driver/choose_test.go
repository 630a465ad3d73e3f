package driver

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/schedule"
)

func compiler(t *testing.T) *toolchain.Cxx {
	t.Helper()
	cxx, err := toolchain.FindCxx("")
	if err != nil {
		t.Skipf("needs a C++ compiler: %v", err)
	}
	return cxx
}

// emulated is a laboratory whose device is the emulator; what plans take is made up.
func emulated(cxx *toolchain.Cxx, us map[string]float64) *laboratory {
	return &laboratory{
		build: func(dir, name string) error {
			_, err := cxx.BuildLibrary(context.Background(), dir, name, "-O0")
			return err
		},
		clock: func(plan string, l *engine.Library, raw [][]byte) (float64, error) {
			if us[plan] < 0 {
				return 0, errors.New("the clock stopped")
			}
			return us[plan], nil
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

// Plans that do not build together are built apart; one that does not build at all is reported and
// passed over.
func TestPlanThatDoesNotBuild(t *testing.T) {
	t.Parallel()
	b := emulated(compiler(t), map[string]float64{schedule.PlanMixed: 30, schedule.PlanGraph: 10,
		schedule.PlanWaves: 20})
	build := b.build
	var mu sync.Mutex
	builds := 0
	b.build = func(dir, name string) error {
		mu.Lock()
		builds++
		mu.Unlock()
		source, err := os.ReadFile(filepath.Join(dir, name+".cu"))
		if err == nil && strings.Contains(string(source), ".kind = rt::kGraph") {
			err = errors.New("too many registers\nand more")
		}
		if err != nil {
			return err
		}
		return build(dir, name)
	}
	r := tryDigits(t, CompileOptions{Tries: 3, Emit: EmitSources, lab: b})
	if len(r.Tried) != 3 || builds != 4 {
		t.Errorf("%d builds of %d plans", builds, len(r.Tried))
	}
	if x := tryOf(t, r.Tried, schedule.PlanGraph); x.Problem != "it does not build: too many registers" || x.Chosen {
		t.Errorf("%+v", x)
	}
	if x := tryOf(t, r.Tried, schedule.PlanWaves); !x.Chosen {
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
