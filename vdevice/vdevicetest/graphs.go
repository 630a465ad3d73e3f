// Package vdevicetest makes rOperator graphs for tests of schedules: small ones by hand, random ones, and large ones
// that resemble networks. Their rKernel has a manifest but no source, so plans of them can be made, verified and
// simulated, but not emitted. Only tests import this package.
package vdevicetest

import (
	"fmt"
	"testing/fstest"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

const manifest = `
name: test_kernel
family: test
type: rk::TestKernel
doc: stands for any rKernel in tests of schedules
serves: [Test]
params:
  - {name: THREADS, kind: int, doc: threads of an rTask}
  - {name: SHARED, kind: int, doc: bytes of shared memory}
  - {name: REGISTERS, kind: int, doc: registers a thread}
threads: THREADS
shared: SHARED
registers: REGISTERS
`

// The manifest of a kernel that takes its weights from the ring, STEP bytes at a time.
const streaming = `
name: test_stream
family: test
type: rk::TestStream
doc: stands for any rKernel that streams weights in tests of schedules
serves: [Test]
params:
  - {name: THREADS, kind: int, doc: threads of an rTask}
  - {name: SHARED, kind: int, doc: bytes of shared memory}
  - {name: REGISTERS, kind: int, doc: registers a thread}
  - {name: STEP, kind: int, doc: bytes}
threads: THREADS
shared: SHARED
registers: REGISTERS
streams: STEP
`

// Instance is an instance of the test kernel with so many threads, bytes of shared memory and registers per thread.
func Instance(threads, shared, registers int) *rkernels.Instance {
	return kernel(manifest).Bind(threads, shared, registers)
}

// StreamInstance is like Instance, of the kernel that takes its weights from the ring, step bytes at a time.
func StreamInstance(threads, shared, registers, step int) *rkernels.Instance {
	return kernel(streaming).Bind(threads, shared, registers, step)
}

func kernel(manifest string) *rkernels.Kernel {
	kernels, err := rkernels.Load(fstest.MapFS{"test/k.yaml": {Data: []byte(manifest)}, "test/k.cuh": {}})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return kernels[0]
}

// Stream makes every rTask of c stream its own block of a new constant, of the given number of bytes, step bytes at a
// time.
func (m *Maker) Stream(c *roperator.Candidate, block, step int64) {
	in := c.Inst
	c.Inst = StreamInstance(in.Threads(), in.Shared(), in.Registers(), int(step))
	w := m.Buffer(roperator.Const, int64(c.Tasks)*block/4)
	c.Args = append(c.Args, rkernels.Field{Name: "b", Value: w.Ref()})
	c.Stream = func(task int) (rkernels.Ref, int64) {
		return rkernels.Ref{Buffer: w.Buf.ID, Offset: int64(task) * block}, block
	}
	c.Work.ConstBytes = float64(block)
}

// Maker builds a graph.
type Maker struct {
	G    *roperator.Graph
	inst *rkernels.Instance
}

// New starts a graph.
func New(name string) *Maker {
	return &Maker{G: &roperator.Graph{Name: name}, inst: Instance(128, 1024, 64)}
}

// Buffer adds a dense float32 buffer and returns the view of all of it.
func (m *Maker) Buffer(kind roperator.BufferKind, dims ...int64) roperator.View {
	id := len(m.G.Buffers)
	b := &roperator.Buffer{ID: id, Name: fmt.Sprintf("v%d", id), Kind: kind, DType: ir.Float32, Elems: ir.Count(dims),
		Index: -1}
	v := roperator.View{Buf: b, Shape: dims, Strides: make([]int64, len(dims))}
	n := int64(1)
	b.Canon = []int64{1}
	for d := len(dims) - 1; d >= 0; d-- {
		v.Strides[d] = n
		if n > b.Canon[0] {
			b.Canon = append([]int64{n}, b.Canon...)
		}
		n *= dims[d]
	}
	m.G.Buffers = append(m.G.Buffers, b)
	switch port := (roperator.Port{Name: b.Name, DType: b.DType, Dims: dims, Buffer: id}); kind {
	case roperator.Input:
		b.Index = len(m.G.Inputs)
		m.G.Inputs = append(m.G.Inputs, port)
	case roperator.Output:
		b.Index = len(m.G.Outputs)
		m.G.Outputs = append(m.G.Outputs, port)
	}
	return v
}

// Op adds an rOperator.
func (m *Maker) Op(candidates ...*roperator.Candidate) *roperator.ROperator {
	id := len(m.G.Ops)
	name := fmt.Sprintf("op%d", id)
	op := &roperator.ROperator{
		ID: id, Name: name, Kind: "Test", Candidates: candidates,
		Origins: []ir.Origin{{Name: name + "_node", OpType: "Test"}},
	}
	m.G.Ops = append(m.G.Ops, op)
	return op
}

// Candidate is a candidate of the test kernel with so many rTasks, each of which takes flops operations.
func (m *Maker) Candidate(tasks int, flops float64, reads, writes []roperator.Access) *roperator.Candidate {
	return &roperator.Candidate{
		Inst: m.inst, Tasks: tasks, Reads: reads, Writes: writes,
		Work: roperator.Work{Flops: flops, ReadBytes: 1024, WriteBytes: 1024},
	}
}

// Grid cuts the dims of a shape into tiles; rTasks number them in row-major order.
type Grid struct {
	Shape, Tile []int64
}

// Tasks is the number of tiles.
func (g Grid) Tasks() int {
	n := int64(1)
	for d := range g.Shape {
		n *= (g.Shape[d] + g.Tile[d] - 1) / g.Tile[d]
	}
	return int(n)
}

// Of is an access in which each rTask has its own tile of v. The shape of v is the grid's.
func (g Grid) Of(v roperator.View) roperator.Access { return g.Halo(v, make([]int64, len(g.Shape))...) }

// Halo is like Of, with tiles that are larger by halo[d] elements on both sides of dim d, as a convolution reads them.
// What lies outside of the view is cut off, so a halo as large as the dim makes every rTask read the dim whole.
func (g Grid) Halo(v roperator.View, halo ...int64) roperator.Access {
	return roperator.Access{View: v, Box: func(task int, lo, hi []int64) {
		for d := len(g.Shape) - 1; d >= 0; d-- {
			tiles := (g.Shape[d] + g.Tile[d] - 1) / g.Tile[d]
			i := int64(task) % tiles
			task /= int(tiles)
			lo[d] = max(i*g.Tile[d]-halo[d], 0)
			hi[d] = min(min((i+1)*g.Tile[d], g.Shape[d])+halo[d], v.Shape[d])
		}
	}}
}

// Whole is an access in which every rTask has all of v.
func Whole(v roperator.View) roperator.Access { return roperator.Access{View: v} }

// Rows is a chain of rows of so many values in 16 bits, each made of all of the one before and, pointwise, of the one
// before that. rOperators of it have a candidate for each choice of what travels in tagged words, but for the two ends.
func Rows(ops int, values, tile int64) *roperator.Graph {
	m := New("rows")
	grid := Grid{Shape: []int64{values}, Tile: []int64{tile}}
	rows := []roperator.View{m.Buffer(roperator.Input, values)}
	for i := range ops {
		kind := roperator.Arena
		if i == ops-1 {
			kind = roperator.Output
		}
		rows = append(rows, m.Buffer(kind, values))
		rows[i+1].Buf.DType = ir.Float16
		reads := []roperator.Access{Whole(rows[i])}
		if i > 0 {
			reads = append(reads, roperator.Pointwise([]roperator.Access{grid.Of(rows[i-1])})...)
		}
		plain := m.Candidate(grid.Tasks(), 0, reads, []roperator.Access{grid.Of(rows[i+1])})
		all := []*roperator.Candidate{plain}
		for set := 1; set < 8; set++ {
			c := *plain
			c.Like = plain
			for k, v := range c.Reads {
				if set>>k&1 != 0 && v.View.Buf.Kind == roperator.Arena {
					c.Polls = append(c.Polls, k)
				}
			}
			if set&4 != 0 && kind == roperator.Arena {
				c.Gives = []int{0}
			}
			if len(c.Polls)+len(c.Gives) > 0 {
				all = append(all, &c)
			}
		}
		m.Op(all...)
	}
	m.G.Canonise()
	return m.G
}
