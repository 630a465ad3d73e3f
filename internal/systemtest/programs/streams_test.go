package programs

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/codegen"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/stencil"
	"github.com/rammerc/rammerc/internal/systemtest"
	"github.com/rammerc/rammerc/vdevice"
)

// Launches on streams give the right results in every order that the streams and waits allow, and wrong
// ones in some order where a wait is missing.
func TestParallelSegment(t *testing.T) {
	t.Parallel()
	s := stencil.Forking(t, 4, 64)
	s.Fork()
	if err := vdevice.Verify(s.Plan); err != nil {
		t.Fatal(err)
	}
	l := systemtest.OpenStencil(t, s, runner.Options{Seed: 3})
	if l.Launch.Mode != "parallel" {
		t.Errorf("it runs as %q", l.Launch.Mode)
	}
	for range 20 {
		if n := s.ForkMismatches(t, l); n > 0 {
			t.Fatalf("%d elements are wrong", n)
		}
	}
	nodes := s.Plan.Segments[0].Program.Nodes
	if !slices.Equal(nodes[2].After, []int32{0}) || !slices.Equal(nodes[3].After, []int32{2}) {
		t.Fatalf("waits between streams are %+v", nodes)
	}
	for _, w := range []int{2, 3} {
		after := nodes[w].After
		nodes[w].After = nil
		l := systemtest.OpenStencil(t, s, runner.Options{})
		wrong := false
		for range 30 {
			wrong = wrong || s.ForkMismatches(t, l) > 0
		}
		if !wrong {
			t.Errorf("launch %d without its wait gave right results 30 times", w)
		}
		nodes[w].After = after
	}
}

// Segments of all kinds follow each other; each launch has the blocks its rTasks ask for.
func TestAllKindsInOnePlan(t *testing.T) {
	t.Parallel()
	s := stencil.Forking(t, 4, 64)
	rprogram := func(ops ...int32) *vdevice.Program {
		b := vdevice.NewBuilder(s.Plan.Spec, s.Plan.Graph)
		for i, op := range ops {
			b.NextWave()
			b.Pick(op, 0)
			for k := range int32(4) {
				if i > 0 {
					b.Wait(vdevice.Task{Op: op, Index: k},
						[]vdevice.Task{{Op: ops[i-1]}, {Op: ops[i-1], Index: 1}, {Op: ops[i-1], Index: 2},
							{Op: ops[i-1], Index: 3}})
				}
				b.Append(vdevice.Task{Op: op, Index: k}, (k+int32(i))%4)
			}
		}
		return b.Program()
	}
	node := func(kind vdevice.SegmentKind, ops ...int32) *vdevice.Program {
		var launches []vdevice.Launch
		for i, op := range ops {
			l := vdevice.Launch{Op: op}
			if kind == vdevice.Parallel {
				l.Node.Stream = int32(i)
			}
			launches = append(launches, l)
		}
		return vdevice.NodeProgram(s.Plan.Spec, s.Plan.Graph, kind, launches)
	}
	s.Plan.Segments = []vdevice.Segment{
		{Kind: vdevice.LaunchSequence, Program: node(vdevice.LaunchSequence, 0)},
		{Kind: vdevice.Parallel, Program: node(vdevice.Parallel, 1, 2)},
		{Kind: vdevice.RProgram, Program: rprogram(3, 4)},
		{Kind: vdevice.Waves, Program: rprogram(5), Serial: true},
	}
	if err := vdevice.Verify(s.Plan); err != nil {
		t.Fatal(err)
	}
	lib := systemtest.BuildEmulated(t, systemtest.EmitStencil(t, s, codegen.Options{}), "stencil")
	for _, c := range []struct {
		mode runner.Mode
		want string
	}{{runner.Auto, "graph+parallel+rprogram+waves"}, {runner.Waves, "graph+parallel+waves"}} {
		l := systemtest.OpenLib(t, lib, runner.Options{Mode: c.mode, Seed: 5})
		if l.Launch.Mode != c.want {
			t.Errorf("it runs as %q, want %q", l.Launch.Mode, c.want)
		}
		for range 5 {
			if n := s.ForkMismatches(t, l); n > 0 {
				t.Errorf("%d elements are wrong", n)
			}
		}
	}
}

// The sources and plan.json say what the segments are.
func TestSegmentsAreNamed(t *testing.T) {
	s := stencil.Forking(t, 4, 64)
	s.Fork()
	dir := systemtest.EmitStencil(t, s, codegen.Options{})
	for file, want := range map[string]string{
		"stencil.cu":        "// Segment 0, parallel",
		"stencil.plan.json": `{"op": 3, "stream": 0, "after": [2]}`,
	} {
		if text := systemtest.Command(t, dir, "cat", filepath.Join(dir, file)); !strings.Contains(text, want) {
			t.Errorf("%s does not say %s", file, want)
		}
	}
}
