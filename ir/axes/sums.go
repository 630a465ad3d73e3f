package axes

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Extents that are sums of others, such as past+seq. Each has a range of its own, so that axes, rules and tables know
// it as any other; the host computes it from the extents that the inputs tell.

// SumRange is the range of an extent that is a sum of extents of ranges.
func SumRange(ranges []Range, sum ir.Dim) Range {
	i := sum.Bounds(intervals(ranges))
	return Range{Name: sum.String(), Lo: max(i.Lo, 0), Hi: i.Hi, Sum: sum}
}

// intervals are the bounds of ranges, by their names.
func intervals(ranges []Range) func(symbol string) (ir.Interval, bool) {
	return func(symbol string) (ir.Interval, bool) {
		for _, r := range ranges {
			if r.Name == symbol {
				return ir.Interval{Lo: r.Lo, Hi: r.Hi}, true
			}
		}
		return ir.Interval{}, false
	}
}

// Derived reports whether the extent is a sum of those of other ranges.
func (r Range) Derived() bool {
	_, number := r.Sum.Const()
	return !number
}

// Follow computes the extents that are sums of others.
func Follow(ranges []Range, extents []int64) {
	bind := map[string]int64{}
	for i, r := range ranges {
		if !r.Derived() {
			bind[r.Name] = extents[i]
		}
	}
	for i, r := range ranges {
		if r.Derived() {
			extents[i], _ = r.Sum.Bind(bind).Const()
		}
	}
}

// expression is the extent of an axis in terms of the symbols of inputs.
func (x *Axes) expression(a Axis) ir.Dim {
	d := ir.D(1)
	for _, f := range a {
		switch {
		case f.Symbol == Static:
			d = d.Mul(ir.D(f.N))
		case x.Ranges[f.Symbol].Derived():
			d = d.Mul(x.Ranges[f.Symbol].Sum)
		default:
			d = d.Mul(ir.Sym(x.Ranges[f.Symbol].Name))
		}
	}
	return d
}

// never reports whether the extent of a is larger than that of b, less `from`, in no run.
func (x *Axes) never(a, b Axis, from int64) bool {
	left := x.expression(b).Sub(x.expression(a)).Sub(ir.D(from))
	return left.Bounds(intervals(x.Ranges)).Lo >= 0
}

// axisOf is the axis whose extent is d: static, or one range.
func (x *Axes) axisOf(d ir.Dim) (Axis, bool) {
	if n, ok := d.Const(); ok {
		return StaticAxis(n), true
	}
	for s, r := range x.Ranges {
		if d.Equal(x.expression(Axis{{s, r.Hi}})) {
			return Axis{{s, r.Hi}}, true
		}
	}
	return nil, false
}

// appended puts the live elements of the second operand behind those of the first, whose number its rKernel is told.
func appended(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	at := axisAttr(n, 0, len(in[0]))
	out := slices.Clone(in[0])
	for d, x := range in[1] {
		if d != at && !x.Equal(out[d]) {
			return nil, fmt.Errorf("its operands have %s beside %s", a.text(in[0]), a.text(in[1]))
		}
	}
	if err := errors.Join(a.begins("what it appends to", in[0][at]), a.begins("what it appends", in[1][at])); err != nil {
		return nil, err
	}
	sum, ok := a.axisOf(a.expression(in[0][at]).Add(a.expression(in[1][at])))
	if !ok {
		return nil, errors.New("no range has the extent of its result")
	}
	out[at] = sum
	return [][]Axis{out}, nil
}

// written puts rows into a state, from the number on that its rKernel is told, and no further than the state has room.
func written(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	at := axisAttr(n, 0, len(in[0]))
	for d, x := range in[1] {
		if d != at && !x.Equal(in[0][d]) {
			return nil, fmt.Errorf("its operands have %s beside %s", a.text(in[0]), a.text(in[1]))
		}
	}
	end := a.Number(n).Largest() + in[1][at].Largest()
	if in[0][at].Dynamic() || end > in[0][at].Largest() {
		return nil, fmt.Errorf("the state has no room for %d elements", end)
	}
	return [][]Axis{in[0]}, a.begins("what it writes", in[1][at])
}

// running is a sum along an axis, of which a live element needs those before it.
func running(a *analyser, n *ir.Node, in [][]Axis) ([][]Axis, error) {
	if v := n.Input(1); v == nil || v.Const == nil || n.Int("reverse", 0) != 0 {
		return nil, errors.New("it adds up from the end, or along an axis that is not known")
	}
	rank := int64(len(in[0]))
	at := (ir.Slice[int64](n.Inputs[1].Const)[0] + rank) % rank
	return [][]Axis{in[0]}, a.begins("the axis along which it adds up", in[0][at])
}

// Used is x without those ranges of sums that no value of g has as an extent or a number.
func (x *Axes) Used(g *ir.Graph) *Axes {
	used := make([]bool, len(x.Ranges))
	for _, list := range x.Of {
		for _, a := range list {
			for _, f := range a {
				if f.Symbol != Static {
					used[f.Symbol] = true
				}
			}
		}
	}
	ir.EachGraph(g, func(g *ir.Graph) {
		for _, n := range g.Nodes {
			if n.IsInternal("Extent") || n.IsInternal("WriteRows") {
				for _, f := range x.Number(n) {
					if f.Symbol != Static {
						used[f.Symbol] = true
					}
				}
			}
		}
	})
	var ranges []Range
	of := make([]int, len(x.Ranges))
	for i, r := range x.Ranges {
		if of[i] = len(ranges); !r.Derived() || used[i] {
			ranges = append(ranges, r)
		}
	}
	if len(ranges) == len(x.Ranges) {
		return x
	}
	return x.Within(ranges, of)
}

// Behind is the axis of what a WriteRows leaves live: as many elements as its number says, and so many more. ok is false
// if no range has that extent.
func (x *Axes) Behind(n *ir.Node, rows int64) (a Axis, ok bool) {
	d, err := ir.ParseDim(n.Attr("of").S)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return x.axisOf(d.Add(ir.D(rows)))
}

// Number is the axis that is as long as the number of n says, which is an Extent or a WriteRows.
func (x *Axes) Number(n *ir.Node) Axis {
	d, err := ir.ParseDim(n.Attr("of").S)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	if a, ok := x.axisOf(d); ok {
		return a
	}
	terms, ok := d.Terms()
	if !ok || len(terms) != 1 {
		panic("BUG: no range has the extent " + d.String())
	}
	out := StaticAxis(terms[0].Coef)
	for _, s := range terms[0].Symbols {
		a, ok := x.axisOf(ir.Sym(s))
		if !ok {
			panic("BUG: no range has the extent " + s)
		}
		out = append(out, a...)
	}
	return Join(out)
}
