package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// foldConstants computes nodes whose inputs are constants, and replaces small integer values whose
// elements shape inference knows (what exporters compute from Shape) by constants.
//
// Requires: InferShapes done, for known elements. Leaves: no node with only constant inputs, except
// control flow, nodes whose result would exceed Options.FoldLimit, and nodes that fail to compute,
// which are left to fail where they would have.
func foldConstants(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		if s.foldKnownElements(n) {
			return
		}
		if results := s.foldable(n); results != nil {
			s.fold(results)
		}
	}), nil
}

// foldKnownElements folds a node all of whose results have constant Elems.
func (s *sweep) foldKnownElements(n *ir.Node) bool {
	results := make([]*ir.Tensor, len(n.Outputs))
	for i, v := range n.Outputs {
		if v == nil {
			continue
		}
		if results[i] = knownTensor(v); results[i] == nil {
			return false
		}
	}
	if len(n.Outputs) == 0 {
		return false
	}
	s.fold(results)
	return true
}

// knownTensor makes a constant of v's Elems, nil where one of them is not known.
func knownTensor(v *ir.Value) *ir.Tensor {
	dims, ok := v.Shape.Consts()
	if !ok || v.Elems == nil || int64(len(v.Elems)) != ir.Count(dims) || !v.DType.IsInt() {
		return nil
	}
	data := make([]int64, len(v.Elems))
	for i, e := range v.Elems {
		if data[i], ok = e.Const(); !ok {
			return nil
		}
	}
	t := ir.FromSlice(ir.Int64, data, dims...)
	back := convert(convert(t, v.DType), ir.Int64)
	if !slices.Equal(ir.Slice[int64](back), data) {
		return nil // an element does not fit v's type: the computation wraps, Elems do not
	}
	return convert(t, v.DType)
}

// foldable computes n when it may be folded, and returns nil otherwise.
func (s *sweep) foldable(n *ir.Node) []*ir.Tensor {
	op := ir.LookupOp(n.Domain, n.Op)
	if op == nil || n.Domain != "" || op.Kind == ir.KindControl || !eval.Supports(n.Domain, n.Op) {
		return nil
	}
	in := make([]*ir.Tensor, len(n.Inputs))
	for i, v := range n.Inputs {
		if v == nil {
			continue
		}
		if in[i] = v.Const; in[i] == nil {
			return nil
		}
	}
	limit, freed := s.foldLimit(n)
	if !fits(n, limit) {
		return nil
	}
	results, err := eval.NodeWith(n, in, eval.Options{MaxBytes: limit})
	if err != nil {
		return nil
	}
	s.c.foldBudget += freed
	for _, t := range results {
		if t != nil {
			s.c.foldBudget -= t.Bytes()
		}
	}
	return results
}

// foldLimit returns how many bytes n's results may have, and how many its inputs give back because
// they go away with n. The budget of the run keeps chains of nodes from doubling constants over and over.
func (s *sweep) foldLimit(n *ir.Node) (limit, freed int64) {
	limit = s.c.Opts.FoldLimit
	for i, v := range n.Inputs {
		if v == nil || slices.Contains(n.Inputs[:i], v) {
			continue
		}
		limit += v.Const.Bytes()
		if s.uses[v] == 1 {
			freed += v.Const.Bytes()
		}
	}
	return min(limit, s.c.foldBudget+freed), freed
}

// fits reports whether the results' sizes are known and, together, within limit bytes.
func fits(n *ir.Node, limit int64) bool {
	total := int64(0)
	for _, v := range n.Outputs {
		if v == nil {
			continue
		}
		dims, ok := v.Shape.Consts()
		if !ok {
			return false
		}
		if total += ir.Count(dims) * int64(v.DType.Size()); total > limit {
			return false
		}
	}
	return true
}
