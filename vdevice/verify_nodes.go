package vdevice

import (
	"fmt"

	"github.com/rammerc/rammerc/internal/diag"
)

// nodes checks a segment whose launches are of one rOperator each: no launch has two, those of one stream
// are on its vEUs, and they wait for earlier ones of other streams. Steps must be in waves that are there.
func (v *verifier) nodes(segment int, s Segment) {
	p := s.Program
	report := func(format string, args ...any) {
		v.l.Add(&diag.Diagnostic{ID: badNode, Message: fmt.Sprintf("segment %d: %s", segment, fmt.Sprintf(format, args...))})
	}
	if want := p.Waves; s.Kind == Parallel && len(p.Nodes) != want || s.Kind != Parallel && len(p.Nodes) != 0 {
		report("%d nodes for %d launches of a %v segment", len(p.Nodes), p.Waves, s.Kind)
		return
	}
	if !s.Kind.byNodes() || v.l.Errors() > 0 {
		return
	}
	for w, n := range p.Nodes {
		if n.Stream < 0 || int(n.Stream) >= len(p.Nodes) {
			report("node %d is on stream %d, want 0 … %d", w, n.Stream, len(p.Nodes)-1)
			return
		}
		last := int32(-1)
		for _, x := range n.After {
			if x <= last || int(x) >= w || p.Nodes[x].Stream == n.Stream {
				report("node %d on stream %d waits for node %d: want earlier nodes of other streams, ascending", w, n.Stream, x)
			}
			last = max(last, x)
		}
	}
	v.nodeSteps(p, report)
}

// nodeSteps checks what the steps say of the launches they are in.
func (v *verifier) nodeSteps(p *Program, report func(string, ...any)) {
	op := make([]int32, p.Waves)
	for w := range op {
		op[w] = -1
	}
	for veu, steps := range p.Steps {
		for o := range steps {
			st, here := &steps[o], At{int32(veu), int32(o)}
			if len(st.Waits) > 0 {
				report("%s waits for other steps; launches of one rOperator each order them", stepName(p, here))
			}
			if s := veu / p.Spec.VEUs(); s != int(p.node(int(st.Wave)).Stream) {
				report("%s is on a vEU of stream %d, its launch is on stream %d", stepName(p, here), s, p.node(int(st.Wave)).Stream)
			}
			if have := op[st.Wave]; have >= 0 && have != st.Task.Op {
				report("launch %d has rTasks of %s and of %s", st.Wave, opName(p.Ops[have]), opName(p.Ops[st.Task.Op]))
			}
			op[st.Wave] = st.Task.Op
		}
	}
	for w, id := range op {
		if id < 0 {
			report("launch %d has no rTasks", w)
		}
	}
}
