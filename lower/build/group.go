package build

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
)

// AnchorType is the element type of the anchor's result, before the epilogue.
func AnchorType(g *Group) ir.DType { return g.Anchor.Outputs[0].DType }

func Abs(x int64) int64 { return max(x, -x) }

// Group is what one call of a lowering carries out: an anchor and the elementwise operators that were fused with it.
//
//	input 0 ─▶ prologue 0 ─▶ ┌────────┐
//	input 1 ─▶ prologue 1 ─▶ │ anchor │ ─▶ epilogue ─▶ output 0
//	                         └────────┘       ▲
//	                                        extra
//
// Without fusion Node is Anchor, and there is no prologue and no epilogue. A group of elementwise operators alone, a
// fused map, has no anchor.
type Group struct {
	Node   *ir.Node // the node of the graph: a Fused node, or the anchor itself
	Anchor *ir.Node // nil for a fused map
	// Inputs are the values of the graph from which the anchor's inputs are computed, nil for absent ones.
	Inputs []*ir.Value
	// Prologue has, for each input of the anchor, what is done to its elements (leaf 0) when they are loaded, or nil.
	Prologue []*functor.Expr
	// Epilogue computes an element of the output from the anchor's result (leaf 0) and from elements of Extra (leaves
	// 1…), which are broadcast to the output's shape. It is nil if there is none.
	Epilogue *functor.Expr
	Extra    []*ir.Value
	// Maps has the outputs of a fused map. Leaf i stands for Extra[i].
	Maps    []*functor.Expr
	Outputs []*ir.Value // of Node
	// Compound is the anchor of a Fused node that stands for several operators (ir.Compounds), otherwise empty. The
	// lowering then reads the body itself, and Outer says what the values are that come from outside.
	Compound string
	outer    map[*ir.Value]*ir.Value
}

// Outer is the value of the graph that stands behind an input of a fused body; other values of the body, such as its
// constants, are themselves.
func (g *Group) Outer(v *ir.Value) *ir.Value {
	if o, ok := g.outer[v]; ok {
		return o
	}
	return v
}

// NewGroup finds the anchor of a node, and the elementwise operators before and after it.
func NewGroup(n *ir.Node) (*Group, error) {
	if n.IsInternal("Fused") {
		return fusedGroup(n)
	}
	if isElementwise(n) {
		eb := functor.NewReader()
		for _, v := range functor.Operands(n) { // it ends here: what computes the inputs are other groups
			if v != nil && v.Def != nil {
				eb.Leaf(v)
			}
		}
		g := &Group{Node: n, Outputs: n.Outputs}
		for _, v := range n.Outputs {
			g.Maps = append(g.Maps, eb.Expr(v))
		}
		g.Extra = eb.Leaves
		return g, nil
	}
	g := &Group{Node: n, Anchor: n, Inputs: n.Inputs, Outputs: n.Outputs}
	g.Prologue = make([]*functor.Expr, len(n.Inputs))
	return g, nil
}

func isElementwise(n *ir.Node) bool {
	op := ir.LookupOp(n.Domain, n.Op)
	return op != nil && op.Kind == ir.KindElementwise
}

func fusedGroup(n *ir.Node) (*Group, error) {
	body := n.Attrs["body"].G
	outer := map[*ir.Value]*ir.Value{}
	for i, v := range body.Inputs {
		outer[v] = n.Inputs[i]
	}
	g := &Group{Node: n, Outputs: n.Outputs, outer: outer}
	if anchor := n.Str("anchor", ""); ir.IsCompound(anchor) {
		g.Compound, g.Inputs = anchor, n.Inputs
		return g, nil
	}
	resolve := func(vs []*ir.Value) []*ir.Value {
		out := make([]*ir.Value, len(vs))
		for i, v := range vs {
			out[i] = g.Outer(v)
		}
		return out
	}
	for _, m := range body.Nodes {
		if isElementwise(m) {
			continue
		}
		if g.Anchor != nil {
			return nil, fmt.Errorf("the fused body has two anchors, %s and %s", g.Anchor.Op, m.Op)
		}
		g.Anchor = m
	}
	if g.Anchor == nil {
		eb := functor.NewReader()
		for _, v := range body.Outputs {
			g.Maps = append(g.Maps, eb.Expr(v))
		}
		g.Extra = resolve(eb.Leaves)
		return g, nil
	}
	if err := g.readPrologue(resolve); err != nil {
		return nil, err
	}
	result := g.Anchor.Outputs[0]
	if len(body.Outputs) == 1 && body.Outputs[0] != result {
		eb := functor.NewReader(result)
		g.Epilogue = eb.Expr(body.Outputs[0])
		g.Extra = resolve(eb.Leaves[1:])
	}
	return g, nil
}

func (g *Group) readPrologue(resolve func([]*ir.Value) []*ir.Value) error {
	g.Inputs = make([]*ir.Value, len(g.Anchor.Inputs))
	g.Prologue = make([]*functor.Expr, len(g.Anchor.Inputs))
	for i, v := range g.Anchor.Inputs {
		if v == nil {
			continue
		}
		if v.Def == nil {
			g.Inputs[i] = resolve([]*ir.Value{v})[0]
			continue
		}
		eb := functor.NewReader()
		e := eb.Expr(v)
		if len(eb.Leaves) != 1 {
			return fmt.Errorf("the prologue of %s input %d reads %d values, want 1", g.Anchor.Op, i, len(eb.Leaves))
		}
		g.Prologue[i] = e
		g.Inputs[i] = resolve(eb.Leaves)[0]
	}
	return nil
}

// Kind lists the operators of the group, such as "Conv+Add+Relu". Casts that no node of the model asks for, because they
// only say how values are stored, do not count.
func (g *Group) Kind() string {
	if !g.Node.IsInternal("Fused") {
		return g.Node.Op
	}
	var ops, casts []string
	for _, m := range g.Node.Attrs["body"].G.Nodes {
		if m.Is("Cast") && len(m.Origins) == 0 {
			casts = append(casts, m.Op)
		} else {
			ops = append(ops, m.Op)
		}
	}
	if ops == nil {
		ops = casts
	}
	return strings.Join(ops, "+")
}

// Kernel is the rKernel of that name, nil if the catalogue has none.
func (b *Builder) Kernel(name string) *rkernels.Kernel {
	k, _ := b.kernels.Find(name)
	return k
}
