package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// sharedHeads makes n attention with heads of keys and values that are repeated for groups of query heads: the groups
// become an axis of q, over which k and v broadcast. It reports whether they are repeated. in are q, k, v and the mask.
//
//	k[B,K,L,D] → Unsqueeze → Expand [B,K,G,L,D] → Reshape [B,K·G,L,D]
//	becomes  Reshape(Attention(q as [B,K,G,Lq,D], k as [B,K,1,L,D], v as [B,K,1,L,Dv]))
func (s *sweep) sharedHeads(n *ir.Node, in []*ir.Value, attrs ir.Attrs, m *attentionMatch) bool {
	k, groupsK, nodesK := repeatedHeads(in[1])
	v, groupsV, nodesV := repeatedHeads(in[2])
	shape, ok := n.Outputs[0].Shape.Consts()
	if k == nil || v == nil || groupsK != groupsV || !ok || !k.Shape[1].Equal(v.Shape[1]) {
		return false
	}
	m.absorbed = append(append(m.absorbed, nodesK...), nodesV...)
	heads, group := shape[1]/groupsK, groupsK
	split := func(v *ir.Value) *ir.Value { // the axis of heads, which is the third from behind, in two
		dims := v.Shape.MustConsts()
		at := len(dims) - 3
		if at < 0 {
			return v
		}
		two := []int64{heads, group}
		if dims[at] == 1 {
			two = []int64{1, 1}
		}
		return s.reshaped(m, "Reshape", v, slices.Concat(dims[:at], two, dims[at+1:]))
	}
	args := []*ir.Value{split(in[0]), k, v}
	if len(in) > 3 {
		if _, ok := in[3].Shape.Consts(); !ok {
			return false
		}
		args = append(args, split(in[3]))
	}
	grouped := slices.Concat(shape[:1], []int64{heads, group}, shape[2:])
	y := s.add("Attention", attrs, mergeOrigins(append([]*ir.Node{n}, m.absorbed...)...), n.Outputs[0].DType,
		ir.Dims(grouped...), n.Outputs[0].Name+".heads", args...)
	y.Def.Domain = ir.InternalDomain
	back := s.constant(n.Outputs[0].Name+".shape", ir.FromSlice(ir.Int64, shape, int64(len(shape))))
	s.become("Reshape", nil, []*ir.Value{y, back}, m.absorbed...)
	return true
}

// repeatedHeads matches v[B,K·G,L,D] = Reshape(Expand(x)), where x is [B,K,1,L,D] and is expanded to G groups. It is nil
// if v has another form.
func repeatedHeads(v *ir.Value) (x *ir.Value, groups int64, nodes []*ir.Node) {
	reshape := definedBy(v, "Reshape")
	if reshape == nil {
		return nil, 0, nil
	}
	expand := definedBy(reshape.Inputs[0], "Expand")
	if expand == nil {
		return nil, 0, nil
	}
	x = expand.Inputs[0]
	from, ok := x.Shape.Consts()
	to, ok2 := expand.Outputs[0].Shape.Consts()
	dims, ok3 := v.Shape.Consts()
	const heads, group = 1, 2 // axes
	if !ok || !ok2 || !ok3 || len(from) != 5 || len(to) != 5 || len(dims) != 4 || from[group] != 1 || to[group] < 2 {
		return nil, 0, nil
	}
	same := slices.Clone(from)
	same[group] = to[group]
	joined := []int64{to[0], to[heads] * to[group], to[3], to[4]}
	if !slices.Equal(same, to) || !slices.Equal(joined, dims) {
		return nil, 0, nil
	}
	return x, to[group], []*ir.Node{expand, reshape}
}
