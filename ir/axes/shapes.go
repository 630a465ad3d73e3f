package axes

import (
	"errors"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Rules of operators whose operands say the shape of the result.

// filled has the same number everywhere, so its axes are those that a constant of its shape would have.
func filled(a *analyser, n *ir.Node, _ [][]Axis) ([][]Axis, error) {
	var out []Axis
	for d := range a.dims(0, n.Outputs[0]) {
		x, ok := a.repeatedWith(a.extentsOf(n.Outputs[0], d))
		if !ok {
			return nil, errors.New("one of its extents is computed from those of a run")
		}
		out = append(out, x)
	}
	return [][]Axis{out}, nil
}

// padded adds elements to axes that are the same in all runs.
func padded(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	pads := n.Inputs[1].Const
	if pads == nil {
		return nil, errors.New("how many elements it adds only a run knows")
	}
	list, out := ir.Slice[int64](pads), slices.Clone(in[0])
	count := len(list) / 2
	for i := range count {
		d := i
		if v := n.Input(3); v != nil && v.Const != nil {
			x, _ := number(v.Const, int64(i))
			d = (int(x) + len(out)) % len(out)
		}
		if list[i] == 0 && list[count+i] == 0 {
			continue
		}
		if err := a.static("what it adds elements to", out[d]); err != nil {
			return nil, err
		}
		out[d] = StaticAxis(a.dims(0, n.Outputs[0])[d])
	}
	return [][]Axis{out}, nil
}
