package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// mostPoolAxes is the largest number of spatial axes for which pools have a kernel.
const mostPoolAxes = 3

// pool removes spatial axes from a pool that has more than the kernels support. Leading spatial axes whose window is a
// single element are joined with the channels by a Reshape: pooling does not touch them. Frameworks whose windows cover
// all axes export pools of this kind. A pool with the output Indices stays as it is, because these count elements of
// all spatial axes.
func (d *decomposer) pool() {
	dims := d.shapeOf(0)
	spatial := len(dims) - 2
	if spatial <= mostPoolAxes || len(d.n.Outputs) > 1 && d.n.Outputs[1] != nil {
		return
	}
	g, err := ir.ConvGeometry(d.n)
	if err != nil {
		return
	}
	drop := 0
	for drop < spatial-1 && untouched(g, drop) {
		drop++
	}
	if spatial-drop > mostPoolAxes {
		return
	}
	attrs := ir.Attrs{}
	for name, a := range d.n.Attrs {
		attrs[name] = a
	}
	if a, ok := attrs["auto_pad"]; ok && a.S != "NOTSET" { // the explicit pads below give the same output extents
		delete(attrs, "auto_pad")
		delete(attrs, "ceil_mode")
	}
	attrs["kernel_shape"] = ir.IntsAttr(g.Kernel[drop:]...)
	attrs["strides"] = ir.IntsAttr(g.Strides[drop:]...)
	attrs["dilations"] = ir.IntsAttr(g.Dilations[drop:]...)
	attrs["pads"] = ir.IntsAttr(slices.Concat(g.PadBegin[drop:], g.PadEnd[drop:])...)
	channels := ir.Count(dims[1 : 2+drop])
	x := d.reshape(d.n.Inputs[0], slices.Concat(dims[:1], []int64{channels}, dims[2+drop:])...)
	d.finish(d.op(d.n.Op, attrs, x), d.n.Outputs[0].DType)
}

// untouched reports whether spatial axis i stays as it is: its windows are single elements, one for each element.
func untouched(g *ir.Geometry, i int) bool {
	return g.Kernel[i] == 1 && g.Strides[i] == 1 && g.PadBegin[i] == 0 && g.PadEnd[i] == 0
}
