package contraction

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// tensorShapes are the tiles on tensor cores, from few rTasks to many. All have 256 threads. Large tiles are bound by
// arithmetic, small ones by what they bring from L2: a tile of 32×32 brings four times as much for each product as one
// of 128×128.
var tensorShapes = []TileShape{
	{128, 128, 32, 64, 32, 1, 2, 0, 0, false, false, 0},
	{64, 128, 32, 32, 32, 1, 3, 0, 0, false, false, 0},
	{128, 64, 32, 32, 32, 1, 3, 0, 0, false, false, 0},
	{64, 64, 32, 32, 32, 2, 3, 0, 0, false, false, 0},
	{64, 32, 32, 32, 16, 2, 3, 0, 0, false, false, 0},
	{32, 64, 32, 16, 32, 2, 3, 0, 0, false, false, 0},
	{32, 32, 32, 16, 16, 2, 4, 0, 0, false, false, 0},
}

// halfShapes are those for numbers of 16 bits. Stages are as large in bytes as those of float32 or smaller, and so they
// are deeper, where tiles are small.
var halfShapes = []TileShape{
	{128, 128, 32, 64, 32, 1, 4, 1, 0, false, false, 0},
	{64, 128, 32, 32, 32, 1, 4, 1, 0, false, false, 0},
	{128, 64, 32, 32, 32, 1, 4, 1, 0, false, false, 0},
	{64, 64, 64, 32, 32, 2, 3, 1, 0, false, false, 0},
	{64, 32, 64, 32, 16, 2, 4, 1, 0, false, false, 0},
	{32, 64, 64, 16, 32, 2, 4, 1, 0, false, false, 0},
	{32, 32, 64, 16, 16, 2, 4, 1, 0, false, false, 0},
	{16, 64, 64, 16, 16, 2, 4, 1, 0, false, false, 0},
}

// smallHalfShape is for products of few rows and columns, of which the others make few rTasks.
var smallHalfShape = TileShape{16, 32, 64, 16, 16, 4, 4, 1, 0, false, false, 0}

// byteShapes are those for integers of 8 bits, of which a stage has twice as many in the same bytes.
var byteShapes = []TileShape{
	{128, 128, 64, 64, 32, 1, 4, 1, ir.Int8, false, false, 0},
	{64, 128, 64, 32, 32, 1, 4, 1, ir.Int8, false, false, 0},
	{128, 64, 64, 32, 32, 1, 4, 1, ir.Int8, false, false, 0},
	{64, 64, 128, 32, 32, 2, 3, 1, ir.Int8, false, false, 0},
	{64, 32, 128, 32, 16, 2, 4, 1, ir.Int8, false, false, 0},
	{32, 64, 128, 16, 32, 2, 4, 1, ir.Int8, false, false, 0},
	{32, 32, 128, 16, 16, 2, 4, 1, ir.Int8, false, false, 0},
	{16, 64, 128, 16, 16, 2, 4, 1, ir.Int8, false, false, 0},
}

// ByteShapes are the shapes for m×n products of integers of 8 bits, nil if the target's tensor cores multiply none.
func ByteShapes(t *target.Target, m, n int64) []TileShape {
	if t.Rate(target.Tensor, ir.Int8) == 0 {
		return nil
	}
	return fitting(byteShapes, m, n)
}

// tensorShapesOf are the shapes on tensor cores for products of float32, none where the target has none or the
// precision asks for none.
func tensorShapesOf(t *target.Target, p precision.Precision, e Elements) []TileShape {
	if e != Float32s || p.Products() == 0 || t.Rate(target.Tensor, ir.Float32) == 0 {
		return nil
	}
	return shapesIn(tensorShapes, p.Products(), ir.Float32)
}

// halfShapesOf are the shapes for m×n products of type d, one at least if the target's tensor cores multiply that type.
func halfShapesOf(t *target.Target, p precision.Precision, d ir.DType, m, n int64) []TileShape {
	if p == precision.Strict || t.Rate(target.Tensor, d) == 0 {
		return nil
	}
	out := fitting(shapesIn(halfShapes, 1, d), m, n)
	if m > smallHalfShape.BM && n > smallHalfShape.BN/2 {
		out = append(out, shapesIn([]TileShape{smallHalfShape}, 1, d)...)
	}
	return out
}

// fitting are those of shapes of which an m×n result fills more than half, one at least. The last one is for few rows.
func fitting(shapes []TileShape, m, n int64) []TileShape {
	var out []TileShape
	for _, s := range shapes {
		if m > s.BM/2 && n > s.BN/2 && (s.BM > 16 || m <= 16) {
			out = append(out, s)
		}
	}
	if last := len(shapes) - 1; out == nil && m <= 16 {
		out = shapes[last:]
	} else if out == nil {
		out = shapes[last-1 : last]
	}
	return out
}

// shapesIn are the shapes with so many products of type d.
func shapesIn(shapes []TileShape, products int64, d ir.DType) []TileShape {
	out := slices.Clone(shapes)
	for i := range out {
		out[i].products, out[i].multiplied = products, d
	}
	return out
}

// rowShapes are the tiles of convolutions whose rows are positions of channels-last images, from few rTasks to many.
// Where they are small, a stage is deep and there are several, because what brings operands is then waited for longest.
var rowShapes = []TileShape{
	{128, 128, 32, 64, 32, 1, 3, 0, 0, false, false, 0},
	{64, 128, 32, 32, 32, 1, 3, 0, 0, false, false, 0},
	{128, 64, 32, 32, 32, 1, 4, 0, 0, false, false, 0},
	{64, 64, 32, 32, 32, 2, 4, 0, 0, false, false, 0},
	{64, 32, 64, 32, 16, 2, 3, 0, 0, false, false, 0},
	{32, 64, 64, 16, 32, 2, 3, 0, 0, false, false, 0},
	{32, 32, 64, 16, 16, 2, 4, 0, 0, false, false, 0},
}

// RowShapes are those shapes of such a convolution that its m×n result fills well; the smallest one if there is none
// and the result is no narrower than half of it. There are none where the target does not multiply such elements on
// tensor cores, or the precision does not allow it.
func RowShapes(t *target.Target, p precision.Precision, e Elements, m, n int64) []TileShape {
	shapes := rowShapesOf(t, p, e)
	var out []TileShape
	for _, s := range shapes {
		if m > s.BM/2 && n > s.BN/2 {
			out = append(out, s)
		}
	}
	if len(shapes) > 0 && out == nil && n >= shapes[len(shapes)-1].BN/2 {
		out = shapes[len(shapes)-1:]
	}
	return out
}

// rowShapesOf are the shapes for all results.
func rowShapesOf(t *target.Target, p precision.Precision, e Elements) []TileShape {
	shapes := ForConstant(shapesIn(rowShapes, p.Products(), ir.Float32))
	switch {
	case e.Multiplied == ir.Int8:
		shapes = byteShapes[:len(byteShapes)-1]
	case isHalf(e.Multiplied) && p != precision.Strict:
		shapes = shapesIn(halfShapes[:len(halfShapes)-1], 1, e.Multiplied) // without that for very few rows
	case e != Float32s || p.Products() == 0:
		return nil
	}
	if t.Rate(target.Tensor, shapes[0].multiplied) == 0 {
		return nil
	}
	return shapes
}

// LeftConstant is the precision of contractions with a constant on the left: convolutions of images whose positions lie
// beside each other. They have no form with three products, so that they are float32 throughout unless tf32 is asked
// for.
func LeftConstant(p precision.Precision) precision.Precision {
	if p.Products() == 3 {
		return precision.Strict
	}
	return p
}

// tensorKernels are the forms of kernels that multiply on tensor cores.
var tensorKernels = map[string]string{
	"gemm_tiled": "gemm_mma", "conv_tiled": "conv_mma", "conv_pointwise": "conv_pointwise_mma",
}

// groupKernels are the forms that multiply by warp groups.
var groupKernels = map[string]string{"gemm_tiled": "gemm_wgmma"}

// Kernel is the form of a kernel that the shape is for.
func (s TileShape) Kernel(scalar string) string {
	switch {
	case s.groups:
		return groupKernels[scalar]
	case s.products > 0:
		return tensorKernels[scalar]
	}
	return scalar
}

// Params are the template arguments that bind the shape, and then others: layout, the types in memory, what tensor
// cores multiply, and functors.
func (s TileShape) Params(layout []any, left, right ir.DType, functors ...any) []any {
	if s.groups {
		return append(append([]any{s.BM, s.BN, s.kg, s.st, s.products}, layout...),
			append([]any{left, s.element(right)}, functors...)...)
	}
	out := []any{s.BM, s.BN, s.BK, s.tm, s.tn, s.kg, s.st}
	if s.products > 0 {
		out = append(out, s.products)
	}
	out = append(append(out, layout...), left, right)
	if s.products > 0 {
		out = append(out, s.multiplied)
	}
	return append(out, functors...)
}

// element is what a tile of warp groups is said to multiply, of integers of 8 bits the type of the constant.
func (s TileShape) element(right ir.DType) ir.DType {
	if s.multiplied == ir.Int8 {
		return right
	}
	return s.multiplied
}

// EitherWay reports whether tiles of the shape can be held along k and across it, whatever is multiplied.
func (s TileShape) EitherWay() bool { return isHalf(s.multiplied) }

// Along reports whether tiles of the shape can be held along k alone.
func (s TileShape) Along() bool { return s.multiplied == ir.Int8 }

// Products tells shapes apart whose packed constants differ.
func (s TileShape) Products() int64 { return s.products }

// PackedSuffix tells the names of constants apart that are packed for different arithmetic.
func (s TileShape) PackedSuffix() string {
	suffix := map[int64]string{1: ".tf32", 3: ".parts"}[s.products]
	if isHalf(s.multiplied) || s.multiplied == ir.Int8 {
		suffix = ".lines"
	}
	if s.groups {
		suffix += ".groups"
	}
	return suffix
}

// PackedBlock is how many numbers a packed block has of one k tile with so many lines, which are rows of the matrix on
// the left or columns of the one on the right.
func (s TileShape) PackedBlock(lines int64) int64 { return lines * s.BK }

// PackedPlace is where element k of a line stands in a packed constant whose lines have tk k tiles each; a tile has so
// many lines. It is PackedPlace(line, 0) + PackedPlace(0, k). Blocks of scalar shapes are [k][line], those of tensor
// cores [plane][line][k], and those of warp groups [plane][16 bytes of k][line], with one product in the order of
// productLine; this is the place in the first plane.
func (s TileShape) PackedPlace(lines, tk, line, k int64) int64 {
	block := (line/lines*tk + k/s.BK) * s.PackedBlock(lines)
	if s.groups && !s.split {
		run := PerLoad(s.multiplied)
		return block + k%s.BK/run*run*lines + s.productLine(line%lines)*run + k%run
	}
	if s.products > 0 {
		return block + line%lines*s.BK + k%s.BK
	}
	return block + k%s.BK*lines + line%lines
}

// productLine is the column of the product of warp groups that a column of a tile is, so that each of the four threads
// that have sums of a row has so many neighbours of the result: as many as 16 bytes have of what is multiplied, and no
// more than eight (rkernels/common/wgmma_drain.cuh).
func (s TileShape) productLine(line int64) int64 {
	const threads, each = 4, 2 // of eight columns of the product
	near := min(PerLoad(s.multiplied), 8)
	eight := line%near/each + line/(threads*near)*(near/each)
	return eight*threads*each + line%(threads*near)/near*each + line%each
}

// FinishPacked makes of float32 numbers in packed blocks what tensor cores take: the numbers as tf32, or parts of them.
// It changes nothing where other types are multiplied.
func (s TileShape) FinishPacked(b []byte, lines int64) []byte {
	switch {
	case s.split:
		return s.splitPacked(b, lines)
	case s.products == 0 || s.multiplied != ir.Float32:
		return b
	}
	return RoundToTF32(b)
}

// RoundToTF32 rounds float32 numbers to tf32, in place.
func RoundToTF32(b []byte) []byte {
	le := binary.LittleEndian
	for at := 0; at < len(b); at += ir.Float32.Size() {
		le.PutUint32(b[at:], math.Float32bits(tf32(math.Float32frombits(le.Uint32(b[at:])))))
	}
	return b
}

// tf32 rounds to 10 bits of mantissa, to the nearest, ties away from zero, as cvt.rna.tf32.f32 does.
func tf32(x float32) float32 {
	bits := math.Float32bits(x)
	const infinite, half, cut = 0x7f800000, 1 << 12, 1<<13 - 1
	if bits&infinite == infinite {
		return x
	}
	return math.Float32frombits((bits + half) &^ cut)
}

// lateStage is the least that a stage of 16 bits takes of tiles of two groups of warps, if it is not on its way when the
// tile begins, in operations of tf32 products: 400 cycles. Threads wait for its copies, meet, and send for another one.
// On an H200 a product of 128×768×768 in tiles of 32×32 has 12 stages of 380 cycles, in which its multiplications are 70
// of them.
const lateStage = 400 * 3750 / 1.755

// Multiplications is the work of multiplying a tile of elements e k deep, or all tiles of a strip, whose sums leave as
// numbers of type out. busy is the part of the multiprocessors that have one at once.
func (s TileShape) Multiplications(e Elements, out ir.DType, k, busy float64) roperator.Work {
	w := roperator.Work{SharedBytes: s.SharedBytes(e, int64(k)) * float64(s.Wide())}
	flops := 2 * float64(s.BM*s.BN) * k
	switch {
	case s.Strip():
		w.TensorFlops = s.stripFlops(out, math.Ceil(k/float64(s.BK)), busy)
	case s.groups:
		w.TensorFlops = s.groupFlops(flops, math.Ceil(k/float64(s.GroupDepth())))
	case s.multiplied == ir.Int8:
		w.TensorFlops = flops*integerShare + integerDrain*float64(s.BM*s.BN)
	case s.products > 0:
		w.TensorFlops = flops * s.perProduct()
		if isHalf(s.multiplied) && s.kg == 2 {
			late := math.Ceil(k/float64(s.BK)) - float64(s.st-1)
			w.TensorFlops = max(w.TensorFlops, late*lateStage)
		}
	default:
		w.Flops = flops
	}
	return w
}

// perProduct is how many products of tf32 take as long as those that stand for one.
func (s TileShape) perProduct() float64 {
	if s.split {
		return splitRate
	}
	return float64(s.products)
}

// multiplyTime is how long one multiprocessor takes to multiply a tile k deep, in nanoseconds.
func (s TileShape) multiplyTime(t *target.Target, e Elements, out ir.DType, k int64, busy float64) float64 {
	w := s.Multiplications(e, out, float64(k), busy)
	if w.TensorFlops > 0 {
		if s.groups || s.multiplied == ir.Int8 { // counted in products of tf32, whatever is multiplied
			return w.TensorFlops / t.Rate(target.Tensor, ir.Float32)
		}
		return w.TensorFlops / t.Rate(target.Tensor, s.unitType(e))
	}
	return w.Flops / t.Rate(target.Scalar, s.unitType(e))
}

// unitType is the type of what stands in shared memory and is multiplied. Scalar arithmetic is that of float32.
func (s TileShape) unitType(e Elements) ir.DType {
	if s.products == 0 {
		return functor.RealType(e.Multiplied)
	}
	return e.Multiplied
}
