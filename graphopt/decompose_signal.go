package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// maxMatrix is the largest number of elements of a transform's matrix; longer transforms are not decomposed.
const maxMatrix = 1 << 26

// spectrum is a discrete Fourier transform as a matrix of real numbers, [have·parts, bins·outParts]. A row is a real or
// imaginary part of an element of the input, and a column one of the output.
type spectrum struct {
	inverse, onesided bool
	have, parts       int64 // elements of the input along the axis; 1 part if they are real, 2 if complex
	length            int64 // of the transform
}

func (f *spectrum) bins() int64 {
	if f.onesided && !f.inverse {
		return f.length/2 + 1
	}
	return f.length
}

func (f *spectrum) outParts() int64 {
	if f.onesided && f.inverse {
		return 1
	}
	return 2
}

func (f *spectrum) rows() int64 { return f.have * f.parts }
func (f *spectrum) cols() int64 { return f.bins() * f.outParts() }

func (f *spectrum) fits() bool {
	return f.length > 0 && f.cols() > 0 && f.rows() <= maxMatrix/f.cols()
}

// matrix is the transform's matrix. If window is not nil, element j of the input is multiplied with window[j]. Elements
// beyond the length of the transform have rows of zeros.
func (f *spectrum) matrix(window []float64) []float64 {
	m := make([]float64, f.rows()*f.cols())
	bins, outParts := f.bins(), f.outParts()
	used := min(f.have, f.length)
	if f.onesided && f.inverse {
		used = min(used, f.length/2+1)
	}
	for j := range used {
		by := 1.0
		if f.inverse {
			by = 1 / float64(f.length)
		}
		if window != nil {
			by *= window[j]
		}
		for k := range bins {
			sin, cos := math.Sincos(2 * math.Pi * float64(j*k%f.length) / float64(f.length))
			for a := range f.parts {
				for b := range outParts {
					m[(j*f.parts+a)*f.cols()+k*outParts+b] = by * f.weight(j, a, b, sin, cos)
				}
			}
		}
	}
	return m
}

// weight is the factor with which part a of element j contributes to part b of a bin; sin and cos are those of their
// angle.
func (f *spectrum) weight(j, a, b int64, sin, cos float64) float64 {
	if f.onesided && f.inverse { // each bin stands for its conjugate too, except those that are their own conjugates
		middle := j == 0 || 2*j == f.length
		switch {
		case middle && a == 0:
			return cos
		case middle:
			return 0
		case a == 0:
			return 2 * cos
		}
		return -2 * sin
	}
	if !f.inverse {
		sin = -sin
	}
	switch {
	case a == b:
		return cos
	case a == 0:
		return sin
	}
	return -sin
}

// dft is a MatMul with the transform's matrix, after a Transpose that moves the axis in front of the numbers' parts.
func (d *decomposer) dft() {
	dims := d.shapeOf(0)
	last := len(dims) - 1
	axes, ok := d.constInts(2, -2)
	if !ok {
		return
	}
	axis := normalAxis(axes[0], len(dims))
	f := spectrum{inverse: d.n.Int("inverse", 0) != 0, onesided: d.n.Int("onesided", 0) != 0, have: dims[axis],
		parts: dims[last]}
	def := f.have
	if f.inverse && f.onesided {
		def = 2 * (f.have - 1)
	}
	length, ok := d.constInts(1, def)
	if !ok {
		return
	}
	if f.length = length[0]; !f.fits() {
		return
	}
	var perm, others []int64
	for i, n := range dims[:last] {
		if i != axis {
			perm, others = append(perm, int64(i)), append(others, n)
		}
	}
	perm = append(perm, int64(axis), int64(last))
	x, t := d.wide(d.n.Inputs[0])
	moved := d.transpose(x, perm...)
	m := d.numbers(t, f.matrix(nil), f.rows(), f.cols())
	y := d.op("MatMul", nil, d.reshape(moved, ir.Count(others), f.rows()), m)
	y = d.reshape(y, append(others, f.bins(), f.outParts())...)
	back := make([]int64, len(perm))
	for i, p := range perm {
		back[p] = int64(i)
	}
	d.finish(d.transpose(y, back...), t)
}

// stft gathers the frames, which may overlap, and multiplies them with the transform's matrix. A constant window is
// part of the matrix.
func (d *decomposer) stft() {
	dims := d.shapeOf(0)
	step, okStep := d.constInts(1)
	out := d.n.Outputs[0].Shape.MustConsts()
	length, okLength := d.constInts(3, dims[1])
	window := d.n.Input(2)
	if window != nil {
		length = window.Shape.MustConsts()
	}
	if !okStep || !okLength || ir.Count(out) == 0 {
		return
	}
	f := spectrum{onesided: d.n.Int("onesided", 1) != 0, have: length[0], parts: dims[2], length: length[0]}
	if !f.fits() {
		return
	}
	frames := out[1]
	places := make([]int64, 0, frames*f.length)
	for i := range frames {
		for j := range f.length {
			places = append(places, i*step[0]+j)
		}
	}
	x, t := d.wide(d.n.Inputs[0])
	index := d.constant(d.n.Name+"/frames", ir.FromSlice(ir.Int64, places, frames, f.length))
	x = d.op("Gather", axisAttr(1), x, index)
	var factors []float64
	switch {
	case window != nil && window.Const != nil:
		factors = ir.Slice[float64](convert(window.Const, ir.Float64))
	case window != nil:
		w, _ := d.wide(window)
		x = d.op("Mul", nil, x, d.reshape(w, f.length, 1))
	}
	m := d.numbers(t, f.matrix(factors), f.rows(), f.cols())
	d.finish(d.op("MatMul", nil, d.reshape(x, dims[0]*frames, f.rows()), m), t)
}
