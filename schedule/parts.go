package schedule

import (
	"maps"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/profiler"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// A graph with loops is planned in parts: what comes before the first loop, the first loop, what comes between it and
// the second one, and so on. A loop is a number of whole segments (vdevice/repeats.go), so no segment has rOperators
// of two parts, and the kinds of plans need not know of loops. A part is a graph of its own with the same buffers.

// part is a planner for one part of a graph.
type part struct {
	*planner
	ops  []int32 // the part's rOperators in the whole graph
	loop int     // that the part is; 0: it is none
}

// partUse are the buffers that a part accesses, and those of them that it writes.
type partUse struct{ accessed, written map[int]bool }

// newParts makes a planner for each part of a graph that has loops.
func newParts(p *planner, spec *device.Spec, costs profiler.Costs, policy Policy) error {
	lists := partsOf(p.g, p.ops)
	all := make([]partUse, len(lists))
	for i, ops := range lists {
		all[i] = partUse{map[int]bool{}, map[int]bool{}}
		for _, op := range ops {
			for _, a := range opAccesses(p.g.Ops[op]) {
				all[i].accessed[int(a.box.Buf)] = true
				if a.write {
					all[i].written[int(a.box.Buf)] = true
				}
			}
		}
	}
	for i, ops := range lists {
		if len(ops) == 0 {
			continue
		}
		q, err := newPlanner(subgraph(p.g, ops), spec, costs, policy)
		if err != nil {
			return err
		}
		q.shared, q.foreign = map[int]bool{}, map[int]bool{}
		for k := range all {
			if k != i {
				maps.Copy(q.shared, all[k].accessed)
				maps.Copy(q.foreign, all[k].written)
			}
		}
		x := &part{planner: q, ops: ops}
		if i%2 == 1 {
			x.loop = (i + 1) / 2
		}
		p.parts = append(p.parts, x)
	}
	return nil
}

// partsOf lists the rOperators of each part. Loop i is part 2i - 1; an rOperator outside of loops is in the first part
// that comes behind all that it depends on.
func partsOf(g *roperator.Graph, o *opGraph) [][]int32 {
	lists := make([][]int32, 2*len(g.Loops)+1)
	of := make([]int, len(g.Ops))
	for id, op := range g.Ops {
		if op.Loop > 0 {
			of[id] = 2*op.Loop - 1
		}
		for _, pred := range o.preds[id] {
			at := of[pred]
			if at%2 == 1 && at != of[id] {
				at++ // behind the loop
			}
			switch {
			case at <= of[id]:
			case op.Loop > 0:
				panic("BUG: a loop that depends on what comes behind it")
			default:
				of[id] = at
			}
		}
		lists[of[id]] = append(lists[of[id]], int32(id))
	}
	return lists
}

// subgraph is a graph of some of the rOperators of g, with all buffers of g.
func subgraph(g *roperator.Graph, ops []int32) *roperator.Graph {
	sub := &roperator.Graph{Name: g.Name, Buffers: g.Buffers, Inputs: g.Inputs, Outputs: g.Outputs, Ranges: g.Ranges}
	for i, id := range ops {
		op := *g.Ops[id]
		op.ID, op.Loop = i, 0
		sub.Ops = append(sub.Ops, &op)
	}
	return sub
}

// plan makes a plan of a kind: that of the whole graph, or else those of its parts, one behind the other.
func (p *planner) plan(kind *planKind) *vdevice.Plan {
	if p.parts == nil {
		return kind.make(p)
	}
	whole := &vdevice.Plan{Spec: p.spec, Graph: p.g, Pick: make([]int, len(p.g.Ops))}
	for _, x := range p.parts {
		for _, s := range kind.make(x.planner).Segments {
			whole.Segments = append(whole.Segments, x.inWhole(whole, s))
		}
	}
	return whole
}

// inWhole is a segment of the part's plan as one of the plan of the whole graph.
func (x *part) inWhole(whole *vdevice.Plan, s vdevice.Segment) vdevice.Segment {
	p := *s.Program
	p.Ops, p.Pick = whole.Graph.Ops, make([]int, len(whole.Graph.Ops))
	for id := range p.Pick {
		p.Pick[id] = -1
	}
	for i, c := range s.Program.Pick {
		if c >= 0 {
			p.Pick[x.ops[i]], whole.Pick[x.ops[i]] = c, c
		}
	}
	for _, steps := range p.Steps {
		for k := range steps {
			steps[k].Task.Op = x.ops[steps[k].Task.Op]
		}
	}
	s.Program, s.Loop = &p, x.loop
	return s
}
