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
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// Extent is a number of elements that is a constant when the program is compiled. What has this type could not be a
// bound that the program learns only when it runs: the arena is laid out from the sizes of buffers, views carry
// strides, and rTasks are counted. Lowering gets extents from build.Builder.Extents alone, which says why each of them
// has to be a constant.
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

// Buffer is a dense piece of memory.
type Buffer struct {
	ID    int
	Name  string // the ir.Value (or packing) it stands for
	Kind  BufferKind
	DType ir.DType
	Elems Extent
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
	Shape   []Extent
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
	Dims   []Extent
	Buffer int // Buffer.ID
}

// Canonise computes the canonical coordinates of every buffer from the views that candidates have on it. Boxes
// mean something only after that.
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
