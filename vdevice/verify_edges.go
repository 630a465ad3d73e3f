package vdevice

import (
	"fmt"

	"github.com/rammerc/rammerc/internal/diag"
)

// ends checks the ends of a program's edges: they are of kinds that steps have, sorted, and lead to steps of other
// vEUs, or to meeting points, that are there. All later checks rely on it.
func (v *verifier) ends(p *Program) {
	points := make([]int, len(edgeRows))
	for k := range edgeRows {
		points[k] = edgeRows[k].meetings(p)
	}
	for veu, steps := range p.Steps {
		for o := range steps {
			here := At{int32(veu), int32(o)}
			v.endsOf(p, here, steps[o].In, true, points)
			v.endsOf(p, here, steps[o].Out, false, points)
		}
	}
}

// endsOf checks one side of a step; points is how many meeting points each kind has.
func (v *verifier) endsOf(p *Program, here At, edges []Edge, incoming bool, points []int) {
	for i, e := range edges {
		if int(e.Kind) >= len(edgeRows) || incoming && e.row().in == "" || !incoming && e.row().out == "" {
			v.l.Add(&diag.Diagnostic{ID: badWait, Message: fmt.Sprintf("%s has an edge of kind %d, which steps do not have there", stepName(p, here), e.Kind)})
			continue
		}
		why := ""
		switch {
		case e.row().meets && (e.VEU < 0 || int(e.VEU) >= points[e.Kind] || e.Order != 0):
			why = "which is not there"
		case e.row().meets:
		case !incoming && e.At != At{}:
			why = "but names a step"
		case incoming && !p.has(e.At):
			why = "which is not there"
		case incoming && e.VEU == here.VEU:
			why = "on its own vEU"
		}
		if why == "" && i > 0 && (compareEdges(edges[i-1], e) >= 0 || edges[i-1].Kind == e.Kind &&
			edges[i-1].VEU == e.VEU) {
			why = "out of order: edges are sorted, one for each vEU or meeting point"
		}
		if why != "" {
			v.l.Add(&diag.Diagnostic{ID: e.row().finding,
				Message: fmt.Sprintf("%s %s %s, %s", stepName(p, here), verbOf(e, incoming), e.end(), why)})
		}
	}
}

// verbOf is what a step does at its end of an edge.
func verbOf(e Edge, incoming bool) string {
	switch {
	case !incoming:
		return "announces itself by"
	case e.row().knows == completion:
		return "waits for"
	}
	return "follows"
}

// end is how messages speak of what is at the edge's other end.
func (e Edge) end() string {
	if e.row().meets {
		return fmt.Sprintf("%s %d", e.row().name, e.Number())
	}
	return fmt.Sprintf("%v by a %s edge", e.At, e.row().name)
}

// has reports whether there is a step at a place.
func (p *Program) has(at At) bool {
	return at.VEU >= 0 && int(at.VEU) < len(p.Steps) && at.Order >= 0 && int(at.Order) < len(p.Steps[at.VEU])
}
