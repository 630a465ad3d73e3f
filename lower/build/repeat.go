package build

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/roperator"
)

// loops is what the Builder knows of the loops of the graph (ir/ops_repeat.go).
type loops struct {
	of   map[*ir.Node]int                 // the nodes of loops, with both ends, and the numbers of their loops
	end  map[*ir.Node]*ir.Node            // of the nodes that begin loops
	kept map[*ir.Node][]*roperator.Buffer // what turns leave to the next one, by the nodes that begin loops
	now  int                              // the loop that rOperators are added to; 0: none
}

// SetLoops finds the loops of the graph. It comes before all else.
func (b *Builder) SetLoops(g *ir.Graph) {
	b.loops = loops{of: map[*ir.Node]int{}, end: map[*ir.Node]*ir.Node{}, kept: map[*ir.Node][]*roperator.Buffer{}}
	for _, r := range ir.Repeats(g) {
		b.graph.Loops = append(b.graph.Loops, roperator.Loop{Trips: r.Trips()})
		for _, n := range append([]*ir.Node{r.Begin, r.End}, r.Body...) {
			b.loops.of[n] = len(b.graph.Loops)
		}
		b.loops.end[r.Begin] = r.End
		for i := range int(r.End.Int("carried", 0)) {
			v := r.End.Inputs[i+1]
			buf := b.NewBuffer(v.Name+".kept", roperator.Arena, v.DType, b.Extents(v, ForBuffer))
			buf.State = true
			b.loops.kept[r.Begin] = append(b.loops.kept[r.Begin], buf)
		}
	}
}

// KeepTurn is where a turn of the loop that begins with a node leaves value i to the next one.
func (b *Builder) KeepTurn(begin *ir.Node, i int) roperator.View {
	v := b.loops.end[begin].Inputs[i+1]
	return roperator.Contiguous(b.loops.kept[begin][i], b.Extents(v, ForBuffer))
}

// TurnIsRead reports whether a node of the loop reads the number of the turn, beside the one that ends it.
func (b *Builder) TurnIsRead(begin *ir.Node) bool {
	for n := range b.loops.of {
		if b.loops.end[begin] == n {
			continue
		}
		for _, v := range n.Inputs {
			if v != nil && v == begin.Outputs[0] {
				return true
			}
		}
	}
	return false
}

// Behind adds the rOperators that f makes behind the loop that a node ends, rather than to it.
func (b *Builder) Behind(end *ir.Node, f func()) {
	b.loops.now = 0
	f()
	b.loops.now = b.loops.of[end]
}
