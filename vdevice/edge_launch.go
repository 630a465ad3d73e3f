package vdevice

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
)

// launchEdges are the edges between kernel launches. A step says which launch it is in by its wave. On one stream a
// launch comes after all launches before it; a node of a parallel segment also names launches of other streams:
//
//	stream 0   launch 0 ──▶ launch 1 ───────────▶ launch 4 (after 3)
//	                 └─────▶                    ▲
//	stream 1   launch 2 (after 0) ──▶ launch 3 ─┘
//
// All steps of a launch know all steps of the launches that it comes after. A persistent rProgram has waves, too: it
// falls back on one launch per wave where its grid does not fit on the device.
type launchEdges struct{ noRules }

// form checks that waves do not decrease along a vEU, and what a segment says of its nodes.
func (e launchEdges) form(v *verifier, segment int, s Segment) {
	for veu, steps := range s.Program.Steps {
		wave := int32(0)
		for o := range steps {
			w := steps[o].Wave
			if w < wave || int(w) >= s.Program.Waves {
				v.l.Add(v.problem(badWave, "segment %d, %v is in wave %d; want %d … %d", segment,
					At{int32(veu), int32(o)}, w, wave, s.Program.Waves-1))
			}
			wave = max(wave, w)
		}
	}
	v.alone(segment, s)
	v.nodes(segment, s)
}

// alone checks the launches whose blocks are alone on a multiprocessor. That is for launches that come while the one
// before them runs on the same stream, and that leave the shared memory which they take to nobody's ring of weights.
func (v *verifier) alone(segment int, s Segment) {
	p := s.Program
	if len(p.Alone) > 0 && (s.Serial || s.Kind == Parallel) {
		v.l.Add(v.problem(badWave, "segment %d has launches that are alone on a multiprocessor, but they do not overlap", segment))
	}
	last := int32(-1)
	for _, w := range p.Alone {
		if w <= last || int(w) >= p.Waves {
			v.l.Add(v.problem(badWave, "segment %d: wave %d is alone on a multiprocessor; want waves that are there, ascending", segment, w))
		}
		last = max(last, w)
	}
	if v.l.Errors() > 0 || len(p.Alone) == 0 {
		return
	}
	for veu, steps := range p.Steps {
		for o := range steps {
			if _, alone := slices.BinarySearch(p.Alone, steps[o].Wave); alone && p.streamBytes(steps[o].Task) > 0 {
				v.l.Add(v.problem(badWave, "%s streams weights, but its launch is alone on a multiprocessor",
					stepName(p, At{int32(veu), int32(o)})))
			}
		}
	}
}

func (launchEdges) count(stats *Stats, s Segment) {
	p := s.Program
	stats.Waves += p.Waves
	stats.Streams = max(stats.Streams, p.streams())
	stats.Launches += p.Waves
	if s.Kind == RProgram {
		stats.Launches += 1 - p.Waves
	}
}

func (launchEdges) printSegment(b *bytes.Buffer, s Segment) {
	fmt.Fprintf(b, " waves %d", s.Program.Waves)
	if s.Serial {
		b.WriteString(" serial")
	}
}

func (launchEdges) parseSegment(p *planParser, s *Segment) {
	p.keyword("waves")
	s.Program.Waves = int(p.number(0, math.MaxInt32))
	s.Serial = p.optional("serial")
}

func (launchEdges) printStep(b *bytes.Buffer, s *Step) { printNumber(b, " wave ", s.Wave) }

func (launchEdges) parseStep(p *planParser, s *Step) {
	p.keyword("wave")
	s.Wave = int32(p.number(0, math.MaxInt32))
}

func (launchEdges) printProgram(b *bytes.Buffer, p *Program) {
	for at := 0; at < len(p.Alone); at += aloneOnLine {
		b.WriteString("alone")
		for _, w := range p.Alone[at:min(at+aloneOnLine, len(p.Alone))] {
			printNumber(b, " ", w)
		}
		b.WriteByte('\n')
	}
	for w, n := range p.Nodes {
		fmt.Fprintf(b, "node %d stream %d", w, n.Stream)
		if len(n.After) > 0 {
			b.WriteString(" after")
		}
		for _, x := range n.After {
			printNumber(b, " ", x)
		}
		b.WriteByte('\n')
	}
}

func (launchEdges) statements() map[string]func(*planParser) {
	return map[string]func(*planParser){
		"node": (*planParser).node,
		"alone": func(p *planParser) {
			if prog := p.program(); prog != nil {
				prog.Alone = append(prog.Alone, p.numbers("alone names no wave")...)
			}
		},
	}
}

// aloneOnLine is how many launches a line lists at most.
const aloneOnLine = 64

// node reads what a parallel segment says of a launch.
func (p *planParser) node() {
	prog := p.program()
	if p.bad {
		return
	}
	if kind := p.plan.Segments[len(p.plan.Segments)-1].Kind; kind != Parallel {
		p.fail("a %v segment has no nodes", kind)
		return
	}
	if got, want := p.number(0, math.MaxInt32), len(prog.Nodes); int(got) != want {
		p.fail("node %d comes where node %d is due", got, want)
	}
	p.keyword("stream")
	n := Node{Stream: int32(p.number(0, int64(max(1, len(p.plan.Graph.Ops))-1)))}
	switch w := p.word(); w {
	case "":
	case "after":
		n.After = p.numbers("after names no node")
	default:
		p.fail("want after or the end of the line, found %.20q", w)
	}
	if !p.bad {
		prog.Nodes = append(prog.Nodes, n)
	}
}

// nodes checks a segment whose launches are of one rOperator each: no launch has two, those of one stream are on its
// vEUs, and they wait for earlier ones of other streams.
func (v *verifier) nodes(segment int, s Segment) {
	p := s.Program
	report := func(format string, args ...any) {
		v.l.Add(&diag.Diagnostic{ID: badNode, Message: fmt.Sprintf("segment %d: %s", segment,
			fmt.Sprintf(format, args...))})
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
				report("node %d on stream %d waits for node %d: want earlier nodes of other streams, ascending", w,
					n.Stream, x)
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
			if len(st.In) > 0 {
				report("%s waits for other steps; launches of one rOperator each order them", stepName(p, here))
			}
			if s := veu / p.Spec.VEUs(); s != int(p.node(int(st.Wave)).Stream) {
				report("%s is on a vEU of stream %d, its launch is on stream %d", stepName(p, here), s,
					p.node(int(st.Wave)).Stream)
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
