// Package stencil has hand-made plans for the tests of codegen and of what it emits: stages of a stencil over a ring of
// tiles, by rKernels of their own (kernels/).
package stencil

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// Model is a hand-made plan: stages of a stencil over a ring of tiles, each stage's tiles one vEU
// further on than the last one's, so that all data crosses vEUs.
type Model struct {
	VEUs, Stages int
	Tile         int // elements of a tile; a stage has one on each vEU
	Plan         *vdevice.Plan
	Coef         []float32 // the constant that all stages read
}

// Library runs inferences.
type Library interface {
	Run(inputs [][]byte) (outputs [][]byte, err error)
}

//go:embed kernels
var files embed.FS

// own has the rKernels of the tests alone.
var own, _ = fs.Sub(files, "kernels")

// Kernels has the rKernels of the tests, beside rammerc's own.
func Kernels() fs.FS { return overlay{own, rkernels.Files} }

// overlay looks a file up in one file system, then in another.
type overlay struct{ first, second fs.FS }

func (o overlay) Open(name string) (fs.File, error) {
	f, err := o.first.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return o.second.Open(name)
	}
	return f, err
}

// kernelNamed is the one of the name.
func kernelNamed(t testing.TB, name string) *rkernels.Kernel {
	t.Helper()
	ks, err := rkernels.Load(own)
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

// New is a model on so many vEUs, whose tiles have so many elements.
func New(t testing.TB, veus, stages, tile int) *Model {
	t.Helper()
	return of(t, veus, stages, tile, func(int) string { return "test_stencil" })
}

// of carries out each stage with the kernel of the given name.
func of(t testing.TB, veus, stages, tile int, kernel func(stage int) string) *Model {
	t.Helper()
	s := &Model{VEUs: veus, Stages: stages, Tile: tile}
	n := int64(veus * tile)
	s.Coef = make([]float32, n)
	for i := range s.Coef {
		s.Coef[i] = 1 + float32(i%5)/8
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
	coef.Data = func() []byte { return Bytes(s.Coef) }
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
		g.Ops = append(g.Ops, s.stage(kernelNamed(t, kernel(st)), st, from, to, coef))
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
	s.Plan = &vdevice.Plan{
		Spec: prog.Spec, Graph: g, Segments: []vdevice.Segment{{Kind: vdevice.RProgram, Program: prog}},
		Pick: pick, Arena: []int64{-1, -1, -1, 0, aligned(4 * n)}, ArenaLen: 2 * aligned(4*n),
	}
	return s
}

// Count puts a counter in the place of the flags of every so manieth stage: whoever waits for some tiles of
// the stage then waits for all.
func (s *Model) Count(every int) {
	p := s.Plan.Segments[0].Program
	for st := 0; st < s.Stages-1; st += every {
		c := int32(p.Counters)
		p.Counters++
		for _, steps := range p.Steps {
			steps[st].Out = []vdevice.Edge{vdevice.Meeting(vdevice.EdgeCounter, c)}
			steps[st+1].In = []vdevice.Edge{vdevice.Meeting(vdevice.EdgeCounter, c)}
		}
	}
}

// place is the vEU of tile k in a stage.
func (s *Model) place(k, stage int) int { return ((k+stage)%s.VEUs + s.VEUs) % s.VEUs }

func (s *Model) waits(k, stage int) []vdevice.Edge {
	if stage == 0 {
		return nil
	}
	var out []vdevice.Edge
	for v := range s.VEUs {
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

func (s *Model) stage(kernel *rkernels.Kernel, st int, from, to, coef *roperator.Buffer) *roperator.ROperator {
	threads := []int{64, 128}[st%2]
	add := functor.Apply("Add", functor.Leaf(ir.Float32, 0), functor.Scalar(ir.Float32, float64(s.shift(st))))
	add.Node.Origins = []ir.Origin{{Name: fmt.Sprintf("add of stage %d", st), OpType: "Add"}}
	epi := functor.NewEpilogue(ir.Float32, add, nil, 1)
	whole := func(b *roperator.Buffer) roperator.View {
		return roperator.View{Buf: b, Shape: []int64{b.Elems}, Strides: []int64{1}}
	}
	tile := int64(s.Tile)
	c := &roperator.Candidate{
		Inst: kernel.Bind(threads, s.Tile, epi), Tasks: s.VEUs,
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

func (s *Model) shift(stage int) float32 { return float32(stage) / 16 }

// Expect computes what the program must yield, with the kernel's own order of operations.
func (s *Model) Expect(x []float32) []float32 {
	for st := range s.Stages {
		x = s.ExpectStage(x, st)
	}
	return x
}

// ExpectStage computes what a stage must yield.
func (s *Model) ExpectStage(x []float32, stage int) []float32 {
	n := len(x)
	y := make([]float32, n)
	for i := range y {
		v := float32(0.25)*x[(i+n-1)%n] + float32(float32(0.5)*x[i])*s.Coef[i] + float32(0.25)*x[(i+1)%n]
		y[i] = v + s.shift(stage)
	}
	return y
}

// Input has n elements.
func Input(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	return x
}

// Bytes are those of a tensor, little-endian.
func Bytes(x []float32) []byte {
	var out []byte
	for _, v := range x {
		u := math.Float32bits(v)
		out = append(out, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	return out
}

// Floats undoes Bytes.
func Floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+
			3])<<24)
	}
	return out
}

// Mismatches runs the stencil once and counts the elements that differ from the formula's.
func (s *Model) Mismatches(t testing.TB, l Library) int {
	t.Helper()
	x := Input(s.VEUs * s.Tile)
	out, err := l.Run([][]byte{Bytes(x)})
	if err != nil {
		t.Fatal(err)
	}
	n, want := 0, s.Expect(x)
	for i, y := range Floats(out[0]) {
		if d := y - want[i]; !(d < 1e-5 && d > -1e-5) {
			n++
		}
	}
	return n
}

// aligned is the first place behind n bytes where a buffer of the arena may begin.
func aligned(n int64) int64 {
	return (n + vdevice.ArenaAlign - 1) / vdevice.ArenaAlign * vdevice.ArenaAlign
}
