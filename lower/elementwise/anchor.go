package elementwise

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// AnchorMap lowers an anchor that turns out to be elementwise, together with the group's epilogue. result makes the
// anchor's expression over leaves; it gets a function for the coordinates of the output's element.
func AnchorMap(b *build.Builder, g *build.Group, leaves []roperator.View,
	result func(coordinate func(d int) *functor.Expr) *functor.Expr) error {
	all := append([]roperator.View{}, leaves...)
	if g.Epilogue != nil {
		for _, v := range g.Extra {
			all = append(all, b.In(v))
		}
	}
	root := result(func(d int) *functor.Expr { return coordinateLeaf(len(all), d) })
	if g.Epilogue != nil {
		operands := []*functor.Expr{root}
		for i, v := range g.Extra {
			operands = append(operands, functor.Leaf(v.DType, len(leaves)+i))
		}
		root = functor.Graft(g.Epilogue, operands)
	}
	return Add(b, Map{Kind: g.Kind(), Outs: []roperator.View{b.Out(g.Outputs[0])}, Roots: []*functor.Expr{root},
		Leaves: all})
}

// Mapped is v after the expression e, computed by an rOperator of its own. It serves prologues that a kernel does not
// take. A nil e leaves v as it is, and a constant of 16 bits that is only to be widened is stored as float32.
func Mapped(b *build.Builder, e *functor.Expr, v *ir.Value) (roperator.View, error) {
	if e == nil {
		return b.In(v), nil
	}
	if widen := ir.FromHalf(v.DType); v.Const != nil && widen != nil && e.Op == "Cast" && e.DType == ir.Float32 &&
		e.In[0].IsLeaf() {
		return widened(b, v, widen), nil
	}
	out := &ir.Value{Name: b.Group().Node.Name + ".prologue", DType: e.DType, Shape: v.Shape}
	g := &build.Group{Node: b.Group().Node, Extra: []*ir.Value{v}, Maps: []*functor.Expr{e}, Outputs: []*ir.Value{out}}
	if err := Lower(b, g); err != nil {
		return roperator.View{}, err
	}
	return b.In(out), nil
}

// widened is a constant of 16 bits as float32, which holds these numbers exactly.
func widened(b *build.Builder, v *ir.Value, widen func(bits uint16) float64) roperator.View {
	pack := func() []byte {
		bits := ir.Slice[uint16](v.Const)
		out := make([]float32, len(bits))
		for i, x := range bits {
			out[i] = float32(widen(x))
		}
		return ir.FromSlice(ir.Float32, out, v.Const.Dims...).LittleEndian()
	}
	dense := b.Packed("widened", ir.Float32, v.Const.Len(), pack, b.In(v))
	w, _ := dense.Reshape(v.Const.Dims)
	return w
}
