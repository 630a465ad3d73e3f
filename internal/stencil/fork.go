package stencil

import (
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// Forking has a chain of stages x → ping → pong → ping → y, and beside it ping → other → z, which reads
// what the chain's first stage makes before its third makes something else of it.
func Forking(t testing.TB, veus, tile int) *Model {
	s := New(t, veus, 1, tile)
	s.Plan.Spec.Shared, s.Plan.Spec.SharedPerVEU, s.Plan.Spec.Registers = 1<<16, 1<<16, 1<<16
	g, kernel := s.Plan.Graph, kernelNamed(t, "test_stencil")
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
	s.Plan.Pick = make([]int, len(g.Ops))
	n := aligned(4 * x.Elems)
	s.Plan.Arena, s.Plan.ArenaLen = []int64{-1, -1, -1, 0, n, 2 * n, -1}, 3*n
	return s
}

// Fork launches the stages of Forking on two streams.
func (s *Model) Fork() {
	launches := make([]vdevice.Launch, 6)
	for i, stream := range []int32{0, 0, 1, 0, 0, 1} {
		launches[i] = vdevice.Launch{Op: int32(i), Node: vdevice.Node{Stream: stream}}
	}
	vdevice.Reduce(launches, [][]int32{nil, {0}, {0}, {1, 2}, {3}, {2}})
	s.Plan.Segments = []vdevice.Segment{{
		Kind: vdevice.Parallel, Program: vdevice.NodeProgram(s.Plan.Spec, s.Plan.Graph, vdevice.Parallel, launches),
	}}
}

// ForkMismatches runs the plan once and counts wrong elements of both outputs.
func (s *Model) ForkMismatches(t testing.TB, l Library) int {
	t.Helper()
	x := Input(s.VEUs * s.Tile)
	out, err := l.Run([][]byte{Bytes(x)})
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i, path := range [][]int{{0, 1, 3, 4}, {0, 2, 5}} {
		want := x
		for _, stage := range path {
			want = s.ExpectStage(want, stage)
		}
		for k, v := range Floats(out[i]) {
			if d := v - want[k]; !(d < 1e-5 && d > -1e-5) {
				wrong++
			}
		}
	}
	return wrong
}
