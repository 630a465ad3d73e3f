// Package axes finds out which axes of a graph's values have extents that only a run knows, and shows that the program
// for the largest extents computes the right results for all smaller ones.
//
// The model's inputs have symbolic dims, such as batch and seq, each with a range. The graph on which all stages work
// has the largest extents. A run with smaller ones puts each element where it lies in the tensors of the largest
// extents, and leaves the others as they are:
//
//	ids[batch,seq] with batch = 2 of 3, seq = 4 of 6        a a a a . .
//	                                                        b b b b . .
//	                                                        . . . . . .
//
// The elements of a value that exist in a run are live, the others are dead: nobody cares what they hold. The program
// computes the live ones correctly if no operator lets a live element depend on a dead one. Most operators promise
// that: an elementwise operator, the rows of a product, the images of a convolution. Where an operator sums over an
// axis, its rKernel must be told how much of the axis is live. Analyse follows the axes through the graph and checks
// each operator by a rule (rules.go). An operator without a rule is refused with its name.
//
// Graphs are compared at the largest extents and near them. CheckFunctions refuses models whose small numbers, such as
// Min(seq, 128), are other functions of the extents further down.
//
// Some extents are not even known before a run: counted operators (ir.Node.Counted) find elements, and how many there
// are is an extent that later operators read in device memory. Such an extent may be 0. For the rest it is a symbol as
// any other, with the range from 0 to the most that can be found.
//
// An extent that is a sum of others, such as past+seq, has a range of its own, too (sums.go).
//
// Boxes only shrink in such a program: an rTask reads and writes what it does at the largest extents, or less. So what
// Verify shows of the plan at the largest extents holds for all.
package axes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// Range is a dim with the extents that it may have in a run: a symbolic dim of the model's inputs, whose extent the
// host knows before the run, or a number that the device finds in the run, such as how many elements are not 0.
type Range struct {
	Name   string
	Lo, Hi int64   // 1 ≤ Lo < Hi; of those that the device finds Lo is 0
	Values []int64 // the only extents that are allowed, ascending; nil if all from Lo to Hi are
	// Counted says that the device finds the extent: it is the count of the counted operator whose symbol is Name.
	Counted bool
	// Sum is not a number where the extent is a sum of those of other ranges, by their names, such as past+seq.
	Sum ir.Dim
}

// String is the range as the flag --dim spells it.
func (r Range) String() string {
	if r.Lo == r.Hi {
		return fmt.Sprintf("%s=%d", r.Name, r.Lo)
	}
	if r.Values == nil {
		return fmt.Sprintf("%s=%d..%d", r.Name, r.Lo, r.Hi)
	}
	parts := make([]string, len(r.Values))
	for i, v := range r.Values {
		parts[i] = fmt.Sprint(v)
	}
	return r.Name + "=" + strings.Join(parts, ",")
}

// Allows reports whether a run may have n.
func (r Range) Allows(n int64) bool {
	return r.Lo <= n && n <= r.Hi && (r.Values == nil || slices.Contains(r.Values, n))
}

// Static is the Symbol of a Factor that is the same in all runs.
const Static = -1

// Factor is a part of an axis.
type Factor struct {
	Symbol int   // index of the Range, or Static
	N      int64 // the extent; of a symbol the largest one
}

// Axis is an axis of a value as the factors of its extent, from the outermost to the innermost: the rows of a tensor
// [batch,seq,64] that was reshaped to [batch·seq,64] are an axis with the factors batch and seq. The order of the
// factors counts, because it says where the live elements lie.
type Axis []Factor

// Axes are the axes of the values of a graph.
type Axes struct {
	Ranges []Range
	Of     map[*ir.Value][]Axis
}

// StaticAxis is an axis of n elements in all runs.
func StaticAxis(n int64) Axis { return Axis{{Static, n}} }

// StaticAxes are the axes of a value whose extents are the same in all runs.
func StaticAxes(dims []int64) []Axis {
	out := make([]Axis, len(dims))
	for i, n := range dims {
		out[i] = StaticAxis(n)
	}
	return out
}

// Within is x with the numbers that its ranges have among others: range i becomes number of[i] of ranges, which may say
// that other extents are allowed.
func (x *Axes) Within(ranges []Range, of []int) *Axes {
	out := &Axes{ranges, map[*ir.Value][]Axis{}}
	for v, list := range x.Of {
		renamed := make([]Axis, len(list))
		for i, a := range list {
			renamed[i] = slices.Clone(a)
			for k, f := range a {
				if f.Symbol != Static {
					renamed[i][k].Symbol = of[f.Symbol]
				}
			}
		}
		out.Of[v] = renamed
	}
	return out
}

// Dynamic reports whether the extent of the axis depends on the run.
func (a Axis) Dynamic() bool {
	return slices.ContainsFunc(a, func(f Factor) bool { return f.Symbol != Static })
}

// Has reports whether range s is a factor of the axis.
func (a Axis) Has(s int) bool {
	return slices.ContainsFunc(a, func(f Factor) bool { return f.Symbol == s })
}

// Equal reports whether live elements lie at the same places along both axes.
func (a Axis) Equal(b Axis) bool { return slices.Equal(a, b) }

// IsOne reports whether the axis has one element in all runs, so that it broadcasts.
func (a Axis) IsOne() bool { return !a.Dynamic() && a.Largest() == 1 }

// Largest is the largest extent of the axis.
func (a Axis) Largest() int64 {
	n := int64(1)
	for _, f := range a {
		n *= f.N
	}
	return n
}

// At is the extent of the axis where the ranges have these extents.
func (a Axis) At(extents []int64) int64 {
	n := int64(1)
	for _, f := range a {
		if f.Symbol == Static {
			n *= f.N
		} else {
			n *= extents[f.Symbol]
		}
	}
	return n
}

// anyDynamic reports whether one of the axes is dynamic.
func anyDynamic(list []Axis) bool { return slices.ContainsFunc(list, Axis.Dynamic) }

// Join is the axis whose elements are numbered by those of list, the last one fastest. Adjacent static factors become
// one, and static factors of 1 are left out, so that equal axes have equal factors.
func Join(list ...Axis) Axis {
	out := Axis{}
	for _, a := range list {
		for _, f := range a {
			last := len(out) - 1
			switch {
			case f.Symbol == Static && f.N == 1:
			case f.Symbol == Static && last >= 0 && out[last].Symbol == Static:
				out[last].N *= f.N
			default:
				out = append(out, f)
			}
		}
	}
	if len(out) == 0 {
		return StaticAxis(1)
	}
	return out
}

// Text is the axis with the names of its symbols: seq, or batch·64.
func (a Axis) Text(ranges []Range) string {
	parts := make([]string, len(a))
	for i, f := range a {
		parts[i] = fmt.Sprint(f.N)
		if f.Symbol != Static {
			parts[i] = ranges[f.Symbol].Name
		}
	}
	return strings.Join(parts, "·")
}

// text is a shape with the names of symbols, for messages: [batch,seq,64], [batch·seq,64].
func (x *Axes) text(list []Axis) string {
	parts := make([]string, len(list))
	for i, a := range list {
		parts[i] = a.Text(x.Ranges)
	}
	return "[" + strings.Join(parts, ",") + "]"
}
