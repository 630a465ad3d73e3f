package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// affineGrid multiplies the map theta with the normalised places of the output's elements, which are constants.
func (d *decomposer) affineGrid() {
	size, ok := d.constInts(1)
	if !ok {
		return
	}
	spatial := size[2:]
	rank := int64(len(spatial))
	align := d.n.Int("align_corners", 0) != 0
	var places []float64
	eachIndex(spatial, func(at []int64) {
		for k := range rank {
			axis := rank - 1 - k
			places = append(places, gridPlace(at[axis], spatial[axis], align))
		}
		places = append(places, 1)
	})
	theta, t := d.wide(d.n.Inputs[0])
	base := d.numbers(t, places, ir.Count(spatial), rank+1)
	d.finish(d.op("MatMul", nil, base, d.transpose(theta, 0, 2, 1)), t)
}

// gridPlace is the normalised coordinate of element i of n; align is the attribute align_corners.
func gridPlace(i, n int64, align bool) float64 {
	switch {
	case !align:
		return (2*float64(i)+1)/float64(n) - 1
	case n == 1:
		return -1
	}
	return 2*float64(i)/float64(n-1) - 1
}

// eachIndex calls f for all indices below dims in row-major order.
func eachIndex(dims []int64, f func(at []int64)) {
	at := make([]int64, len(dims))
	for range ir.Count(dims) {
		f(at)
		for k := len(dims) - 1; k >= 0; k-- {
			if at[k]++; at[k] < dims[k] {
				break
			}
			at[k] = 0
		}
	}
}

// centerCropPad is a Pad, with negative pads where it crops.
func (d *decomposer) centerCropPad() {
	dims, out := d.shapeOf(0), d.n.Outputs[0].Shape.MustConsts()
	before, behind := make([]int64, len(dims)), make([]int64, len(dims))
	for i, n := range dims {
		before[i] = (out[i] - n) / 2
		behind[i] = out[i] - n - before[i]
	}
	d.replace("Pad", nil, d.n.Inputs[0], d.ints(append(before, behind...)...))
}

// col2Im gathers, for each element of the image, the elements of the columns that add up to it, and sums them. All
// elements of the image need lists of the same length; shorter ones are filled up with the index of a zero, which a Pad
// adds behind the columns.
func (d *decomposer) col2Im() {
	image, okImage := d.constInts(1)
	block, okBlock := d.constInts(2)
	dims, out := d.shapeOf(0), d.n.Outputs[0].Shape.MustConsts()
	if !okImage || !okBlock || ir.Count(out) == 0 || ir.Count(dims) == 0 {
		return
	}
	sources, most := d.columnSources(image, block, dims[2])
	size := ir.Count(block) * dims[2]
	index := make([]int64, 0, int64(len(sources))*most)
	for _, list := range sources {
		for k := range most {
			if k < int64(len(list)) {
				index = append(index, list[k])
			} else {
				index = append(index, size)
			}
		}
	}
	columns := d.reshape(d.n.Inputs[0], dims[0], out[1], size)
	columns = d.op("Pad", nil, columns, d.ints(0, 0, 0, 0, 0, 1))
	places := d.constant(d.n.Name+"/places", ir.FromSlice(ir.Int64, index, ir.Count(image), most))
	sum := d.op("ReduceSum", noKeep(), d.op("Gather", axisAttr(2), columns, places), d.ints(3))
	d.replace("Reshape", keepZeros(), sum, d.ints(out...))
}

// columnSources lists, for each element of the image, the flat indices in a channel's columns of the elements that lie
// on it. most is the length of the longest list, at least 1.
func (d *decomposer) columnSources(image, block []int64, count int64) (sources [][]int64, most int64) {
	n := len(image)
	strides, dilations := d.attrInts("strides", n, 1), d.attrInts("dilations", n, 1)
	pads := d.attrInts("pads", 2*n, 0)
	blocks := make([]int64, n)
	for i := range blocks {
		blocks[i] = max((image[i]+pads[i]+pads[i+n]-dilations[i]*(block[i]-1)-1)/strides[i]+1, 0)
	}
	sources, most = make([][]int64, ir.Count(image)), 1
	row := int64(0)
	eachIndex(block, func(in []int64) {
		col := int64(0)
		eachIndex(blocks, func(at []int64) {
			place, inside := int64(0), true
			for k := range n {
				x := at[k]*strides[k] - pads[k] + in[k]*dilations[k]
				inside = inside && x >= 0 && x < image[k]
				place = place*image[k] + x
			}
			if inside {
				sources[place] = append(sources[place], row*count+col)
				most = max(most, int64(len(sources[place])))
			}
			col++
		})
		row++
	})
	return sources, most
}

// compress is a Gather if the condition is constant.
func (d *decomposer) compress() {
	taken, ok := d.constInts(1)
	if !ok {
		return
	}
	x, axis := d.n.Inputs[0], 0
	if d.n.HasAttr("axis") {
		axis = normalAxis(d.n.Int("axis", 0), len(x.Shape))
	} else {
		x = d.reshape(x, ir.Count(d.shapeOf(0)))
	}
	var index []int64
	for i, take := range taken {
		if take != 0 {
			index = append(index, int64(i))
		}
	}
	d.replace("Gather", axisAttr(axis), x, d.ints(index...))
}

// maxUnpool scatters the values into zeros, and pads the result where output_shape is larger.
func (d *decomposer) maxUnpool() {
	dims, out := d.shapeOf(0), d.n.Outputs[0].Shape.MustConsts()
	spatial := len(dims) - 2
	kernel, strides := d.n.Ints("kernel_shape"), d.attrInts("strides", spatial, 1)
	pads := d.attrInts("pads", 2*spatial, 0)
	full := slices.Clone(dims)
	for i := range spatial {
		full[i+2] = (dims[i+2]-1)*strides[i] + kernel[i] - pads[i] - pads[i+spatial]
	}
	zero := ir.Attrs{"value": ir.TensorAttr(ir.NewTensor(d.n.Inputs[0].DType, 1))}
	zeros := d.op("ConstantOfShape", zero, d.ints(ir.Count(full)))
	places, values := d.reshape(d.n.Inputs[1], -1), d.reshape(d.n.Inputs[0], -1)
	flat := d.op("ScatterElements", axisAttr(0), zeros, places, values)
	behind := make([]int64, 2*len(out))
	for i := range out {
		behind[len(out)+i] = out[i] - full[i]
	}
	if !slices.ContainsFunc(behind, func(n int64) bool { return n != 0 }) {
		d.replace("Reshape", keepZeros(), flat, d.ints(out...))
		return
	}
	d.replace("Pad", nil, d.reshape(flat, full...), d.ints(behind...))
}

// reverseSequence gathers the steps of each batch. Step t comes from length-1-t within the sequence, and from t behind
// its end.
func (d *decomposer) reverseSequence() {
	dims := d.shapeOf(0)
	rank := len(dims)
	batch, time := normalAxis(d.n.Int("batch_axis", 1), rank), normalAxis(d.n.Int("time_axis", 0), rank)
	perm := []int64{int64(batch), int64(time)}
	for i := range dims {
		if i != batch && i != time {
			perm = append(perm, int64(i))
		}
	}
	steps := make([]int64, dims[time])
	for i := range steps {
		steps[i] = int64(i)
	}
	now := d.ints(steps...)
	lens := d.reshape(d.n.Inputs[1], dims[batch], 1)
	back := d.op("Sub", nil, d.op("Sub", nil, lens, d.ints(1)), now)
	index := d.op("Where", nil, d.op("Less", nil, now, lens), back, now)
	tuples := d.reshape(index, dims[batch], dims[time], 1)
	moved := d.transpose(d.n.Inputs[0], perm...)
	y := d.op("GatherND", ir.Attrs{"batch_dims": ir.IntAttr(1)}, moved, tuples)
	inverse := make([]int64, rank)
	for i, p := range perm {
		inverse[p] = int64(i)
	}
	d.replace("Transpose", ir.Attrs{"perm": ir.IntsAttr(inverse...)}, y)
}

// maxDet is the largest number of rows of a matrix whose determinant is written out, with 6! products.
const maxDet = 6

// det computes determinants by the formula of Leibniz: the sum over all permutations of signed products.
func (d *decomposer) det() {
	dims := d.shapeOf(0)
	n := int(dims[len(dims)-1])
	if n < 1 || n > maxDet {
		return
	}
	var places []int64
	var signs []float64
	permutations(n, func(perm []int, sign float64) {
		for row, col := range perm {
			places = append(places, int64(row*n+col))
		}
		signs = append(signs, sign)
	})
	count := int64(len(signs))
	x, t := d.wide(d.n.Inputs[0])
	index := d.constant(d.n.Name+"/permutations", ir.FromSlice(ir.Int64, places, count, int64(n)))
	factors := d.op("Gather", axisAttr(1), d.reshape(x, ir.Count(dims[:len(dims)-2]), int64(n*n)), index)
	products := d.op("ReduceProd", noKeep(), factors, d.ints(2))
	signed := d.op("Mul", nil, products, d.numbers(t, signs, count))
	d.finish(d.op("ReduceSum", noKeep(), signed, d.ints(1)), t)
}

// permutations calls f with every permutation of 0 … n-1 and its sign, 1 if it is even and -1 if it is odd.
func permutations(n int, f func(perm []int, sign float64)) {
	perm := make([]int, n)
	for i := range perm {
		perm[i] = i
	}
	var walk func(k int, sign float64)
	walk = func(k int, sign float64) {
		if k == n {
			f(perm, sign)
			return
		}
		for i := k; i < n; i++ {
			s := sign
			if i != k {
				s = -s
			}
			perm[k], perm[i] = perm[i], perm[k]
			walk(k+1, s)
			perm[k], perm[i] = perm[i], perm[k]
		}
	}
	walk(0, 1)
}

// deformConv is a GridSample, which reads all taps of all windows at their moved places, and a MatMul with the weights.
// The grid has a row for each tap of the kernel and a column for each output place.
func (d *decomposer) deformConv() {
	x, w, out := d.shapeOf(0), d.shapeOf(1), d.n.Outputs[0].Shape.MustConsts()
	if ir.Count(x) == 0 || ir.Count(out) == 0 {
		return
	}
	groups, offsets := d.n.Int("group", 1), d.n.Int("offset_group", 1)
	taps, places := w[2]*w[3], out[2]*out[3]
	maps := x[0] * offsets
	data, t := d.wide(d.n.Inputs[0])
	moves, _ := d.wide(d.n.Inputs[2])
	moves = d.transpose(d.reshape(moves, maps, taps, 2, places), 0, 1, 3, 2)
	moves = d.op("Gather", axisAttr(3), moves, d.ints(1, 0)) // y, x becomes x, y
	scale := d.numbers(t, []float64{2 / float64(x[3]), 2 / float64(x[2])}, 2)
	base := d.numbers(t, d.deformBase(x, w, out), taps, places, 2)
	grid := d.op("Add", nil, d.op("Mul", nil, moves, scale), base)
	columns := d.op("GridSample", nil, d.reshape(data, maps, x[1]/offsets, x[2], x[3]), grid)
	if m := d.n.Input(4); m != nil {
		mask, _ := d.wide(m)
		columns = d.op("Mul", nil, columns, d.reshape(mask, maps, 1, taps, places))
	}
	depth := x[1] / groups * taps
	weights, _ := d.wide(d.n.Inputs[1])
	y := d.op("MatMul", nil, d.reshape(weights, groups, w[0]/groups, depth),
		d.reshape(columns, x[0], groups, depth, places))
	if v := d.n.Input(3); v != nil {
		bias, _ := d.wide(v)
		y = d.op("Add", nil, y, d.reshape(bias, groups, w[0]/groups, 1))
	}
	d.finish(y, t)
}

// deformBase lists the normalised places x, y of [tap][output place] without offsets.
func (d *decomposer) deformBase(x, w, out []int64) []float64 {
	strides, dilations, pads := d.attrInts("strides", 2, 1), d.attrInts("dilations", 2, 1), d.attrInts("pads", 4, 0)
	var base []float64
	eachIndex([]int64{w[2], w[3], out[2], out[3]}, func(at []int64) {
		for _, k := range []int{1, 0} {
			place := at[2+k]*strides[k] - pads[k] + at[k]*dilations[k]
			base = append(base, (2*float64(place)+1)/float64(x[2+k])-1)
		}
	})
	return base
}
