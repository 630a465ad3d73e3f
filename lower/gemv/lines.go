package gemv

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/pack"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// lineWeights say how weights stand in the stream of gemv_mma: as lines, each of which is 16 bytes for every lane of a
// warp and has 16 columns.
type lineWeights struct {
	bits    int64    // of a weight
	element ir.DType // as which they are multiplied, float16 or bfloat16
	// form is how scales stand in the stream, group how many steps of 16 values of k share one, and zero is the zero point
	// of all weights, unless form has pairs.
	form, group int64
	zero        float32
}

// steps is how many steps a line has, of lineDepth values of k each.
func (w *lineWeights) steps() int64 { return 16 / w.bits }

// depth is how many values of k a line has.
func (w *lineWeights) depth() int64 { return lineDepth * w.steps() }

// scaleBytes is the size of the scales that belong to one line of each of the 8 warps.
func (w *lineWeights) scaleBytes() int64 {
	return 8 * lineColumns * scaleBytes[w.form] * (w.steps() / w.group)
}

const (
	lineDepth   = 16 // values of k that one matrix instruction takes
	lineColumns = 16 // columns that it takes
	lineBytes   = 16 // of a lane
)

// lineShape has the parameters of gemv_mma. The columns are cut into groups, and k into spans and these into slices.
// mb is the most rows, p of how many parts of 16 bits a value of the input is the sum, wk how many warps share the k of a
// column, u how many lines a warp has in a slice, ks for how many values of k there is shared memory, and v how many
// values of the input one load brings. pairs is 2 if groups of two matrices take turns.
type lineShape struct {
	lineWeights
	mb, p, wk, u, ks, v, pairs int64

	spans, slices int64 // slices of a span
	groups, all   int64 // of an rTask, and of all columns
}

// columns is how many columns a group has.
func (s *lineShape) columns() int64 { return 8 / s.wk * lineColumns }

// slice is how many values of k a slice has.
func (s *lineShape) slice() int64 { return s.wk * s.u * s.depth() }

// sliceBytes is the size of a slice of a group.
func (s *lineShape) sliceBytes() int64 { return s.u * (streamThreads*lineBytes + s.scaleBytes()) }

// groupBytes is the size of a group's weights.
func (s *lineShape) groupBytes() int64 { return s.spans * s.slices * s.sliceBytes() }

// tasks is how many rTasks the columns are.
func (s *lineShape) tasks() int64 { return build.CeilDiv(s.all, s.groups) }

// stored is how many groups the packed columns have. If k is cut into spans, all rTasks have equally many.
func (s *lineShape) stored() int64 {
	if s.spans > 1 {
		return s.tasks() * s.groups
	}
	return s.all
}

// mostOutputs is how many elements an rTask of gemv_mma computes at most.
func (s *lineShape) mostOutputs() int64 {
	if s.p == 1 {
		return streamThreads
	}
	return streamThreads / 2
}

// stagedParts is how many bytes the parts of the input take in shared memory at most.
const stagedParts = 32 << 10

// parts is how many numbers of type e a value of type x is the sum of.
func parts(x, e ir.DType) int64 {
	switch x {
	case e:
		return 1
	case ir.Float16:
		return 2
	}
	return 3
}

// lineShapes are the shapes worth trying for the product, with about one rTask, or a few, for each vEU of the target,
// which takes lines.
func lineShapes(t *target.Target, p *contraction.Product, w lineWeights) []lineShape {
	s := lineShape{lineWeights: w, mb: 1, v: 1, pairs: pairs(p)}
	for s.mb < p.M {
		s.mb *= 2
	}
	s.p = parts(p.A.DType(), w.element)
	if !s.cut(p.N, p.K, int64(t.VEUs)) {
		return nil
	}
	if n := min(8, contraction.PerLoad(p.A.DType())); wholeLoads(p, n) {
		s.v = n
	}
	var out []lineShape
	for _, perVEU := range []int64{1, 2, 4} {
		s.groups = wholePairs(s.all, perVEU*int64(t.VEUs), s.mostOutputs()/s.mb/s.columns(), s.pairs)
		if n := len(out); n == 0 || out[n-1].groups != s.groups {
			out = append(out, s)
		}
	}
	return out
}

// lineArch is the first architecture with the matrix instructions of gemv_mma.
const lineArch = 80

// takesLines reports whether the target has the instructions of gemv_mma, and room for a loader, which is a warp more.
func takesLines(t *target.Target) bool { return t.Runs(lineArch) && t.Threads >= streamThreads+warp }

// cut chooses how many warps share k and how many lines they take at a time, for n columns of k weights each: what gives
// the busiest of so many vEUs the fewest weights, padding included, and of such the largest slices of the most warps. It
// cuts k into spans whose input fits shared memory, and returns false if there is no shape.
func (s *lineShape) cut(n, k, veus int64) bool {
	best := int64(-1)
	chosen := *s
	for _, wk := range []int64{8, 4, 2, 1} {
		for _, u := range []int64{4, 2, 1} {
			t := *s
			t.wk, t.u = wk, u
			if t.columns()*t.mb*t.pairs > t.mostOutputs() || u*t.steps()%2 != 0 || !t.cutSpans(k) {
				continue
			}
			t.all = t.pairs * build.CeilDiv(n, t.columns())
			if weights := build.CeilDiv(t.all, veus) * t.columns() * t.spans * t.slices; best < 0 ||
				weights*t.slice() < best {
				best, chosen = weights*t.slice(), t
			}
		}
	}
	*s = chosen
	return best >= 0
}

// cutSpans cuts k into as few spans as possible, of equally many slices.
func (s *lineShape) cutSpans(k int64) bool {
	most := stagedParts / (2 * s.p * s.mb)
	for s.ks = s.slice(); s.ks < k && 2*s.ks <= most; {
		s.ks *= 2
	}
	slices := build.CeilDiv(k, s.slice())
	s.spans = build.CeilDiv(slices, s.ks/s.slice())
	s.slices = build.CeilDiv(slices, s.spans)
	return s.ks <= most
}

// place is where weight (i, j) stands among the packed columns: the byte at which the line of its lane begins, and its
// number in the line. Both are sums of what i and what j give.
func (s *lineShape) place(i, j int64) (at, number int64) {
	span, in := i/(s.slices*s.slice()), i%(s.slices*s.slice())
	slice, in := in/s.slice(), in%s.slice()
	wk, in := in/(s.u*s.depth()), in%(s.u*s.depth())
	line, in := in/s.depth(), in%s.depth()
	step, quarter, e := in/lineDepth, in%lineDepth/4, in%4
	group, column := j/s.columns(), j%s.columns()
	wc, column := column/lineColumns, column%lineColumns
	upper, row := column/8, column%8
	unit := s.slices * s.sliceBytes() // a span of a group
	at = group/s.groups*s.groups*s.spans*unit + (span*s.groups+group%s.groups)*unit
	at += slice*s.sliceBytes() + line*streamThreads*lineBytes + ((wc*s.wk+wk)*warp+row*4+quarter)*lineBytes
	// Of a step's numbers the pair e/2 is a word, of each eight columns; a word's halves are a pair.
	switch s.bits {
	case 8: // bytes 0 and 2 of a word are a pair, and bytes 1 and 3
		number = 8*step + 4*upper + e/2 + 2*(e%2)
	default: // the bits of a word's halves are taken four at a time
		number = 8*step + upper + 2*(e/2) + 4*(e%2)
	}
	return at, number
}

// scaleAt is where the scale of weight (i, j) stands among the packed columns: behind the lines of its slice.
func (s *lineShape) scaleAt(i, j int64) int64 {
	slice, _ := s.place(i-i%s.slice(), j-j%s.columns())
	wk, in := i%s.slice()/(s.u*s.depth()), i%s.slice()%(s.u*s.depth())
	wc, column := j%s.columns()/lineColumns, j%lineColumns
	number := (in/(lineDepth*s.group)*8+wc*s.wk+wk)*lineColumns + column%8*2 + column/8
	return slice + s.u*streamThreads*lineBytes + number*scaleBytes[s.form]
}

// lineCandidates are those of gemv_mma. packed packs the weights for a shape.
func lineCandidates(b *build.Builder, p contraction.Product, w lineWeights, t *tails.Tail, pro *functor.Functor,
	proArgs rkernels.Struct, packed func(lineShape) roperator.View) []*roperator.Candidate {
	var out []*roperator.Candidate
	for i, s := range lineShapes(b.Target(), &p, w) {
		weights := packed(s)
		c := lineCandidate(b, p, s, 0, t, pro, proArgs, weights)
		out = append(out, c)
		if i == 0 && c.Inst != nil {
			buffers := wordBuffers(b, &p, t, s.v, 8, s.groups/s.pairs*s.columns())
			out = append(out, inWords(c, &p, t, buffers, func(t *tails.Tail, words int64) *roperator.Candidate {
				return lineCandidate(b, p, s, words, t, pro, proArgs, weights)
			})...)
		}
	}
	return out
}

func lineCandidate(b *build.Builder, p contraction.Product, s lineShape, words int64, t *tails.Tail,
	pro *functor.Functor, proArgs rkernels.Struct, packed roperator.View) *roperator.Candidate {
	bn, tiles := s.groups/s.pairs*s.columns(), s.tasks()
	at := contraction.ProductTiles{Batch: p.Batch, M: p.M, N: p.N, K: p.K, BM: p.M, BN: bn, TM: 1, TN: tiles, Splits: 1,
		KSplit: p.K}
	batchStep := pack.BatchStrides(p.B, s.stored()*s.groupBytes())
	results := float64(p.M * min(bn, p.N))
	bytes := float64(s.groups * s.groupBytes())
	weights := float64(s.groups * s.columns() * s.spans * s.slices * s.slice())
	format := rkernels.Struct{{Name: "zero", Value: rkernels.Float(s.zero)}}
	return &roperator.Candidate{
		Inst: b.Instance("gemv_mma", s.mb, s.p, s.wk, s.u, s.ks, s.v, p.Norm(), s.pairs, joined(&p), words,
			p.A.DType(), s.element, s.bits, s.form, s.group, s.scaleBytes(), t.Functor, pro),
		Tasks: int(ir.Count(p.Batch) * tiles),
		Args: []rkernels.Field{
			arg.Ref("a", stored(&p)), arg.Ref("b", packed), {Name: "out", Value: arg.Operand3(t.Out)},
			arg.Int("M", p.M), arg.Int("N", p.N), arg.Int("K", p.K), arg.Int("spans", s.spans),
			arg.Int("slices", s.slices),
			arg.Int("groups", s.groups), arg.Int("all_groups", s.all), arg.Div("tiles_n", tiles),
			arg.Div("batch1", p.Batch[1]), arg.Div("batch2", p.Batch[2]),
			arg.Int("a0", p.A.Stride(0)), arg.Int("a1", p.A.Stride(1)), arg.Int("a2", p.A.Stride(2)),
			arg.Int("am", p.A.Stride(3)), arg.Int("ak", p.A.Stride(4)),
			{Name: "epsilon", Value: rkernels.Float(p.Epsilon())},
			{Name: "format", Value: format}, {Name: "joined", Value: joinedArgs(&p)}, {Name: "epi", Value: t.Args},
			{Name: "pro", Value: proArgs},
		},
		Stream: func(task int) (rkernels.Ref, int64) {
			tile, batch := int64(task)%tiles, int64(task)/tiles
			b2, b1, b0 := batch%p.Batch[2], batch/p.Batch[2]%p.Batch[1], batch/p.Batch[2]/p.Batch[1]
			groups := min(s.groups, s.stored()-tile*s.groups)
			first := b0*batchStep[0] + b1*batchStep[1] + b2*batchStep[2] + tile*s.groups*s.groupBytes()
			return rkernels.Ref{Buffer: packed.Buf.ID, Offset: first}, groups * s.groupBytes()
		},
		Reads:  append(readsOf(&p, &at), t.Reads(at.OutBox)...),
		Writes: []roperator.Access{{View: t.Out, Box: at.OutBox}},
		Work: roperator.Work{
			Flops:       2 * float64(s.p*p.M*s.spans*s.slices*s.slice()), // of the parts of the input
			TensorFlops: weights * 8 * float64(build.CeilDiv(s.p*max(2, s.mb), 8)),
			ConstBytes:  bytes,
			ReadBytes:   inputBytes(&p) + results*t.BytesPerElement(),
			WriteBytes:  t.Out.Bytes(results),
			SharedBytes: bytes,
		},
	}
}

// packedName names what is packed of constants after all that its order depends on.
func (s *lineShape) packedName(constant string) string {
	name := fmt.Sprintf("%s.lines%dx%dx%dx%dx%dx%d", constant, s.bits, s.wk, s.u, s.slices, s.form, s.group)
	if s.spans > 1 {
		name += fmt.Sprintf("x%d", s.groups)
	}
	return name
}

// column is where column j of matrix number `which` stands among those of all matrices.
func (s *lineShape) column(j int64, which int) int64 {
	return turn(j, int64(which), s.pairs, s.columns())
}

// packCodeLines packs weights of 8 or 4 bits, and their scales.
func packCodeLines(b *build.Builder, weights []*Quantized, s lineShape) roperator.View {
	total := s.stored() * s.groupBytes()
	var names []string
	var views []roperator.View
	for _, q := range weights {
		names, views = append(names, q.View.Buf.Name), append(views, q.View)
	}
	return b.Packed(s.packedName(strings.Join(names, "+")), ir.Uint8, total, func() []byte {
		out := make([]byte, total)
		for which, q := range weights {
			s.packCodes(out, q, which)
			if s.form != noScales {
				s.packScales(out, q, which)
			}
		}
		return out
	}, views...)
}

// packCodes writes the weights of matrix number `which`.
func (s *lineShape) packCodes(out []byte, q *Quantized, which int) {
	codes := q.Codes()
	type place struct{ at, number int64 }
	columns := make([]place, q.N)
	for j := range columns {
		columns[j].at, columns[j].number = s.place(0, s.column(int64(j), which))
	}
	for i := range q.K {
		at, number := s.place(i, 0)
		for j, c := range columns {
			bit := (number + c.number) * s.bits
			out[at+c.at+bit/8] |= codes[i*q.N+int64(j)] << (bit % 8)
		}
	}
}

// packScales writes the scales of matrix number `which` behind the lines of each slice.
func (s *lineShape) packScales(out []byte, q *Quantized, which int) {
	for i := int64(0); i < q.K; i += lineDepth * s.group {
		row := min(i/q.Block, int64(len(q.Scales))/q.N-1) * q.N
		for j := range q.N {
			q.putScale(s.form, out[s.scaleAt(i, s.column(j, which)):], row+j)
		}
	}
}

// codeLines say how the weights of q stand in the stream of gemv_mma for an input of type x. It returns false if scales
// belong to groups of k that are no whole steps.
func (q *Quantized) codeLines(x ir.DType) (lineWeights, bool) {
	w := lineWeights{bits: q.Bits, element: ir.BFloat16, form: q.form()}
	if x == ir.Float16 {
		w.element = x
	}
	w.group = w.steps()
	if len(q.Zeros) == 1 {
		w.zero = float32(q.Zeros[0])
	}
	if int64(len(q.Scales)) > q.N {
		for w.group > 1 && q.Block%(w.group*lineDepth) != 0 {
			w.group /= 2
		}
		if q.Block%lineDepth != 0 {
			return w, false
		}
	}
	return w, true
}
