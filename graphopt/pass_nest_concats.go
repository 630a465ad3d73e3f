package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// nestConcats makes a Concat out of another one where all inputs of that are among its own, one behind the other:
//
//	s = Concat(a, b)   t = Concat(a, b, c)     becomes     s = Concat(a, b)   t = Concat(s, c)
//
// So layers that concatenate the results of all layers before them, as those of DenseNet do, need no copies: each result
// is written once, into the place of the longest Concat.
//
// Requires: views extracted. Leaves: Concat nodes with fewer inputs.
func nestConcats(_ *Context, g *ir.Graph) (bool, error) {
	var before []concatOf
	changed := false
	for _, n := range g.Nodes {
		if !n.Is("Concat") || !constantShapes(n) {
			continue
		}
		whole := concatOf{n, n.Int("axis", 0), slices.Clone(n.Inputs)}
		if whole.axis < 0 {
			whole.axis += int64(len(n.Outputs[0].Shape))
		}
		var best *concatOf
		for i := range before {
			if b := &before[i]; (best == nil || len(b.parts) > len(best.parts)) && whole.place(b) >= 0 {
				best = b
			}
		}
		if best != nil {
			at := whole.place(best)
			n.Inputs = slices.Concat(whole.parts[:at], best.node.Outputs[:1], whole.parts[at+len(best.parts):])
			changed = true
		}
		before = append(before, whole)
	}
	return changed, nil
}

// concatOf is a Concat with the inputs that it had.
type concatOf struct {
	node  *ir.Node
	axis  int64
	parts []*ir.Value
}

// place is where the parts of b are among those of c, beside others; -1 if they are not.
func (c *concatOf) place(b *concatOf) int {
	if b.axis != c.axis || len(b.parts) < 2 || len(b.parts) >= len(c.parts) {
		return -1
	}
	for at := range len(c.parts) - len(b.parts) + 1 {
		if slices.Equal(c.parts[at:at+len(b.parts)], b.parts) {
			return at
		}
	}
	return -1
}
