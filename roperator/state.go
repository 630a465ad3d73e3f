package roperator

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/ir/axes"
)

// StateText says of an output that is a state what it is: its input, its dims, and how far it can grow.
func (p Port) StateText(ranges []axes.Range) string {
	s := p.State
	dims := make([]string, len(s.Axes))
	room := ""
	for d, a := range s.Axes {
		dims[d] = a.Text(ranges)
		if s.Grows >= 0 && a.Has(s.Grows) {
			room = fmt.Sprintf(", which grows in place to %d at most", p.Dims[d]-1)
		}
	}
	return fmt.Sprintf("%s %v[%s]%s, for the next run from %s", s.Input, p.DType, strings.Join(dims, ","), room, p.Name)
}

// StateTexts are those of all states.
func (g *Graph) StateTexts() []string {
	var out []string
	for _, p := range g.Outputs {
		if p.State != nil {
			out = append(out, p.StateText(g.Ranges))
		}
	}
	return out
}
