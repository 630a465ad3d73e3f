package vdevice

import (
	"fmt"
	"sort"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
)

// importsTagged reports whether access i of the candidate's reads is an import of tagged data.
func (p *Program) importsTagged(c *roperator.Candidate, imported []bool, i int) bool {
	return imported != nil && imported[i] && p.CarryOf(c.Reads[i].View.Buf.ID).HasTags()
}

// carries checks the buffers that travel in tagged words: all that is written to them is exported by
// one program, whoever does not import them has a plain copy to read, and their words are their own.
func (v *verifier) carries() {
	bad := func(buf int, format string, args ...any) {
		v.l.Add(v.problem(badCarry, "buffer %d (%q) %s", buf, v.plan.Graph.Buffers[buf].Name, fmt.Sprintf(format, args...)))
	}
	home := map[int]int{} // buffer → segment that tags it
	for i, s := range v.plan.Segments {
		if s.Program.Carry == nil {
			continue
		}
		if len(s.Program.Carry) != len(v.plan.Graph.Buffers) {
			v.l.Add(v.problem(badPlan, "segment %d says how %d buffers travel, the graph has %d", i, len(s.Program.Carry), len(v.plan.Graph.Buffers)))
			return
		}
		for buf, c := range s.Program.Carry {
			if !c.HasTags() {
				continue
			}
			if other, twice := home[buf]; twice {
				bad(buf, "is tagged by segment %d and by segment %d", other, i)
			}
			home[buf] = i
			if b := v.plan.Graph.Buffers[buf]; b.DType.Size() != 4 || b.Kind == roperator.Input || b.Kind == roperator.Const {
				bad(buf, "cannot be tagged: it is of type %v and kind %v", b.DType, b.Kind)
			} else if b.Kind == roperator.Output && !c.HasPlain() {
				bad(buf, "is an output and has no plain copy")
			}
		}
	}
	if len(home) == 0 {
		return
	}
	for id := range v.plan.Graph.Ops {
		v.carriedBy(int32(id), home, bad)
	}
	v.words(home, bad)
}

func (v *verifier) problem(id, format string, args ...any) *diag.Diagnostic {
	return &diag.Diagnostic{ID: id, Message: fmt.Sprintf(format, args...)}
}

// carriedBy checks one rOperator's accesses to tagged buffers.
func (v *verifier) carriedBy(id int32, home map[int]int, bad func(buf int, format string, args ...any)) {
	if v.seg[id] < 0 {
		return
	}
	p := v.plan.Segments[v.seg[id]].Program
	c := p.Candidate(id)
	imported, exported := c.Imported(), c.Exported()
	for i, a := range c.Writes {
		buf := a.View.Buf.ID
		if seg, tagged := home[buf]; tagged && (exported == nil || !exported[i] || int32(seg) != v.seg[id]) {
			bad(buf, "is tagged by segment %d, but %s in segment %d writes it otherwise", seg, opName(v.plan.Graph.Ops[id]), v.seg[id])
		}
	}
	for i, a := range c.Reads {
		buf := a.View.Buf.ID
		seg, tagged := home[buf]
		if !tagged || int32(seg) == v.seg[id] && p.importsTagged(c, imported, i) {
			continue
		}
		if !v.plan.Segments[seg].Program.CarryOf(buf).HasPlain() {
			bad(buf, "has no plain copy, which %s in segment %d reads", opName(v.plan.Graph.Ops[id]), v.seg[id])
		}
	}
}

// words checks that no two buffers share tagged words: a word is written once a launch.
func (v *verifier) words(home map[int]int, bad func(buf int, format string, args ...any)) {
	if v.programOnly {
		return
	}
	if len(v.plan.Words) != len(v.plan.Graph.Buffers) {
		v.l.Add(v.problem(badPlan, "the plan has tagged words for %d buffers, the graph has %d", len(v.plan.Words), len(v.plan.Graph.Buffers)))
		return
	}
	var ids []int
	for buf := range home {
		ids = append(ids, buf)
	}
	sort.Slice(ids, func(i, j int) bool {
		a, b := v.plan.Words[ids[i]], v.plan.Words[ids[j]]
		return a < b || a == b && ids[i] < ids[j]
	})
	end, last := int64(0), -1
	for _, buf := range ids {
		at := v.plan.Words[buf]
		if at < 0 || at+v.plan.Graph.Buffers[buf].Elems > v.plan.WordsLen {
			bad(buf, "has its tagged words at %d, want them inside the %d of the plan", at, v.plan.WordsLen)
			continue
		}
		if at < end {
			bad(buf, "shares tagged words with buffer %d", last)
		}
		end, last = at+v.plan.Graph.Buffers[buf].Elems, buf
	}
}

// tagged checks reads that poll tagged data: what they read is exported in the same program, by steps
// that they are known to follow, and by an earlier wave where the program runs wave by wave.
func (m *memoryCheck) tagged(id int32, r *region) {
	parts := m.past[r.box.Buf].parts
	for i := range parts {
		if parts[i].segment != m.seg[id] {
			continue // carries has reported it
		}
		parts[i].writes.gather(&r.box, m.f)
		m.follows(id, r)
		m.f.clear()
	}
}

func (m *memoryCheck) follows(id int32, r *region) {
	h := m.orders[m.seg[id]]
	for _, t := range r.touches {
		here := At{t.veu, t.first}
		step := &h.p.Steps[t.veu][t.first]
		for _, veu := range m.f.veus {
			need := m.f.last[veu]
			from := At{veu, need - 1}
			why := ""
			switch {
			case veu != t.veu && !followsTo(step, from), veu == t.veu && need > t.first:
				why = "does not follow it"
			case h.waveOf(from) >= h.waveOf(here):
				why = "is in no later wave"
			default:
				continue
			}
			k := findingKey{unordered, "tagged", h.p.Steps[veu][need-1].Task.Op, id, r.box.Buf, -1}
			m.found.add(k, func() string {
				return fmt.Sprintf("%s imports %v of %q, which %s exports, but %s",
					stepName(h.p, here), r.box, m.buffer(r.box.Buf), stepName(h.p, from), why)
			})
		}
	}
}

// followsTo reports that s follows the step at from or a later one of its vEU.
func followsTo(s *Step, from At) bool {
	i := sort.Search(len(s.Follows), func(i int) bool { return s.Follows[i].VEU >= from.VEU })
	return i < len(s.Follows) && s.Follows[i].VEU == from.VEU && s.Follows[i].Order >= from.Order
}

// onceTagged checks that nothing writes an element of a tagged buffer again: whoever is slow would take
// the new value for the old one.
func (m *memoryCheck) onceTagged(id int32, r *region) {
	if !m.plan.Segments[m.seg[id]].Program.CarryOf(int(r.box.Buf)).HasTags() {
		return
	}
	parts := m.past[r.box.Buf].parts
	for i := range parts {
		parts[i].writes.find(&r.box, func(x *region) bool {
			m.found.add(findingKey{unordered, "rewritten", x.op, id, r.box.Buf, -1}, func() string {
				return fmt.Sprintf("it writes %v of %q, whose tagged words %s has written in the same launch",
					r.box, m.buffer(r.box.Buf), opName(m.plan.Graph.Ops[x.op]))
			})
			return true
		})
	}
}
