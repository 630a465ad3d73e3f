// Package roperator turns an optimised ir.Graph into rOperators: groups of independent, homogeneous
// rTasks over buffers (Rammer §3.1).
//
// A View says which elements of which Buffer a value is; views (reshape, transpose, slice, split,
// concat in place) therefore cost nothing. Every candidate rKernel of an rOperator says how many
// rTasks it has and, for each, which boxes of which views it reads and writes; all that the scheduler
// knows about dependencies follows from intersecting those boxes.
//
// To add an operator: write a Lowering in the file of its family and add a row to the table in
// lowerings.go.
package roperator

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// BufferKind says where a buffer lives.
type BufferKind uint8

const (
	Arena  BufferKind = iota // produced and consumed inside the program
	Input                    // a graph input, read in place
	Output                   // a graph output, written in place
	Const                    // weights: never a dependency
)

func (k BufferKind) String() string { return [...]string{"arena", "input", "output", "const"}[k] }

// Buffer is a dense piece of memory.
type Buffer struct {
	ID    int
	Name  string // the ir.Value (or packing) it stands for
	Kind  BufferKind
	DType ir.DType
	Elems int64
	Index int // which graph input or output
	// Data yields a Const buffer's bytes (little-endian, Elems × DType.Size()). It is called once, when
	// the weights file is written, so that layouts nobody chose are never made.
	Data func() []byte
	// Canon are the strides, strictly descending to 1, of the coordinate system in which the buffer's
	// boxes are compared; each stride divides the one before. finish computes it from all views.
	Canon []int64
}

// Bytes is the buffer's size.
func (b *Buffer) Bytes() int64 { return b.Elems * int64(b.DType.Size()) }

// View is a strided window on a buffer, in elements. Strides may be 0 (broadcast).
type View struct {
	Buf     *Buffer
	Offset  int64
	Shape   []int64
	Strides []int64
}

// Ref is the view's first element as a kernel argument.
func (v View) Ref() rkernels.Ref {
	return rkernels.Ref{Buffer: v.Buf.ID, Offset: v.Offset * int64(v.Buf.DType.Size())}
}

// DType is the element type.
func (v View) DType() ir.DType { return v.Buf.DType }

// Count is the number of elements of the view.
func (v View) Count() int64 { return ir.Count(v.Shape) }

// Access is a view that an rTask touches and which box of it.
type Access struct {
	View View
	// Box fills lo and hi (len(View.Shape) each; hi exclusive, lo ≤ hi inside the shape) with the box
	// that rTask task reads or writes. Reads may be larger than the truth, writes must be exact.
	// nil means the whole view.
	Box func(task int, lo, hi []int64)
}

// Work is what one rTask costs, for modelled costs: the arithmetic and the bytes it must move.
type Work struct {
	Flops      float64 // of the largest rTask
	ConstBytes float64 // constants one rTask reads
	ReadBytes  float64 // produced data one rTask reads
	WriteBytes float64
	// SharedBytes is what its threads read of shared memory, each for itself; 0 where that bounds nothing.
	SharedBytes float64
}

// Candidate is one way to carry out an rOperator: an rKernel instance with its arguments.
type Candidate struct {
	Inst   *rkernels.Instance
	Tasks  int              // get_total_rtask_num()
	Args   []rkernels.Field // of the instance's Args struct, in declaration order
	Reads  []Access         // produced data only; constants are not dependencies
	Writes []Access
	Work   Work
	// Imports are the reads, Exports the writes that the executor carries out.
	Imports, Exports []Staged
	// Resident is the packed constant of which every rTask keeps its own block on chip, nil for none.
	// Steps that follow each other on a vEU and run the same rTask of candidates with the same instance
	// and the same Resident load it once.
	Resident *Buffer
	// Stream is the weight block that each rTask takes from the vEU's ring: contiguous in a packed
	// constant, on whole 16 bytes, in the order in which it is read. Instances that stream have it, others
	// do not. The block must be among Args' references too.
	Stream func(task int) (ref rkernels.Ref, bytes int64)
}

// StreamBytes is the length of the weight block of an rTask, 0 if c streams none.
func (c *Candidate) StreamBytes(task int) int64 {
	if c.Stream == nil {
		return 0
	}
	_, n := c.Stream(task)
	return n
}

// ROperator is a node of the rOperator graph.
type ROperator struct {
	ID         int
	Name       string // after the ONNX node it is anchored in
	Kind       string // what it computes, e.g. "Conv+Relu"
	Origins    []ir.Origin
	Candidates []*Candidate // at least one; the first is the safest
}

// Graph is the rOperator graph. Ops are in a topological order: an rOperator reads only what earlier
// ones (or the caller) wrote.
type Graph struct {
	Name    string
	Ops     []*ROperator
	Buffers []*Buffer // by ID
	Inputs  []Port
	Outputs []Port
}

// Port is an input or output of the program.
type Port struct {
	Name   string
	DType  ir.DType
	Dims   []int64
	Buffer int // Buffer.ID
}
