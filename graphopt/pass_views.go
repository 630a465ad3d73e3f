package graphopt

import "github.com/rammerc/rammerc/ir"

// extractViews turns operators that only rearrange elements into the internal operator View, and joins a View of a View
// to one View.
//
// Requires: constant shapes; constant starts, axes and indices. Leaves: every Reshape, Transpose, Slice, Split,
// Squeeze, Unsqueeze, Flatten, Expand, and Gather with indices in an arithmetic progression, as a View of a value that
// is not a View. An operator that no strided window can express stays as it is, and will be a copy.
func extractViews(c *Context, g *ir.Graph) (bool, error) {
	var out []*ir.Node
	changed := false
	for _, n := range g.Nodes {
		if !constantShapes(n) {
			out = append(out, n)
			continue
		}
		nodes, ok := asViews(c, g, n)
		changed = changed || ok
		out = append(out, nodes...)
	}
	g.Nodes = out
	return dropIdentityViews(g) || changed, nil
}

// windows computes the windows that a node's outputs show, given the window in that its first input shows: both are
// windows on the same value. ok is false if strides cannot express them.
type windows func(n *ir.Node, in ir.Strided) (out []ir.Strided, ok bool)

var viewOps = map[string]windows{
	"Reshape": reshapeWindow, "Flatten": reshapeWindow, "Squeeze": reshapeWindow, "Unsqueeze": reshapeWindow,
	"Transpose": transposeWindow, "Slice": sliceWindow, "Split": splitWindows, "Expand": expandWindow,
	"Gather": gatherWindow,
}

// asViews returns the nodes that replace n, and whether they differ from n.
func asViews(c *Context, g *ir.Graph, n *ir.Node) ([]*ir.Node, bool) {
	same := []*ir.Node{n}
	if len(n.Inputs) == 0 || n.Inputs[0] == nil || n.Inputs[0].Const != nil {
		return same, false
	}
	x := n.Inputs[0]
	root, base := x, ir.Dense(x.Shape.MustConsts())
	if x.Def != nil && x.Def.IsInternal("View") {
		root, base = x.Def.Inputs[0], ir.ViewOf(x.Def)
	}
	var list []ir.Strided
	ok := false
	switch f := viewOps[n.Op]; {
	case n.IsInternal("View"):
		if root == x {
			return same, false
		}
		var w ir.Strided
		w, ok = ir.ViewOf(n).Compose(base)
		list = []ir.Strided{w}
	case n.Domain == "" && f != nil:
		if list, ok = f(n, base); !ok && root != x { // a view of x is possible where x itself is copied first
			root = x
			list, ok = f(n, ir.Dense(x.Shape.MustConsts()))
		}
	}
	if !ok {
		return same, false
	}
	var out []*ir.Node
	for i, v := range n.Outputs {
		if v == nil {
			continue
		}
		m := newMaker(g, c.names, n)
		if root != x {
			m.origins = mergeOrigins(x.Def, n)
		}
		m.node("view", ir.InternalDomain, "View", viewAttrs(list[i].Offset, list[i].Shape, list[i].Strides),
			[]*ir.Value{root}, []*ir.Value{v})
		m.nodes[0].Name = n.Name
		out = append(out, m.nodes...)
	}
	return out, true
}

// dropIdentityViews removes views that show a whole value in its own shape, unless they are outputs.
func dropIdentityViews(g *ir.Graph) bool {
	outputs := map[*ir.Value]bool{}
	for _, v := range g.Outputs {
		outputs[v] = true
	}
	by := map[*ir.Value]*ir.Value{}
	var kept []*ir.Node
	for _, n := range g.Nodes {
		if isIdentityView(n) && !outputs[n.Outputs[0]] {
			x := n.Inputs[0]
			if y, ok := by[x]; ok {
				x = y
			}
			by[n.Outputs[0]] = x
			continue
		}
		kept = append(kept, n)
	}
	if len(by) == 0 {
		return false
	}
	g.Nodes = kept
	ir.ReplaceMany(g, by)
	return true
}

func isIdentityView(n *ir.Node) bool {
	if !n.IsInternal("View") {
		return false
	}
	v := ir.ViewOf(n)
	return v.Offset == 0 && v.IsDense() && n.Inputs[0].Shape.Equal(n.Outputs[0].Shape)
}

func reshapeWindow(n *ir.Node, in ir.Strided) ([]ir.Strided, bool) {
	w, ok := in.Reshape(n.Outputs[0].Shape.MustConsts())
	return []ir.Strided{w}, ok
}

func transposeWindow(n *ir.Node, in ir.Strided) ([]ir.Strided, bool) {
	perm := n.Ints("perm")
	if perm == nil {
		for i := range in.Shape {
			perm = append([]int64{int64(i)}, perm...)
		}
	}
	return []ir.Strided{in.Permute(perm)}, true
}

func expandWindow(n *ir.Node, in ir.Strided) ([]ir.Strided, bool) {
	return []ir.Strided{in.Broadcast(n.Outputs[0].Shape.MustConsts())}, true
}

func splitWindows(n *ir.Node, in ir.Strided) ([]ir.Strided, bool) {
	axis := normalAxis(n.Int("axis", 0), len(in.Shape))
	var out []ir.Strided
	at := int64(0)
	for _, v := range n.Outputs {
		if v == nil {
			return nil, false
		}
		size := v.Shape.MustConsts()[axis]
		out = append(out, in.Slice(axis, at, size, 1))
		at += size
	}
	return out, true
}

// sliceWindow resolves starts as ONNX does: negative ones count from the end, and all are clamped. The extents are
// those that inference has found for the output.
func sliceWindow(n *ir.Node, in ir.Strided) ([]ir.Strided, bool) {
	starts, ok := constInts(n.Input(1))
	if !ok {
		return nil, false
	}
	axes, steps := make([]int64, len(starts)), make([]int64, len(starts))
	for i := range starts {
		axes[i], steps[i] = int64(i), 1
	}
	for _, opt := range []struct {
		input int
		dst   *[]int64
	}{{3, &axes}, {4, &steps}} {
		if v := n.Input(opt.input); v != nil {
			if *opt.dst, ok = constInts(v); !ok {
				return nil, false
			}
		}
	}
	out := n.Outputs[0].Shape.MustConsts()
	for i, a := range axes {
		axis := normalAxis(a, len(in.Shape))
		size, start := in.Shape[axis], starts[i]
		if start < 0 {
			start += size
		}
		if steps[i] > 0 {
			start = min(max(start, 0), size)
		} else {
			start = min(max(start, 0), size-1)
		}
		in = in.Slice(axis, start, out[axis], steps[i])
	}
	return []ir.Strided{in}, true
}

// gatherWindow expresses a Gather whose indices are a scalar or an arithmetic progression.
func gatherWindow(n *ir.Node, in ir.Strided) ([]ir.Strided, bool) {
	idx, ok := constInts(n.Input(1))
	rank := len(n.Input(1).Shape)
	if !ok || rank > 1 || len(idx) == 0 {
		return nil, false
	}
	axis := normalAxis(n.Int("axis", 0), len(in.Shape))
	size := in.Shape[axis]
	for i, x := range idx {
		if x < 0 {
			idx[i] += size
		}
		if idx[i] < 0 || idx[i] >= size || i > 1 && idx[i]-idx[i-1] != idx[1]-idx[0] {
			return nil, false
		}
	}
	step := int64(1)
	if len(idx) > 1 {
		step = idx[1] - idx[0]
	}
	w := in.Slice(axis, idx[0], int64(len(idx)), step)
	if rank == 0 {
		w.Shape = append(w.Shape[:axis:axis], w.Shape[axis+1:]...)
		w.Strides = append(w.Strides[:axis:axis], w.Strides[axis+1:]...)
	}
	return []ir.Strided{w}, true
}

// constInts returns a copy of a constant integer tensor's elements.
func constInts(v *ir.Value) ([]int64, bool) {
	if v == nil || v.Const == nil {
		return nil, false
	}
	switch d := v.Const.Data.(type) {
	case []int64:
		return append([]int64{}, d...), true
	case []int32:
		out := make([]int64, len(d))
		for i, x := range d {
			out[i] = int64(x)
		}
		return out, true
	}
	return nil, false
}
