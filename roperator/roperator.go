// Package roperator has the types of the rOperator graph: groups of independent, homogeneous rTasks over buffers
// (Rammer §3.1). Package lower makes such graphs from ir graphs; schedule and codegen read them.
//
// A View says which elements of which Buffer a value is. What only renames elements (reshape, transpose, slice,
// split, concatenation in place) is another view of the same buffer and therefore costs nothing. Every candidate
// rKernel of an rOperator says how many rTasks it has and, for each rTask, which boxes of which views it reads and
// writes. All that the scheduler knows about dependencies follows from intersecting those boxes. Verify checks
// that they make sense.
package roperator

import (
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/rkernels"
)

// Extent is a number of elements that is a constant when the program is compiled: the arena is laid out from the sizes
// of buffers, views carry strides, and rTasks are counted. Of a dim with a range it is the largest extent; what a run
// has less than that is told to the rKernels that must know it (Candidate.Live). Lowering gets extents from
// build.Builder.Extents alone, which says why each of them has to be a constant.
type Extent = int64

// BufferKind says where a buffer lives.
type BufferKind uint8

const (
	Arena  BufferKind = iota // produced and consumed inside the program
	Input                    // a graph input, read in place
	Output                   // a graph output, written in place
	Const                    // weights: never a dependency
)

func (k BufferKind) String() string { return [...]string{"arena", "input", "output", "const"}[k] }

// Buffer is a contiguous block of elements of one type.
type Buffer struct {
	ID    int
	Name  string // the ir.Value (or packing) it stands for
	Kind  BufferKind
	DType ir.DType
	Elems Extent
	Index int // which graph input or output
	// Data returns the bytes of a Const buffer: Elems elements in little-endian order. It is called when the weights
	// file is written, and only for constants that the chosen candidates use, so that layouts that nobody chose are
	// never made.
	Data func() []byte
	// Canon has the weights of the coordinates in which the boxes of the buffer are given, from large to small; each
	// divides the one before it, and the last is 1. Graph.Canonise computes them from all views.
	Canon []int64
	// Factors are the axes along which elements lie, from the outermost to the innermost, where only a run knows how
	// many of them are live; nil if nothing is known of them.
	Factors axes.Axis
	// State says that the elements are there before the program runs, from the run before (Port.State), or that a turn of
	// a loop leaves them to the next one.
	State bool
}

// Bytes is the buffer's size.
func (b *Buffer) Bytes() int64 { return b.Elems * int64(b.DType.Size()) }

// View shows elements of a buffer as a tensor: element (i, j, …) is at Offset + i·Strides[0] + j·Strides[1] + …,
// counted in elements. A stride may be 0, where elements repeat, or negative.
type View struct {
	Buf     *Buffer
	Offset  int64
	Shape   []Extent
	Strides []int64
}

// Ref is the address of the first element, as an argument of an rKernel.
func (v View) Ref() rkernels.Ref {
	return rkernels.Ref{Buffer: v.Buf.ID, Offset: v.Offset * int64(v.Buf.DType.Size())}
}

// DType is the element type.
func (v View) DType() ir.DType { return v.Buf.DType }

// Count is the number of elements of the view.
func (v View) Count() int64 { return ir.Count(v.Shape) }

// Access says which part of a view an rTask reads or writes.
type Access struct {
	View View
	// Box fills lo and hi, as long as View.Shape, with the part [lo, hi) that an rTask reads or writes. The part may
	// be larger than what is read, but must be exactly what is written. A nil Box stands for the whole view.
	Box func(task int, lo, hi []int64)
	// Pointwise says of a read that an rTask needs each element of the part for nothing but the element at the same place
	// of what it writes, and reads it before it writes that one. See Candidate.Replaceable.
	Pointwise bool
	// Before says of a read that it is of what the turn before has left; in the first turn the rKernel takes nothing of it.
	Before bool
	// Turns says which part of the box a turn of a loop accesses, where that is not all of it.
	Turns Turns
	// Joint says of a write that all rTasks together write the view, each one elements that nobody can name, or by atomic
	// operations. Box is nil then, and the rTasks may also read what they write.
	Joint bool
}

// Turns is a part of a box that differs from turn to turn of a loop: along dim Dim of the view, the Rows elements from
// First + turn·Step on. Together the turns have the whole dim. The zero value stands for the same box in all turns.
type Turns struct {
	Trips             int64
	Dim               int
	First, Step, Rows int64
}

// Loop is a part of the program that is repeated.
type Loop struct{ Trips int64 }

// Work is what one rTask has to do, for modelled costs. All figures are those of the largest rTask.
type Work struct {
	Flops       float64 // of scalar arithmetic
	TensorFlops float64 // of tensor cores, in tf32 products
	ConstBytes  float64 // constants one rTask reads
	ReadBytes   float64 // produced data one rTask reads
	WriteBytes  float64
	// SharedBytes is how many bytes its threads read from shared memory, counting each thread; 0 if that is never the
	// slowest part.
	SharedBytes float64
}

// Candidate is one way to carry out an rOperator: an instance of an rKernel, its arguments, and what each of its
// rTasks reads and writes. The schedule picks one of the candidates of each rOperator.
type Candidate struct {
	Inst   *rkernels.Instance
	Tasks  int              // get_total_rtask_num()
	Args   []rkernels.Field // of the instance's Args struct, in declaration order
	Reads  []Access         // produced data only; constants are not dependencies
	Writes []Access
	Work   Work
	// Imports are the reads, and Exports the writes, that the executor carries out for the rKernel.
	Imports, Exports []Staged
	// Polls are the reads, by index, and Gives the writes, whose buffers travel in tagged words that the rKernel polls and
	// stores itself. Such a buffer is nowhere else, and the rKernel's references to it are numbers of words.
	Polls, Gives []int
	// Like is the candidate with the same rTasks that has these buffers in plain memory; nil where there are none. The two
	// cost the same.
	Like *Candidate
	// Resident is the packed constant of which every rTask keeps a block of its own on chip, nil if there is none. If
	// a vEU runs steps with the same rTask number, instance and Resident one after another, the block is loaded once.
	Resident *Buffer
	// Stream says which block of weights each rTask takes from the ring of its vEU: a contiguous part of a packed
	// constant, aligned to StreamAlign, in the order in which it is read. Candidates have it if and only if their
	// instances stream. The constant must be among the references of Args too.
	Stream func(task int) (ref rkernels.Ref, bytes int64)
	// EarlyStates says that rTasks read states before what the launches before them have made. So these must not begin
	// before the run that has left the states has ended.
	EarlyStates bool
	// Live are the members of Args that are extents which only a run knows. Args has the largest ones.
	Live []LiveArg
	// Counts are the extents that the device has found of axes of what the candidate writes, and of those in Live. Reads
	// has them, too.
	Counts []Count
	// Conditions are those without which nobody needs what the candidate writes. Reads has them, too.
	Conditions []Condition
}

// Condition is one bool that the program computes; Not turns it around.
type Condition struct {
	View View
	Not  bool
}

// SharedConditions is how many conditions both lists begin with.
func SharedConditions(a, b []Condition) int {
	n := 0
	for n < len(a) && n < len(b) && a[n].Not == b[n].Not && a[n].View.Ref() == b[n].View.Ref() {
		n++
	}
	return n
}

// Count is the extent of a range that the device finds, as one int64.
type Count struct {
	Range int // index in Graph.Ranges
	View  View
}

// LiveArg is a member of an rKernel's Args that holds the extent of an axis. The rKernel must read and write no more
// where the extent is smaller.
type LiveArg struct {
	Member string
	Axis   axes.Axis
}

// StreamBytes is the length of the block of weights of an rTask, 0 if c streams none.
func (c *Candidate) StreamBytes(task int) int64 {
	if c.Stream == nil {
		return 0
	}
	_, n := c.Stream(task)
	return n
}

// StreamedBytes is the length of the part of a packed constant from which c's rTasks take their blocks. Many rTasks may
// take the same block; it counts once.
func (c *Candidate) StreamedBytes() int64 {
	if c.Stream == nil {
		return 0
	}
	from, to := int64(math.MaxInt64), int64(0)
	for task := range c.Tasks {
		ref, n := c.Stream(task)
		if n == 0 {
			continue
		}
		from, to = min(from, ref.Offset), max(to, ref.Offset+n)
	}
	return max(0, to-from)
}

// ROperator is a node of the rOperator graph.
type ROperator struct {
	ID         int
	Name       string // after the ONNX node it is anchored in
	Kind       string // what it computes, e.g. "Conv+Relu"
	Origins    []ir.Origin
	Precision  precision.Precision // that its node was given; what a candidate does is its Arithmetic
	Candidates []*Candidate        // at least one; the first is the safest
	Parts      Parts
	Loop       int // 1 + the index in Graph.Loops of the loop that it is part of; 0: it is in none
}

// Parts says that the output of an rOperator is partial results, which another rOperator joins. Candidates may cut what
// they work on at different places, so that their outputs differ though all are right. The output is groups of Count
// parts of Length elements each.
type Parts struct {
	Count, Length int64 // Count is 0 where the output is a result
	// Sum says that the sum over the parts of a group is the same for all candidates. Otherwise only the rOperator that
	// joins them can tell what they stand for.
	Sum bool
}

// Graph is the graph of rOperators that is made from an ir.Graph. Ops are in topological order: an rOperator reads
// only what the caller gave or earlier ones wrote.
type Graph struct {
	Name    string
	Ops     []*ROperator
	Buffers []*Buffer // by ID
	Inputs  []Port
	Outputs []Port
	// Ranges are the dims whose extents only a run knows. Shapes, boxes and counts of rTasks are those of the largest.
	Ranges []axes.Range
	// Loops are the parts that are repeated, in an order in which they can run one after another.
	Loops []Loop
}

// Port is an input or output of the program.
type Port struct {
	Name   string
	DType  ir.DType
	Dims   []Extent
	Buffer int         // Buffer.ID
	Axes   []axes.Axis // which of the dims depend on the run, and on what; nil if none does
	// Counts is 1 + the number of a range that the device finds, if the port tells its extent and no result of the model;
	// otherwise 0. Such outputs come last.
	Counts int
	// Requires is what a run has to say if the port is not 0: the message of a rammer.Require. Such outputs come behind
	// those of the caller; "" for others.
	Requires string
	// State is not nil if the port is a state, which the context keeps. Such outputs come behind those of the caller.
	State *State
}

// State is a value that a run takes from the run before and leaves to the next one, in the buffer of an output.
type State struct {
	Input string // the input of the model that the output is for the next run
	// Axes are those of the input. Where the state grows, one of them is Grows of the ranges, of as many elements as there
	// is room for, and Next is the extent that it has behind a run; else Grows is -1.
	Axes  []axes.Axis
	Grows int
	Next  ir.Dim
	// Repeats says that a run repeats the whole program while the one element of the state, a bool, is true behind it.
	Repeats bool
}

// Canonise computes the coordinates of every buffer from the views that all candidates have on it. Candidates have no
// boxes before.
func (g *Graph) Canonise() {
	writes := make([][]View, len(g.Buffers))
	reads := make([][]View, len(g.Buffers))
	for _, op := range g.Ops {
		for _, c := range op.Candidates {
			for _, a := range c.Writes {
				writes[a.View.Buf.ID] = append(writes[a.View.Buf.ID], a.View)
			}
			for _, a := range c.Reads {
				reads[a.View.Buf.ID] = append(reads[a.View.Buf.ID], a.View)
			}
		}
	}
	for i, buf := range g.Buffers {
		buf.canonise(writes[i], reads[i])
	}
}
