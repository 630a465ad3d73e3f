package tails

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Plain is a group whose kernel takes no functors. Prologues are carried out before it by maps of their own; the
// epilogue by a map after it.
type Plain struct {
	Group *build.Group
	Node  *ir.Node
	Ins   []roperator.View // of the anchor's inputs after their prologues; Buf is nil where absent
	Outs  []roperator.View // where the kernel writes; Buf is nil for outputs nobody asked for
}

// NewPlain carries out the prologues, and decides where the kernel writes.
func NewPlain(b *build.Builder, g *build.Group) (*Plain, error) {
	p := &Plain{Group: g, Node: g.Anchor}
	for i, v := range g.Inputs {
		if v == nil {
			p.Ins = append(p.Ins, roperator.View{})
			continue
		}
		in, err := elementwise.Mapped(b, g.Prologue[i], v)
		if err != nil {
			return nil, err
		}
		p.Ins = append(p.Ins, in)
	}
	if g.Epilogue != nil {
		result := g.Anchor.Outputs[0]
		p.Outs = []roperator.View{b.Temp("plain", result.DType, b.Extents(result, build.ForTiles))}
		return p, nil
	}
	for _, v := range g.Outputs {
		if v == nil {
			p.Outs = append(p.Outs, roperator.View{})
			continue
		}
		p.Outs = append(p.Outs, b.Out(v))
	}
	return p, nil
}

// Has reports whether input i is there.
func (p *Plain) Has(i int) bool { return i < len(p.Ins) && p.Ins[i].Buf != nil }

// Out is the view of output 0, which the kernel must fill.
func (p *Plain) Out() roperator.View { return p.Outs[0] }

// Empty reports whether there is nothing to compute.
func (p *Plain) Empty() bool { return p.Outs[0].Count() == 0 }

// Finish adds the map that applies the epilogue.
func (p *Plain) Finish(b *build.Builder) error {
	g := p.Group
	if g.Epilogue == nil {
		return nil
	}
	leaves := []roperator.View{p.Outs[0]}
	for _, v := range g.Extra {
		leaves = append(leaves, b.In(v))
	}
	return elementwise.Add(b, elementwise.Map{Kind: g.Kind(), Outs: []roperator.View{b.Out(g.Outputs[0])},
		Roots: []*functor.Expr{g.Epilogue}, Leaves: leaves})
}
