package axes

import (
	"errors"
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// repeatBegin gives a turn of a loop the axes of what it begins with, and its chunks of sequences. How many turns there
// are is no business of a run: only axes that are the same in all runs are cut.
func repeatBegin(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	carried := int(n.Int("carried", 0))
	out := [][]Axis{nil}
	for i, list := range in {
		if i >= carried {
			var err error
			cut := func(extent int64) int64 { return extent / n.Int("trips", 1) }
			if list, err = a.chunked(n, list, i-carried, cut); err != nil {
				return nil, err
			}
		}
		out = append(out, list)
	}
	return out, nil
}

// repeatEnd ends the loop. What a turn leaves to the next one has the axes of what the first one began with: what is dead
// stays dead in all turns.
func repeatEnd(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	carried := int(n.Int("carried", 0))
	begin := n.Inputs[0].Def
	var out [][]Axis
	for i, list := range in[1:] {
		if i >= carried {
			var err error
			joined := func(extent int64) int64 { return extent * n.Int("trips", 1) }
			if list, err = a.chunked(n, list, i-carried, joined); err != nil {
				return nil, err
			}
		} else if first := a.axesOf(n, begin.Inputs[i]); !sameAxes(first, list) {
			return nil, fmt.Errorf("a turn leaves %s where the first one begins with %s", a.text(list), a.text(first))
		}
		out = append(out, list)
	}
	return out, nil
}

// chunked are the axes of value i of those that a loop cuts, with another extent of the axis along which it does.
func (a *analyser) chunked(n *ir.Node, list []Axis, i int, extent func(int64) int64) ([]Axis, error) {
	at := n.Ints("axes")[i]
	if at < 0 || int(at) >= len(list) {
		return nil, errors.New("it cuts an axis that is not there")
	}
	if err := a.static("the axis along which it has turns", list[at]); err != nil {
		return nil, err
	}
	out := append([]Axis{}, list...)
	out[at] = StaticAxis(extent(list[at].Largest()))
	return out, nil
}

func sameAxes(a, b []Axis) bool {
	if len(a) != len(b) {
		return false
	}
	for d := range a {
		if !a[d].Equal(b[d]) {
			return false
		}
	}
	return true
}
