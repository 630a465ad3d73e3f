package driver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/vdevice"
)

// planLong plans two layers of so many steps, of which the second one walks along what the first one makes.
func planLong(t *testing.T, steps int, plan, target string) *Compilation {
	t.Helper()
	numbers := func(n int) string { return strings.TrimSuffix(strings.Repeat("0.25, ", n), ", ") }
	text := fmt.Sprintf(`graph "long" (%%x: float32[%[1]d,1,4], %%h0: float32[1,1,4]) {
  %%w = const float32[1,16,4] {%[2]s}
  %%w3 = const float32[1,12,4] {%[3]s}
  %%one = const int64[1] {1}
  %%y: float32[%[1]d,1,1,4], %%h: float32[1,1,4], %%c: float32[1,1,4] = LSTM(%%x, %%w, %%w) {hidden_size = 4}
  %%flat: float32[%[1]d,1,4] = Squeeze(%%y, %%one)
  %%first: float32[1,1,4] = Tanh(%%h0)
  %%z: float32[%[1]d,1,1,4], %%h2: float32[1,1,4] = GRU(%%flat, %%w3, %%w3, _, _, %%first) {hidden_size = 4}
  return %%z, %%h, %%c, %%h2
}
`, steps, numbers(64), numbers(48))
	path := filepath.Join(t.TempDir(), "long.rir")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := Plan(&Job{}, CompileOptions{ModelOptions: ModelOptions{Path: path}, Name: "long", Target: target,
		Offline: true, Plan: plan, Check: true})
	if err != nil {
		t.Fatalf("%d steps, plan %s: %v", steps, plan, err)
	}
	return c
}

// TestLongRecurrences plans recurrences of any length as one program, but for what the sequences take.
func TestLongRecurrences(t *testing.T) {
	want := planLong(t, 1000, "auto", "sm_90")
	loop := 0
	for want.plan.Segments[loop].Loop == 0 {
		loop++
	}
	if turns, _ := want.plan.Turns(loop); turns != 8 {
		t.Errorf("1000 steps are %d turns, want 8", turns)
	}
	if _, err := codegen.EmitCubin(want.plan, codegen.Options{Name: "steps"}, nil); err == nil {
		t.Error("a cubin is emitted, whose list of launches says nothing of turns")
	}
	for _, steps := range []int{20000, 100000} {
		c := planLong(t, steps, "auto", "sm_90")
		if c.summary.RTasks != want.summary.RTasks || c.summary.ArenaBytes != want.summary.ArenaBytes {
			t.Errorf("%d steps: %d rTasks and %d bytes of activations; 1000 steps: %d and %d", steps, c.summary.RTasks,
				c.summary.ArenaBytes, want.summary.RTasks, want.summary.ArenaBytes)
		}
	}
}

// TestLoopsInAllPlans plans a loop with steps behind it in all kinds of plans, which Verify accepts; their text is read
// back.
func TestLoopsInAllPlans(t *testing.T) {
	for _, kind := range []string{"rprogram", "waves-2", "graph", "parallel", "opara", "mixed-half", "critical-path",
		"barriers", "clusters-4"} {
		c := planLong(t, 263, kind, "sm_90")
		text := vdevice.FormatPlan(c.plan)
		plan, err := vdevice.ParsePlan("long.rprog", text, c.plan.Graph, c.plan.Spec)
		if err != nil {
			t.Fatalf("plan %s: %v", kind, err)
		}
		if !bytes.Equal(vdevice.FormatPlan(plan), text) {
			t.Errorf("plan %s: the text of a loop is not read back", kind)
		}
	}
}

// TestBadLoops checks that Verify refuses loops whose turns would not find what they need.
func TestBadLoops(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spoil      func(plan *vdevice.Plan)
	}{
		{"a segment that is not repeated", "part of loop 1 and in segment", func(plan *vdevice.Plan) {
			plan.Segments[1].Loop = 0
		}},
		{"more that is repeated", "part of loop 0 and in segment", func(plan *vdevice.Plan) {
			plan.Segments[len(plan.Segments)-1].Loop = 1
		}},
		{"what comes from outside is overwritten behind its last use", "which other turns need", func(plan *vdevice.Plan) {
			move(plan, ".t77.c", "first")
		}},
		{"what a turn leaves is overwritten", "arena-reuse", func(plan *vdevice.Plan) { move(plan, ".kept", ".chunk") }},
	} {
		p := planLong(t, 263, "waves", "sm_90").plan
		c.spoil(p)
		if err := vdevice.Verify(p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// move puts a buffer where another one is, both given by the ends of their names. The arena is made large enough.
func move(plan *vdevice.Plan, what, where string) {
	find := func(end string) int {
		for id, b := range plan.Graph.Buffers {
			if strings.HasSuffix(b.Name, end) && plan.Arena[id] >= 0 {
				return id
			}
		}
		panic("BUG: no buffer " + end)
	}
	plan.Arena[find(what)] = plan.Arena[find(where)]
	plan.ArenaLen += plan.Graph.Buffers[find(what)].Bytes()
}
