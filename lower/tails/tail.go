// Package tails has what follows a kernel's own arithmetic: the tail of kernels that apply the group's epilogue
// themselves, the map that applies it after kernels that take no functors, and cubes, the form of three dims in
// which kernels see their results.
package tails

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// InputCube shows v as a cube of three dims. If its strides do not allow that, it shows a dense copy.
func InputCube(b *build.Builder, v roperator.View, cuts [2]int) roperator.View {
	if c, ok := v.Collapse(cuts[0], cuts[1]); ok {
		return c
	}
	c, _ := elementwise.Contiguous(b, v).Collapse(cuts[0], cuts[1])
	return c
}

// Tail is what a kernel does with each element of its result before storing it: the last arithmetic of the anchor
// itself, such as adding a bias, and then the group's epilogue. The kernel sees its result, the operands and the
// output as cubes [i0][i1][i2].
type Tail struct {
	Functor  *functor.Functor
	Args     rkernels.Struct
	operands []roperator.View // as [i0][i1][i2], constants included
	Out      roperator.View   // as [i0][i1][i2]
	home     *roperator.View  // where out must be copied to when the destination cannot be seen as [i0][i1][i2]
	temp     roperator.View   // the dense stand-in for home
	floored  bool             // the functor is a Relu and nothing else
	run      int64            // Spec.Run

	in   ir.DType // of the kernel's result
	root *functor.Expr
	pair int // the leaf of the second result; 0: there is none
}

// Spec describes the result of a kernel for New.
type Spec struct {
	DType ir.DType // of the kernel's result
	Shape []int64  // of the group's output, its dims in the order perm
	Cuts  [2]int   // i0 is dims [0, cuts[0]), i1 is dims [cuts[0], cuts[1]), i2 the rest
	Perm  []int64  // nil when the dims keep their order
	// Own is the anchor's own last arithmetic: leaf 0 is the kernel's result, and leaves 1… are elements of Operands,
	// broadcast to Shape. It is nil if there is none.
	Own      *functor.Expr
	Operands []roperator.View
	// Pair is the second result of a kernel that makes each element of two; nil for others.
	Pair *Pair
	// Run says that the kernel can store neighbours along i2 together: its tiles begin and end at multiples of Run
	// along i2. It is 0 for kernels that store elements one by one.
	Run int64
}

// Pair is the second of two results of a kernel, for which Value, an operand of the group's epilogue, stands. Own is the
// last arithmetic of what would have computed it, as in Spec, and Epilogue what follows on that (leaf 0), nil for nothing.
type Pair struct {
	Value    *ir.Value
	Own      *functor.Expr
	Operands []roperator.View
	Epilogue *functor.Expr
}

// expression computes the second result, which is leaf number `leaf`, from there to where the group takes it, and the
// operands from leaf `first` on.
func (p *Pair) expression(d ir.DType, leaf, first int) *functor.Expr {
	e := functor.Leaf(d, leaf)
	if p.Own != nil {
		leaves := []*functor.Expr{e}
		for i, v := range p.Operands {
			leaves = append(leaves, functor.Leaf(v.DType(), first+i))
		}
		e = functor.Graft(p.Own, leaves)
	}
	if p.Epilogue != nil {
		e = functor.Graft(p.Epilogue, []*functor.Expr{e})
	}
	return e
}

// pairLeaf is the leaf of the second result, behind those of all operands.
const pairLeaf = 1 << 10

// New prepares the functor and its operands for output 0 of the group. If the output cannot be seen as a cube, the
// kernel writes a dense buffer, which Finish copies.
func New(b *build.Builder, g *build.Group, s Spec) *Tail {
	root := functor.Leaf(s.DType, 0)
	if s.Own != nil {
		root = s.Own
	}
	operands := append([]roperator.View{}, s.Operands...)
	pair := 0
	if g.Epilogue != nil {
		leaves := []*functor.Expr{root}
		for _, v := range g.Extra {
			if s.Pair != nil && v == s.Pair.Value {
				pair = pairLeaf
				leaves = append(leaves, s.Pair.expression(s.DType, pair, len(operands)+1))
				operands = append(operands, s.Pair.Operands...)
				continue
			}
			leaves = append(leaves, functor.Leaf(v.DType, len(operands)+1))
			operands = append(operands, b.In(v))
		}
		root = functor.Graft(g.Epilogue, leaves)
	}
	t := &Tail{floored: isRelu(root), run: s.Run}
	if t.floored {
		root = atLeast(root, 0)
	}
	for _, v := range operands {
		t.operands = append(t.operands, asCube(b, v, s))
	}
	t.placeOut(b, s.Arrange(b.Out(g.Outputs[0])), s)
	t.in, t.root, t.pair = s.DType, root, pair
	if pair > 0 {
		t.byElement(nil)
	} else {
		t.Functor, t.Args = PackedEpilogue(s.DType, root, t.operands, t.Out, s.Run)
	}
	return t
}

// byElement makes a functor that is called for one element at a time and polls the operands in the given buffers as
// tagged words.
func (t *Tail) byElement(words []*roperator.Buffer) {
	operands := loads(t.operands, 1, words)
	if t.pair > 0 {
		t.Functor = functor.NewPairEpilogue(t.in, t.root, t.pair, operands)
	} else {
		t.Functor = functor.NewEpilogue(t.in, t.root, operands, 1)
	}
	t.Args = epilogueArgs(t.Functor, t.operands)
}

// InWords is the tail of a kernel that calls it for one element at a time, with the operands in the given buffers as
// tagged words.
func (t *Tail) InWords(words []*roperator.Buffer) *Tail {
	out := *t
	out.byElement(words)
	return &out
}

// InPacks is the tail of a kernel whose packs are of run elements, or of one where the result or an operand does not
// allow that.
func (t *Tail) InPacks(run int64) *Tail {
	out := *t
	if t.pair > 0 {
		return &out
	}
	if pack := packOf(t.root, t.operands, t.Out, run); int64(pack) == run {
		out.Functor, out.Args = epilogue(t.in, t.root, t.operands, pack)
	} else {
		out.byElement(nil)
	}
	return &out
}

// InWidePacks is the tail of a kernel whose threads have eight neighbours each, of which results of 8 bits leave
// together where that is allowed, though constants take two accesses for so many.
func (t *Tail) InWidePacks() *Tail {
	if t.pair > 0 || t.Out.DType().Size() != 1 {
		return t
	}
	pack := packBeside(t.root, t.operands, t.Out, t.run, true)
	if pack <= t.Functor.Pack {
		return t
	}
	out := *t
	out.Functor, out.Args = epilogue(t.in, t.root, t.operands, pack)
	return &out
}

// MayLeaveInWords reports whether results may be stored as tagged words of two elements, in runs of so many along i2.
// Rows of float32 need twice as many words, and programs took longer with them.
func (t *Tail) MayLeaveInWords(run int64) bool {
	out, per := t.Out, roperator.PerWord(t.Out.DType())
	if out.Buf.Kind != roperator.Arena || out.Buf.State || per != 2 || out.Stride(2) != 1 {
		return false
	}
	return run%per == 0 && out.Shape[2]%per == 0 && out.Offset%per == 0 && out.Stride(0)%per == 0 && out.Stride(1)%per == 0
}

// Operands are the operands as [i0][i1][i2], constants included.
func (t *Tail) Operands() []roperator.View { return t.operands }

// PartialSums is the functor of an rOperator that stores sums of float32 as they are, into out, for another rOperator
// that adds them up and has this tail. Where the tail is a Relu it is the same functor, of minus infinity instead of 0:
// then rOperators that are split and others that are not run the same code.
func (t *Tail) PartialSums(sum ir.DType, out roperator.View, run int64) *Tail {
	root := functor.Leaf(sum, 0)
	if t.floored && sum == ir.Float32 {
		root = atLeast(functor.Apply("Relu", root), math.Inf(-1))
	}
	f, args := PackedEpilogue(sum, root, nil, out, run)
	return &Tail{Functor: f, Args: args, Out: out}
}

// isRelu reports whether e is the Relu of a float32 result, and nothing else.
func isRelu(e *functor.Expr) bool {
	return e.Op == "Relu" && e.DType == ir.Float32 && e.In[0].IsLeaf() && e.In[0].Leaf == 0 && e.In[0].DType == ir.Float32
}

// atLeast is a Relu whose smallest result is a scalar, and so an argument of the functor.
func atLeast(relu *functor.Expr, least float64) *functor.Expr {
	e := *relu
	e.In = append(slices.Clone(relu.In), functor.Scalar(ir.Float32, least))
	return &e
}

// Arrange broadcasts v to the output's shape and puts its dims in the order of the kernel.
func (s *Spec) Arrange(v roperator.View) roperator.View {
	if s.Perm == nil {
		return v.Broadcast(s.Shape)
	}
	shape := make([]int64, len(s.Shape))
	for i, d := range s.Perm {
		shape[d] = s.Shape[i]
	}
	return v.Broadcast(shape).Permute(s.Perm)
}

// asCube shows an operand, broadcast to the output, as a cube. A broadcast inside of dims that are merged is carried
// out in memory.
func asCube(b *build.Builder, v roperator.View, s Spec) roperator.View {
	v = s.Arrange(v)
	if c, ok := v.Collapse(s.Cuts[0], s.Cuts[1]); ok {
		return c
	}
	c, _ := elementwise.Contiguous(b, v).Collapse(s.Cuts[0], s.Cuts[1])
	return c
}

func (t *Tail) placeOut(b *build.Builder, out roperator.View, s Spec) {
	var ok bool
	if t.Out, ok = out.Collapse(s.Cuts[0], s.Cuts[1]); ok {
		return
	}
	t.home = &out
	t.temp = b.Temp("result", out.DType(), out.Shape)
	t.Out, _ = t.temp.Collapse(s.Cuts[0], s.Cuts[1])
}

// Moves reports whether Finish has something to copy.
func (t *Tail) Moves() bool { return t.home != nil }

// Finish copies the result to its destination if the kernel could not write it there. It must be called after
// Builder.Add.
func (t *Tail) Finish(b *build.Builder) {
	if t.home != nil {
		elementwise.Copy(b, *t.home, t.temp)
	}
}

// Reads are the reads of the operands, for rTasks that compute the boxes of the output that box gives. A kernel reads an
// element of an operand where it stores the element of the output, so the output may take the operand's memory.
func (t *Tail) Reads(box func(task int, lo, hi []int64)) []roperator.Access {
	var out []roperator.Access
	for _, v := range t.operands {
		out = roperator.AppendRead(out, v, box)
	}
	return roperator.Pointwise(out)
}

// BytesPerElement is how many bytes of operands are read for one element of the output. Constants do not count.
func (t *Tail) BytesPerElement() float64 {
	n := 0
	for _, v := range t.operands {
		if v.Buf.Kind != roperator.Const {
			n += v.DType().Size()
		}
	}
	return float64(n)
}

// OnlyRounds reports whether the epilogue does no more to a sum than to make it a number of the result's type.
func (t *Tail) OnlyRounds() bool { return functor.Length(t.Functor.Roots[0]) == 0 }

// Prologue is the functor that an input element of type d goes through when it is loaded, and its arguments. A nil e
// leaves elements as they are.
func Prologue(d ir.DType, e *functor.Expr) (*functor.Functor, rkernels.Struct) {
	f := functor.NewPrologue(d, e)
	return f, append(rkernels.Struct{}, arg.Scalars(f)...)
}
