package vdevice

import (
	"fmt"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/schema"
)

// flagEdges are edges by flags. Every vEU has one flag, a word in global memory that only grows. A step that announces
// itself stores its number there, and whoever waits for it polls until the flag has that number or a larger one:
//
//	vEU 0   step 0 ── step 1 ── step 2 (signal: flag of vEU 0 = 3) ──┐
//	vEU 1   step 0 ────────────────────────────────────── step 1 (wait 0:2)
//
// The store is a release and the poll is followed by an acquire, so the step that waited knows all that the other vEU
// did before, and all that it had learned from others.
type flagEdges struct{ noRules }

// form checks that a step announces itself by its flag if and only if another step waits for that.
func (flagEdges) form(v *verifier, _ int, s Segment) {
	p := s.Program
	waited := make([][]bool, len(p.Steps))
	for u, steps := range p.Steps {
		waited[u] = make([]bool, len(steps))
	}
	for _, steps := range p.Steps {
		for o := range steps {
			for _, e := range steps[o].In {
				if e.row().byFlag {
					waited[e.VEU][e.Order] = true
				}
			}
		}
	}
	for u, steps := range p.Steps {
		for o := range steps {
			if signal := steps[o].Signals(); signal != waited[u][o] {
				v.l.Add(&diag.Diagnostic{ID: badWait,
					Message: fmt.Sprintf("%s: signal is %v, somebody waits is %v", stepName(p, At{int32(u), int32(o)}),
						signal, waited[u][o])})
			}
		}
	}
}

// use lets the counters know of flags that they might replace.
func (flagEdges) use(b *Builder, here At, fronts []*Front) { b.groups.use(here, fronts) }

func (flagEdges) count(stats *Stats, s Segment) {
	for _, steps := range s.Program.Steps {
		for o := range steps {
			if steps[o].Signals() {
				stats.Signals++
			}
		}
	}
}

func (flagEdges) encode(e *Encoder, s *Step, row *schema.Step) {
	for _, from := range s.InOf(EdgeFlag) {
		e.awaitFlag(from.At)
	}
	row.Signal = s.Signals()
}

// Signals reports whether the step announces its completion by its vEU's flag.
func (s *Step) Signals() bool { return len(s.OutOf(EdgeFlag)) > 0 }
