package programs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/internal/trace"
	"github.com/rammerc/rammerc/schema"
)

// traced runs the stencil's library and gives its timeline.
func traced(t *testing.T, s *stencil.Model, dir, lib string, opt runner.Options) *trace.Timeline {
	t.Helper()
	l := systemtest.OpenLib(t, lib, opt)
	data, err := l.Trace([][]byte{stencil.Bytes(stencil.Input(s.VEUs * s.Tile))}, 2)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := trace.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "stencil.plan.json"))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := trace.ReadPlan(text)
	if err != nil {
		t.Fatal(err)
	}
	tl, err := trace.Join(raw, plan)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// checkOrder compares a timeline with the rules of its plan.
func checkOrder(t *testing.T, s *stencil.Model, tl *trace.Timeline) {
	t.Helper()
	at := map[[2]int]*trace.Run{}
	for i := range tl.Runs {
		r := &tl.Runs[i]
		at[[2]int{r.VEU, r.Order}] = r
		if !(0 <= r.Begun && r.Begun <= r.Loaded && r.Loaded <= r.Ready && r.Ready <= r.Started &&
			r.Started < r.Computed && r.Computed <= tl.Span) {
			t.Errorf("vEU %d, step %d: times are out of order: %+v", r.VEU, r.Order, *r)
		}
		if signals := r.Order < s.Stages-1 && tl.Launches[0].Kind == "rprogram"; signals != (r.Published > 0) {
			t.Errorf("vEU %d, step %d is published at %f", r.VEU, r.Order, r.Published)
		}
	}
	if len(at) != s.VEUs*s.Stages || len(tl.Runs) != len(at) || tl.Dropped != 0 {
		t.Errorf("%d different steps in %d rows, %d dropped; want %d", len(at), len(tl.Runs), tl.Dropped,
			s.VEUs*s.Stages)
	}
	for i := range tl.Runs {
		r := &tl.Runs[i]
		for _, w := range tl.Plan.Segments[0].Steps[r.VEU][r.Order].Needs {
			if p := at[[2]int{w.VEU, w.Order}]; p == nil || p.Computed > r.Ready {
				t.Errorf("vEU %d, step %d is ready before the step %d of vEU %d that it waits for", r.VEU, r.Order,
					w.Order, w.VEU)
			}
		}
		if p := at[[2]int{r.VEU, r.Order - 1}]; p != nil && p.Computed > r.Begun {
			t.Errorf("vEU %d, step %d begins before the one before it is done", r.VEU, r.Order)
		}
	}
}

func TestTrace(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 4, 7, 64)
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	lib := systemtest.BuildEmulated(t, dir, "stencil", "-DRT_TRACE")
	for _, c := range []struct {
		mode     runner.Mode
		launches int
	}{{runner.RProgram, 1}, {runner.Waves, s.Stages}} {
		t.Run(fmt.Sprintf("mode=%d", c.mode), func(t *testing.T) {
			tl := traced(t, s, dir, lib, runner.Options{Mode: c.mode})
			checkOrder(t, s, tl)
			for i, l := range tl.Launches {
				if (l.Kind == "rprogram") != (c.mode == runner.RProgram) || l.Wave != i {
					t.Errorf("launch %d is wave %d, %s", i, l.Wave, l.Kind)
				}
			}
			if len(tl.Launches) != c.launches {
				t.Errorf("%d launches, want %d", len(tl.Launches), c.launches)
			}
			path := tl.Critical()
			if len(path) != s.Stages {
				t.Errorf("the critical path has %d steps, want one of each of the %d stages", len(path), s.Stages)
			}
			for i, l := range path {
				if tl.Runs[l.Run].Op != i {
					t.Errorf("step %d of the critical path is of stage %d", i, tl.Runs[l.Run].Op)
				}
			}
		})
	}
}

// Weights that stream: every chunk is there with its times, of a ring with fewer stages than chunks.
func TestTraceOfRing(t *testing.T) {
	t.Parallel()
	s := stencil.Streamed(t, 2, 8, 1536)
	s.Plan.Spec.Shared, s.Plan.Spec.SharedPerVEU = 20<<10, 20<<10
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	lib := systemtest.BuildEmulated(t, dir, "stencil", "-DRT_TRACE")
	for _, mode := range []runner.Mode{runner.RProgram, runner.Waves} {
		tl := traced(t, s, dir, lib, runner.Options{Mode: mode})
		checkOrder(t, s, tl)
		for i := range tl.Runs {
			want := 4 * s.Tile
			if tl.Runs[i].Op%3 == 2 {
				want = 0
			}
			if tl.Runs[i].Streamed != want {
				t.Errorf("mode %d: a step of stage %d streams %d bytes, want %d", mode, tl.Runs[i].Op,
					tl.Runs[i].Streamed, want)
			}
		}
		ahead := 0
		for _, c := range tl.Chunks {
			if c.Landed < c.Wanted {
				ahead++
			}
			r := tl.Runs[c.Run]
			// Another thread than the one that takes chunks says when steps start, perhaps later.
			before := 0.0
			if c.Run > 0 && tl.Runs[c.Run-1].VEU == r.VEU {
				before = tl.Runs[c.Run-1].Started
			}
			if !(c.Asked <= c.Issued && c.Issued <= c.Landed && c.Landed <= c.Full && before <= c.Wanted &&
				c.Wanted <= c.Full && c.Full <= c.Freed && c.Freed <= r.Computed) {
				t.Errorf("mode %d: times are out of order: %+v of %+v", mode, c, r)
			}
		}
		if ahead == 0 {
			t.Errorf("mode %d: none of %d copies had landed when it was wanted", mode, len(tl.Chunks))
		}
		if tl.DroppedChunks > 0 {
			t.Errorf("mode %d: %d chunks have no row", mode, tl.DroppedChunks)
		}
	}
	lib = systemtest.BuildEmulated(t, dir, "stencil", "-DRT_TRACE", "-DRT_TRACE_CHUNKS=7")
	if tl := traced(t, s, dir, lib, runner.Options{}); len(tl.Chunks) != 6 || tl.DroppedChunks == 0 {
		t.Errorf("with room for 3 chunks on each of two vEUs there are %d, %d dropped", len(tl.Chunks),
			tl.DroppedChunks)
	}
}

func TestTraceOverflows(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 4, 7, 64)
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	lib := systemtest.BuildEmulated(t, dir, "stencil", "-DRT_TRACE", "-DRT_TRACE_STEPS=10")
	for _, mode := range []runner.Mode{runner.RProgram, runner.Waves} {
		tl := traced(t, s, dir, lib, runner.Options{Mode: mode})
		if len(tl.Runs) != 10 || tl.Dropped != 18 {
			t.Errorf("mode %d: %d steps are recorded and %d counted as dropped, want 10 and 18", mode, len(tl.Runs),
				tl.Dropped)
		}
		if r := tl.Report(); r.Dropped != 18 || r.RTasks != 10 {
			t.Errorf("mode %d: the report says %d and %d", mode, r.RTasks, r.Dropped)
		}
		if n := s.Mismatches(t, systemtest.OpenLib(t, lib, runner.Options{Mode: mode})); n > 0 {
			t.Errorf("mode %d: %d elements are wrong", mode, n)
		}
	}
}

func TestNoTrace(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 2, 2, 64)
	l := systemtest.OpenStencil(t, s, runner.Options{})
	_, err := l.Trace([][]byte{stencil.Bytes(stencil.Input(128))}, 0)
	var status *runner.StatusError
	if !errors.As(err, &status) || status.Code != schema.StatusBadArgument ||
		!strings.Contains(status.Text, "without RT_TRACE") {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(string(l.Build), `"trace":false`) {
		t.Errorf("build information is %s", l.Build)
	}
}
