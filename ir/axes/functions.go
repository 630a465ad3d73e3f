package axes

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// Graphs at a few extents do not show what a model computes with the extents at others: Min(seq, 128) is 128 near the
// largest ones, and something else below. CheckFunctions therefore computes all such numbers at all extents.

const (
	// mostCombinations is how many extents of all ranges together are tried. With more, ranges are tried one at a time.
	mostCombinations = 1024
	// mostOfRange is how many extents of one range are tried then: the smallest, the largest, and those near powers of two.
	mostOfRange = 1024
	// mostElements is how large the tensors are with which models compute extents.
	mostElements = 1024
)

// CheckFunctions reports numbers that nodes of g compute with the extents of its inputs, and that Analyse would take for
// something else than they are: near the largest extents they are the same number, or a multiple of extents, and
// elsewhere they are not. g is the model as it was imported, whose inputs have the ranges as symbols.
func CheckFunctions(g *ir.Graph, ranges []Range) error {
	points := Extents(ranges)
	s := &series{ranges: ranges, points: len(points), nodes: g.Nodes, numbers: map[place][]float64{},
		fixed: map[*ir.Value]*ir.Tensor{}}
	for _, extents := range slices.Concat(points, combinations(ranges)) {
		s.at = append(s.at, extents)
		s.compute(extents)
	}
	return s.check()
}

// combinations are the extents that are tried.
func combinations(ranges []Range) [][]int64 {
	lists, all := make([][]int64, len(ranges)), 1
	for i, r := range ranges {
		lists[i] = r.tried(math.MaxInt)
		all = min(all*min(len(lists[i]), mostCombinations+1), mostCombinations+1)
	}
	if all <= mostCombinations {
		out := [][]int64{nil}
		for _, list := range lists {
			var longer [][]int64
			for _, head := range out {
				for _, n := range list {
					longer = append(longer, append(slices.Clone(head), n))
				}
			}
			out = longer
		}
		return out
	}
	var out [][]int64
	for i, r := range ranges {
		for _, n := range r.tried(mostOfRange) {
			for _, end := range []func(Range) int64{func(r Range) int64 { return r.Lo }, func(r Range) int64 { return r.Hi }} {
				extents := make([]int64, len(ranges))
				for k := range ranges {
					extents[k] = end(ranges[k])
				}
				extents[i] = n
				out = append(out, extents)
			}
		}
	}
	return out
}

// tried are extents of the range: all of them if they are at most so many as most and mostCombinations.
func (r Range) tried(most int) []int64 {
	if r.Values != nil {
		return r.Values
	}
	var out []int64
	if most = min(most, mostCombinations); r.Hi-r.Lo < int64(most) {
		for n := r.Lo; n <= r.Hi; n++ {
			out = append(out, n)
		}
		return out
	}
	quarter := int64(most / 4)
	for n := range quarter {
		out = append(out, r.Lo+n, r.Hi-n)
	}
	for p := int64(1); p < r.Hi; p *= 2 {
		for n := p - 1; n <= p+1; n++ {
			if n >= r.Lo && n <= r.Hi {
				out = append(out, n)
			}
		}
	}
	return out
}

// place is a number that a graph computes: an element of a value, or an extent of it.
type place struct {
	v      *ir.Value
	extent bool
	index  int
}

// series are numbers at all extents that were tried.
type series struct {
	ranges  []Range
	points  int       // how many of at are Analyse's
	at      [][]int64 // the extents
	numbers map[place][]float64
	order   []place // of numbers
	// nodes are those that compute with extents: at first all, then those that did at the first extents. fixed has what
	// constants alone make.
	nodes []*ir.Node
	fixed map[*ir.Value]*ir.Tensor
}

// add keeps a number at the latest extents. What is not known at all of them is not kept.
func (s *series) add(p place, x float64) {
	if len(s.numbers[p]) == 0 && len(s.at) == 1 {
		s.order = append(s.order, p)
	}
	if len(s.numbers[p]) == len(s.at)-1 {
		s.numbers[p] = append(s.numbers[p], x)
	}
}

// compute runs the nodes that compute with extents.
func (s *series) compute(extents []int64) {
	bound := map[string]int64{}
	for i, r := range s.ranges {
		bound[r.Name] = extents[i]
	}
	known, kept := maps.Clone(s.fixed), []*ir.Node(nil)
	for _, n := range s.nodes {
		wanted := s.shapes(n, bound)
		in, varies, ok := s.operands(n, bound, known)
		if ok && computes(n) && s.run(n, in, varies, bound, known) || wanted {
			kept = append(kept, n)
		}
	}
	s.nodes = kept
}

// run computes n, and reports whether its results depend on extents.
func (s *series) run(n *ir.Node, in []*ir.Tensor, varies bool, bound map[string]int64, known map[*ir.Value]*ir.Tensor) bool {
	out, err := eval.NodeWith(n, in, eval.Options{Workers: 1, MaxBytes: 8 * mostElements * 8, MaxNodes: 1})
	if err != nil {
		return varies // no extents of a model are computed so, or at others only
	}
	for i, v := range n.Outputs {
		switch {
		case v == nil || out[i] == nil || out[i].Len() > mostElements:
		case varies:
			known[v] = out[i]
			s.elements(v, out[i], bound)
		default:
			known[v], s.fixed[v] = out[i], out[i]
		}
	}
	return varies
}

// computes reports whether the results of n follow from its operands alone.
func computes(n *ir.Node) bool {
	op := ir.LookupOp(n.Domain, n.Op)
	return op != nil && op.Kind != ir.KindControl && op.Kind != ir.KindShape && !n.Counted()
}

// operands are the inputs of n as numbers. varies says that one depends on extents; ok is false if one is not known.
func (s *series) operands(n *ir.Node, bound map[string]int64, known map[*ir.Value]*ir.Tensor) (in []*ir.Tensor, varies, ok bool) {
	for _, v := range n.Inputs {
		switch {
		case v == nil:
			in = append(in, nil)
		case v.Const != nil && v.Const.Len() <= mostElements:
			in = append(in, v.Const)
		case known[v] != nil:
			in, varies = append(in, known[v]), varies || s.fixed[v] == nil
		default:
			t := fromElems(v, bound)
			if t == nil {
				return nil, false, false
			}
			in, varies = append(in, t), true
		}
	}
	return in, varies, len(in) > 0
}

// fromElems is a value whose elements inference knows as expressions, such as a shape, as numbers; nil if it knows not all.
func fromElems(v *ir.Value, bound map[string]int64) *ir.Tensor {
	dims, ok := v.Shape.Consts()
	if v.Elems == nil || !ok || v.DType != ir.Int64 && v.DType != ir.Int32 && v.DType != ir.Bool {
		return nil
	}
	t := ir.NewTensor(v.DType, dims...)
	for i, e := range v.Elems {
		x, ok := e.Bind(bound).Const()
		if !ok {
			return nil
		}
		switch data := t.Data.(type) {
		case []int64:
			data[i] = x
		case []int32:
			data[i] = int32(x)
		case []bool:
			data[i] = x != 0
		}
	}
	return t
}

// elements keeps what a node has computed, unless it is known to be a sum of products of extents. Symbols that stand for
// elements of which inference knows nothing more get their value.
func (s *series) elements(v *ir.Value, t *ir.Tensor, bound map[string]int64) {
	for i := range t.Len() {
		x, ok := number(t, i)
		if !ok {
			return
		}
		if int(i) < len(v.Elems) {
			e := v.Elems[i]
			if name, ok := e.Symbol(); ok && !s.isRange(name) {
				bound[name] = int64(x)
			} else if _, plain := e.Terms(); plain {
				continue
			}
		}
		s.add(place{v, false, int(i)}, x)
	}
}

// shapes keeps the extents of what n computes, unless they are sums of products of extents. It reports whether there are
// any.
func (s *series) shapes(n *ir.Node, bound map[string]int64) (any bool) {
	for _, v := range n.Outputs {
		if v == nil {
			continue
		}
		for i, d := range v.Shape {
			if _, plain := d.Terms(); plain {
				continue
			}
			any = true
			if x, ok := d.Bind(bound).Const(); ok {
				s.add(place{v, true, i}, float64(x))
			}
		}
	}
	return any
}

func (s *series) isRange(name string) bool {
	return slices.ContainsFunc(s.ranges, func(r Range) bool { return r.Name == name })
}

// number is an element as a float64; ok is false for types with which no extents are computed.
func number(t *ir.Tensor, i int64) (x float64, ok bool) {
	switch data := t.Data.(type) {
	case []int64:
		return float64(data[i]), true
	case []int32:
		return float64(data[i]), true
	case []bool:
		if data[i] {
			return 1, true
		}
		return 0, true
	case []float32:
		return float64(data[i]), true
	case []float64:
		return data[i], true
	}
	return 0, false
}

// check reports every node with a number that is not everywhere what it is near the largest extents.
func (s *series) check() error {
	var l diag.List
	reported := map[*ir.Node]bool{}
	for _, p := range s.order {
		xs := s.numbers[p]
		if len(xs) < len(s.at) || reported[p.v.Def] {
			continue
		}
		is := s.multiple(xs)
		if is == nil {
			continue // Analyse sees that it varies, and decides
		}
		for k, x := range xs {
			if x != is(s.at[k]) {
				l.Add(s.differs(p, k))
				reported[p.v.Def] = true
				break
			}
		}
	}
	return l.Err()
}

// multiple is the number, or the multiple of a product of extents, that xs are at Analyse's points; nil if they are none.
func (s *series) multiple(xs []float64) func(extents []int64) float64 {
	for set := range 1 << min(len(s.ranges), 8) {
		product := func(extents []int64) float64 {
			x := 1.0
			for i := range s.ranges {
				if set&(1<<i) != 0 {
					x *= float64(extents[i])
				}
			}
			return x
		}
		first := product(s.at[0])
		is := func(extents []int64) float64 { return xs[0] * product(extents) / first }
		same := true
		for k := range s.points {
			same = same && xs[k] == is(s.at[k])
		}
		if same {
			return is
		}
	}
	return nil
}

func (s *series) differs(p place, k int) *diag.Diagnostic {
	what := fmt.Sprintf("element %d", p.index)
	if p.extent {
		what = fmt.Sprintf("extent %d", p.index)
	}
	text := func(k int) string {
		list := ""
		for i, r := range s.ranges {
			list += fmt.Sprintf(" %s=%d", r.Name, s.at[k][i])
		}
		return fmt.Sprintf("%v with%s", s.numbers[p][k], list)
	}
	d := ir.NodeDiag(p.v.Def, "dynamic-function", fmt.Sprintf("%s of %s is %s, but %s: a library for ranges is compiled as "+
		"the model is at the largest extents", what, p.v.Name, text(0), text(k)))
	d.Help = "choose a range in which it does not change, or give the dims one value each"
	return d
}
