package graphopt

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Operands of read-operands that are axes, and others of which few values fit the shape of the result.

// mostVariants bounds how many variants of an operator a program gets, and mostTrials how many values are tried.
const (
	mostVariants = 16
	mostTrials   = 4096
)

// subsets lists the sets of k of the numbers below n, each in ascending order; nil if there are more than mostTrials.
func subsets(n, k int) [][]int64 {
	out := [][]int64{{}}
	for range k {
		var next [][]int64
		for _, s := range out {
			first := int64(0)
			if len(s) > 0 {
				first = s[len(s)-1] + 1
			}
			for a := first; a < int64(n); a++ {
				next = append(next, append(slices.Clone(s), a))
			}
		}
		if out = next; len(out) > mostTrials {
			return nil
		}
	}
	return out
}

// axisBits is the set of axes that an operand names, of a tensor of a certain rank, as int64[1]: the sum of 1 << a over
// axes a. Axes that are named twice count once, and those that do not exist do not count.
func (r *operandReader) axisBits(port, rank int) *ir.Value {
	list := r.list(port)
	axes := r.op("Where", nil, r.op("Less", nil, list, r.ints(0)), r.op("Add", nil, list, r.ints(int64(rank))), list)
	all, powers := make([]int64, rank), make([]int64, rank)
	for a := range all {
		all[a], powers[a] = int64(a), 1<<a
	}
	named := r.op("Equal", nil, r.reshape(axes, -1, 1), r.reshape(r.ints(all...), 1, int64(rank)))
	each := r.op("ReduceMax", noKeep(), r.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Int64.ONNX())}, named), r.ints(0))
	return r.op("ReduceSum", nil, r.op("Mul", nil, each, r.ints(powers...)), r.ints(0))
}

func bitsOf(axes []int64) int64 {
	bits := int64(0)
	for _, a := range axes {
		bits |= 1 << a
	}
	return bits
}

// matchAxes is a bool[1] that is true where the operand's axes are those of the set.
func (r *operandReader) matchAxes(bits *ir.Value, axes []int64) *ir.Value {
	return r.op("Equal", nil, bits, r.ints(bitsOf(axes)))
}

// reducedAxes reduces along all sets of axes that fit.
func (r *operandReader) reducedAxes() {
	rank, count := len(r.n.Inputs[0].Shape), int(r.length(1))
	var sets [][]int64
	for _, axes := range subsets(rank, count) {
		if r.fits(map[int][]int64{1: axes}) {
			sets = append(sets, axes)
		}
	}
	r.alongAxes(1, rank, sets)
}

// alongAxes computes a variant for each set of axes.
func (r *operandReader) alongAxes(port, rank int, sets [][]int64) {
	if len(sets) == 0 || len(sets) > mostVariants || rank > 62 {
		return
	}
	bits := r.axisBits(port, rank)
	var variants []variant
	for _, axes := range sets {
		variants = append(variants, variant{r.matchAxes(bits, axes), r.with(map[int][]int64{port: axes})})
	}
	r.choose(port, variants)
}

// oneAxis accumulates along each axis: the shape of the result is that of the operand.
func (r *operandReader) oneAxis() {
	rank := len(r.n.Inputs[0].Shape)
	r.alongAxes(1, rank, subsets(rank, 1))
}

// transformAxis transforms along each axis that fits. The last one, of real and imaginary parts, is none.
func (r *operandReader) transformAxis() {
	rank := len(r.n.Inputs[0].Shape)
	if length := r.n.Input(1); r.n.Input(2) == nil || length != nil && length.Const == nil {
		return
	}
	var sets [][]int64
	for _, axes := range subsets(rank-1, 1) {
		if r.fits(map[int][]int64{2: axes}) {
			sets = append(sets, axes)
		}
	}
	r.alongAxes(2, rank, sets)
}

// squeezedAxes is a Reshape, whatever the axes are. They must be a set that fits.
func (r *operandReader) squeezedAxes() {
	want, ok := r.result()
	rank, count := len(r.n.Inputs[0].Shape), int(r.length(1))
	if r.n.Is("Unsqueeze") {
		rank += count
	}
	if !ok || rank > 62 {
		return
	}
	var fitting []int64
	for _, axes := range subsets(rank, count) {
		if r.fits(map[int][]int64{1: axes}) {
			fitting = append(fitting, bitsOf(axes))
		}
	}
	if len(fitting) == 0 {
		return
	}
	matches := r.total(r.op("Equal", nil, r.axisBits(1, rank), r.ints(fitting...)))
	r.require(1, r.op("Sub", nil, r.ints(1), matches))
	r.replace("Reshape", keepZeros(), r.n.Inputs[0], r.ints(want...))
}

// imageShape takes the image's extents from the result, and computes a variant for each shape of blocks that fits.
func (r *operandReader) imageShape() {
	want, ok := r.result()
	x := r.n.Inputs[0].Shape.MustConsts()
	if !ok || len(x) != 3 || len(want) < 3 || want[1] == 0 || ir.Count(want) == 0 {
		return
	}
	image := want[2:]
	var variants []variant
	if r.n.Inputs[2].Const == nil {
		if int(r.length(2)) != len(image) {
			return
		}
		for _, block := range factorisations(x[1]/want[1], len(image)) {
			operands := map[int][]int64{1: image, 2: block}
			if r.fits(operands) && r.blocks(image, block) == x[2] {
				variants = append(variants, variant{r.same(map[int][]int64{2: block}), r.with(operands)})
			}
		}
		if len(variants) == 0 || len(variants) > mostVariants {
			return
		}
	}
	r.fix(1, image)
	if variants != nil {
		r.choose(2, variants)
	}
}

// blocks is how many places a block has in an image.
func (r *operandReader) blocks(image, block []int64) int64 {
	n := len(image)
	strides, dilations := r.attrInts("strides", n, 1), r.attrInts("dilations", n, 1)
	pads, count := r.attrInts("pads", 2*n, 0), int64(1)
	for i := range image {
		count *= max((image[i]+pads[i]+pads[i+n]-dilations[i]*(block[i]-1)-1)/strides[i]+1, 0)
	}
	return count
}

// factorisations lists the ways to write n as a product of k numbers.
func factorisations(n int64, k int) [][]int64 {
	if k == 1 {
		return [][]int64{{n}}
	}
	var out [][]int64
	for f := int64(1); f <= n && len(out) <= mostTrials; f++ {
		if n%f == 0 {
			for _, rest := range factorisations(n/f, k-1) {
				out = append(out, append([]int64{f}, rest...))
			}
		}
	}
	return out
}

// frames computes a variant of a STFT for each step and length of frames that fits.
func (r *operandReader) frames() {
	dims, n := r.n.Inputs[0].Shape.MustConsts(), r.n
	if len(dims) < 2 || dims[1] > mostTrials {
		return
	}
	ports, lengths := []int{1}, []int64{0}
	if n.Inputs[1].Const != nil {
		return
	}
	want, ok := r.result()
	if v := n.Input(3); v != nil && v.Const == nil && ok && len(want) == 4 {
		ports, lengths = []int{1, 3}, nil
		for _, length := range []int64{want[2], 2 * (want[2] - 1), 2*want[2] - 1} {
			if length > 0 && !slices.Contains(lengths, length) {
				lengths = append(lengths, length)
			}
		}
	}
	var variants []variant
	for _, length := range lengths {
		for step := int64(1); step <= dims[1] && len(variants) <= mostVariants; step++ {
			operands := map[int][]int64{1: {step}}
			if len(ports) > 1 {
				operands[3] = []int64{length}
			}
			if r.fits(operands) {
				variants = append(variants, variant{r.same(operands), r.with(operands)})
			}
		}
	}
	if len(variants) > 0 && len(variants) <= mostVariants {
		r.choose(1, variants)
	}
}

// diagonal compares the places of elements with a diagonal that a run knows: Where(column - row ≥ k, x, 0).
func (r *operandReader) diagonal() {
	x := r.n.Inputs[0]
	dims := x.Shape.MustConsts()
	if len(dims) < 2 || r.length(1) != 1 {
		return
	}
	rows, cols := dims[len(dims)-2], dims[len(dims)-1]
	minus := make([]int64, rows)
	for i := range minus {
		minus[i] = int64(-i)
	}
	places := r.op("Add", nil, r.upTo(cols), r.reshape(r.ints(minus...), rows, 1))
	compare := "GreaterOrEqual"
	if r.n.Int("upper", 1) == 0 {
		compare = "LessOrEqual"
	}
	kept := r.op(compare, nil, places, r.list(1))
	r.replace("Where", nil, kept, x, r.numbers(x.DType, []float64{0}))
}

// upTo are the numbers from 0 to n - 1.
func (r *operandReader) upTo(n int64) *ir.Value {
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(i)
	}
	return r.ints(list...)
}

// tripCount takes the number of iterations of a Loop whose condition does not change from the extent of what it collects.
// Where that is not 0, the condition must be true.
func (r *operandReader) tripCount() {
	body := r.n.Attrs["body"].G
	carried := len(r.n.Inputs) - 2
	if r.n.Inputs[0] == nil || r.n.Inputs[0].Const != nil || !alwaysTrue(body.Outputs[0], body.Inputs[1]) {
		return
	}
	for _, v := range r.n.Outputs[carried:] {
		if dims, ok := r.dims(v); ok {
			r.fixCount(dims[0])
			return
		}
		if v != nil && len(v.Shape) > 0 {
			if n, ok := v.Shape[0].Bind(r.symbols).Const(); ok {
				r.fixCount(n)
				return
			}
		}
	}
}

// fixCount makes the number of iterations n. A run with a negative number makes none.
func (r *operandReader) fixCount(n int64) {
	condition := r.n.Input(1)
	switch {
	case n > 0:
		r.fix(0, []int64{n})
		if condition != nil {
			r.fix(1, []int64{1})
		}
		return
	case condition != nil:
		return
	}
	r.require(0, r.total(r.op("Greater", nil, r.list(0), r.ints(0))))
	none := ir.NewTensor(ir.Int64, r.n.Inputs[0].Shape.MustConsts()...)
	r.setInput(0, r.constant(fmt.Sprintf("%s/none", r.n.Name), none))
}

// alwaysTrue reports whether v is true, or the condition itself.
func alwaysTrue(v, condition *ir.Value) bool {
	for v != condition && v.Def != nil && v.Def.Is("Identity") {
		v = v.Def.Inputs[0]
	}
	return v == condition || v.Const != nil && boolOf(v.Const)
}

func boolOf(t *ir.Tensor) bool { return ir.Slice[int64](convert(t, ir.Int64))[0] != 0 }
