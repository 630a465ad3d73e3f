package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// decompose replaces operators that have no rKernel by operators that have one: transforms by products with constant
// matrices, rearrangements by gathers with constant indices, and random numbers by constants. Pools with more spatial
// axes than the kernels support lose some.
//
// Requires: constant shapes, and constants where a row of decompositions reads axes, lengths or shapes. Other nodes
// stay as they are. Leaves: no nodes of these operators that meet the requirements.
func decompose(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		if f := decompositions[n.Op]; f != nil && n.Domain == "" && constantShapes(n) {
			f(&decomposer{s, n})
		} else if n.Is("Sum") || n.Is("Mean") || n.Is("Max") || n.Is("Min") {
			(&decomposer{s, n}).operands()
		}
	}), nil
}

// decompositions are the operators that decompose replaces. A function leaves the node as it is if it needs a constant
// that is not there.
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

// mostOperands is how many inputs a Sum, Mean, Max or Min keeps: an elementwise rKernel takes few more.
const mostOperands = 16

// operands makes a tree of nodes with mostOperands inputs of one that has more. A mean of 16-bit floats stays as it is,
// since their sum might overflow.
func (d *decomposer) operands() {
	in, op := d.n.Inputs, d.n.Op
	if len(in) <= mostOperands {
		return
	}
	t := d.n.Outputs[0].DType
	if op == "Mean" {
		if op = "Sum"; t != ir.Float32 && t != ir.Float64 {
			return
		}
	}
	for len(in) > mostOperands {
		var parts []*ir.Value
		for part := range slices.Chunk(in, mostOperands) {
			if len(part) > 1 {
				parts = append(parts, d.op(op, nil, part...))
			} else {
				parts = append(parts, part[0])
			}
		}
		in = parts
	}
	if d.n.Is("Mean") {
		d.replace("Div", nil, d.op(op, nil, in...), d.numbers(t, []float64{float64(len(d.n.Inputs))}))
		return
	}
	d.replace(op, nil, in...)
}

// controlFlow are the operators that other passes remove where conditions and numbers of iterations are constants.
var controlFlow = map[string]bool{"If": true, "Loop": true, "Scan": true}

// Replaces reports whether the passes replace the operator by others, provided that shapes and what else they need are
// constants. Such an operator needs no rKernel.
func Replaces(domain, op string) bool {
	finds := finders[op] != nil && op != "Pad" // which has an rKernel where its lengths are constants
	return domain == "" && (decompositions[op] != nil || controlFlow[op] || finds)
}

// decomposer replaces one node.
type decomposer struct {
	*sweep
	n *ir.Node
}

// op adds a node with one output, whose type inference computes after the pass.
func (d *decomposer) op(op string, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	return d.add(op, attrs, d.n.Origins, ir.Invalid, nil, d.n.Name+"/"+op, in...)
}

// replace turns the node itself into the last of the new ones.
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

// keepZeros are the attributes of a Reshape for which an extent of 0 is 0, and not a copy of the input's.
func keepZeros() ir.Attrs { return ir.Attrs{"allowzero": ir.IntAttr(1)} }

func (d *decomposer) transpose(v *ir.Value, perm ...int64) *ir.Value {
	return d.op("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, v)
}

// wide converts 16-bit floats to float32, in which the decomposed operators are to compute. t is the type of the
// result. For an absent v both are zero.
func (d *decomposer) wide(v *ir.Value) (w *ir.Value, t ir.DType) {
	if v == nil || v.DType.Size() != 2 {
		return v, typeOf(v)
	}
	return d.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Float32.ONNX())}, v), ir.Float32
}

// typeOf is v's element type, Invalid if v is absent.
func typeOf(v *ir.Value) ir.DType {
	if v == nil {
		return ir.Invalid
	}
	return v.DType
}

// finish makes v the node's result, after a conversion to its element type and shape. v has the element type t, and as
// many elements as the result.
func (d *decomposer) finish(v *ir.Value, t ir.DType) {
	out := d.n.Outputs[0]
	if t != out.DType {
		v = d.op("Cast", ir.Attrs{"to": ir.IntAttr(out.DType.ONNX())}, v)
	}
	d.replace("Reshape", keepZeros(), v, d.ints(out.Shape.MustConsts()...))
}

// constInts are the elements of input i, or def if the input is absent; ok is false if it is not constant.
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

// attrInts is an attribute of count numbers, or count times def if it is absent.
func (d *decomposer) attrInts(name string, count int, def int64) []int64 {
	if list := d.n.Ints(name); len(list) > 0 {
		return list
	}
	return slices.Repeat([]int64{def}, count)
}

// shapeOf are the extents of input i.
func (d *decomposer) shapeOf(i int) []int64 { return d.n.Inputs[i].Shape.MustConsts() }

func axisAttr(axis int) ir.Attrs { return ir.Attrs{"axis": ir.IntAttr(int64(axis))} }

func noKeep() ir.Attrs { return ir.Attrs{"keepdims": ir.IntAttr(0)} }
