package roperator

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// Maps: one output element from the same element of each operand. The expression tree becomes the
// functor of rKernel map; fused groups may have several outputs.

// maxMapOperands keeps a map's arguments below the size that an rKernel's arguments may have.
const maxMapOperands = 20

// packWidth is how many elements a vectorised map moves at a time.
const packWidth = 4

// mapSpec is a map to be lowered. Leaf i of the roots is leaves[i]; leaf len(leaves)+d is, as an int64,
// the coordinate along dim d of the outputs' shape.
type mapSpec struct {
	kind   string
	outs   []View // of one shape
	roots  []*Expr
	leaves []View
}

// lowerMap lowers elementwise groups: generated expression trees over broadcast operands. Outputs of
// one shape make one rOperator.
func lowerMap(b *Builder, g *Group) error {
	leaves := make([]View, len(g.Extra))
	for i, v := range g.Extra {
		leaves[i] = b.In(v)
	}
	done := make([]bool, len(g.Outputs))
	for i, first := range g.Outputs {
		if done[i] || first == nil {
			continue
		}
		m := mapSpec{kind: g.Kind(), leaves: leaves}
		for k := i; k < len(g.Outputs); k++ {
			if v := g.Outputs[k]; v != nil && v.Shape.Equal(first.Shape) {
				done[k] = true
				m.outs = append(m.outs, b.Out(v))
				m.roots = append(m.roots, g.Maps[k])
			}
		}
		if err := b.addMap(m); err != nil {
			return err
		}
	}
	return nil
}

// addMap adds the rOperator of a map, none when there are no elements.
func (b *Builder) addMap(m mapSpec) error {
	if m.outs[0].Count() == 0 {
		return nil
	}
	used := usedLeaves(m.roots)
	l := mapLayout{outs: m.outs}
	for _, k := range used {
		if k >= len(m.leaves) {
			l.coordinates = true
			continue
		}
		l.leaf = append(l.leaf, k)
		l.ins = append(l.ins, m.leaves[k].Broadcast(m.outs[0].Shape))
	}
	if n := len(l.ins) + len(l.outs); n > maxMapOperands {
		return fmt.Errorf("it combines %d tensors elementwise, at most %d can be", n, maxMapOperands)
	}
	l.arrange()
	if rank := len(l.outs[0].Shape); rank > 8 {
		return fmt.Errorf("its operands' layouts need %d dims, at most 8 are possible", rank)
	}
	functor, scalars := l.functor(m)
	var candidates []*Candidate
	for i, target := range mapTargets(m.outs[0].Count()) {
		t := l.tiling(target)
		if i > 0 && t.tasks == candidates[i-1].Tasks {
			break
		}
		candidates = append(candidates, l.candidate(t, functor, scalars, m))
	}
	for _, c := range []*Candidate{l.stagedCandidate(m), l.nearCandidate(m)} {
		if c != nil {
			candidates = append(candidates, c)
		}
	}
	b.Add(m.kind, candidates...)
	return nil
}

// usedLeaves lists the leaves that occur under roots, ascending.
func usedLeaves(roots []*Expr) []int {
	var used []int
	seen := map[*Expr]bool{}
	var walk func(e *Expr)
	walk = func(e *Expr) {
		if e == nil || seen[e] {
			return
		}
		seen[e] = true
		if e.Op == "leaf" {
			i := 0
			for i < len(used) && used[i] < e.Leaf {
				i++
			}
			if i == len(used) || used[i] != e.Leaf {
				used = append(used[:i], append([]int{e.Leaf}, used[i:]...)...)
			}
		}
		for _, in := range e.In {
			walk(in)
		}
	}
	for _, r := range roots {
		walk(r)
	}
	return used
}

// mapLayout is a map's operands in one iteration space.
type mapLayout struct {
	outs, ins   []View
	leaf        []int // ins[i] is this leaf
	coordinates bool  // the expressions use coordinates, so that dims must stay what they are
	pack        bool  // packs of packWidth along the last dim
}

// arrange coalesces the iteration space and decides about packs.
func (l *mapLayout) arrange() {
	if !l.coordinates {
		all := coalesce(append(append([]View{}, l.outs...), l.ins...))
		l.outs, l.ins = all[:len(l.outs)], all[len(l.outs):]
	} else if len(l.outs[0].Shape) == 0 {
		for _, views := range [][]View{l.outs, l.ins} {
			for i := range views {
				views[i].Shape, views[i].Strides = []int64{1}, []int64{1}
			}
		}
	}
	last := len(l.outs[0].Shape) - 1
	l.pack = l.outs[0].Shape[last]%packWidth == 0
	for _, v := range l.outs {
		l.pack = l.pack && v.Strides[last] == 1 && packable(v)
	}
	for _, v := range l.ins {
		l.pack = l.pack && (v.Strides[last] == 0 || packable(v))
	}
}

// packable reports that every pack of elements along the last dim is consecutive and aligned.
func packable(v View) bool {
	last := len(v.Shape) - 1
	ok := v.Strides[last] == 1 && v.Offset%packWidth == 0
	for d := range last {
		ok = ok && (v.Shape[d] == 1 || v.Strides[d]%packWidth == 0)
	}
	return ok
}

// tiling cuts the space into rTasks of about target elements. When an operand's consecutive elements
// lie along another dim than the output's, tiles are square in these two, so that every line of memory
// that an rTask touches is used up by it.
func (l *mapLayout) tiling(target int64) tiling {
	dims := append([]int64{}, l.outs[0].Shape...)
	last := len(dims) - 1
	unit := int64(1)
	if l.pack {
		unit = packWidth
		dims[last] /= packWidth
		target /= packWidth
	}
	t := newTiling(dims, target)
	if d := l.crossDim(); d >= 0 && !l.pack {
		side := int64(32)
		for side*side < target {
			side *= 2
		}
		extent := make([]int64, len(dims))
		for i := range extent {
			extent[i] = 1
		}
		extent[d] = evenChunk(dims[d], min(side, dims[d]))
		extent[last] = evenChunk(dims[last], min(side, dims[last]))
		t = tilingOf(dims, extent)
	}
	t.unit = unit
	return t
}

// crossDim finds a dim, not the last, along which an operand is consecutive while it is not along the
// last one; -1 when there is none or the space is small anyway. Boxes of such tiles are exact only on
// buffers that this rOperator alone writes.
func (l *mapLayout) crossDim() int {
	last := len(l.outs[0].Shape) - 1
	for _, v := range l.outs {
		if v.Count() < 1<<14 || v.Count() != v.Buf.Elems {
			return -1
		}
	}
	for _, v := range l.ins {
		for d := range last {
			if v.Strides[d] == 1 && v.Strides[last] > 1 && v.Shape[d] >= 16 && v.Shape[last] >= 16 {
				return d
			}
		}
	}
	return -1
}

func (l *mapLayout) candidate(t tiling, functor *rkernels.Functor, scalars []float32, m mapSpec) *Candidate {
	rank := len(t.dims)
	c := &Candidate{
		Inst:  rkernels.Find("map").Bind(rank, functor),
		Tasks: t.tasks,
		Args:  []rkernels.Field{{Name: "tiles", Value: t.args()}, {Name: "body", Value: l.args(t.unit, scalars)}},
	}
	c.Work.Flops = float64(t.largest() * exprFlops(m.roots))
	for _, v := range l.outs {
		c.Writes = append(c.Writes, Access{View: v, Box: t.box})
		c.Work.WriteBytes += float64(t.largest() * int64(v.DType().Size()))
	}
	for _, v := range l.ins {
		c.Reads = appendRead(c.Reads, v, t.box)
		n := float64(v.tileElems(t.extent, t.unit) * int64(v.DType().Size()))
		if v.Buf.Kind == Const {
			c.Work.ConstBytes += n
		} else {
			c.Work.ReadBytes += n
		}
	}
	return c
}

// tileElems counts the distinct elements of v in a tile: broadcast dims count once.
func (v View) tileElems(extent []int64, unit int64) int64 {
	n := int64(1)
	for d, e := range extent {
		if d == len(extent)-1 {
			e *= unit
		}
		if v.Strides[d] != 0 {
			n *= e
		}
	}
	return n
}

func (l *mapLayout) args(unit int64, scalars []float32) rkernels.Struct {
	var args rkernels.Struct
	for _, side := range []struct {
		name  string
		views []View
	}{{"in", l.ins}, {"out", l.outs}} {
		if len(side.views) == 0 {
			continue
		}
		list := rkernels.List{}
		for _, v := range side.views {
			list = append(list, stridedArg(v, unit))
		}
		args = append(args, rkernels.Field{Name: side.name, Value: list})
	}
	if len(scalars) > 0 {
		list := rkernels.List{}
		for _, x := range scalars {
			list = append(list, rkernels.Float(x))
		}
		args = append(args, rkernels.Field{Name: "s", Value: list})
	}
	return args
}

// functor spells the body: Args and apply, which computes what stands at one place or in one pack.
func (l *mapLayout) functor(m mapSpec) (*rkernels.Functor, []float32) {
	rank := len(l.outs[0].Shape)
	lines, results, scalars := emitExprs(m.roots, func(k int) string { return l.spell(k, len(m.leaves)) })
	var s strings.Builder
	l.writeArgs(&s, rank, len(scalars))
	fmt.Fprintf(&s, "static RT_DEVICE void apply(const rt::Task& t, const Args& a, const int (&at)[%d]) {\n", rank)
	if l.pack {
		l.writePacks(&s, lines, results)
	} else {
		l.writeScalars(&s, lines, results)
	}
	s.WriteString("}\n")
	var notes []string
	for _, r := range m.roots {
		if n := exprNote(r); n != "" {
			notes = append(notes, n)
		}
	}
	return &rkernels.Functor{Body: s.String(), Note: strings.Join(notes, "; ")}, scalars
}

// spell names leaf k in the body's statements.
func (l *mapLayout) spell(k, leaves int) string {
	if d := k - leaves; d >= 0 {
		last := len(l.outs[0].Shape) - 1
		if l.pack && d == last {
			return fmt.Sprintf("int64_t(at[%d] * %d + i)", d, packWidth)
		}
		return fmt.Sprintf("int64_t(at[%d])", d)
	}
	return fmt.Sprintf("x%d", k)
}

func (l *mapLayout) writeArgs(s *strings.Builder, rank, scalars int) {
	s.WriteString("struct Args {")
	if len(l.ins) > 0 {
		fmt.Fprintf(s, " rk::Strided<%d> in[%d];", rank, len(l.ins))
	}
	fmt.Fprintf(s, " rk::Strided<%d> out[%d];", rank, len(l.outs))
	if scalars > 0 {
		fmt.Fprintf(s, " float s[%d];", scalars)
	}
	s.WriteString(" };\n")
}

func (l *mapLayout) writeScalars(s *strings.Builder, lines, results []string) {
	for i, v := range l.ins {
		fmt.Fprintf(s, "  const %s x%d = rk::load<%[1]s>(t, a.in[%d], at);\n", CppType(v.DType()), l.leaf[i], i)
	}
	for _, line := range lines {
		fmt.Fprintf(s, "  %s\n", line)
	}
	for i, r := range results {
		fmt.Fprintf(s, "  rk::store<%s>(t, a.out[%d], at, %s);\n", CppType(l.outs[i].DType()), i, r)
	}
}

// writePacks loads whole packs first, computes element by element, and stores whole packs.
func (l *mapLayout) writePacks(s *strings.Builder, lines, results []string) {
	last := len(l.outs[0].Shape) - 1
	inner := ""
	for i, v := range l.ins {
		typ := CppType(v.DType())
		if v.Strides[last] == 0 {
			fmt.Fprintf(s, "  const %s x%d = rk::load<%[1]s>(t, a.in[%d], at);\n", typ, l.leaf[i], i)
			continue
		}
		fmt.Fprintf(s, "  const auto p%d = rk::load_pack<%s, %d>(t, a.in[%d], at);\n", l.leaf[i], typ, packWidth, i)
		inner += fmt.Sprintf("    const %s x%d = p%[2]d.v[i];\n", typ, l.leaf[i])
	}
	for i, v := range l.outs {
		fmt.Fprintf(s, "  rk::Pack<%s, %d> q%d;\n", CppType(v.DType()), packWidth, i)
	}
	fmt.Fprintf(s, "  RT_UNROLL\n  for (int i = 0; i < %d; ++i) {\n%s", packWidth, inner)
	for _, line := range lines {
		fmt.Fprintf(s, "    %s\n", line)
	}
	for i, r := range results {
		fmt.Fprintf(s, "    q%d.v[i] = %s;\n", i, r)
	}
	s.WriteString("  }\n")
	for i, v := range l.outs {
		fmt.Fprintf(s, "  rk::store_pack<%s, %d>(t, a.out[%d], at, q%[3]d);\n", CppType(v.DType()), packWidth, i)
	}
}

// exprFlops counts operations of one element; functions of real numbers count as many.
func exprFlops(roots []*Expr) int64 { return exprSum(roots, opFlops) }

// exprSum adds up what each operator counts for.
func exprSum(roots []*Expr, count func(op string) int64) int64 {
	n := int64(0)
	seen := map[*Expr]bool{}
	var walk func(e *Expr)
	walk = func(e *Expr) {
		if e == nil || seen[e] {
			return
		}
		seen[e] = true
		for _, in := range e.In {
			walk(in)
		}
		n += count(e.Op)
	}
	for _, r := range roots {
		walk(r)
	}
	return n
}

func opFlops(op string) int64 {
	switch op {
	case "leaf", "scalar", "Identity", "Dropout", "Cast", "CastLike":
		return 0
	case "Exp", "Log", "Sqrt", "Div", "Reciprocal", "Sigmoid", "Tanh", "Erf", "Gelu", "Softplus", "Elu", "Selu",
		"Celu", "Softsign", "Mod":
		return 12
	case "Pow", "Mish", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh":
		return 30
	}
	return 1
}

// coordinateLeaf is the coordinate along dim d of a map with the given number of leaves.
func coordinateLeaf(leaves, d int) *Expr { return leafExpr(ir.Int64, leaves+d) }
