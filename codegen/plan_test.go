package codegen

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// stencilPlan is a hand-made plan: stages of a stencil over a ring of tiles, each stage's tiles one vEU
// further on than the last one's, so that all data crosses vEUs.
type stencilPlan struct {
	veus, stages, tile int
	plan               *vdevice.Plan
	coef               []float32
}

// testKernels has the kernels of the tests, beside the headers of the real ones.
func testKernels() fs.FS { return overlay{os.DirFS("testdata/kernels"), rkernels.Files} }

// overlay looks a file up in one file system, then in another.
type overlay struct{ first, second fs.FS }

func (o overlay) Open(name string) (fs.File, error) {
	f, err := o.first.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return o.second.Open(name)
	}
	return f, err
}

func testKernel(t testing.TB, name string) *rkernels.Kernel {
	t.Helper()
	ks, err := rkernels.Load(os.DirFS("testdata/kernels"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range ks {
		if k.Name == name {
			return k
		}
	}
	t.Fatalf("no kernel %s", name)
	return nil
}

func newStencilPlan(t testing.TB, veus, stages, tile int) *stencilPlan {
	t.Helper()
	return makeStencilPlan(t, veus, stages, tile, func(int) string { return "test_stencil" })
}

// makeStencilPlan carries out each stage with the kernel of the given name.
func makeStencilPlan(t testing.TB, veus, stages, tile int, kernel func(stage int) string) *stencilPlan {
	t.Helper()
	s := &stencilPlan{veus: veus, stages: stages, tile: tile}
	n := int64(veus * tile)
	s.coef = make([]float32, n)
	for i := range s.coef {
		s.coef[i] = 1 + float32(i%5)/8
	}
	g := &roperator.Graph{Name: "stencil"}
	buffer := func(name string, kind roperator.BufferKind, index int) *roperator.Buffer {
		b := &roperator.Buffer{ID: len(g.Buffers), Name: name, Kind: kind, DType: ir.Float32, Elems: n, Index: index,
			Canon: []int64{1}}
		g.Buffers = append(g.Buffers, b)
		return b
	}
	in, out := buffer("x", roperator.Input, 0), buffer("y", roperator.Output, 0)
	coef := buffer("coef", roperator.Const, -1)
	coef.Data = func() []byte { return floatBytes(s.coef) }
	ping, pong := buffer("ping", roperator.Arena, -1), buffer("pong", roperator.Arena, -1)
	g.Inputs = []roperator.Port{{Name: "x", DType: ir.Float32, Dims: []int64{n}, Buffer: in.ID}}
	g.Outputs = []roperator.Port{{Name: "y", DType: ir.Float32, Dims: []int64{n}, Buffer: out.ID}}
	pick := make([]int, stages)
	for st := range stages {
		from, to := ping, pong
		if st%2 == 1 {
			from, to = pong, ping
		}
		if st == 0 {
			from = in
		}
		if st == stages-1 {
			to = out
		}
		g.Ops = append(g.Ops, s.stage(testKernel(t, kernel(st)), st, from, to, coef))
	}
	prog := &vdevice.Program{Ops: g.Ops, Pick: pick, Steps: make([][]vdevice.Step, veus), Waves: stages}
	for st := range stages {
		for k := range veus {
			v := s.place(k, st)
			step := vdevice.Step{Task: vdevice.Task{Op: int32(st), Index: int32(k)}, Wave: int32(st),
				In: s.waits(k, st)}
			if st < stages-1 && veus > 1 {
				step.Out = []vdevice.Edge{{Kind: vdevice.EdgeFlag}}
			}
			prog.Steps[v] = append(prog.Steps[v], step)
		}
	}
	prog.Spec = &device.Spec{Name: "emu", Arch: "emu", SMs: veus, VEUsPerSM: 1, Threads: 1024, Shared: 32 << 10,
		SharedPerVEU: 32 << 10, Registers: 1 << 16}
	s.plan = &vdevice.Plan{
		Spec: prog.Spec, Graph: g, Segments: []vdevice.Segment{{Kind: vdevice.RProgram, Program: prog}},
		Pick: pick, Arena: []int64{-1, -1, -1, 0, alignUp(4*n, 256)}, ArenaLen: 2 * alignUp(4*n, 256),
	}
	return s
}

// count puts a counter in the place of the flags of every so manieth stage: whoever waits for some tiles of
// the stage then waits for all.
func (s *stencilPlan) count(every int) {
	p := s.plan.Segments[0].Program
	for st := 0; st < s.stages-1; st += every {
		c := int32(p.Counters)
		p.Counters++
		for _, steps := range p.Steps {
			steps[st].Out = []vdevice.Edge{vdevice.Meeting(vdevice.EdgeCounter, c)}
			steps[st+1].In = []vdevice.Edge{vdevice.Meeting(vdevice.EdgeCounter, c)}
		}
	}
}

// place is the vEU of tile k in a stage.
func (s *stencilPlan) place(k, stage int) int { return ((k+stage)%s.veus + s.veus) % s.veus }

func (s *stencilPlan) waits(k, stage int) []vdevice.Edge {
	if stage == 0 {
		return nil
	}
	var out []vdevice.Edge
	for v := range s.veus {
		for d := -1; d <= 1; d++ {
			if s.place(k+d, stage-1) == v && v != s.place(k, stage) {
				at := vdevice.At{VEU: int32(v), Order: int32(stage - 1)}
				out = append(out, vdevice.Edge{Kind: vdevice.EdgeFlag, At: at})
				break
			}
		}
	}
	return out
}

func (s *stencilPlan) stage(kernel *rkernels.Kernel, st int, from, to, coef *roperator.Buffer) *roperator.ROperator {
	threads := []int{64, 128}[st%2]
	add := functor.Apply("Add", functor.Leaf(ir.Float32, 0), functor.Scalar(ir.Float32, float64(s.shift(st))))
	add.Node.Origins = []ir.Origin{{Name: fmt.Sprintf("add of stage %d", st), OpType: "Add"}}
	epi := functor.NewEpilogue(ir.Float32, add, nil, 1)
	whole := func(b *roperator.Buffer) roperator.View {
		return roperator.View{Buf: b, Shape: []int64{b.Elems}, Strides: []int64{1}}
	}
	tile := int64(s.tile)
	c := &roperator.Candidate{
		Inst: kernel.Bind(threads, s.tile, epi), Tasks: s.veus,
		Args: []rkernels.Field{
			{Name: "in", Value: rkernels.Ref{Buffer: from.ID}}, {Name: "out", Value: rkernels.Ref{Buffer: to.ID}},
			{Name: "coef", Value: rkernels.Ref{Buffer: coef.ID}}, {Name: "n", Value: rkernels.Int(from.Elems)},
			{Name: "epi", Value: rkernels.Struct{{Name: "s", Value: rkernels.List{rkernels.Float(s.shift(st))}}}},
		},
		Reads: []roperator.Access{{View: whole(from)}},
		Writes: []roperator.Access{{View: whole(to), Box: func(task int, lo, hi []int64) {
			lo[0], hi[0] = int64(task)*tile, int64(task+1)*tile
		}}},
	}
	if c.Inst.StreamStep() > 0 {
		c.Stream = func(task int) (rkernels.Ref, int64) {
			return rkernels.Ref{Buffer: coef.ID, Offset: 4 * int64(task) * tile}, 4 * tile
		}
	}
	return &roperator.ROperator{
		ID: st, Name: fmt.Sprintf("stage%d", st), Kind: "Stencil+Add",
		Origins:    []ir.Origin{{Name: fmt.Sprintf("node_%d", st), OpType: "Stencil"}},
		Candidates: []*roperator.Candidate{c},
	}
}

func (s *stencilPlan) shift(stage int) float32 { return float32(stage) / 16 }

// expect computes what the program must yield, with the kernel's own order of operations.
func (s *stencilPlan) expect(x []float32) []float32 {
	for st := range s.stages {
		x = s.expectStage(x, st)
	}
	return x
}

func (s *stencilPlan) expectStage(x []float32, stage int) []float32 {
	n := len(x)
	y := make([]float32, n)
	for i := range y {
		v := float32(0.25)*x[(i+n-1)%n] + float32(float32(0.5)*x[i])*s.coef[i] + float32(0.25)*x[(i+1)%n]
		y[i] = v + s.shift(stage)
	}
	return y
}

func testInput(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	return x
}

func floatBytes(x []float32) []byte {
	var out []byte
	for _, v := range x {
		u := math.Float32bits(v)
		out = append(out, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	return out
}

func bytesFloat(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+
			3])<<24)
	}
	return out
}
