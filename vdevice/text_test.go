package vdevice

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

func textPlan(t testing.TB, seed uint64) *Plan {
	g := vdevicetest.Random(seed, 8)
	plan := planOf(g, naive(testSpec(t, 5), g, seed, true))
	plan.Segments[0].Kind = SegmentKind(seed % 2)
	return plan
}

func TestTextRoundTrip(t *testing.T) {
	counters := 0
	for seed := range uint64(20) {
		plan := textPlan(t, seed)
		counters += plan.Segments[0].Program.Counters
		text := FormatPlan(plan)
		back, err := ParsePlan("x.rprog", text, plan.Graph, plan.Spec)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		same := cmp.Comparer(func(a, b *roperator.ROperator) bool { return a == b })
		for _, d := range []string{
			cmp.Diff(plan.Segments, back.Segments, same, cmpopts.EquateEmpty()),
			cmp.Diff(plan.Arena, back.Arena), cmp.Diff(plan.Pick, back.Pick), cmp.Diff(plan.ArenaLen, back.ArenaLen),
		} {
			if d != "" {
				t.Fatalf("seed %d: %s", seed, d)
			}
		}
		if err := Verify(back); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if counters == 0 {
		t.Error("no plan has counters")
	}
}

func TestTextErrors(t *testing.T) {
	m := vdevicetest.New("text")
	g := vdevicetest.Grid{Shape: []int64{4}, Tile: []int64{2}}
	m.Op(m.Candidate(2, 1, nil, []roperator.Access{g.Of(m.Buffer(roperator.Output, 4))}))
	spec := testSpec(t, 2)
	plan := planOf(m.G, naive(spec, m.G, 1, false))
	good := string(FormatPlan(plan))
	for _, c := range []struct {
		name, old, new string
		line           int
		want           string
	}{
		{"empty", good, "", 0, "the file is empty"},
		{"version", "rprogram 2", "rprogram 3", 1, "version is 3"},
		{"first statement", "rprogram 2\n", "", 1, `want "rprogram 2" first`},
		{"graph", `"text"`, `"other"`, 2, "graph is called"},
		{"rOperators", "ops 1", "ops 7", 2, "7 rOperators here and 1"},
		{"device", `"emu4"`, `"h200"`, 3, "device is"},
		{"unclosed", `"emu4"`, `"emu4`, 3, "quoted name"},
		{"arena", "arena 0", "arena 99999999999999999999", 4, "out of range"},
		{"kind", "segment rprogram", "segment grape", 5, "unknown kind"},
		{"vEUs", "veus 2", "veus 3000000", 5, "out of range"},
		{"candidate", "pick 0", "pick 1", 6, "out of range"},
		{"instance", `"test_kernel_THREADS128_SHARED1024_REGISTERS64"`, `"k"`, 6, "rKernel is"},
		{"rTask", "\n0.1 wave", "\n0.2 wave", 0, "out of range"},
		{"rOperator", "\n0.1 wave", "\n3.1 wave", 0, "out of range"},
		{"word", " wave 0 #", " wave 0 signals", 0,
			"want if, wait, signal, follow, counters, adds, plain, resident, direct, near, found"},
		{"empty wait", " wave 0 #", " wave 0 wait signal", 0, "no step is named"},
		{"counter of none", " wave 0 #", " wave 0 adds 0 #", 0, "out of range"},
		{"empty counters", " wave 0 #", " wave 0 counters #", 0, "counters names no counter"},
		{"counters", "waves 1", "waves 1 counters -1", 5, "want a number"},
		{"rest", " wave 0 #", " wave 0 7", 0, "too much"},
		{"statement", "arena 0", "arenas 0", 4, "unknown statement"},
		{"twice", "arena 0", "arena 0\narena 0", 5, "comes twice"},
		{"const buffer", "arena 0", "arena 0\nbuffer 9 at 0 \"v9\"", 5, "out of range"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%s changes nothing in\n%s", c.name, good)
		}
		_, err := ParsePlan("x.rprog", []byte(text), m.G, spec)
		ds := diag.All(err)
		if len(ds) == 0 || !strings.Contains(ds[0].Message, c.want) || ds[0].File != "x.rprog" || c.line > 0 &&
			ds[0].Line != c.line {
			t.Errorf("%s: want %q on line %d, got %v", c.name, c.want, c.line, err)
		}
	}
	// All errors are reported, up to a limit.
	if _, err := ParsePlan("x", []byte("rprogram 2\n"+strings.Repeat("nonsense\n", 500)), m.G,
		spec); len(diag.All(err)) != maxParseErrors {
		t.Errorf("%d errors of 500", len(diag.All(err)))
	}
}

// Whatever is read back prints and reads back the same, and Verify does not panic on it.
func FuzzParsePlan(f *testing.F) {
	plan := textPlan(f, 2)
	f.Add(FormatPlan(plan))
	f.Add(FormatPlan(parallelPlan(plan.Graph, randomNodes(plan.Spec, plan.Graph, 2, 1))))
	f.Add(FormatPlan(&Plan{Spec: plan.Spec, Graph: plan.Graph}))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := ParsePlan("fuzz", text, plan.Graph, plan.Spec)
		if err != nil {
			return
		}
		printed := FormatPlan(a)
		b, err := ParsePlan("printed", printed, plan.Graph, plan.Spec)
		if err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		if again := FormatPlan(b); !bytes.Equal(printed, again) {
			t.Fatalf("printed\n%s\nand again\n%s", printed, again)
		}
		_ = Verify(a)
	})
}
