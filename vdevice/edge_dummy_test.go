package vdevice

import "github.com/rammerc/rammerc/schema"

// tokenEdges stand for a kind of edge that somebody adds: one step hands a token to another, which polls for it and
// knows then that the first is complete. Everything about the kind is here and in tokenRow.
type tokenEdges struct{ noRules }

const (
	tokenTime = 5000.0 // ns from the end of the step that hands the token over until the other sees it
	tokenMark = 1 << 15
)

// tokenRow is the kind's row.
func tokenRow(kind EdgeKind) edgeRow {
	return edgeRow{
		name: "token", doc: "a word for each pair of steps", knows: completion, polled: true,
		in: "awaits", out: "hands", finding: "bad-token", header: "exec/token.cuh",
		edgeRules: tokenEdges{noRules{kind}},
	}
}

// form allows a step to hand its token to one other step only.
func (t tokenEdges) form(v *verifier, _ int, s Segment) {
	taken := map[At]bool{}
	for veu, steps := range s.Program.Steps {
		for o := range steps {
			for _, e := range steps[o].InOf(t.kind) {
				if taken[e.At] {
					v.l.Add(v.problem("bad-token", "%s takes a token that another has taken",
						stepName(s.Program, At{int32(veu), int32(o)})))
				}
				taken[e.At] = true
			}
		}
	}
}

func (tokenEdges) arrives(s *simulation, _ At, e Edge) (float64, At) {
	return s.t.End[e.VEU][e.Order] + tokenTime, e.At
}

func (t tokenEdges) encode(e *Encoder, s *Step, row *schema.Step) {
	for _, from := range s.InOf(t.kind) {
		e.awaitFlag(At{VEU: from.VEU | tokenMark, Order: from.Order})
	}
	row.Signal = row.Signal || len(s.OutOf(t.kind)) > 0
}
