package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// foldConstants computes nodes whose inputs are constants. It also replaces small integer values whose elements shape
// inference knows (ir.Value.Elems) by constants: exporters compute these from Shape.
//
// Requires: types inferred. Leaves: no node with only constant inputs, except control flow, nodes whose results would
// exceed Options.FoldLimit, and nodes that the evaluator cannot compute, such as an integer division by zero. The
// latter fail when the model is run, as they would have without the pass.
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

// foldKnownElements folds a node if all elements of all its results are known constants. Of a node with others, such as
// a Split of a shape that is known in part, it replaces those results that are.
func (s *sweep) foldKnownElements(n *ir.Node) bool {
	results, all, used := make([]*ir.Tensor, len(n.Outputs)), len(n.Outputs) > 0, false
	for i, v := range n.Outputs {
		if v == nil {
			continue
		}
		results[i] = knownTensor(v)
		all, used = all && results[i] != nil, used || results[i] != nil && s.uses[v] > 0
	}
	if all {
		s.fold(results)
		return true
	}
	if used {
		s.foldSome(n, results)
	}
	return false
}

// foldSome makes constants of the results of n that are known and that nodes use.
func (s *sweep) foldSome(n *ir.Node, results []*ir.Tensor) {
	n.Outputs = slices.Clone(n.Outputs)
	for i, v := range n.Outputs {
		if v == nil || results[i] == nil || s.uses[v] == 0 || s.output[v] {
			continue
		}
		n.Outputs[i] = &ir.Value{Name: s.c.names.Fresh(v.Name), DType: v.DType, Shape: v.Shape, Def: n}
		v.Def, v.Const, v.Elems = nil, results[i], nil
		s.g.Consts = append(s.g.Consts, v)
		s.changed = true
	}
}

// knownTensor makes a tensor of v's known elements. It is nil if one of them is not a known constant.
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
		return nil // an element is out of the range of v's type: there the computation wraps, and Elems do not
	}
	return convert(t, v.DType)
}

// foldable computes n's results if n may be folded, and otherwise returns nil.
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

// foldLimit returns how many bytes n's results may have, and how many bytes of n's inputs are freed because they have
// no other use. The limit for each node is relative to its inputs; so there is also a budget for the whole run, which
// keeps a chain of nodes from doubling a constant again and again.
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

// fits reports whether the sizes of n's results are known, and their sum is at most limit bytes.
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
