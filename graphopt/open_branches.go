package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// branches puts the nodes of both branches of an If in its place, as selectBranches does, also where results differ in
// extents: a decoder returns longer caches in one branch than in the other. Then a run finds the extent, and takes as many
// elements of each result; of the shorter one, the last element stands for those that it has not.
//
//	%n = Where(%c, 8, 48)          the extents of x and y, or what a run is told of them
//	%i = Slice({0, 1, …, 47}, 0, %n)
//	z = rammer.Select(%c, Gather(x, Min(%i, 7)), Gather(y, Min(%i, 47)))
//
// It returns whether there was such an If. Those stay of which a result's extents have no bound.
func (k *extentCounter) branches() (bool, error) {
	if k.narrowBranches() {
		if err := k.settle(); err != nil {
			return true, err
		}
	}
	return k.c.sweepOnce(k.g, func(s *sweep, n *ir.Node) {
		if !n.Is("If") || n.Inputs[0].Const != nil {
			return
		}
		then, other := n.Attrs["then_branch"].G, n.Attrs["else_branch"].G
		for i, x := range then.Outputs {
			if !k.eitherOf(x, other.Outputs[i]) {
				return
			}
		}
		condition := n.Inputs[0]
		s.adopt(n, then)
		s.adopt(n, other)
		for i, old := range n.Outputs {
			if old != nil {
				k.nodes = nil
				x, y := k.asLong(n, condition, then.Outputs[i], other.Outputs[i])
				s.nodes = append(s.nodes, k.nodes...)
				s.choose(n, old, condition, x, y)
			}
		}
		s.drop, k.made = true, true
	}), nil
}

// allBranches puts branches in the place of all Ifs, also of those inside of others.
func (k *extentCounter) allBranches() error {
	for {
		changed, err := k.branches()
		if !changed || err != nil {
			return err
		}
		if err := k.settle(); err != nil {
			return err
		}
	}
}

// eitherOf reports whether one of two values can be selected, once they have the same extents.
func (k *extentCounter) eitherOf(x, y *ir.Value) bool {
	if x.DType != y.DType || x.DType == ir.String || x.DType.IsNarrow() || len(x.Shape) != len(y.Shape) ||
		!k.knownShape(x.Shape) || !k.knownShape(y.Shape) {
		return false
	}
	for d := range x.Shape {
		if x.Shape[d].Equal(y.Shape[d]) {
			continue
		}
		for _, v := range []*ir.Value{x, y} {
			if most, ok := k.bound(v.Shape[d]); !ok || most < 1 && v.Const == nil {
				return false
			}
		}
	}
	return true
}

// asLong gives two values the extents that the one has which the condition selects.
func (k *extentCounter) asLong(n *ir.Node, condition, x, y *ir.Value) (*ir.Value, *ir.Value) {
	shapes := [2]ir.Shape{x.Shape, y.Shape}
	out := [2]*ir.Value{k.someElement(x), k.someElement(y)}
	for d := range x.Shape {
		if shapes[0][d].Equal(shapes[1][d]) {
			continue
		}
		list := k.eitherList(n, condition, shapes[0][d], shapes[1][d])
		for i, v := range out {
			most, _ := k.bound(shapes[i][d])
			places := k.op(n, "Min", nil, list, k.ints(max(most, 1)-1))
			out[i] = k.op(n, "Gather", axisAttr(d), v, places)
		}
	}
	return out[0], out[1]
}

// someElement is v, or where v is a constant without elements, one that has some to stand for them.
func (k *extentCounter) someElement(v *ir.Value) *ir.Value {
	if v.Const == nil || v.Const.Len() > 0 {
		return v
	}
	dims := slices.Clone(v.Const.Dims)
	for d := range dims {
		dims[d] = max(dims[d], 1)
	}
	return k.constant(ir.NewTensor(v.DType, dims...))
}

// eitherList is the list of the numbers from 0 on that is as long as x where the condition holds, and otherwise as y.
func (k *extentCounter) eitherList(n *ir.Node, condition *ir.Value, x, y ir.Dim) *ir.Value {
	key := condition.Name + "?" + x.String() + ":" + y.String()
	if v := k.lists[key]; v != nil {
		return v
	}
	most, _ := k.bound(x)
	other, _ := k.bound(y)
	all := make([]int64, max(most, other))
	for i := range all {
		all[i] = int64(i)
	}
	end := k.op(n, "Where", nil, condition, k.expression(n, x), k.expression(n, y))
	end = k.op(n, "Reshape", nil, end, k.ints(1))
	list := k.op(n, "Slice", nil, k.ints(all...), k.ints(0), end, k.ints(0))
	k.lists[key] = list
	return list
}

// narrowBranches looks in branches for operands that are broadcast together and have different extents. The branch can run
// only where these are the same: one that takes no caches beside a mask of past + new tokens only where past is 0. So it
// takes of what is around it what there is then, and its shapes fit at all extents.
func (k *extentCounter) narrowBranches() bool {
	if k.open == nil {
		return false
	}
	changed := false
	for _, n := range k.g.Nodes {
		if !n.Is("If") || n.Inputs[0].Const != nil {
			continue
		}
		for _, branch := range n.Subgraphs() {
			if zero := k.zeroIn(branch); len(zero) > 0 && k.narrow(n, branch, zero) {
				changed = true
			}
		}
	}
	return changed
}

// zeroIn are the symbols that must be 0 for the branch to run.
func (k *extentCounter) zeroIn(branch *ir.Graph) map[string]int64 {
	zero := map[string]int64{}
	for _, n := range branch.Nodes {
		if op := ir.LookupOp(n.Domain, n.Op); op == nil || op.Kind != ir.KindElementwise {
			continue
		}
		for i, x := range n.Inputs {
			for _, y := range n.Inputs[:i] {
				if x == nil || y == nil {
					continue
				}
				for d := 1; d <= min(len(x.Shape), len(y.Shape)); d++ {
					k.differBy(x.Shape[len(x.Shape)-d], y.Shape[len(y.Shape)-d], zero)
				}
			}
		}
	}
	return zero
}

// differBy notes the symbol by which two extents differ, if one of them is the other one and the symbol.
func (k *extentCounter) differBy(a, b ir.Dim, zero map[string]int64) {
	if !k.known(a) || !k.known(b) || a.Equal(ir.D(1)) || b.Equal(ir.D(1)) {
		return
	}
	for _, d := range []ir.Dim{a.Sub(b), b.Sub(a)} {
		if name, ok := d.Symbol(); ok && k.open[name].Lo == 0 {
			zero[name] = 0
		}
	}
}

// narrow lets a branch of n take no more of the values around it than they have where the symbols are 0.
func (k *extentCounter) narrow(n *ir.Node, branch *ir.Graph, zero map[string]int64) bool {
	inside := map[*ir.Value]bool{}
	ir.EachGraph(branch, func(g *ir.Graph) {
		for _, v := range slices.Concat(g.Inputs, g.Consts) {
			inside[v] = true
		}
		for _, m := range g.Nodes {
			for _, v := range m.Outputs {
				inside[v] = true
			}
		}
	})
	k.nodes = nil
	by := map[*ir.Value]*ir.Value{}
	for v := range ir.Uses(branch) {
		if inside[v] || by[v] != nil || !k.knownShape(v.Shape) {
			continue
		}
		var axes []int64
		var ends []*ir.Value
		for d, extent := range v.Shape {
			if less := extent.Bind(zero); !less.Equal(extent) {
				axes, ends = append(axes, int64(d)), append(ends, k.shapeNumber(n, less))
			}
		}
		if len(axes) > 0 {
			end := ends[0]
			if len(ends) > 1 {
				end = k.op(n, "Concat", axisAttr(0), ends...)
			}
			by[v] = k.op(n, "Slice", nil, v, k.ints(make([]int64, len(axes))...), end, k.ints(axes...))
		}
	}
	ir.ReplaceMany(branch, by)
	branch.Nodes = append(k.nodes, branch.Nodes...)
	return len(by) > 0
}
