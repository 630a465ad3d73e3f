package functor

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// Form says how an rKernel calls a functor.
type Form uint8

// The forms of functors. In all of them float32 scalars are arguments, so that functors that differ in them alone
// are one.
const (
	// Epilogue computes an element of the output from the kernel's result (leaf 0) and from elements of operands
	// (leaves 1…), which the functor loads from the same place [i0][i1][i2] of the cube.
	Epilogue Form = iota
	// Prologue computes what a kernel takes for an element of an input (leaf 0) that it has loaded.
	Prologue
	// Map loads, computes and stores the elements at one place of an iteration space, or in a pack: Pack
	// consecutive places along the last dim.
	Map
	// Staged computes float32 results from float32 operands that the kernel has loaded.
	Staged
)

// Functor is what an rKernel takes as a template argument: an epilogue, a prologue or the body of a map. Make it with
// New. Functors with equal keys are the same code.
type Functor struct {
	Form Form
	// Roots are the results.
	Roots []*Expr
	// In is the element type of leaf 0 of an epilogue or prologue.
	In ir.DType
	// Pair is the leaf that stands for the second result of kernels that make each element of two, which has type In, too;
	// 0 for others.
	Pair int
	// Identity says that the functor changes nothing, so that kernels may leave it out.
	Identity bool
	// Operands stand behind the leaves, in the order in which they are passed: for epilogues leaves 1…, for maps
	// and staged maps any.
	Operands []Operand
	// Rank is the number of coordinates of a map's iteration space. Pack is how many neighbours along the last
	// coordinate are computed at a time: a map computes nothing else, and an epilogue with Pack > 1 can do both.
	Rank, Pack int
	// Coordinates is the leaf that stands for a map's first coordinate, as an int64; the leaves after it stand for
	// the others. It is -1 for maps that do not use their coordinates.
	Coordinates int

	key     string
	scalars []float32
}

// Operand is what the functor loads.
type Operand struct {
	Leaf  int // which leaf of the expressions it is
	DType ir.DType
	// Const says that it is a constant, which epilogues and maps load long before they may read anything else.
	Const bool
	// Repeats says that it is the same for all elements of a pack.
	Repeats bool
	// Still says that it is a constant that is the same for all i1 of an epilogue's cube, such as the bias of a column.
	// Where packs are computed it is loaded once for all rows.
	Still bool
	// Words says that it travels in tagged words, which epilogues poll.
	Words bool
}

// New completes f.
func New(f Functor) *Functor {
	f.Roots = withRounding(f.Roots)
	f.scalars = scalarsOf(f.Roots)
	f.key = f.spell()
	return &f
}

// NewEpilogue computes root from a kernel's result, of element type in, and operands; with pack > 1 also for so many
// neighbours along i2 at a time.
func NewEpilogue(in ir.DType, root *Expr, operands []Operand, pack int) *Functor {
	return New(Functor{
		Form: Epilogue, In: in, Roots: []*Expr{root}, Operands: operands, Identity: root.IsLeaf() && root.Leaf == 0,
		Pack: pack,
	})
}

// NewPairEpilogue is NewEpilogue for kernels that make each element of two results; leaf pair is the second one.
func NewPairEpilogue(in ir.DType, root *Expr, pair int, operands []Operand) *Functor {
	return New(Functor{Form: Epilogue, In: in, Roots: []*Expr{root}, Operands: operands, Pair: pair, Pack: 1})
}

// NewPrologue computes e from an element of type in; a nil e is the element itself.
func NewPrologue(in ir.DType, e *Expr) *Functor {
	f := Functor{Form: Prologue, In: in, Roots: []*Expr{e}, Identity: e == nil}
	if e == nil {
		f.Roots[0] = Leaf(in, 0)
	}
	return New(f)
}

// Key identifies the functor: equal keys mean equal code.
func (f *Functor) Key() string { return f.key }

// Scalars are the float32 scalars of the expressions, each value once, in the order in which Walk meets them. They
// are the functor's last arguments.
func (f *Functor) Scalars() []float32 { return f.scalars }

// Scalar is the number of a float32 scalar of the functor among Scalars.
func (f *Functor) Scalar(e *Expr) int { return scalarIndex(f.scalars, scalarValue(e)) }

func scalarsOf(roots []*Expr) []float32 {
	var out []float32
	Walk(roots, func(e *Expr) {
		if e.Op == OpScalar && e.DType == ir.Float32 && scalarIndex(out, scalarValue(e)) < 0 {
			out = append(out, scalarValue(e))
		}
	})
	return out
}

func scalarValue(e *Expr) float32 { return ir.Slice[float32](e.Value)[0] }

// scalarIndex compares bits: -0 is not 0, and NaN is itself.
func scalarIndex(list []float32, x float32) int {
	return slices.IndexFunc(list, func(s float32) bool { return math.Float32bits(s) == math.Float32bits(x) })
}

// Nodes are the nodes that root number root computes, in order.
func (f *Functor) Nodes(root int) []*ir.Node {
	var out []*ir.Node
	Walk(f.Roots[root:root+1], func(e *Expr) {
		if e.Node != nil {
			out = append(out, e.Node)
		}
	})
	return out
}

// parameters lists, by elementwise operator, the attributes that change what it computes, in the order in which
// functions in rkernels/common/math.cuh take them after the operands.
var parameters = map[string][]string{
	"LeakyRelu": {"alpha"}, "Elu": {"alpha"}, "Celu": {"alpha"}, "ThresholdedRelu": {"alpha"},
	"Selu": {"alpha", "gamma"}, "HardSigmoid": {"alpha", "beta"}, "Gelu": {"approximate"},
	"Mod": {"fmod"}, "IsInf": {"detect_negative", "detect_positive"}, "Shrink": {"bias", "lambd"},
	"BitShift": {"direction"}, "Swish": {"alpha"}, "Cast": {"saturate", "round_mode"},
	"CastLike": {"saturate", "round_mode"},
}

// Parameters are the attributes that change what e computes, with their defaults where the node has none.
func (e *Expr) Parameters() []ir.Attr {
	var out []ir.Attr
	if (e.Op == "Cast" || e.Op == "CastLike") && !e.DType.IsNarrowFloat() {
		return nil // the attributes are for narrow floats alone
	}
	for _, name := range parameters[e.Op] {
		a, ok := e.Node.Attrs[name]
		if !ok {
			for _, s := range ir.LookupOp(e.Node.Domain, e.Op).Attrs {
				if s.Name == name {
					a = s.Default
				}
			}
		}
		out = append(out, a)
	}
	return out
}

// sameCode names operators that are computed by the code of another one.
var sameCode = map[string]string{"Dropout": "Identity", "CastLike": "Cast"}

// spell writes all that the functor's code depends on: the form, operands, and the expressions as numbered
// statements. The nodes that they come from, and the values of float32 scalars, do not count.
func (f *Functor) spell() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %t %dx%d@%d s%d", f.Form, f.In, f.Identity, f.Rank, f.Pack, f.Coordinates, len(f.scalars))
	if f.Pair > 0 {
		fmt.Fprintf(&b, " pair %d", f.Pair)
	}
	for _, o := range f.Operands {
		fmt.Fprintf(&b, " %d:%s:%t:%t:%t", o.Leaf, o.DType, o.Const, o.Repeats, o.Still)
		if o.Words {
			b.WriteString(":words")
		}
	}
	name := map[*Expr]string{nil: "none"}
	statements := 0
	Walk(f.Roots, func(e *Expr) {
		switch {
		case e.IsLeaf():
			name[e] = fmt.Sprintf("x%d", e.Leaf)
		case e.Op == OpScalar && e.DType == ir.Float32:
			name[e] = fmt.Sprintf("s%d", f.Scalar(e))
		case e.Op == OpScalar:
			name[e] = fmt.Sprintf("%s:%x", e.DType, e.Value.LittleEndian())
		default:
			name[e] = fmt.Sprintf("v%d", statements)
			statements++
			e.spell(&b, name)
		}
	})
	for _, r := range f.Roots {
		fmt.Fprintf(&b, " >%s:%s", name[r], r.DType)
	}
	return b.String()
}

// spell writes an operator as a statement; name has its operands.
func (e *Expr) spell(b *strings.Builder, name map[*Expr]string) {
	op := e.Op
	if same, ok := sameCode[op]; ok {
		op = same
	}
	fmt.Fprintf(b, " %s:%s=%s", name[e], e.DType, op)
	for _, in := range e.In {
		fmt.Fprintf(b, ",%s", name[in])
	}
	for _, a := range e.Parameters() {
		fmt.Fprintf(b, ",%d/%d/%x/%s", a.Kind, a.I, math.Float64bits(a.F), a.S)
	}
}
