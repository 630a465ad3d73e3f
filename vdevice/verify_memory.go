package vdevice

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/roperator"
)

// history is what was accessed of one buffer so far, a segment at a time.
type history struct{ parts []historyPart }

type historyPart struct {
	segment       int32
	reads, writes boxIndex
}

func (h *history) of(segment int32) *historyPart {
	for i := range h.parts {
		if h.parts[i].segment == segment {
			return &h.parts[i]
		}
	}
	h.parts = append(h.parts, historyPart{segment: segment})
	return &h.parts[len(h.parts)-1]
}

// memory walks the rOperators in the order of the graph, which is the meaning of the program, and
// compares each access with every earlier one to the same elements.
func (v *verifier) memory() {
	m := &memoryCheck{verifier: v, past: make([]history, len(v.plan.Graph.Buffers)), regions: newRegioner(v.lanes),
		f: newFrontier(v.lanes)}
	for id := range v.plan.Graph.Ops {
		if v.seg[id] >= 0 {
			m.op(int32(id))
		}
	}
	v.flush()
}

type memoryCheck struct {
	*verifier
	past    []history // per buffer
	regions *regioner
	f       *frontier
}

// op checks the accesses of one rOperator's rTasks. What a kind of edge brings is checked by that kind. All other
// reads, and all writes, must be ordered by happens-before.
func (m *memoryCheck) op(id int32) {
	p := m.plan.Segments[m.seg[id]].Program
	c := p.Candidate(id)
	var brought []func(read int) bool
	for k := range edgeRows {
		brings := edgeRows[k].brings(p, c)
		if brings == nil {
			continue
		}
		brought = append(brought, brings)
		regions := m.regions.list(id, m.at[id], func(dst []roperator.Box, task int) []roperator.Box {
			return c.AppendReadsOf(dst, task, brings)
		})
		for i := range regions {
			edgeRows[k].read(m, id, &regions[i])
		}
	}
	plain := func(i int) bool {
		return !slices.ContainsFunc(brought, func(brings func(int) bool) bool { return brings(i) })
	}
	reads := m.withoutConstants(m.regions.list(id, m.at[id], func(dst []roperator.Box, task int) []roperator.Box {
		return c.AppendReadsOf(dst, task, plain)
	}))
	writes := m.regions.list(id, m.at[id], c.AppendWrites)
	for i := range reads {
		m.compare(id, &reads[i], "reads", "read-after-write")
	}
	for i := range writes {
		for k := range edgeRows {
			edgeRows[k].write(m, id, &writes[i])
		}
		m.compare(id, &writes[i], "writes", "write-after-write")
		m.compare(id, &writes[i], "writes", "write-after-read")
	}
	m.independent(id, reads, m.withoutJoint(c, writes))
	byBuffer(reads, func(buf int32, run []region) { m.past[buf].of(m.seg[id]).reads.add(run, m.f) })
	byBuffer(writes, func(buf int32, run []region) { m.past[buf].of(m.seg[id]).writes.add(run, m.f) })
}

// withoutJoint leaves out what all rTasks of the candidate write together.
func (m *memoryCheck) withoutJoint(c *roperator.Candidate, in []region) []region {
	joint := map[int32]bool{}
	for _, a := range c.Writes {
		if a.Joint {
			joint[int32(a.View.Buf.ID)] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(in), func(r region) bool { return joint[r.box.Buf] })
}

func (m *memoryCheck) withoutConstants(in []region) []region {
	out := in[:0]
	for _, r := range in {
		if m.plan.Graph.Buffers[r.box.Buf].Kind != roperator.Const {
			out = append(out, r)
		}
	}
	return out
}

// compare checks that all earlier accesses that r conflicts with are complete when r's rTasks start.
func (m *memoryCheck) compare(id int32, r *region, verb, hazard string) {
	parts := m.past[r.box.Buf].parts
	for i := range parts {
		index := &parts[i].writes
		if hazard == "write-after-read" {
			index = &parts[i].reads
		}
		switch {
		case parts[i].segment > m.seg[id]:
			m.laterSegment(id, r, index, hazard)
		case parts[i].segment == m.seg[id]:
			index.gather(&r.box, m.f)
			m.ordered(id, r, verb, hazard)
			m.f.clear()
		}
	}
}

// laterSegment reports accesses that the graph puts first but the plan into a later segment.
func (m *memoryCheck) laterSegment(id int32, r *region, index *boxIndex, hazard string) {
	index.find(&r.box, func(x *region) bool {
		m.found.add(findingKey{unordered, hazard, x.op, id, r.box.Buf, -1}, func() string {
			return fmt.Sprintf("%s on %v of %q: %s comes first but is in segment %d, after segment %d",
				hazard, r.box, m.buffer(r.box.Buf), opName(m.plan.Graph.Ops[x.op]), m.seg[x.op], m.seg[id])
		})
		return true
	})
}

// ordered compares the frontier of earlier accesses with what each of r's lanes knows. The first place of
// a lane that accesses r speaks for its later ones.
func (m *memoryCheck) ordered(id int32, r *region, verb, hazard string) {
	h := m.orders[m.seg[id]]
	for _, t := range r.touches {
		here := At{t.veu, t.first}
		for _, lane := range m.f.veus {
			need := m.f.last[lane]
			if h.known(here, lane) >= need {
				continue
			}
			from := At{lane, need - 1}
			k := findingKey{unordered, hazard, h.task(from).Op, id, r.box.Buf, -1}
			why := "no wait or program order puts it first"
			switch {
			case h.nodes != nil:
				why = "nothing orders their launches so"
			case h.kind == Waves || h.byWaits(here, lane) >= need:
				k.id, why = badWave, "it is in no earlier wave"
			}
			m.found.add(k, func() string {
				return fmt.Sprintf("%s: %s %s %v of %q after %s, but %s",
					hazard, h.name(here), verb, r.box, m.buffer(r.box.Buf), h.name(from), why)
			})
		}
	}
}

// independent checks that no two rTasks of one rOperator write the same elements, or one writes what
// another reads: they run in any order.
func (m *memoryCheck) independent(id int32, reads, writes []region) {
	byBuffer(writes, func(buf int32, run []region) {
		var own boxIndex
		own.add(run, m.f)
		for i := range run {
			own.find(&run[i].box, func(x *region) bool {
				if x.box != run[i].box || x.tasks[1] >= 0 {
					m.dependent(id, &run[i], "write", x)
					return false
				}
				return true
			})
		}
		byBuffer(reads, func(other int32, readRun []region) {
			if other != buf {
				return
			}
			for i := range readRun {
				own.find(&readRun[i].box, func(x *region) bool {
					if x.tasks != readRun[i].tasks {
						m.dependent(id, &readRun[i], "read", x)
						return false
					}
					return true
				})
			}
		})
	})
}

func (m *memoryCheck) dependent(id int32, r *region, verb string, x *region) {
	m.found.add(findingKey{unordered, "within-" + verb, id, id, r.box.Buf, -1}, func() string {
		other := x.tasks[0]
		if other == r.tasks[0] && x.tasks[1] >= 0 {
			other = x.tasks[1]
		}
		if other == r.tasks[0] && r.tasks[1] >= 0 {
			other = r.tasks[1]
		}
		return fmt.Sprintf("its rTasks depend on each other: rTask %d %ss %v of %q, rTask %d writes %v",
			r.tasks[0], verb, r.box, m.buffer(r.box.Buf), other, x.box)
	})
}

func (m *memoryCheck) buffer(id int32) string { return m.plan.Graph.Buffers[id].Name }
