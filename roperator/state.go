package roperator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir/axes"
)

// StateText says of an output that is a state what it is: its input, its dims, and how far it can grow. Where the program
// repeats, a run leaves no states behind.
func (p Port) StateText(ranges []axes.Range, repeats bool) string {
	s := p.State
	dims := make([]string, len(s.Axes))
	room := ""
	for d, a := range s.Axes {
		dims[d] = a.Text(ranges)
		if s.Grows >= 0 && a.Has(s.Grows) {
			room = fmt.Sprintf(", which grows in place to %d at most", p.Dims[d]-1)
		}
	}
	next := ", for the next run from " + p.Name
	if repeats {
		next = " in each run"
	}
	return fmt.Sprintf("%s %v[%s]%s%s", s.Input, p.DType, strings.Join(dims, ","), room, next)
}

// Repeats reports whether a run of the program is several runs, one behind another (State.Repeats).
func (g *Graph) Repeats() bool {
	return slices.ContainsFunc(g.Outputs, func(p Port) bool { return p.State != nil && p.State.Repeats })
}

// StateTexts are those of all states that the graph's model has.
func (g *Graph) StateTexts() []string {
	var out []string
	repeats := g.Repeats()
	for _, p := range g.Outputs {
		if p.State != nil && (!repeats || p.State.Grows >= 0) {
			out = append(out, p.StateText(g.Ranges, repeats))
		}
	}
	return out
}
