package vdevice

import (
	"bytes"
	"slices"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// An edge says that a step comes after another. There are several kinds, because a GPU has several ways to order work
// and they differ in cost and in what they promise:
//
//	launch    a kernel launch starts after the launches before it      all of a wave ──▶ all of the next
//	flag      one step stores a word, others poll it                   A ──▶ B
//	tagged    the data themselves carry a tag that readers poll        A ══▶ B
//	counter   many steps add one to a word, others poll the sum        A₁ A₂ A₃ ──▶ (3) ──▶ B₁ B₂
//	gate      a flag that is waited for before a vEU tests a condition  c ──▶ (c?) B
//	slot      tagged data in the shared memory of a cluster's block    A ══▶ B, in one cluster
//
// Program order, which the steps of one vEU have by themselves, needs no edge. Near steps are no kind of edge either:
// they are a way to run steps whose data travel in slots (modes.go).
//
// Every kind is a row of edgeRows and a file edge_NAME.go. Verify, the happens-before relation, the simulation, the
// text form, Stats and the encoder of the program tables walk the rows; none of them names a kind.

// EdgeKind is the number of a row of edgeRows. Edges of a step are sorted by it, and steps wait in that order.
type EdgeKind uint8

// The kinds of edges.
const (
	EdgeLaunch EdgeKind = iota
	EdgeGate
	EdgeFlag
	EdgeTagged
	EdgeCounter
	EdgeSlot
)

// Edge is one end of an edge, as a step has it in Step.In or Step.Out.
//
// In Step.In, At is the step at the other end. Edges of a kind that meets (see edgeRow.meets) have a meeting
// point there instead, such as a counter: VEU is its number and Order is 0. In Step.Out, where the step only
// says that it announces its completion, At is the meeting point, or zero for kinds without meeting points.
type Edge struct {
	Kind EdgeKind
	At
}

// Meeting is the edge between a step and meeting point number n.
func Meeting(kind EdgeKind, n int32) Edge { return Edge{kind, At{VEU: n}} }

// Number is the number of the edge's meeting point.
func (e Edge) Number() int32 { return e.VEU }

// knowledge is what a step knows of the step at the other end of an edge.
type knowledge uint8

const (
	// dataOnly: the step at the other end has computed the data that the edge carries. What else it wrote, and
	// what it has waited for, may not be visible yet.
	dataOnly knowledge = iota
	// completion: the step at the other end is complete, and with it all that comes before that one.
	completion
)

// edgeRow is a kind of edge.
type edgeRow struct {
	name string // in messages and in documentation
	doc  string // one sentence: what carries it
	// knows is what a step knows that is at the end of such an edge.
	knows knowledge
	// polled says that the executor polls one word for each such edge before the step's rTask starts. Edges
	// that are not polled are waited for by the rTask itself, or are not edges between two steps.
	polled bool
	// meets says that several steps announce themselves at one meeting point, and several wait there for all.
	meets bool
	// in and out are the words of the text form for Step.In and Step.Out; empty: steps have no such ends.
	in, out string
	// byFlag says that the step at the other end announces itself as for an edge by flag.
	byFlag bool
	// finding is the id of what Verify reports of such edges that are not in form.
	finding string
	// header is the file below codegen/rt that carries it out.
	header string
	edgeRules
}

// edgeRules is what a kind of edge adds to each of the parts that walk the rows. A kind embeds noRules and
// has methods for what concerns it.
type edgeRules interface {
	// form is the kind's share of Verify that needs nothing but the segment's own text.
	form(v *verifier, segment int, s Segment)
	// whole is its share that needs all segments.
	whole(v *verifier)
	// related is its share that needs the happens-before relation of a segment.
	related(v *verifier, segment int, h *order)
	// brings reports which of a candidate's reads this kind brings, instead of memory that other edges order;
	// nil: none.
	brings(p *Program, c *roperator.Candidate) func(read int) bool
	// read checks a region that is read through this kind, and write one that is written, whoever reads it.
	read(m *memoryCheck, op int32, r *region)
	write(m *memoryCheck, op int32, r *region)

	// meetings is how many meeting points the program has.
	meetings(p *Program) int
	// arrives is when the step at here finds the edge satisfied, in ns, and the step that decided that.
	arrives(s *simulation, here At, e Edge) (float64, At)
	// settle is the kind's share of the Builder's choice, once all steps are there.
	settle(b *Builder)
	// use tells the kind that the step at here waits for the fronts by flags.
	use(b *Builder, here At, fronts []*Front)
	// needs raises what a vEU must have.
	needs(p *Program, n *Needs)
	// count adds to the statistics of a plan.
	count(stats *Stats, s Segment)

	// printPlan, printSegment, printProgram and printStep print the kind's share of the plan's head, of a
	// segment line, of the lines before a segment's steps, and of a step's line.
	printPlan(b *bytes.Buffer, plan *Plan)
	printSegment(b *bytes.Buffer, s Segment)
	printProgram(b *bytes.Buffer, p *Program)
	printStep(b *bytes.Buffer, s *Step)
	// parseSegment and parseStep read what is printed on those lines.
	parseSegment(p *planParser, s *Segment)
	parseStep(p *planParser, s *Step)
	// statements are the lines of the kind's own, by their first word.
	statements() map[string]func(*planParser)

	// takes appends the imports of the runs of a buffer that m has at hand, if the kind brings them to the step at
	// here. gives appends the exports that this kind needs of them.
	takes(m *Moves, here At, buf *roperator.Buffer, moves []schema.Move) (out []schema.Move, brought bool)
	gives(m *Moves, here At, buf *roperator.Buffer, moves []schema.Move) []schema.Move
	// encode gives the entries of the program tables for the edges of one step.
	encode(e *Encoder, s *Step, row *schema.Step)
}

// edgeRows is the table of all kinds of edges, by EdgeKind. Step lines and waits keep this order.
var edgeRows = []edgeRow{
	EdgeLaunch: {
		name: "launch", doc: "the order of kernel launches, on one stream or across streams",
		knows: completion, finding: badWave, header: "exec/edge_launch.cuh",
		edgeRules: launchEdges{noRules{EdgeLaunch}},
	},
	EdgeGate: {
		name: "gate", doc: "a flag of a step that computes a condition, by which a vEU jumps over steps or does not",
		knows: completion, polled: true, in: "if", byFlag: true, finding: badJump, header: "exec/jump.cuh",
		edgeRules: gateEdges{noRules{EdgeGate}},
	},
	EdgeFlag: {
		name: "flag", doc: "a word for each vEU, which holds the number of its last step that announced itself",
		knows: completion, polled: true, in: "wait", out: "signal", byFlag: true, finding: badWait, header: "exec/edge_flag.cuh",
		edgeRules: flagEdges{noRules{EdgeFlag}},
	},
	EdgeTagged: {
		name: "tagged", doc: "64-bit words in global memory: 32 bits of data and the number of the launch",
		knows: dataOnly, in: "follow", finding: badWait, header: "exec/edge_tagged.cuh",
		edgeRules: taggedEdges{noRules{EdgeTagged}},
	},
	EdgeCounter: {
		name: "counter", doc: "a word that every producer adds one to",
		knows: completion, polled: true, meets: true, in: "counters", out: "adds", finding: badCounter,
		header: "exec/edge_counter.cuh", edgeRules: counterEdges{noRules{EdgeCounter}},
	},
	EdgeSlot: {
		name: "slot", doc: "32-bit words in the reader's shared memory, counted by an mbarrier; refines tagged edges inside a cluster",
		knows: dataOnly, finding: badCluster, header: "exec/edge_slot.cuh", edgeRules: slotEdges{noRules{EdgeSlot}},
	},
}

// Polled reports that the executor polls a word for each edge of the kind before the step's rTask starts.
func (k EdgeKind) Polled() bool { return edgeRows[k].polled }

// FirstMeeting is the number of the kind's first meeting point among those of all kinds, -1 for kinds without.
func (p *Program) FirstMeeting(kind EdgeKind) int {
	if !edgeRows[kind].meets {
		return -1
	}
	n := 0
	for k := range kind {
		n += edgeRows[k].meetings(p)
	}
	return n
}

// row is the edge's row of the table.
func (e Edge) row() *edgeRow { return &edgeRows[e.Kind] }

// InOf lists the step's edges of one kind from other steps.
func (s *Step) InOf(kind EdgeKind) []Edge { return ofKind(s.In, kind) }

// OutOf lists the step's announcements of one kind.
func (s *Step) OutOf(kind EdgeKind) []Edge { return ofKind(s.Out, kind) }

// ofKind is the part of sorted edges that is of one kind.
func ofKind(edges []Edge, kind EdgeKind) []Edge {
	if n := len(edges); n == 0 || edges[0].Kind == kind && edges[n-1].Kind == kind {
		return edges // what most steps have
	}
	return edges[firstOf(edges, kind):firstOf(edges, kind+1)]
}

// firstOf is how many of the sorted edges are of kinds before the given one.
func firstOf(edges []Edge, kind EdgeKind) int {
	lo, hi := 0, len(edges)
	for lo < hi {
		if mid := (lo + hi) / 2; edges[mid].Kind < kind {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// Polls is how many words the executor polls before the step's rTask starts.
func (s *Step) Polls() int {
	n := 0
	for _, e := range s.In {
		if e.row().polled {
			n++
		}
	}
	return n
}

// join adds edges of a kind that comes after those that the step has.
func (s *Step) join(edges []Edge) {
	if s.In == nil {
		s.In = edges
	} else {
		s.In = append(s.In, edges...)
	}
}

// announce adds an end to Step.Out, if it is not there.
func (s *Step) announce(e Edge) {
	at := 0
	for at < len(s.Out) && compareEdges(s.Out[at], e) < 0 {
		at++
	}
	if at == len(s.Out) || s.Out[at] != e {
		s.Out = slices.Insert(s.Out, at, e)
	}
}

// SetIn replaces the step's edges of one kind from other steps.
func (s *Step) SetIn(kind EdgeKind, edges ...Edge) { s.In = replaceKind(s.In, kind, edges) }

// SetOut replaces the step's announcements of one kind.
func (s *Step) SetOut(kind EdgeKind, edges ...Edge) { s.Out = replaceKind(s.Out, kind, edges) }

func replaceKind(all []Edge, kind EdgeKind, edges []Edge) []Edge {
	from, to := firstOf(all, kind), firstOf(all, kind+1)
	if len(edges) <= to-from { // there is room
		n := copy(all[from:], edges)
		return append(all[:from+n], all[to:]...)
	}
	out := append(make([]Edge, 0, from+len(edges)+len(all)-to), all[:from]...)
	return append(append(out, edges...), all[to:]...)
}

// compareEdges orders the edges of a step: by kind, then by the other end.
func compareEdges(a, b Edge) int {
	if a.Kind != b.Kind {
		return int(a.Kind) - int(b.Kind)
	}
	if a.VEU != b.VEU {
		return int(a.VEU - b.VEU)
	}
	return int(a.Order - b.Order)
}

// Contributors lists, for each meeting point of a kind, the steps that announce themselves there, by vEU and
// order.
func (p *Program) Contributors(kind EdgeKind) [][]At {
	out := make([][]At, edgeRows[kind].meetings(p))
	if len(out) == 0 {
		return nil
	}
	for v, steps := range p.Steps {
		for o := range steps {
			for _, e := range steps[o].OutOf(kind) {
				out[e.Number()] = append(out[e.Number()], At{int32(v), int32(o)})
			}
		}
	}
	return out
}
