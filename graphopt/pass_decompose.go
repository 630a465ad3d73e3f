package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// decompose replaces operators without an rKernel of their own by operators that have one: transforms by
// products with constant matrices, moves by gathers with constant indices, random numbers by constants.
// Pools lose axes that they have too many of.
//
// Requires: constant shapes, and constants where a row reads axes, lengths or shapes; other nodes are left
// alone. Leaves: none of the operators of decompositions that meet this.
func decompose(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		if f := decompositions[n.Op]; f != nil && n.Domain == "" && constantShapes(n) {
			f(&decomposer{s, n})
		}
	}), nil
}

// decompositions lists what decompose replaces. A row does nothing when it needs constants that are not
// there.
var decompositions = map[string]func(d *decomposer){
	"AffineGrid":        (*decomposer).affineGrid,
	"AveragePool":       (*decomposer).pool,
	"Bernoulli":         (*decomposer).bernoulli,
	"CenterCropPad":     (*decomposer).centerCropPad,
	"Col2Im":            (*decomposer).col2Im,
	"Compress":          (*decomposer).compress,
	"DFT":               (*decomposer).dft,
	"DeformConv":        (*decomposer).deformConv,
	"Det":               (*decomposer).det,
	"LpPool":            (*decomposer).pool,
	"MaxPool":           (*decomposer).pool,
	"MaxUnpool":         (*decomposer).maxUnpool,
	"Multinomial":       (*decomposer).multinomial,
	"RandomNormal":      (*decomposer).random,
	"RandomNormalLike":  (*decomposer).random,
	"RandomUniform":     (*decomposer).random,
	"RandomUniformLike": (*decomposer).random,
	"ReverseSequence":   (*decomposer).reverseSequence,
	"STFT":              (*decomposer).stft,
}

// controlFlow are the operators that disappear where conditions and numbers of runs are constants.
var controlFlow = map[string]bool{"If": true, "Loop": true, "Scan": true}

// Replaces reports whether passes make other operators of this one, where shapes and what else it needs
// are constants.
func Replaces(domain, op string) bool {
	return domain == "" && (decompositions[op] != nil || controlFlow[op])
}

// decomposer replaces one node.
type decomposer struct {
	*sweep
	n *ir.Node
}

// op adds a node of one output, whose type inference finds afterwards.
func (d *decomposer) op(op string, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	return d.add(op, attrs, d.n.Origins, ir.Invalid, nil, d.n.Name+"/"+op, in...)
}

// replace makes the node itself the last of the new ones.
func (d *decomposer) replace(op string, attrs ir.Attrs, in ...*ir.Value) { d.become(op, attrs, in) }

func (d *decomposer) ints(list ...int64) *ir.Value {
	return d.constant(d.n.Name+"/ints", ir.FromSlice(ir.Int64, list, int64(len(list))))
}

// numbers is a constant of element type t.
func (d *decomposer) numbers(t ir.DType, data []float64, dims ...int64) *ir.Value {
	return d.constant(d.n.Name+"/numbers", convert(ir.FromSlice(ir.Float64, data, dims...), t))
}

func (d *decomposer) reshape(v *ir.Value, dims ...int64) *ir.Value {
	return d.op("Reshape", keepZeros(), v, d.ints(dims...))
}

// keepZeros makes a Reshape take an extent of 0 as it is.
func keepZeros() ir.Attrs { return ir.Attrs{"allowzero": ir.IntAttr(1)} }

func (d *decomposer) transpose(v *ir.Value, perm ...int64) *ir.Value {
	return d.op("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, v)
}

// wide is v in float32 where it is a 16-bit float, which only stores; type t is that of the computation.
func (d *decomposer) wide(v *ir.Value) (w *ir.Value, t ir.DType) {
	if v == nil || v.DType.Size() != 2 {
		return v, v16(v)
	}
	return d.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Float32.ONNX())}, v), ir.Float32
}

func v16(v *ir.Value) ir.DType {
	if v == nil {
		return ir.Invalid
	}
	return v.DType
}

// finish makes v, computed in type t and with the node's number of elements, the node's result.
func (d *decomposer) finish(v *ir.Value, t ir.DType) {
	out := d.n.Outputs[0]
	if t != out.DType {
		v = d.op("Cast", ir.Attrs{"to": ir.IntAttr(out.DType.ONNX())}, v)
	}
	d.replace("Reshape", keepZeros(), v, d.ints(out.Shape.MustConsts()...))
}

// constInts are the elements of a constant input, def where it is absent.
func (d *decomposer) constInts(i int, def ...int64) ([]int64, bool) {
	v := d.n.Input(i)
	switch {
	case v == nil:
		return def, true
	case v.Const == nil:
		return nil, false
	}
	return ir.Slice[int64](convert(v.Const, ir.Int64)), true
}

// attrInts is an attribute with one value for each axis.
func (d *decomposer) attrInts(name string, count int, def int64) []int64 {
	if list := d.n.Ints(name); len(list) > 0 {
		return list
	}
	return slices.Repeat([]int64{def}, count)
}

func axisFrom(axis int64, rank int) int {
	if axis < 0 {
		axis += int64(rank)
	}
	return int(axis)
}

// shapeOf are the extents of input i.
func (d *decomposer) shapeOf(i int) []int64 { return d.n.Inputs[i].Shape.MustConsts() }

func axisAttr(axis int) ir.Attrs { return ir.Attrs{"axis": ir.IntAttr(int64(axis))} }

func noKeep() ir.Attrs { return ir.Attrs{"keepdims": ir.IntAttr(0)} }
