package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// A token sees itself and all before it, so what a step of one token reads of a table of who sees whom is true wherever
// it looks. Exporters slice such tables in every step:
//
//	%row = Slice(%table, past, past+1)          true true true false false      past = 2
//	%seen = Slice(%row, 0, past+1)              true true true

// clearMasks replaces windows on tables of bools which have the same element everywhere, in every step.
func (s *stepMaker) clearMasks() (changed bool) {
	for i := 0; i < len(s.g.Nodes); i++ {
		n := s.g.Nodes[i]
		if !n.Is("Slice") || n.Outputs[0].DType != ir.Bool {
			continue
		}
		value, same := s.sameInSteps(n.Outputs[0])
		if !same {
			continue
		}
		s.nodes = nil
		shape, ok := s.shapeInStep(n.Outputs[0].Shape)
		if !ok {
			continue
		}
		filled := s.node("ConstantOfShape", ir.Attrs{"value": ir.TensorAttr(ir.FromSlice(ir.Bool, []bool{value}, 1))}, shape)
		filled.Def.Outputs, n.Outputs[0].Def = n.Outputs, filled.Def
		s.g.Nodes = slices.Replace(s.g.Nodes, i, i+1, s.nodes...)
		i += len(s.nodes) - 1
		changed = true
	}
	return changed
}

// shapeInStep is a shape as a list of numbers, if its dims are numbers and how many tokens there are behind the step.
func (s *stepMaker) shapeInStep(shape ir.Shape) (*ir.Value, bool) {
	var parts []*ir.Value
	for _, d := range shape {
		n, fixed := d.Const()
		before, one := d.Sub(ir.D(1)).Symbol()
		switch {
		case fixed:
			parts = append(parts, s.ints(n))
		case one && before == s.spec.Past:
			parts = append(parts, s.after)
		default:
			return nil, false
		}
	}
	return s.node("Concat", axisAttr(0), parts...), len(parts) > 0
}

// sameInSteps reports whether all elements of v are the same one in all steps.
func (s *stepMaker) sameInSteps(v *ir.Value) (value, same bool) {
	for past := range s.spec.Tokens - 1 {
		w, ok := s.windowAt(v, past)
		if !ok {
			return false, false
		}
		for k, x := range w.elements() {
			if past == 0 && k == 0 {
				value = x
			}
			if x != value {
				return false, false
			}
		}
	}
	return value, true
}

// window is a part of a table.
type window struct {
	table    *ir.Tensor
	from, to []int64
}

// windowAt is what v is in a step: a constant, or slices of one.
func (s *stepMaker) windowAt(v *ir.Value, past int64) (w window, ok bool) {
	if v.Const != nil {
		return window{v.Const, make([]int64, len(v.Const.Dims)), slices.Clone(v.Const.Dims)}, true
	}
	n := v.Def
	if n == nil || !n.Is("Slice") {
		return w, false
	}
	if w, ok = s.windowAt(n.Inputs[0], past); !ok {
		return w, false
	}
	axes := slicedAxes(n)
	for i, axis := range axes {
		step, known := number(n.Input(4), i)
		from, okFrom := s.boundAt(n.Inputs[1], i, past)
		to, okTo := s.boundAt(n.Inputs[2], i, past)
		if !known || step != 1 || !okFrom || !okTo {
			return w, false
		}
		extent := w.to[axis] - w.from[axis]
		clamped := func(b int64) int64 {
			if b < 0 {
				b += extent
			}
			return w.from[axis] + min(max(b, 0), extent)
		}
		from, to = clamped(from), clamped(to)
		w.from[axis], w.to[axis] = from, max(from, to)
	}
	return w, len(axes) > 0
}

// boundAt is a bound of a slice in a step.
func (s *stepMaker) boundAt(v *ir.Value, at int, past int64) (int64, bool) {
	if n, ok := number(v, at); ok {
		return n, true
	}
	if at >= len(v.Elems) {
		return 0, false
	}
	return v.Elems[at].Bind(map[string]int64{s.spec.Past: past}).Const()
}

// elements are those of the window.
func (w *window) elements() (out []bool) {
	table, dims := ir.Slice[bool](w.table), w.table.Dims
	var walk func(axis int, at int64)
	walk = func(axis int, at int64) {
		if axis == len(dims) {
			out = append(out, table[at])
			return
		}
		for i := w.from[axis]; i < w.to[axis]; i++ {
			walk(axis+1, at*dims[axis]+i)
		}
	}
	walk(0, 0)
	return out
}
