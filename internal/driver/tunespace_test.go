package driver

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/profiler/measure/measuretest"
	"github.com/rammerc/rammerc/profiler/model"
	"github.com/rammerc/rammerc/profiler/tune"
	"github.com/rammerc/rammerc/schedule"
)

// spaceOf is the space of a small model on the emulator, whose laboratory has the given clock.
func spaceOf(t *testing.T, cxx *toolchain.Cxx, us map[string]float64) *tuneSpace {
	t.Helper()
	o := CompileOptions{Tries: 1}
	o.Path, o.Target = "../../testdata/models/digits_branchy.onnx", TargetEmu
	var err error
	path := filepath.Join(t.TempDir(), "measured.jsonl")
	if o.rTasks, err = o.benchOf(path, db.Machine{GPU: "emulator"}, measuretest.Tools{Cxx: cxx}); err != nil {
		t.Fatal(err)
	}
	o.lab = emulated(cxx, us)
	o.lab.traced = func(dir, name string) error {
		_, err := cxx.BuildLibrary(context.Background(), dir, name, "-O0", TraceFlag)
		return err
	}
	job := &Job{}
	spec, err := o.Spec(job)
	if err != nil {
		t.Fatal(err)
	}
	c := &Compilation{opt: o, spec: spec, bench: o.rTasks, lab: o.lab}
	if err := c.prepare(job); err != nil {
		t.Fatal(err)
	}
	ops, err := Lower(job, c.graph, nil, spec, o)
	if err != nil {
		t.Fatal(err)
	}
	space, err := newTuneSpace(c, job, ops, model.New(spec, ops))
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// A traced schedule says of every class with which candidate its rOperators ran, and what they added to the time.
// Demanded candidates are those that ran.
func TestAttribute(t *testing.T) {
	t.Parallel()
	space := spaceOf(t, compiler(t), nil)
	if len(space.Classes("")) == 0 {
		t.Fatal("the model leaves nothing to choose")
	}
	picks := map[string]string{}
	for _, c := range space.Classes("") {
		picks[c.Name] = c.Candidates[len(c.Candidates)-1]
	}
	list := []tune.Schedule{{Kind: schedule.PlanWaves}, {Kind: schedule.PlanWaves, Picks: picks}}
	got, err := space.Attribute(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	for i, parts := range got {
		count, us := 0, 0.0
		for _, p := range parts {
			count, us = count+p.Count, us+p.US
			if want := list[i].Picks[p.Class]; want != "" && p.Candidate != want {
				t.Errorf("program %d: %+v, demanded is %s", i, p, want)
			}
		}
		if count != len(space.graphs[0].ops.Ops) || us <= 0 {
			t.Errorf("program %d: %d of %d rOperators added %v µs", i, count, len(space.graphs[0].ops.Ops), us)
		}
	}
}

// Schedules that share a library are timed in one process, one after another, and what they compute agrees. rPrograms
// have a library of their own.
func TestTimeShared(t *testing.T) {
	t.Parallel()
	space := spaceOf(t, compiler(t), map[string]float64{schedule.PlanRProgram: 70, schedule.PlanGraph: 60})
	built := 0
	build := space.c.lab.build
	var mu sync.Mutex
	space.c.lab.build = func(dir, name string) error {
		mu.Lock()
		built++
		mu.Unlock()
		return build(dir, name)
	}
	var list []tune.Schedule
	for _, kind := range []string{schedule.PlanWaves, schedule.PlanRProgram, schedule.PlanGraph, schedule.PlanBase} {
		list = append(list, tune.Schedule{Kind: kind})
	}
	trials, err := space.Time(t.Context(), list, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{100, 70, 60, 100} {
		if x := trials[i]; x.US != want || x.Problem != "" || x.Schedule.Kind != list[i].Kind {
			t.Errorf("%+v, want %v µs", x, want)
		}
	}
	if built != 2 {
		t.Errorf("%d libraries were built, want one of launches and one of rPrograms", built)
	}
}
