package norm

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// rows is layer normalisation of rows that fit the registers of a warp, as normalize_rows does it: of b, or of a + b,
// where b may be gathered. Views are [row][element], but a gathered b is [unit][element of a unit]. Each view may have
// elements of float32 or of 16 bits.
type rows struct {
	n, count    int64
	epsilon     float64
	a, b        roperator.View // a.Buf is nil without a sum
	index       []int64        // which units of b make up the rows; nil if b is the rows
	sum, out    roperator.View // Buf is nil if nobody wants it
	codes       roperator.View // what coded makes of the result; Buf is nil if nobody wants it
	coded       *functor.Expr  // of leaf 0, an element of the result as float32
	scale, bias roperator.View // constants of n elements; bias.Buf is nil if there is none
}

// quad is how many elements normalize_rows moves at a time.
const quad = 4

const (
	rowThreads = 256 // of a block
	mostPer    = 4   // quads that a thread has of a row at most
)

// rowLanes are the numbers of threads that may share a row.
var rowLanes = []int64{8, 16, 32, 64, 96, 128, 192, rowThreads}

// rowsFit reports whether rows of n elements have a form here.
func rowsFit(n int64) bool { return n > 0 && n%quad == 0 && n <= mostPer*quad*rowThreads }

// rowShape is how many threads share a row of n elements, as few as have no more than so many quads of it each, and how
// many that is. Where they do not make up a block some threads are idle, which is worth it for a quad each.
func rowShape(n, most int64) (lanes, per int64) {
	for _, lanes = range rowLanes {
		if per = build.CeilDiv(n, lanes*quad); per <= most && (per == 1 || rowThreads%lanes == 0) {
			break
		}
	}
	return lanes, per
}

// denseRows reports whether v is [row][element] with rows of consecutive, aligned elements of float32 or 16 bits, which
// kernels load, or of codes of 8 bits, which they only store.
func denseRows(v roperator.View) bool {
	float := v.DType().IsFloat() && functor.RealType(v.DType()) == ir.Float32
	return (float || v.DType().Size() == 1) && v.Stride(1) == 1 && v.Stride(0)%quad == 0 && v.Offset%quad == 0
}

// wholeVector reports whether v shows n consecutive, aligned elements of a constant.
func wholeVector(v roperator.View, n int64) bool {
	return v.Buf.Kind == roperator.Const && v.DType() == ir.Float32 && v.IsContiguous() && v.Count() == n &&
		v.Offset%quad == 0
}

// candidates are normalize_rows with as many rows for each vEU as there are, and with those that a block has at once.
func (r *rows) candidates(b *build.Builder) []*roperator.Candidate {
	lanes, per := rowShape(r.n, mostPer)
	together := rowThreads / lanes
	var out []*roperator.Candidate
	last := int64(0)
	for _, turns := range []int64{1, build.CeilDiv(build.CeilDiv(r.count, int64(b.Target().VEUs)), together)} {
		if turns != last {
			out = append(out, r.candidate(b, lanes, per, turns))
		}
		last = turns
	}
	return out
}

// mostQuads is how many quads a thread has at most of several rows that are in registers at a time.
const mostQuads = 8

// candidate is the one in which a thread has so many rows, as many of them at a time as its registers take.
func (r *rows) candidate(b *build.Builder, lanes, per, turns int64) *roperator.Candidate {
	together := int64(1)
	for together < min(turns, 4) && 2*together*per <= mostQuads {
		together *= 2
	}
	chunk := rowThreads / lanes * turns
	box := r.box(chunk)
	elements := float64(chunk * r.n)
	coded, epi := tails.Epilogue(ir.Float32, r.coded, nil)
	c := &roperator.Candidate{
		Inst: b.Instance("normalize_rows", lanes, per, together, lanes*per*quad == r.n, r.a.Buf != nil, r.index != nil, r.sum.Buf != nil,
			r.out.Buf != nil, r.codes.Buf != nil, r.bias.Buf != nil, loadedType(r.a), r.b.DType(), loadedType(r.sum),
			loadedType(r.out), coded),
		Tasks: int(build.CeilDiv(r.count, chunk)),
		Args:  append(r.args(b, chunk), rkernels.Field{Name: "epi", Value: epi}),
		Reads: roperator.AppendRead(nil, r.b, r.sourceBox(chunk, box)),
		Work:  roperator.Work{Flops: 10 * elements},
	}
	for _, v := range r.results() {
		c.Writes = append(c.Writes, roperator.Access{View: v, Box: box})
		c.Work.WriteBytes += v.Bytes(elements)
	}
	c.Work.AddRead(r.b, r.b.Bytes(elements))
	if r.a.Buf != nil {
		c.Reads = roperator.AppendRead(c.Reads, r.a, box)
		c.Work.AddRead(r.a, r.a.Bytes(elements))
	}
	return c
}

// box is the box of rows of an rTask that has so many.
func (r *rows) box(chunk int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		lo[0], hi[0] = int64(task)*chunk, min(int64(task+1)*chunk, r.count)
		lo[1], hi[1] = 0, r.n
	}
}

// loadedType is the element type of v; of what is not used it is any.
func loadedType(v roperator.View) ir.DType {
	if v.Buf == nil {
		return ir.Float32
	}
	return v.DType()
}

// args are the arguments, but for the epilogue's.
func (r *rows) args(b *build.Builder, chunk int64) []rkernels.Field {
	first := r.results()[0]
	index, unit := first, r.n
	if r.index != nil {
		index, unit = r.packedIndex(b), r.b.Shape[1]
	}
	used := func(v roperator.View) roperator.View {
		if v.Buf == nil {
			return first
		}
		return v
	}
	return []rkernels.Field{
		arg.Ref("a", used(r.a)), arg.Ref("b", r.b), arg.Ref("index", index), arg.Ref("sum", used(r.sum)),
		arg.Ref("out", used(r.out)), arg.Ref("codes", used(r.codes)), arg.Ref("scale", r.scale),
		arg.Ref("bias", used(r.bias)),
		arg.Int("a_step", used(r.a).Stride(0)), arg.Int("b_step", r.b.Stride(0)),
		arg.Int("sum_step", used(r.sum).Stride(0)), arg.Int("out_step", used(r.out).Stride(0)),
		arg.Int("codes_step", used(r.codes).Stride(0)),
		arg.Div("unit", unit/quad), arg.Int("units", r.n/unit), arg.Int("rows", r.count), arg.Int("chunk", chunk),
		arg.Int("n", r.n), {Name: "epsilon", Value: rkernels.Float(r.epsilon)},
	}
}

// results are the views that are written.
func (r *rows) results() []roperator.View {
	var out []roperator.View
	for _, v := range []roperator.View{r.out, r.codes, r.sum} {
		if v.Buf != nil {
			out = append(out, v)
		}
	}
	return out
}

// sourceBox is the box of b that an rTask reads: its rows, or all units between the first and the last that it gathers.
func (r *rows) sourceBox(chunk int64, box func(task int, lo, hi []int64)) func(task int, lo, hi []int64) {
	if r.index == nil {
		return box
	}
	per := int64(len(r.index)) / r.count * chunk
	return func(task int, lo, hi []int64) {
		mine := r.index[int64(task)*per : min(int64(task+1)*per, int64(len(r.index)))]
		lo[0], hi[0] = mine[0], mine[0]+1
		for _, u := range mine {
			lo[0], hi[0] = min(lo[0], u), max(hi[0], u+1)
		}
		lo[1], hi[1] = 0, r.b.Shape[1]
	}
}

func (r *rows) packedIndex(b *build.Builder) roperator.View {
	list := make([]int32, len(r.index))
	for i, u := range r.index {
		list[i] = int32(u)
	}
	return b.Constant(b.Group().Node.Name+".units", ir.FromSlice(ir.Int32, list, int64(len(list))))
}

// plainRows is the normalisation of k's lines as rows, nil if it is not layer normalisation of whole, dense rows with
// constant scale and bias and nothing before or after it but conversions of elements.
func plainRows(g *build.Group, k *lineKernel, stats *lineStats, operands []roperator.View) *rows {
	matrix := func(v roperator.View) roperator.View {
		return roperator.View{Buf: v.Buf, Offset: v.Offset, Shape: v.Shape[1:], Strides: v.Strides[1:]}
	}
	if !g.Anchor.Is("LayerNormalization") || !onlyConverts(g.Epilogue) || !onlyConverts(g.Prologue[0]) ||
		stats.bits != 0 || k.src.Shape[0] != 1 || k.tail.Moves() {
		return nil
	}
	r := &rows{b: matrix(k.src), out: matrix(k.tail.Out), scale: operands[0], coded: functor.Leaf(ir.Float32, 0)}
	r.count, r.n, r.epsilon = r.b.Shape[0], r.b.Shape[1], g.Anchor.Float("epsilon", 1e-5)
	if len(operands) > 1 {
		r.bias = operands[1]
	}
	for _, v := range operands {
		if !wholeVector(v, r.n) {
			return nil
		}
	}
	if !rowsFit(r.n) || !denseRows(r.b) || !denseRows(r.out) {
		return nil
	}
	return r
}

// onlyConverts reports whether e, which may be nil, is its operand, or one conversion of it from or to float32. That
// is what a kernel does with elements that it loads and stores.
func onlyConverts(e *functor.Expr) bool {
	if e == nil || e.IsLeaf() {
		return true
	}
	return e.Op == "Cast" && e.In[0].IsLeaf() && (e.DType == ir.Float32 || e.In[0].DType == ir.Float32)
}

// GatherNorm lowers a Fused node with the anchor GatherNorm.
func GatherNorm(b *build.Builder, g *build.Group) error {
	body := g.Node.Attrs["body"].G
	r := &rows{coded: functor.Leaf(ir.Float32, 0)}
	norm := normOf(body)
	x := norm.Inputs[0]
	if add := x.Def; add != nil && add.Is("Add") {
		r.readGathered(b, g, add.Inputs[0])
		other := add.Inputs[1]
		if r.index == nil {
			r.readGathered(b, g, add.Inputs[1])
			other = add.Inputs[0]
		}
		r.a = b.In(g.Outer(stored(other)))
	} else {
		r.readGathered(b, g, x)
	}
	if r.readNorm(b, g, norm); r.index == nil || !rowsFit(r.n) {
		return fmt.Errorf("the fused body is not that of a normalisation of gathered rows")
	}
	if r.a.Buf != nil {
		r.a = denseMatrix(b, r.a, []int64{r.count, r.n})
	}
	var finish []func()
	for i, v := range body.Outputs {
		w, done := writtenRows(b, b.Out(g.Outputs[i]), []int64{r.count, r.n})
		if finish = append(finish, done); stored(v) == norm.Outputs[0] {
			r.out = w
		} else {
			r.sum = w
		}
	}
	b.Add(g.Kind(), r.candidates(b)...)
	for _, done := range finish {
		done()
	}
	return nil
}

// QuantizedNorm lowers a Fused node with the anchor QuantizedNorm.
func QuantizedNorm(b *build.Builder, g *build.Group) error {
	body := g.Node.Attrs["body"].G
	r := &rows{}
	norm := normOf(body)
	if r.readNorm(b, g, norm); !rowsFit(r.n) {
		return fmt.Errorf("the fused body is not that of a normalisation of rows")
	}
	dims := []int64{r.count, r.n}
	r.b = denseMatrix(b, b.In(g.Outer(stored(norm.Inputs[0]))), dims)
	var finish []func()
	for i, v := range body.Outputs {
		w, done := writtenRows(b, b.Out(g.Outputs[i]), dims)
		if finish = append(finish, done); v.DType.IsFloat() {
			r.out = w
			continue
		}
		r.codes, r.coded = w, functor.NewReader(norm.Outputs[0]).Expr(v)
	}
	b.Add(g.Kind(), r.candidates(b)...)
	for _, done := range finish {
		done()
	}
	return nil
}

// normOf is the normalisation of a fused body.
func normOf(body *ir.Graph) *ir.Node {
	for _, n := range body.Nodes {
		if n.Is("LayerNormalization") {
			return n
		}
	}
	panic("BUG: the body of a compound that normalises has no LayerNormalization")
}

// readNorm reads the extents, and the constants of a normalisation in a fused body.
func (r *rows) readNorm(b *build.Builder, g *build.Group, norm *ir.Node) {
	shape := b.Extents(norm.Inputs[0], build.ForTiles)
	r.n = shape[len(shape)-1]
	r.count = ir.Count(shape[:len(shape)-1])
	r.epsilon = norm.Float("epsilon", 1e-5)
	r.scale = elementwise.Contiguous(b, b.In(g.Outer(norm.Inputs[1])))
	if v := norm.Input(2); v != nil {
		r.bias = elementwise.Contiguous(b, b.In(g.Outer(v)))
	}
}

// stored is the value that v, in the body of a fused group, is a conversion of, or v itself.
func stored(v *ir.Value) *ir.Value {
	for v.Def != nil && v.Def.Is("Cast") {
		v = v.Def.Inputs[0]
	}
	return v
}

// readGathered reads the source and the indices of v, if v is a Gather of rows seen in another shape.
func (r *rows) readGathered(b *build.Builder, g *build.Group, v *ir.Value) {
	for v.Def != nil && v.Def.IsInternal("View") {
		v = v.Def.Inputs[0]
	}
	if v.Def == nil || !v.Def.Is("Gather") {
		return
	}
	source := v.Def.Inputs[0]
	dims := b.Extents(source, build.ForTiles)
	for source = stored(source); source.Def != nil && source.Def.IsInternal("View"); {
		source = stored(source.Def.Inputs[0])
	}
	r.index = ir.Slice[int64](g.Outer(v.Def.Inputs[1]).Const)
	r.b = denseMatrix(b, b.In(g.Outer(source)), dims)
}

// denseMatrix shows v as a matrix of dense rows; if its layout does not allow that, it shows a copy.
func denseMatrix(b *build.Builder, v roperator.View, dims []int64) roperator.View {
	w := elementwise.Reshaped(b, v, dims)
	if denseRows(w) {
		return w
	}
	t := b.Temp("rows", v.DType(), dims)
	elementwise.Copy(b, t, w)
	return t
}

// writtenRows is a view of v as a matrix of dense rows to be written; if its layout does not allow that, done copies
// what was written to v.
func writtenRows(b *build.Builder, v roperator.View, dims []int64) (w roperator.View, done func()) {
	if w, ok := v.Reshape(dims); ok && denseRows(w) {
		return w, func() {}
	}
	t := b.Temp("rows", v.DType(), dims)
	shaped, _ := t.Reshape(v.Shape)
	return t, func() { elementwise.Copy(b, v, shaped) }
}
