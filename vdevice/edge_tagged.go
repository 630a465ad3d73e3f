package vdevice

import (
	"bytes"
	"fmt"
	"math"
	"sort"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// taggedEdges are edges by tagged data. Every element is a word of 64 bits in global memory: its 32 bits, and beside
// them the number of the launch, its tag. Two elements of 16 bits share a word. The producer stores all of it at once,
// and readers poll the words themselves until all tags are those of this launch:
//
//	element │ tag of launch 7 │      a reader of launch 7 goes on;
//	element │ tag of launch 6 │      one that finds this tag polls again
//
// So neither a flag nor a fence is needed. In exchange such an edge orders nothing but these words, and a word must not
// be written twice in a launch: a slow reader would take the new element for the old one.
type taggedEdges struct{ noRules }

// brings says that reads of tagged buffers which the candidate imports are polled.
func (taggedEdges) brings(p *Program, c *roperator.Candidate) func(read int) bool {
	imported := c.Imported()
	if p.Carry == nil || imported == nil {
		return nil
	}
	return func(i int) bool { return p.importsTagged(c, imported, i) }
}

// importsTagged reports whether access i of the candidate's reads is an import of tagged data.
func (p *Program) importsTagged(c *roperator.Candidate, imported []bool, i int) bool {
	return imported != nil && imported[i] && p.CarryOf(c.Reads[i].View.Buf.ID).HasTags()
}

// arrives is when the words can be seen, with all others that the step takes. Inside a cluster they come sooner.
func (taggedEdges) arrives(s *simulation, here At, e Edge) (float64, At) {
	words := s.words(here)
	cost := s.h.p.Spec.TaggedTime(words)
	if s.h.p.takesFromSlots(here, e.At) {
		cost = s.h.p.Spec.ClusterTime(words)
	}
	return s.t.End[e.VEU][e.Order] + cost, e.At
}

// takes brings what travels in tagged words, and what of it has a slot from there.
func (taggedEdges) takes(m *Moves, here At, buf *roperator.Buffer, moves []schema.Move) ([]schema.Move, bool) {
	if !m.p.CarryOf(buf.ID).HasTags() {
		return moves, false
	}
	for k := range m.runs {
		from := len(moves)
		moves = m.appendTagged(moves, buf, m.runs[k:k+1])
		m.inSlot(moves[from:], here.VEU, buf, m.runs[k].Elem)
	}
	return moves, true
}

// gives stores tagged words. Where everybody takes the elements from slots, only waves need the words.
func (taggedEdges) gives(m *Moves, _ At, buf *roperator.Buffer, moves []schema.Move) []schema.Move {
	if !m.p.CarryOf(buf.ID).HasTags() {
		return moves
	}
	from := len(moves)
	moves = m.appendTagged(moves, buf, m.runs)
	for k := from; k < len(moves) && !m.polled[int32(buf.ID)]; k++ {
		moves[k].Kind = schema.SpareMove
	}
	return moves
}

func (taggedEdges) printPlan(b *bytes.Buffer, plan *Plan) {
	if plan.WordsLen > 0 {
		fmt.Fprintf(b, "words %d\n", plan.WordsLen)
	}
	for id, at := range plan.Words {
		if at >= 0 {
			fmt.Fprintf(b, "tagged %d at %d %q\n", id, at, plan.Graph.Buffers[id].Name)
		}
	}
}

func (taggedEdges) printProgram(b *bytes.Buffer, p *Program) {
	for buf, c := range p.Carry {
		if c != Plain {
			fmt.Fprintf(b, "carry %d %v\n", buf, c)
		}
	}
}

func (taggedEdges) statements() map[string]func(*planParser) {
	return map[string]func(*planParser){
		"words": func(p *planParser) {
			p.once("words")
			p.plan.WordsLen = p.number(0, math.MaxInt64)
		},
		"tagged": func(p *planParser) { p.buffer(p.plan.Words) },
		"carry":  (*planParser).carry,
	}
}

// carry reads how a buffer's data travel.
func (p *planParser) carry() {
	prog := p.program()
	id := p.number(0, int64(len(p.plan.Arena))-1)
	word := p.hyphenated()
	if p.bad {
		return
	}
	if prog.Carry == nil {
		prog.Carry = make([]Carry, len(p.plan.Arena))
	}
	switch word {
	case Tagged.String():
		prog.Carry[id] = Tagged
	case TaggedAndPlain.String():
		prog.Carry[id] = TaggedAndPlain
	default:
		p.fail("unknown way to travel %.20q, want %v or %v", word, Tagged, TaggedAndPlain)
	}
}

// whole checks the buffers that travel in tagged words: one program exports all that is written to them, steps that do
// not import them have a plain copy to read, and no two buffers share words.
func (taggedEdges) whole(v *verifier) {
	bad := func(buf int, format string, args ...any) {
		v.l.Add(v.problem(badCarry, "buffer %d (%q) %s", buf, v.plan.Graph.Buffers[buf].Name,
			fmt.Sprintf(format, args...)))
	}
	home := map[int]int{} // buffer → segment that tags it
	for i, s := range v.plan.Segments {
		if s.Program.Carry == nil {
			continue
		}
		if len(s.Program.Carry) != len(v.plan.Graph.Buffers) {
			v.l.Add(v.problem(badPlan, "segment %d says how %d buffers travel, the graph has %d", i,
				len(s.Program.Carry), len(v.plan.Graph.Buffers)))
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
			if b := v.plan.Graph.Buffers[buf]; roperator.PerWord(b.DType) == 0 || b.Kind == roperator.Input ||
				b.Kind == roperator.Const {
				bad(buf, "cannot be tagged: it is of type %v and kind %v", b.DType, b.Kind)
			} else if b.State {
				bad(buf, "cannot be tagged: it is a state, and has no words when the program begins")
			} else if b.Kind == roperator.Output && !c.HasPlain() {
				bad(buf, "is an output and has no plain copy")
			}
		}
	}
	v.wordsLen()
	for id := range v.plan.Graph.Ops {
		v.ownWords(int32(id), home, bad)
	}
	if len(home) == 0 {
		return
	}
	for id := range v.plan.Graph.Ops {
		v.carriedBy(int32(id), home, bad)
	}
	v.words(home, bad)
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
			bad(buf, "is tagged by segment %d, but %s in segment %d writes it otherwise", seg,
				opName(v.plan.Graph.Ops[id]), v.seg[id])
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

// ownWords checks what an rKernel polls and stores itself: it travels in words of the rOperator's own program and is
// nowhere else, and an rTask stores whole words. The executor moves no words of several elements.
func (v *verifier) ownWords(id int32, home map[int]int, bad func(buf int, format string, args ...any)) {
	if v.seg[id] < 0 {
		return
	}
	p, op := v.plan.Segments[v.seg[id]].Program, v.plan.Graph.Ops[id]
	c := p.Candidate(id)
	check := func(what string, a *roperator.Access) {
		buf := a.View.Buf.ID
		if seg, tagged := home[buf]; !tagged || int32(seg) != v.seg[id] || p.CarryOf(buf) != Tagged {
			bad(buf, "does not travel in words of segment %d alone, and %s %s such words", v.seg[id], opName(op), what)
		}
	}
	for _, i := range c.Polls {
		check("polls", &c.Reads[i])
	}
	for _, i := range c.Gives {
		a := &c.Writes[i]
		check("stores", a)
		for task := range c.Tasks {
			if !a.WholeWords(task, max(1, roperator.PerWord(a.View.DType()))) {
				bad(a.View.Buf.ID, "has words of which rTask %d of %s writes a part", task, opName(op))
				break
			}
		}
	}
	for _, list := range [][]roperator.Staged{c.Imports, c.Exports} {
		for i := range list {
			b := list[i].Access.View.Buf
			if _, tagged := home[b.ID]; tagged && !roperator.IsWord(b.DType) {
				bad(b.ID, "has words of several elements, which the executor cannot move for %s", opName(op))
			}
		}
	}
}

// taggedWords is how many tagged words all elements of a buffer take.
func taggedWords(b *roperator.Buffer) int64 {
	n := max(1, roperator.PerWord(b.DType))
	return (b.Elems + n - 1) / n
}

// wordsLen checks that the plan asks for no more tagged words than lines of them for all buffers hold: the run time
// allocates what the plan says.
func (v *verifier) wordsLen() {
	most := int64(0)
	for _, b := range v.plan.Graph.Buffers {
		most += (taggedWords(b) + 15) / 16 * 16
	}
	if v.plan.WordsLen < 0 || v.plan.WordsLen > most {
		v.l.Add(v.problem(badCarry, "the plan has %d tagged words, all its buffers take %d", v.plan.WordsLen, most))
	}
}

// words checks that no two buffers share tagged words: a word is written once a launch.
func (v *verifier) words(home map[int]int, bad func(buf int, format string, args ...any)) {
	if len(v.plan.Words) != len(v.plan.Graph.Buffers) {
		v.l.Add(v.problem(badPlan, "the plan has tagged words for %d buffers, the graph has %d", len(v.plan.Words),
			len(v.plan.Graph.Buffers)))
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
		if at < 0 || at+taggedWords(v.plan.Graph.Buffers[buf]) > v.plan.WordsLen {
			bad(buf, "has its tagged words at %d, want them inside the %d of the plan", at, v.plan.WordsLen)
			continue
		}
		if at < end {
			bad(buf, "shares tagged words with buffer %d", last)
		}
		end, last = at+taggedWords(v.plan.Graph.Buffers[buf]), buf
	}
}

// read checks reads that poll tagged data. Steps of the same program must have exported what is read. The reader must
// have an edge from each of them, and be in a later wave for the case that the program runs wave by wave.
func (taggedEdges) read(m *memoryCheck, id int32, r *region) {
	parts := m.past[r.box.Buf].parts
	for i := range parts {
		if parts[i].segment != m.seg[id] {
			continue // whole has reported it
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

// followsTo reports that s has a tagged edge from the step at from, or from a later one of its vEU.
func followsTo(s *Step, from At) bool {
	in := s.InOf(EdgeTagged)
	i := sort.Search(len(in), func(i int) bool { return in[i].VEU >= from.VEU })
	return i < len(in) && in[i].VEU == from.VEU && in[i].Order >= from.Order
}

// write checks that no element of a tagged buffer is written twice in a launch.
func (taggedEdges) write(m *memoryCheck, id int32, r *region) {
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
