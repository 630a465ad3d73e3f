package onnx

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// declareOutputs puts a rammer.Declared behind each output whose shape does not follow from those of the inputs, which are
// known, but is declared. For example, an input `axes` of one element may be any axis:
//
//	%y: [unk__0,unk__1] = ReduceSum(%x, %axes)         %y: [3,2] in the model
//
// becomes
//
//	%y_0: [unk__0,unk__1] = ReduceSum(%x, %axes)       %y: [unk__0,unk__1] = rammer.Declared(%y_0) {dims = [3,2]}
//
// It reports whether there are any.
func (im *importer) declareOutputs() bool {
	g := im.model.Graph
	for _, v := range g.Inputs {
		if _, known := v.Shape.Consts(); !known {
			return false
		}
	}
	any, names := false, ir.NewNamer(g)
	for i, v := range g.Outputs {
		dims, ok := im.boundShape(im.declared[v].shape)
		if _, known := v.Shape.Consts(); known || !ok || v.Def == nil || v.Shape != nil && len(v.Shape) != len(dims) {
			continue
		}
		inner := &ir.Value{Name: names.Fresh(v.Name), DType: v.DType, Shape: v.Shape, Def: v.Def}
		for o, w := range v.Def.Outputs {
			if w == v {
				v.Def.Outputs[o] = inner
			}
		}
		ir.ReplaceMany(g, map[*ir.Value]*ir.Value{v: inner})
		v.Def = &ir.Node{Op: "Declared", Domain: ir.InternalDomain, Name: fmt.Sprintf("%s/declared", v.Name),
			Inputs: []*ir.Value{inner}, Outputs: []*ir.Value{v}, Attrs: ir.Attrs{"dims": ir.IntsAttr(dims...)},
			Origins: inner.Def.Origins}
		g.Nodes = append(g.Nodes, v.Def)
		g.Outputs[i] = v
		any = true
	}
	return any
}

// boundShape are the extents of a declared shape, with the dims that the options bind.
func (im *importer) boundShape(s ir.Shape) ([]int64, bool) {
	bound := make(ir.Shape, len(s))
	for i, d := range s {
		bound[i] = d.Bind(im.opts.Dims)
	}
	dims, ok := bound.Consts()
	return dims, ok && s != nil
}
