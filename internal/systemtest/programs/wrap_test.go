package programs

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
)

// launchesBefore has a context begin as if it had run so many inferences (rt/host/preset.h).
func launchesBefore(n uint64) []string { return []string{fmt.Sprintf("RAMMER_LAUNCHES_BEFORE=%d", n)} }

// beforeWrap are numbers of launches after which, within the next four, a number that follows from theirs passes a
// power of two at which something narrower than 64 bits would wrap: tags and launches, and what a launch adds so many
// of to flags or counters.
func beforeWrap(perLaunch ...uint64) []uint64 {
	before := []uint64{1<<16 - 2, 1<<31 - 2, 1<<32 - 2, 1<<44 - 2}
	for _, n := range perLaunch {
		before = append(before, 1<<31/n-2, 1<<32/n-2)
	}
	return before
}

func TestCountersThatWrap(t *testing.T) {
	t.Parallel()
	counted := stencil.New(t, 4, 5, 64)
	counted.Count(2)
	for _, c := range []struct {
		name      string
		plan      *stencil.Model
		perLaunch []uint64 // what a launch adds to a vEU's epoch and to a counter
	}{
		{"flags", stencil.New(t, 4, 5, 64), []uint64{5}},
		{"counters", counted, []uint64{5, 4}},
		{"tagged", stencil.Given(t, 4, 5, 64, 0), []uint64{5}},
		{"clusters", stencil.Given(t, 8, 5, 64, 4), []uint64{5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, c.plan, codegen.Options{}), "stencil")
			for _, n := range beforeWrap(c.perLaunch...) {
				l := systemtest.OpenLib(t, lib, runner.Options{Mode: runner.RProgram, Env: launchesBefore(n)})
				for k := range 5 {
					if wrong := c.plan.Mismatches(t, l); wrong > 0 {
						t.Errorf("inference %d + %d: %d elements are wrong", n, k, wrong)
					}
				}
			}
		})
	}
}

// A launch that is guarded counts its blocks from launch to launch.
func TestGuardThatWraps(t *testing.T) {
	t.Parallel()
	s := stencil.New(t, 4, 5, 64)
	lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil")
	for _, n := range beforeWrap(4) {
		l := systemtest.OpenLib(t, lib, runner.Options{Mode: runner.RProgram,
			Env: append(launchesBefore(n), "RAMMER_EMU_COOPERATIVE=0")})
		for k := range 5 {
			if wrong := s.Mismatches(t, l); wrong > 0 {
				t.Errorf("inference %d + %d: %d elements are wrong", n, k, wrong)
			}
		}
	}
}

// What TestCountersThatWrap would say of tags that are 0 in some launch, and of tags that two launches share.
func TestWrappingTagsShow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tag     string
		cluster int
		before  uint64
	}{
		{"static_cast<uint32_t>(launches_before) + 1", 4, 1<<32 - 2},
		{"static_cast<uint32_t>(launches_before) | 1", 0, 1<<32 - 1},
	} {
		s := stencil.Given(t, 4, 5, 64, c.cluster)
		dir := systemtest.EmitStencil(t, s, codegen.Options{})
		systemtest.ReplaceIn(t, filepath.Join(dir, "stencil.cu"), "2 * static_cast<uint32_t>(launches_before) + 1", c.tag)
		l := systemtest.OpenLib(t, systemtest.BuildEmulated(t, dir, "stencil"),
			runner.Options{Mode: runner.RProgram, Env: launchesBefore(c.before)})
		shows := false
		for range 3 {
			out, err := l.Run([][]byte{stencil.Bytes(stencil.Input(256))})
			var status *runner.StatusError
			if errors.As(err, &status) {
				shows = true
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			want := s.Expect(stencil.Input(256))
			for i, y := range stencil.Floats(out[0]) {
				if d := y - want[i]; !(d < 1e-5 && d > -1e-5) {
					shows = true
				}
			}
		}
		if !shows {
			t.Errorf("with tags %q everything is right", c.tag)
		}
	}
}
