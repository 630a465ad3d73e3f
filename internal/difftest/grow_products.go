package difftest

import (
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

var contractionGrowers = []grower{
	{"MatMul", growMatMul}, {"Gemm", growGemm}, {"Einsum", growEinsum},
}

// productType is mostly a float type.
func (r *generator) productType() ir.DType {
	if r.exotic && r.one(6) {
		return oneOf(r, ir.Int32, ir.Int64, ir.Uint32, ir.Uint64)
	}
	return r.float()
}

// operand is a constant with elements of the size of weights, or a value.
func (r *generator) operand(d ir.DType, fan int64, dims ...int64) *ir.Value {
	if r.one(3) {
		return r.shaped(d, dims...)
	}
	if !d.IsFloat() {
		return r.source(d, dims)
	}
	return r.constant(r.weights(d, fan, dims...))
}

func growMatMul(r *generator) {
	x := r.value(r.productType(), 1, 4)
	dims := dimsOf(x)
	k, n := dims[len(dims)-1], r.extent()
	other := []int64{k, n}
	switch r.IntN(5) {
	case 0:
		other = []int64{k}
	case 1: // the second operand has a batch too
		if len(dims) > 2 {
			batch := slices.Clone(dims[:len(dims)-2])
			for i := range batch {
				if r.one(3) {
					batch[i] = 1
				}
			}
			other = append(batch[r.IntN(len(batch)+1):], k, n)
		} else {
			other = []int64{r.extent(), k, n}
		}
	}
	y := r.operand(x.DType, k, other...)
	if len(other) > 1 && len(dims) > 1 && r.one(5) { // the product of the transposed operands in the other order
		r.node("MatMul", nil, r.swapLast(y), r.swapLast(x))
		return
	}
	r.node("MatMul", nil, x, y)
}

// swapLast transposes the last two axes.
func (r *generator) swapLast(x *ir.Value) *ir.Value {
	perm := identityPerm(rankOf(x))
	n := len(perm)
	perm[n-1], perm[n-2] = perm[n-2], perm[n-1]
	return r.node("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, x)
}

func identityPerm(rank int) []int64 {
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(i)
	}
	return perm
}

func growGemm(r *generator) {
	x := r.value(r.productType(), 2, 2)
	dims := dimsOf(x)
	m, k, n := dims[0], dims[1], r.extent()
	attrs := ir.Attrs{}
	if r.one(3) {
		attrs["transA"] = ir.IntAttr(1)
		m, k = k, m
	}
	w := []int64{k, n}
	if r.one(2) {
		attrs["transB"] = ir.IntAttr(1)
		w = []int64{n, k}
	}
	for _, name := range []string{"alpha", "beta"} {
		if x.DType.IsFloat() && r.one(4) {
			attrs[name] = ir.FloatAttr(oneOf(r, 0, 0.5, 2, -1.25))
		}
	}
	in := []*ir.Value{x, r.operand(x.DType, k, w...)}
	if !r.one(3) {
		in = append(in, r.operand(x.DType, 1, oneOf(r, []int64{n}, []int64{m, n}, []int64{1, n}, []int64{m, 1},
			[]int64{1}, nil)...))
	}
	r.node("Gemm", attrs, in...)
}

var equations = []string{
	"ij,jk->ik", "ij,kj->ik", "bij,bjk->bik", "bij,jk", "bhid,bhjd->bhij", "bhij,bhjd->bihd", "i,j->ij", "i,i->",
	"ij->ji",
	"ij->", "ij->j", "ii->i", "ii", "iij->j", "...ij,...jk->...ik", "...ij->...ji", "b...,b...->b", "ij,ij->ij",
	"ij,ij->i",
	"bij,bkj,bl->bikl", "ij,jk,kl->il", "bnct,cd->bntd", "abc,cd->adb", "i->", "ijk->kji", "bqhd,bkhd->bhqk", "ij,j",
	"...,...",
	"bi,ij,bj->b", "aij,bjk->abik",
}

func growEinsum(r *generator) {
	equation := oneOf(r, equations...)
	left, _, _ := strings.Cut(equation, "->")
	d := r.productType()
	extents := map[rune]int64{}
	hidden := r.dims(r.IntN(3))
	var in []*ir.Value
	for i, term := range strings.Split(left, ",") {
		in = append(in, r.einsumOperand(d, term, hidden, extents, i == 0))
	}
	if r.one(3) {
		equation = strings.ReplaceAll(equation, ",", " , ")
	}
	r.node("Einsum", ir.Attrs{"equation": ir.StringAttr(equation)}, in...)
}

// einsumOperand finds or makes an operand. A letter that has no extent yet gets that of the operand.
func (r *generator) einsumOperand(d ir.DType, term string, hidden []int64, extents map[rune]int64,
	first bool) *ir.Value {
	letters := strings.ReplaceAll(term, "...", "")
	if first && letters == term && len(letters) > 0 {
		if v := r.find(func(v *ir.Value) bool {
			return v.DType == d && rankOf(v) == len(letters) && fitsLetters(letters, dimsOf(v))
		}); v != nil {
			for i, letter := range letters {
				extents[letter] = dimsOf(v)[i]
			}
			return v
		}
	}
	var dims []int64
	for i, letter := range term {
		switch {
		case letter == '.' && i > 0 && term[i-1] == '.' && (i < 2 || term[i-2] != '.'):
			dims = append(dims, r.hiddenAxes(hidden)...)
		case letter != '.':
			if _, ok := extents[letter]; !ok {
				extents[letter] = r.extent()
			}
			dims = append(dims, extents[letter])
		}
	}
	return r.operand(d, 4, dims...)
}

// hiddenAxes are the extents that an ellipsis stands for in one operand.
func (r *generator) hiddenAxes(hidden []int64) []int64 {
	out := slices.Clone(hidden)
	if r.one(3) && len(out) > 0 {
		out = out[1:]
	}
	for i := range out {
		if r.one(4) {
			out[i] = 1
		}
	}
	return out
}

// fitsLetters reports whether axes with equal letters have equal extents.
func fitsLetters(letters string, dims []int64) bool {
	for i := range letters {
		if j := strings.IndexByte(letters, letters[i]); dims[j] != dims[i] {
			return false
		}
	}
	return true
}

// growQuantizedMatMul multiplies a value by a constant matrix of 8-bit codes, with scales and perhaps zero points for
// each column and each block of k.
func growQuantizedMatMul(r *generator) {
	x := r.value(r.float(), 1, 3)
	dims := dimsOf(x)
	k, n := dims[len(dims)-1], r.extent()
	if k == 0 {
		r.refuse("no depth to cut into blocks")
	}
	block := oneOf(r, 1, 2, 16, k)
	groups := (k-1)/block + 1
	codes := oneOf(r, ir.Int8, ir.Uint8)
	in := []*ir.Value{
		x, r.constant(r.between(codes, 0, 100, k, n)),
		r.constant(r.between(ir.Float32, 1e-3, 1e-2, groups, n)),
	}
	if codes == ir.Uint8 || r.one(2) {
		in = append(in, r.constant(r.between(codes, 0, 100, groups, n)))
	}
	r.nodes(ir.InternalDomain, "QuantizedMatMul", 1, ir.Attrs{"block": ir.IntAttr(block)}, in...)
}

// growRMSMatMul multiplies normalised rows by a constant matrix.
func growRMSMatMul(r *generator) {
	x := r.value(r.float(), 1, 3)
	dims := dimsOf(x)
	k := dims[len(dims)-1]
	if k == 0 || x.DType == ir.Float64 {
		r.refuse("no rows of float32 or of 16 bits")
	}
	epsilon := ir.FloatAttr(float64(float32(oneOf(r, 1e-3, 0.5))))
	w := r.constant(r.between(x.DType, -1, 1, k, r.extent()))
	attrs := ir.Attrs{"rms_epsilon": epsilon}
	if r.one(2) {
		attrs["centred"] = ir.IntAttr(1)
	}
	r.nodes(ir.InternalDomain, "RMSMatMul", 1, attrs, x, w)
}

// growIntegerMatMul multiplies integers of 8 bits, of which the second ones may be constants.
func growIntegerMatMul(r *generator) {
	x := r.value(oneOf(r, ir.Int8, ir.Uint8), 1, 3)
	dims := dimsOf(x)
	other := oneOf(r, ir.Int8, ir.Uint8)
	w := r.constant(r.between(other, 0, 100, dims[len(dims)-1], r.extent()))
	r.nodes(ir.InternalDomain, "IntegerMatMul", 1, nil, x, w)
}

// growIntegerConv convolves integers of 8 bits with constants.
func growIntegerConv(r *generator) {
	x := r.value(oneOf(r, ir.Int8, ir.Uint8), 4, 4)
	dims := dimsOf(x)
	if dims[1] == 0 || dims[2] == 0 || dims[3] == 0 {
		r.refuse("no image to convolve")
	}
	group := int64(1)
	if r.one(3) {
		group = dims[1]
	}
	w := r.constant(r.between(oneOf(r, ir.Int8, ir.Uint8), 0, 100, group*(1+int64(r.IntN(9))), dims[1]/group,
		1+int64(r.IntN(int(min(dims[2], 3)))), 1+int64(r.IntN(int(min(dims[3], 3))))))
	attrs := ir.Attrs{"group": ir.IntAttr(group), "zero": ir.IntAttr(int64(r.IntN(128))),
		"pads": ir.IntsAttr(int64(r.IntN(2)), int64(r.IntN(2)), int64(r.IntN(2)), int64(r.IntN(2)))}
	r.nodes(ir.InternalDomain, "IntegerConv", 1, attrs, x, w)
}
