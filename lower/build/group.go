package build

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels/functor"
)

// AnchorType is the element type of the anchor's result, before the epilogue.
func AnchorType(g *Group) ir.DType { return g.Anchor.Outputs[0].DType }

func Abs(x int64) int64 { return max(x, -x) }

// Group is what one rOperator computes: an anchor node with what fusion put around it. Without
// fusion Node is Anchor, and prologue and epilogue are empty.
type Group struct {
	Node   *ir.Node // the node of the graph: a Fused node, or the anchor itself
	Anchor *ir.Node // nil for a fused map
	// Inputs are the values (outside the body) that feed the anchor's inputs, nil where absent.
	Inputs []*ir.Value
	// Prologue is, per anchor input, what is done to each element when it is loaded (leaf 0); nil for nothing.
	Prologue []*functor.Expr
	// Epilogue computes the output's element from leaf 0, the anchor's result, and from leaves 1…,
	// elements of Extra broadcast to the output's shape. nil for nothing.
	Epilogue *functor.Expr
	Extra    []*ir.Value
	// Maps are the outputs of a fused map (Anchor nil) over Extra (leaf i is Extra[i]).
	Maps    []*functor.Expr
	Outputs []*ir.Value // of Node
}

// NewGroup reads a node's structure: which node anchors it and which elementwise chains surround that.
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
	resolve := func(vs []*ir.Value) []*ir.Value {
		out := make([]*ir.Value, len(vs))
		for i, v := range vs {
			if o, ok := outer[v]; ok {
				out[i] = o
			} else {
				out[i] = v // a constant of the body
			}
		}
		return out
	}
	g := &Group{Node: n, Outputs: n.Outputs}
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

// Kind spells the operators of the group, e.g. "Conv+Add+Relu".
func (g *Group) Kind() string {
	if !g.Node.IsInternal("Fused") {
		return g.Node.Op
	}
	s := ""
	for i, m := range g.Node.Attrs["body"].G.Nodes {
		if i > 0 {
			s += "+"
		}
		s += m.Op
	}
	return s
}
