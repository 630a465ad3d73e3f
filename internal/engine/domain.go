package engine

import (
	"github.com/rammerc/rammerc/ir"
)

// Domain is a range of whole numbers, Low to High without High, outside of which an input makes no sense to its model.
type Domain struct {
	Low, High int64
	Sorted    bool // the largest first, as sequences in a packed batch
}

// Domains finds, from what a graph does with its inputs, the numbers that they can be:
//
//	index of Gather and the like, of OneHot     from 0 to below the extent that it selects from
//	compared with 0 or 1, cast to bool,
//	subtracted from 1                           a mask of 0 and 1
//	length of sequences                         from 1 to their longest length
//
// It follows inputs through operators that only move or convert elements, and through sums with constants. Inputs of
// which it finds nothing are missing in the result.
func Domains(g *ir.Graph) map[string]Domain {
	users := map[*ir.Value][]use{}
	ir.EachGraph(g, func(g *ir.Graph) {
		for _, n := range g.Nodes {
			for i, v := range n.Inputs {
				if v != nil {
					users[v] = append(users[v], use{n, i})
				}
			}
		}
	})
	found := map[string]Domain{}
	for _, v := range g.Inputs {
		if v.DType == ir.Bool {
			continue
		}
		s := &domainSearch{users: users, seen: map[*ir.Value]bool{}}
		s.follow(v, 0, v.DType.IsInt())
		if s.some && s.low < s.high {
			found[v.Name] = Domain{s.low, s.high, s.sorted}
		}
	}
	return found
}

// use is an input of a node.
type use struct {
	n *ir.Node
	i int
}

// domainSearch narrows the domain of one input.
type domainSearch struct {
	users     map[*ir.Value][]use
	seen      map[*ir.Value]bool
	some      bool // there is a domain
	low, high int64
	sorted    bool
}

// narrow adds that the input plus shift is at least low and below high.
func (s *domainSearch) narrow(low, high, shift int64) {
	low, high = low-shift, high-shift
	if !s.some {
		s.some, s.low, s.high = true, low, high
		return
	}
	s.low, s.high = max(s.low, low), min(s.high, high)
}

// moves are the operators that move or convert the elements of input 0 and change none.
var moves = map[string]bool{
	"Cast": true, "Expand": true, "Flatten": true, "Identity": true, "Reshape": true, "Slice": true, "Split": true,
	"Squeeze": true, "Tile": true, "Transpose": true, "Unsqueeze": true, "Gather": true,
}

// follow looks at all users of v, which holds the input plus shift. whole says that v is known to hold whole numbers:
// only these are indices and masks.
func (s *domainSearch) follow(v *ir.Value, shift int64, whole bool) {
	if s.seen[v] {
		return
	}
	s.seen[v] = true
	for _, u := range s.users[v] {
		n, out := u.n, u.n.Output(0)
		if n.Domain != "" || out == nil {
			continue
		}
		if n.Op == "Cast" && out.DType == ir.Bool && whole {
			s.narrow(0, 2, shift)
			continue
		}
		if n.Op == "Concat" || u.i == 0 && moves[n.Op] {
			for _, w := range n.Outputs {
				if w != nil {
					s.follow(w, shift, whole || n.Op == "Cast" && w.DType.IsInt())
				}
			}
			continue
		}
		if whole {
			s.constrain(u, shift)
		}
	}
}

// constrain takes what an operator says about its input.
func (s *domainSearch) constrain(u use, shift int64) {
	n := u.n
	switch n.Op {
	case "Add", "Sub":
		s.shifted(u, shift)
	case "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual":
		s.compared(u, shift)
	case "Gather", "GatherElements", "ScatterElements":
		if u.i == 1 {
			axis, ok := ir.NormalizeAxis(n.Int("axis", 0), len(n.Inputs[0].Shape))
			s.index(n.Inputs[0], axis, axis, ok, shift)
		}
	case "GatherND", "ScatterND":
		if u.i == 1 {
			s.index(n.Inputs[0], 0, len(n.Inputs[0].Shape)-1, true, shift)
		}
	case "OneHot":
		if depth, ok := wholeConst(n.Inputs[1]); u.i == 0 && ok {
			s.narrow(0, depth, shift)
		}
	case "LSTM", "GRU", "RNN":
		if length, ok := extentOf(n.Inputs[0], 0); u.i == 4 && ok {
			s.narrow(1, length+1, shift)
			s.sorted = true
		}
	}
}

// index says that the input selects from axes first to last of data; the shortest of them counts.
func (s *domainSearch) index(data *ir.Value, first, last int, ok bool, shift int64) {
	for axis := first; ok && axis <= last; axis++ {
		if n, known := extentOf(data, axis); known {
			s.narrow(0, n, shift)
		}
	}
}

// shifted follows the sum or difference with a constant. 1 - x makes x a mask.
func (s *domainSearch) shifted(u use, shift int64) {
	other, ok := wholeConst(u.n.Inputs[1-u.i])
	switch {
	case !ok:
	case u.n.Op == "Add":
		s.follow(u.n.Outputs[0], shift+other, true)
	case u.i == 0:
		s.follow(u.n.Outputs[0], shift-other, true)
	case other == 1:
		s.narrow(0, 2, shift)
	}
}

// compared takes a comparison with 0 or 1 for a mask, and one with the numbers 0, 1, 2, … for a length.
func (s *domainSearch) compared(u use, shift int64) {
	other := u.n.Inputs[1-u.i]
	if n, ok := wholeConst(other); ok && (n == 0 || n == 1) {
		s.narrow(0, 2, shift)
		return
	}
	if n, ok := countsUp(other); ok && u.n.Op != "Equal" {
		s.narrow(1, n+1, shift)
		s.sorted = true
	}
}

func extentOf(v *ir.Value, axis int) (int64, bool) {
	if v == nil || axis < 0 || axis >= len(v.Shape) {
		return 0, false
	}
	return v.Shape[axis].Const()
}

// wholeConst is the only element of v, if v is a constant of one whole number.
func wholeConst(v *ir.Value) (int64, bool) {
	if v == nil {
		return 0, false
	}
	if len(v.Elems) == 1 {
		return v.Elems[0].Const()
	}
	if v.Const == nil || v.Const.Len() != 1 {
		return 0, false
	}
	switch d := v.Const.Data.(type) {
	case []float32:
		return int64(d[0]), d[0] == float32(int64(d[0]))
	case []float64:
		return int64(d[0]), d[0] == float64(int64(d[0]))
	case []int64:
		return d[0], true
	case []int32:
		return int64(d[0]), true
	case []uint8:
		return int64(d[0]), true
	case []int8:
		return int64(d[0]), true
	}
	return 0, false
}

// countsUp is the number of elements of v, if these are known to be 0, 1, 2, …, and more than one.
func countsUp(v *ir.Value) (int64, bool) {
	if v == nil {
		return 0, false
	}
	if v.Def != nil && (v.Def.Is("Range") || v.Def.Is("Unsqueeze") || v.Def.Is("Cast") || v.Def.Is("Reshape")) {
		if !v.Def.Is("Range") {
			return countsUp(v.Def.Inputs[0])
		}
		first, ok := wholeConst(v.Def.Inputs[0])
		n, known := extentOf(v, 0)
		return n, ok && first == 0 && known && n > 1
	}
	if v.Const == nil {
		return 0, false
	}
	data, ok := v.Const.Data.([]int64)
	for i, x := range data {
		ok = ok && x == int64(i)
	}
	return int64(len(data)), ok && len(data) > 1
}
