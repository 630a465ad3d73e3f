package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// mostSqueezed is how many units squeeze and excitation may have. Its rKernels keep them in shared memory.
const mostSqueezed = 1024

// fuseSqueezeExcite joins the operators of squeeze and excitation into a Fused node with the anchor SqueezeExcite:
// channels that are multiplied by scales computed from the means of all channels.
//
//	x ─┬─▶ mean of each channel ─▶ Conv 1×1 ─▶ inner ─▶ Conv 1×1 ─▶ gate ─▶ Mul ─▶
//	   └──────────────────────────────────────────────────────────────────────▲
//
// inner and gate are elementwise operators with no other tensor. Among them may be some that use a value twice, as
// v·sigmoid(v) does.
//
// Requires: constant shapes; biases folded into the convolutions. Leaves: no convolution of the pattern outside of such
// a node, if the values in between have no other users.
func fuseSqueezeExcite(c *Context, g *ir.Graph) (bool, error) {
	f := newFuser(c, g)
	gone := map[*ir.Node]bool{}
	made := map[*ir.Node]*ir.Node{}
	for _, n := range g.Nodes {
		if !n.Is("Mul") || n.Outputs[0].DType != ir.Float32 || !constantShapes(n) {
			continue
		}
		for i := range n.Inputs {
			nodes := f.squeezeExcite(n, n.Inputs[i], n.Inputs[1-i])
			if nodes == nil {
				continue
			}
			node := c.fused("SqueezeExcite", f.inOrder(nodes), n.Outputs, func(v *ir.Value) bool {
				return isScalarConst(v) || v.Const != nil && v.DType == ir.Int64
			})
			node.Name = n.Name
			made[n] = node
			for _, m := range nodes {
				gone[m] = true
			}
			break
		}
	}
	putInPlace(g, func(n *ir.Node) *ir.Node { return made[n] }, gone)
	return len(made) > 0, nil
}

// squeezeExcite matches the product n of x and its scales, and returns all nodes of the pattern; nil if it is another
// product.
func (f *fuser) squeezeExcite(n *ir.Node, x, scales *ir.Value) []*ir.Node {
	last, gate := f.activated(scales)
	if last == nil || !x.Shape.Equal(n.Outputs[0].Shape) {
		return nil
	}
	first, inner := f.activated(last.Inputs[0])
	if first == nil || first.Outputs[0].Shape.MustConsts()[1] > mostSqueezed {
		return nil
	}
	mean := channelMean(first.Inputs[0], x)
	if mean == nil {
		return nil
	}
	nodes := slices.Concat([]*ir.Node{mean, first, last, n}, inner, gate)
	set := map[*ir.Node]bool{}
	for _, m := range nodes {
		set[m] = true
	}
	if leaving := f.leaving(nodes, set); len(leaving) != 1 || leaving[0] != n.Outputs[0] {
		return nil
	}
	return nodes
}

// activated matches v = activation(conv(…)), where conv is a 1×1 convolution of single positions with constant weights.
// The activation may be nothing.
func (f *fuser) activated(v *ir.Value) (conv *ir.Node, activation []*ir.Node) {
	seen := map[*ir.Node]bool{}
	for queue := []*ir.Value{v}; len(queue) > 0; queue = queue[1:] {
		n := queue[0].Def
		switch {
		case isScalarConst(queue[0]) || n != nil && seen[n]:
		case n == nil:
			return nil, nil
		case n.Is("Conv"):
			if conv != nil && conv != n || !isDense(n) {
				return nil, nil
			}
			conv = n
		case isElementwise(n) && len(n.Outputs) == 1 && sameType(n.Outputs[0], v) && v.DType == ir.Float32:
			seen[n] = true
			activation = append(activation, n)
			for _, in := range n.Inputs {
				if in != nil {
					queue = append(queue, in)
				}
			}
		default:
			return nil, nil
		}
	}
	return conv, activation
}

// isDense reports whether a convolution multiplies the channels of single positions by a constant matrix.
func isDense(n *ir.Node) bool {
	w := n.Inputs[1]
	if n.Int("group", 1) != 1 || constOf(w) == nil || n.Input(2) != nil && constOf(n.Inputs[2]) == nil {
		return false
	}
	for _, shape := range []ir.Shape{n.Inputs[0].Shape[2:], n.Outputs[0].Shape[2:], w.Shape[2:]} {
		if dims, ok := shape.Consts(); !ok || ir.Count(dims) != 1 {
			return false
		}
	}
	return true
}

// channelMean returns the node that computes v as the mean of each channel of x, with positions of extent 1.
func channelMean(v, x *ir.Value) *ir.Node {
	if n := definedBy(v, "GlobalAveragePool"); n != nil && n.Inputs[0] == x {
		return n
	}
	n := definedBy(v, "ReduceMean")
	if n == nil || n.Inputs[0] != x {
		return nil
	}
	if first, ok := trailingMean(v, len(x.Shape)); !ok || first != 2 {
		return nil
	}
	return n
}
