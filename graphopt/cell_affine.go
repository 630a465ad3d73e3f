package graphopt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// affine is the argument of a gate's activation: the sum of the products x·w of its terms, plus a bias. For an LSTM the
// terms are x·Wᵀ and h·Rᵀ.
type affine struct {
	terms []term
	bias  []float64  // one number for each column; nil for zeros
	gated []*ir.Node // products of two computed values that are summands too, such as a GRU's r·(R·h + b)
}

// term is the product of a matrix x [batch, K] with a block [K, N] of a constant.
type term struct {
	x *ir.Value
	w block
}

// block is scale times a part of a constant matrix: rows k0 to k0+k and columns n0 to n0+n. If transposed, the constant
// is stored with rows and columns exchanged. Gates that are computed together, by one product that is then split, have
// blocks of the same constant.
type block struct {
	w            *ir.Value
	transposed   bool
	k0, k, n0, n int64
	scale        float64
}

// key identifies the block: equal keys mean equal weights.
func (b block) key() string {
	return fmt.Sprintf("%q/%v/%d+%d/%d+%d/%x", b.w.Name, b.transposed, b.k0, b.k, b.n0, b.n, b.scale)
}

func blocksKey(list []block) string {
	keys := make([]string, len(list))
	for i, b := range list {
		keys[i] = b.key()
	}
	return strings.Join(keys, " ")
}

// at is the weight of element k of x for column j of the result. data are the elements of the constant.
func (b block) at(data []float32, j, k int64) float32 {
	k, j = k+b.k0, j+b.n0
	i := k*b.w.Const.Dims[1] + j
	if b.transposed {
		i = j*b.w.Const.Dims[1] + k
	}
	return float32(b.scale * float64(data[i]))
}

// absorbed collects the nodes that a cell replaces, each once.
type absorbed struct {
	list []*ir.Node
	seen map[*ir.Node]bool
}

func (a *absorbed) add(n *ir.Node) {
	if a.seen == nil {
		a.seen = map[*ir.Node]bool{}
	}
	if !a.seen[n] {
		a.seen[n] = true
		a.list = append(a.list, n)
	}
}

// forget removes all but the first n nodes, after an attempt at a match that failed.
func (a *absorbed) forget(n int) {
	for _, node := range a.list[n:] {
		delete(a.seen, node)
	}
	a.list = a.list[:n]
}

// affineOf analyses v, a matrix of float32, as a sum of products with constant matrices and a bias. Mul nodes of two
// computed values are put into gated, and the caller decides about them. The nodes of the sum are added to nodes. ok is
// false if v has another form.
func affineOf(v *ir.Value, nodes *absorbed) (affine, bool) {
	if len(v.Shape) != 2 || v.DType != ir.Float32 {
		return affine{}, false
	}
	width, ok := v.Shape[1].Const()
	if !ok {
		return affine{}, false
	}
	a := &affineParser{batch: v.Shape[0], n: width, nodes: nodes}
	if !a.take(v, 0, 1) || len(a.out.terms)+len(a.out.gated) == 0 {
		return affine{}, false
	}
	for i, t := range a.out.terms {
		if slices.ContainsFunc(a.out.terms[:i], func(o term) bool { return o.x == t.x }) {
			return affine{}, false
		}
	}
	return a.out, true
}

// affineParser walks from a gate's argument back to its products.
type affineParser struct {
	batch ir.Dim
	n     int64 // columns of the gate
	nodes *absorbed
	out   affine // the result so far
}

// take adds scale times columns n0 to n0+n of v to the result. It returns false if v is not of the form that affine
// describes.
func (a *affineParser) take(v *ir.Value, n0 int64, scale float64) bool {
	if v.Const != nil {
		return a.takeBias(v, n0, scale)
	}
	if v.Def == nil || len(v.Shape) != 2 || !v.Shape[0].Equal(a.batch) {
		return false
	}
	n := v.Def
	switch {
	case n.Is("Add") || n.Is("Sum"):
		return a.takeSum(n, v, n0, scale)
	case n.Is("Split") || n.Is("Slice"):
		return a.takeColumns(n, v, n0, scale)
	case n.Is("Gemm"):
		return a.takeGemm(n, v, n0, scale)
	case n.Is("MatMul"):
		a.nodes.add(n)
		return a.takeProduct(n.Inputs[0], block{w: n.Inputs[1], n0: n0, scale: scale})
	case n.Is("Mul") && n0 == 0 && scale == 1 && v.Shape[1].Equal(ir.D(a.n)):
		a.nodes.add(n)
		a.out.gated = append(a.out.gated, n)
		return true
	}
	return false
}

func (a *affineParser) takeSum(n *ir.Node, v *ir.Value, n0 int64, scale float64) bool {
	a.nodes.add(n)
	for _, in := range n.Inputs {
		if in.Const == nil && !sameType(in, v) || !a.take(in, n0, scale) {
			return false
		}
	}
	return true
}

// takeColumns goes on to the input of a Split or Slice along the columns.
func (a *affineParser) takeColumns(n *ir.Node, v *ir.Value, n0 int64, scale float64) bool {
	x := n.Inputs[0]
	if len(x.Shape) != 2 || !x.Shape[0].Equal(a.batch) {
		return false
	}
	from, ok := firstColumn(n, v)
	if !ok {
		return false
	}
	a.nodes.add(n)
	return a.take(x, from+n0, scale)
}

// firstColumn is the first column, in the input of a Split or Slice along columns, of its result v.
func firstColumn(n *ir.Node, v *ir.Value) (int64, bool) {
	width, ok := n.Inputs[0].Shape[1].Const()
	if !ok {
		return 0, false
	}
	if n.Is("Slice") {
		return sliceColumn(n, width)
	}
	if normalAxis(n.Int("axis", 0), 2) != 1 {
		return 0, false
	}
	at := int64(0)
	for _, out := range n.Outputs {
		if out == v {
			return at, true
		}
		if out == nil {
			return 0, false
		}
		size, ok := out.Shape[1].Const()
		if !ok {
			return 0, false
		}
		at += size
	}
	return 0, false
}

// sliceColumn is firstColumn for a Slice, whose starts, axes and steps must be constants.
func sliceColumn(n *ir.Node, width int64) (int64, bool) {
	starts, ok1 := constInts(n.Input(1))
	axes, ok2 := constInts(n.Input(3))
	if !ok1 || !ok2 || len(starts) != 1 || len(axes) != 1 || normalAxis(axes[0], 2) != 1 {
		return 0, false
	}
	if v := n.Input(4); v != nil && !isExactly(v, 1) {
		return 0, false
	}
	if starts[0] < 0 {
		starts[0] += width
	}
	return min(max(starts[0], 0), width), true
}

// takeGemm adds alpha·x·w + beta·C.
func (a *affineParser) takeGemm(n *ir.Node, v *ir.Value, n0 int64, scale float64) bool {
	if n.Int("transA", 0) != 0 {
		return false
	}
	a.nodes.add(n)
	w := block{w: n.Inputs[1], transposed: n.Int("transB", 0) != 0, n0: n0, scale: scale * n.Float("alpha", 1)}
	if !a.takeProduct(n.Inputs[0], w) {
		return false
	}
	c := n.Input(2)
	if c == nil {
		return true
	}
	return (c.Const != nil || sameType(c, v)) && a.take(c, n0, scale*n.Float("beta", 1))
}

// takeProduct adds x·w. If x is a Concat of columns, such as [x, h], each part is a term of its own; parts that are
// constant zeros add nothing.
func (a *affineParser) takeProduct(x *ir.Value, w block) bool {
	if x.Const != nil || w.w.Const == nil || len(x.Shape) != 2 || len(w.w.Shape) != 2 || !x.Shape[0].Equal(a.batch) {
		return false
	}
	w.n, w.k = a.n, w.w.Const.Dims[0]
	if w.transposed {
		w.k = w.w.Const.Dims[1]
	}
	joined := definedBy(x, "Concat")
	if joined == nil || normalAxis(joined.Int("axis", 0), 2) != 1 {
		a.out.terms = append(a.out.terms, term{x, w})
		return true
	}
	for _, part := range joined.Inputs {
		k, ok := part.Shape[1].Const()
		if !ok {
			return false
		}
		piece := w
		piece.k = k
		w.k0 += k
		switch {
		case part.Const == nil:
			a.out.terms = append(a.out.terms, term{part, piece})
		case !isExactly(part, 0):
			return false
		}
	}
	return true
}

// takeBias adds a constant, all of whose rows must be equal.
func (a *affineParser) takeBias(v *ir.Value, n0 int64, scale float64) bool {
	t := v.Const
	if t.DType != ir.Float32 || len(t.Dims) > 2 {
		return false
	}
	width, data := int64(1), ir.Slice[float32](t)
	if len(t.Dims) > 0 {
		width = t.Dims[len(t.Dims)-1]
	}
	if width != 1 && width < n0+a.n || len(data) == 0 {
		return false
	}
	if a.out.bias == nil {
		a.out.bias = make([]float64, a.n)
	}
	for j := range a.n {
		at := int64(0)
		if width > 1 {
			at = n0 + j
		}
		first := data[at]
		for ; at < int64(len(data)); at += width {
			if cmp.Compare(data[at], first) != 0 {
				return false
			}
		}
		a.out.bias[j] += scale * float64(first)
	}
	return true
}
