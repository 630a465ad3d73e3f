package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// mostPoolAxes is how many spatial axes a pool's compiled form has.
const mostPoolAxes = 3

// pool takes axes out of pools that have more than their compiled form: those in front whose window is
// one element count as channels. (Frameworks whose windows cover all axes write pools of that kind.)
// Indices count elements of all spatial axes, so pools with Indices stay as they are.
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
	if a, ok := attrs["auto_pad"]; ok && a.S != "NOTSET" { // the pads below leave nothing to round up
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

// untouched reports an axis that a pool leaves alone.
func untouched(g *ir.Geometry, i int) bool {
	return g.Kernel[i] == 1 && g.Strides[i] == 1 && g.PadBegin[i] == 0 && g.PadEnd[i] == 0
}
