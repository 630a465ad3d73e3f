package elementwise

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Limits of a staged map: elements that an rTask takes, and rTasks a vEU. With more of either, launches and plain
// memory serve better.
const (
	stagedElems  = 256
	stagedPerVEU = 2
)

// stagedTasks is how many rTasks a staged map may have on the target.
func stagedTasks(b *build.Builder) int64 { return stagedPerVEU * int64(b.Target().VEUs) }

// stagedMap is a map whose rTasks take chunks of the last dim.
type stagedMap struct {
	*mapLayout
	dims   []int64
	chunk  int64
	chunks int64
}

// stagedCandidate is the map's candidate whose operands and results the executor moves. It is nil if an element type
// is not float32, a stride is negative, or there are too many elements.
func (l *mapLayout) stagedCandidate(b *build.Builder, m Map) *roperator.Candidate {
	dims := l.outs[0].Shape
	last := len(dims) - 1
	if l.coordinates || ir.Count(dims) > stagedElems*stagedTasks(b) {
		return nil
	}
	for _, v := range append(append([]roperator.View{}, l.outs...), l.ins...) {
		if v.DType() != ir.Float32 || v.Strides[last] < 0 {
			return nil
		}
	}
	s := &stagedMap{mapLayout: l, dims: dims, chunk: min(dims[last], stagedElems)}
	s.chunks = build.CeilDiv(dims[last], s.chunk)
	tasks := ir.Count(dims[:last]) * s.chunks
	if tasks > stagedTasks(b) {
		return nil
	}
	return s.candidate(b, int(tasks), m)
}

// box is what an rTask computes: one index of each dim but the last, and a chunk of the last.
func (s *stagedMap) box(task int, lo, hi []int64) {
	last := len(s.dims) - 1
	row := int64(task) / s.chunks
	lo[last] = int64(task) % s.chunks * s.chunk
	hi[last] = min(lo[last]+s.chunk, s.dims[last])
	for d := last - 1; d >= 0; d-- {
		lo[d] = row % s.dims[d]
		hi[d] = lo[d] + 1
		row /= s.dims[d]
	}
}

// first is the first element of the box alone, for operands that are the same along the last dim.
func (s *stagedMap) first(task int, lo, hi []int64) {
	s.box(task, lo, hi)
	last := len(s.dims) - 1
	hi[last] = lo[last] + 1
}

func (s *stagedMap) candidate(b *build.Builder, tasks int, m Map) *roperator.Candidate {
	threads := int64(64) // with a warp for the operands of the next step, if that is not half a vEU more
	for threads < min(s.chunk+32, stagedElems) {
		threads *= 2
	}
	return s.carriedOutBy(b, "map_staged", threads, tasks, m)
}

// carriedOutBy makes a candidate of one of the rKernels for staged maps.
func (s *stagedMap) carriedOutBy(b *build.Builder, kernel string, threads int64, tasks int,
	m Map) *roperator.Candidate {
	last := len(s.dims) - 1
	c := &roperator.Candidate{Tasks: tasks}
	pitch := make([]int64, len(s.dims))
	pitch[last] = 1
	var at, steps rkernels.List
	end := int64(0)
	for _, v := range s.ins {
		n, box := s.chunk, s.box
		if v.Strides[last] == 0 {
			n, box = 1, s.first
		}
		k := len(c.Reads)
		c.Reads = roperator.AppendRead(c.Reads, v, box)
		if len(c.Reads) == k {
			k = -1
		}
		c.Imports = append(c.Imports, roperator.Staged{Access: roperator.Access{View: v, Box: box}, Index: k, At: end,
			Pitch: pitch})
		at, steps = append(at, rkernels.Int(end)), append(steps, rkernels.Int(min(n-1, 1)))
		end = roperator.WholeQuads(end + n)
		c.Work.ReadBytes += v.Bytes(float64(n))
	}
	for i, v := range s.outs {
		a := roperator.Access{View: v, Box: s.box}
		c.Writes = append(c.Writes, a)
		c.Exports = append(c.Exports, roperator.Staged{Access: a, Index: i, At: int64(i) * s.chunk, Pitch: pitch})
		c.Work.WriteBytes += v.Bytes(float64(s.chunk))
	}
	body := s.functor(m)
	c.Inst = b.Instance(kernel, threads, body)
	c.Args = []rkernels.Field{arg.Int("columns", s.dims[last]), arg.Int("chunk", s.chunk), arg.Div("chunks", s.chunks)}
	if len(s.ins) > 0 {
		c.Args = append(c.Args, rkernels.Field{Name: "in", Value: at}, rkernels.Field{Name: "step", Value: steps})
	}
	bodyArgs := append(rkernels.Struct{}, arg.Scalars(body)...)
	c.Args = append(c.Args, rkernels.Field{Name: "body", Value: bodyArgs})
	c.Work.Flops = float64(s.chunk * functor.Flops(m.Roots))
	return c
}

// functor is the body of the map: what the elements of the results are, from those of the operands.
func (s *stagedMap) functor(m Map) *functor.Functor {
	f := functor.Functor{Form: functor.Staged, Roots: m.Roots, Coordinates: -1}
	for i, v := range s.ins {
		f.Operands = append(f.Operands, functor.Operand{Leaf: s.leaf[i], DType: v.DType()})
	}
	return functor.New(f)
}
