package axes

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Rules of operators that find elements, and of those that select by rank.

// counted is the axis of what a counted operator finds.
func (a *analyser) counted(n *ir.Node) Axis {
	name := n.Attr("symbol").S
	for s, r := range a.Ranges {
		if r.Name == name {
			return Axis{{s, r.Hi}}
		}
	}
	panic("BUG: the counted operator " + name + " has no range")
}

// count are the axes of the count of a counted operator.
func count() []Axis { return []Axis{StaticAxis(1)} }

// nonZero looks at the live elements, whose number its rKernel is told.
func nonZero(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	out := []Axis{StaticAxis(int64(len(in[0]))), a.counted(n)}
	return [][]Axis{out, count()}, a.begins("where it looks for elements", Join(in[0]...))
}

// nonMaxSuppression compares the live boxes, whose number its rKernel is told.
func nonMaxSuppression(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	boxes, scores := in[0], in[1]
	if !boxes[1].Equal(scores[2]) {
		return nil, errors.New("its scores are not as many as its boxes")
	}
	if err := a.static("a batch or the classes of its boxes", boxes[0], scores[0], scores[1]); err != nil {
		return nil, err
	}
	return [][]Axis{{a.counted(n), StaticAxis(3)}, count()}, a.begins("what it selects from", boxes[1])
}

func countUp(a *analyser, n *ir.Node, _ [][]Axis) ([][]Axis, error) {
	return [][]Axis{{a.counted(n)}, count()}, nil
}

// gatherND takes by tuples of indices. Its rKernel is told how long the axis is along which the first of them counts.
func gatherND(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	batch, last := int(n.Int("batch_dims", 0)), len(in[1])-1
	if err := a.static("a tuple of indices", in[1][last]); err != nil {
		return nil, err
	}
	if err := a.behindFirst("the axes from which it takes elements", in[0], in[1][last].Largest() > 0 && batch == 0); err != nil {
		return nil, err
	}
	for _, x := range in[1][:batch] {
		if err := a.static("a batch of indices", x); err != nil {
			return nil, err
		}
	}
	from := batch + int(in[1][last].Largest())
	return [][]Axis{slices.Concat(in[1][:last], in[0][from:])}, nil
}

// behindFirst says that axes are the same in all runs but for the first, if that may have an extent that an rKernel is
// told.
func (a *analyser) behindFirst(what string, list []Axis, told bool) error {
	if told {
		if err := a.begins(what, list[0]); err != nil {
			return err
		}
		list = list[1:]
	}
	return a.static(what, list...)
}

// scatter applies the live updates, whose number its rKernel is told, to data of which one axis may differ between runs.
func scatter(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	data, told := slices.Clone(in[0]), n.Is("ScatterND") && in[1][len(in[1])-1].Largest() > 0
	if n.Is("ScatterElements") { // its rKernel is told how long the axis is along which indices count
		at := axisAttr(n, 0, len(data))
		if err := a.begins("the axis along which it changes elements", data[at]); err != nil {
			return nil, err
		}
		data = slices.Delete(data, at, at+1)
	}
	if err := a.behindFirst("what it changes", data, told); err != nil {
		return nil, err
	}
	last := len(in[1])
	if n.Is("ScatterND") {
		last--
		if err := a.static("a tuple of indices, or an update", append(slices.Clone(in[1][last:]), in[2][last:]...)...); err != nil {
			return nil, err
		}
	}
	if len(in[2]) < last || !slices.EqualFunc(in[1][:last], in[2][:last], Axis.Equal) {
		return nil, fmt.Errorf("its indices are %s and its updates %s", a.text(in[1]), a.text(in[2]))
	}
	return [][]Axis{in[0]}, a.begins("its updates", Join(in[1][:last]...))
}

// alongLines selects among the live elements of each line, whose number its rKernel is told: so many in all runs, or all.
func alongLines(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	at := axisAttr(n, -1, len(in[0]))
	v := n.Outputs[0]
	if v == nil {
		v = n.Outputs[1]
	}
	out := slices.Clone(in[0])
	if !a.fits(in[0][at], func(k int) int64 { return a.dims(k, v)[at] }) {
		out[at] = StaticAxis(a.dims(0, v)[at])
	}
	return [][]Axis{out, out}, a.begins("the axis along which it selects", in[0][at])
}
