package axes

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Rules of operators whose operands are indices.

// gather takes from an axis whose extent its rKernel is told in each run, because an index may count from the end. Known
// indices are different: passes make them of slices, which have fewer elements where the axis has.
func gather(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	at := axisAttr(n, 0, len(in[0]))
	err := a.begins("the axis from which it takes elements", in[0][at])
	if n.Inputs[1].Const != nil || a.compound {
		err = a.static("the axis from which it takes elements", in[0][at])
	}
	if err != nil {
		return nil, err
	}
	return [][]Axis{slices.Concat(in[0][:at], in[1], in[0][at+1:])}, nil
}

// gatherElements takes an element of a line for each index: its other coordinates are those of the index.
func gatherElements(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	at := axisAttr(n, 0, len(in[0]))
	for d, x := range in[1] {
		if d != at && !x.Equal(in[0][d]) {
			return nil, fmt.Errorf("its operands have %s beside %s", a.text(in[0]), a.text(in[1]))
		}
	}
	return [][]Axis{in[1]}, a.static("the axis from which it takes elements", in[0][at])
}

// oneHot adds an axis of the depth, which is a constant, between those of the indices.
func oneHot(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	v := n.Outputs[0]
	at := axisAttr(n, -1, len(in[0])+1)
	depth := StaticAxis(a.dims(0, v)[at])
	if !a.fits(depth, a.extentsOf(v, at)) {
		return nil, errors.New("its depth is computed from the extents of a run")
	}
	return [][]Axis{slices.Insert(slices.Clone(in[0]), at, depth)}, nil
}
