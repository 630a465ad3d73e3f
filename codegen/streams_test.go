package codegen

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// forkPlan has a chain of stages x → ping → pong → ping → y, and beside it ping → other → z, which reads
// what the chain's first stage makes before its third makes something else of it.
func forkPlan(t testing.TB, veus, tile int) *stencilPlan {
	s := newStencilPlan(t, veus, 1, tile)
	s.plan.Spec.Shared, s.plan.Spec.SharedPerVEU, s.plan.Spec.Registers = 1<<16, 1<<16, 1<<16
	g, kernel := s.plan.Graph, testKernel(t, "test_stencil")
	buffer := func(name string, kind roperator.BufferKind, index int) *roperator.Buffer {
		b := *g.Buffers[0]
		b.ID, b.Name, b.Kind, b.Index = len(g.Buffers), name, kind, index
		g.Buffers = append(g.Buffers, &b)
		return &b
	}
	x, y, coef, ping, pong := g.Buffers[0], g.Buffers[1], g.Buffers[2], g.Buffers[3], g.Buffers[4]
	other, z := buffer("other", roperator.Arena, -1), buffer("z", roperator.Output, 1)
	g.Outputs = append(g.Outputs, roperator.Port{Name: "z", DType: ir.Float32, Dims: []int64{z.Elems}, Buffer: z.ID})
	g.Ops = nil
	for i, io := range [][2]*roperator.Buffer{{x, ping}, {ping, pong}, {ping, other}, {pong, ping}, {ping, y},
		{other, z}} {
		g.Ops = append(g.Ops, s.stage(kernel, i, io[0], io[1], coef))
	}
	s.plan.Pick = make([]int, len(g.Ops))
	n := alignUp(4*x.Elems, vdevice.ArenaAlign)
	s.plan.Arena, s.plan.ArenaLen = []int64{-1, -1, -1, 0, n, 2 * n, -1}, 3*n
	return s
}

// forked launches the stages of forkPlan on two streams.
func (s *stencilPlan) forked() {
	launches := make([]vdevice.Launch, 6)
	for i, stream := range []int32{0, 0, 1, 0, 0, 1} {
		launches[i] = vdevice.Launch{Op: int32(i), Node: vdevice.Node{Stream: stream}}
	}
	vdevice.Reduce(launches, [][]int32{nil, {0}, {0}, {1, 2}, {3}, {2}})
	s.plan.Segments = []vdevice.Segment{{
		Kind: vdevice.Parallel, Program: vdevice.NodeProgram(s.plan.Spec, s.plan.Graph, vdevice.Parallel, launches),
	}}
}

// forkMismatches runs the plan once and counts wrong elements of both outputs.
func (s *stencilPlan) forkMismatches(t testing.TB, l *runner.Lib) int {
	t.Helper()
	x := testInput(s.veus * s.tile)
	out, err := l.Run([][]byte{floatBytes(x)})
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i, path := range [][]int{{0, 1, 3, 4}, {0, 2, 5}} {
		want := x
		for _, stage := range path {
			want = s.expectStage(want, stage)
		}
		for k, v := range bytesFloat(out[i]) {
			if d := v - want[k]; !(d < 1e-5 && d > -1e-5) {
				wrong++
			}
		}
	}
	return wrong
}

// Launches on streams give the right results in every order that the streams and waits allow, and wrong
// ones in some order where a wait is missing.
func TestParallelSegment(t *testing.T) {
	t.Parallel()
	s := forkPlan(t, 4, 64)
	s.forked()
	if err := vdevice.Verify(s.plan); err != nil {
		t.Fatal(err)
	}
	l := openLib(t, buildEmulated(t, emitStencil(t, s, Options{}), "stencil"), runner.Options{Seed: 3})
	if l.Launch.Mode != "parallel" {
		t.Errorf("it runs as %q", l.Launch.Mode)
	}
	for range 20 {
		if n := s.forkMismatches(t, l); n > 0 {
			t.Fatalf("%d elements are wrong", n)
		}
	}
	nodes := s.plan.Segments[0].Program.Nodes
	if !slices.Equal(nodes[2].After, []int32{0}) || !slices.Equal(nodes[3].After, []int32{2}) {
		t.Fatalf("waits between streams are %+v", nodes)
	}
	for _, w := range []int{2, 3} {
		after := nodes[w].After
		nodes[w].After = nil
		l := openLib(t, buildEmulated(t, emitStencil(t, s, Options{}), "stencil"), runner.Options{})
		wrong := false
		for range 30 {
			wrong = wrong || s.forkMismatches(t, l) > 0
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
	s := forkPlan(t, 4, 64)
	rprogram := func(ops ...int32) *vdevice.Program {
		b := vdevice.NewBuilder(s.plan.Spec, s.plan.Graph)
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
		return vdevice.NodeProgram(s.plan.Spec, s.plan.Graph, kind, launches)
	}
	s.plan.Segments = []vdevice.Segment{
		{Kind: vdevice.LaunchSequence, Program: node(vdevice.LaunchSequence, 0)},
		{Kind: vdevice.Parallel, Program: node(vdevice.Parallel, 1, 2)},
		{Kind: vdevice.RProgram, Program: rprogram(3, 4)},
		{Kind: vdevice.Waves, Program: rprogram(5), Serial: true},
	}
	if err := vdevice.Verify(s.plan); err != nil {
		t.Fatal(err)
	}
	lib := buildEmulated(t, emitStencil(t, s, Options{}), "stencil")
	for _, c := range []struct {
		mode runner.Mode
		want string
	}{{runner.Auto, "graph+parallel+rprogram+waves"}, {runner.Waves, "graph+parallel+waves"}} {
		l := openLib(t, lib, runner.Options{Mode: c.mode, Seed: 5})
		if l.Launch.Mode != c.want {
			t.Errorf("it runs as %q, want %q", l.Launch.Mode, c.want)
		}
		for range 5 {
			if n := s.forkMismatches(t, l); n > 0 {
				t.Errorf("%d elements are wrong", n)
			}
		}
	}
}

// What overlaps follows from the kinds of segments: never what comes after a persistent launch, across streams or where
// the segment is serial.
func TestOverlap(t *testing.T) {
	s := forkPlan(t, 4, 64)
	s.forked()
	parallel := s.plan.Segments[0]
	var ops []vdevice.Launch
	for i := range int32(6) {
		ops = append(ops, vdevice.Launch{Op: i})
	}
	graph := vdevice.Segment{Kind: vdevice.LaunchSequence,
		Program: vdevice.NodeProgram(s.plan.Spec, s.plan.Graph, vdevice.LaunchSequence, ops)}
	serial, waves, rprogram := graph, graph, graph
	serial.Serial, waves.Kind, rprogram.Kind = true, vdevice.Waves, vdevice.RProgram
	for _, c := range []struct {
		before, seg vdevice.Segment
		want        string // of the launches
	}{
		{graph, graph, "yyyyyy"},
		{waves, graph, "yyyyyy"},
		{serial, waves, "yyyyyy"},
		{graph, serial, "nnnnnn"},
		{rprogram, waves, "nyyyyy"},
		{parallel, graph, "nyyyyy"},
		{graph, rprogram, "nnyyyyy"},
		{graph, parallel, "nynnyy"},
	} {
		plan := *s.plan
		plan.Segments = []vdevice.Segment{c.before, c.seg}
		got := ""
		for _, d := range dispatches(&plan, 1, usedVEUs(c.seg.Program)) {
			if d.overlap {
				got += "y"
			} else {
				got += "n"
			}
		}
		if got != c.want {
			t.Errorf("%v after %v: launches overlap %s, want %s", c.seg.Kind, c.before.Kind, got, c.want)
		}
	}
	for _, c := range []struct {
		segments []vdevice.Segment
		want     bool
	}{
		{[]vdevice.Segment{graph}, true},
		{[]vdevice.Segment{waves, parallel}, true},
		{[]vdevice.Segment{serial}, false},
		{[]vdevice.Segment{graph, rprogram}, false}, // which may still run when the next inference begins
	} {
		d := dispatches(&vdevice.Plan{Segments: c.segments}, 0, usedVEUs(c.segments[0].Program))
		if d[0].overlap != c.want {
			t.Errorf("%d segments from %v: that the first launch overlaps is %t", len(c.segments), c.segments[0].Kind,
				d[0].overlap)
		}
	}
}

// TestEarlyStates checks that the first launch of an inference starts late if one behind it reads states early.
func TestEarlyStates(t *testing.T) {
	s := forkPlan(t, 4, 64)
	s.forked()
	var ops []vdevice.Launch
	for i := range int32(6) {
		ops = append(ops, vdevice.Launch{Op: i})
	}
	program := vdevice.NodeProgram(s.plan.Spec, s.plan.Graph, vdevice.LaunchSequence, ops)
	early := *s.plan
	early.Segments = []vdevice.Segment{{Kind: vdevice.Waves, Program: program}}
	early.Graph = &roperator.Graph{Ops: slices.Clone(s.plan.Graph.Ops)}
	op := *early.Graph.Ops[1]
	op.Candidates = slices.Clone(op.Candidates)
	c := *op.Candidates[early.Pick[1]]
	c.EarlyStates = true
	op.Candidates[early.Pick[1]], early.Graph.Ops[1] = &c, &op
	if d := dispatches(&early, 0, usedVEUs(program)); d[0].overlap || !d[1].overlap {
		t.Error("a launch that reads states early may begin before the run that leaves them has ended")
	}
}

// The sources and plan.json say what the segments are.
func TestSegmentsAreNamed(t *testing.T) {
	s := forkPlan(t, 4, 64)
	s.forked()
	dir := emitStencil(t, s, Options{})
	for file, want := range map[string]string{
		"stencil.cu":        "// Segment 0, parallel",
		"stencil.plan.json": `{"op": 3, "stream": 0, "after": [2]}`,
	} {
		if text := command(t, dir, "cat", filepath.Join(dir, file)); !strings.Contains(text, want) {
			t.Errorf("%s does not say %s", file, want)
		}
	}
}
