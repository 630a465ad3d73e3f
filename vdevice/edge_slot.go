package vdevice

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// slotEdges make tagged edges cheaper inside a cluster, whose thread blocks reach each other's shared memory. A slot is
// a run of words there in which a vEU takes certain elements. The producer stores the elements into the slots of all
// readers of its cluster, and an mbarrier of the reader, the slot's gate, counts the bytes that have come:
//
//	vEU 0 ── rTask ──┬─▶ shared memory of vEU 0: slot, gate
//	                 ├─▶ shared memory of vEU 1: slot, gate ── rTask that takes the elements
//	                 └─▶ global memory, where other clusters poll tagged words
//
// The words of a slot are used again, so every producer must know that the reader before has taken its elements.
type slotEdges struct{ noRules }

func (slotEdges) needs(p *Program, n *Needs) { n.SlotWords = max(n.SlotWords, p.SlotWords()) }

func (slotEdges) count(stats *Stats, s Segment) { stats.Slots += len(s.Program.Slots) }

// gives stores elements into the slots of the vEU's cluster that are for any of them.
func (slotEdges) gives(m *Moves, here At, buf *roperator.Buffer, moves []schema.Move) []schema.Move {
	if !m.p.CarryOf(buf.ID).HasTags() {
		return moves
	}
	for _, r := range m.runs {
		m.p.EachSlot(here.VEU, int32(buf.ID), r.Elem, r.Elem+r.Count, func(i int) {
			slot := &m.p.Slots[i]
			lo, hi := max(r.Elem, slot.Lo), min(r.Elem+r.Count, slot.Hi)
			from := len(moves)
			part := roperator.Run{Elem: lo, At: r.At + lo - r.Elem, Count: hi - lo, Stride: 1}
			moves = m.appendTagged(moves, buf, []roperator.Run{part})
			m.inSlot(moves[from:], slot.VEU, buf, lo)
			for k := from; k < len(moves); k++ {
				x := &moves[k]
				x.Ranks = 1 << (slot.VEU % int32(m.p.Cluster))
				x.Gate = uint32(slot.Gate) | (x.Slot-uint32(slot.At))<<schema.GateShift
			}
		})
	}
	return moves
}

// inSlot makes the imports of a run that starts at elem ones from the vEU's slot, if it has one for them.
func (m *Moves) inSlot(imports []schema.Move, veu int32, buf *roperator.Buffer, elem int64) {
	i := m.p.FindSlot(veu, int32(buf.ID), elem)
	if i < 0 {
		return
	}
	slot := &m.p.Slots[i]
	for k := range imports {
		imports[k].Kind, imports[k].Slot = schema.SlotMove, uint32(int64(slot.At)+elem-slot.Lo)
		imports[k].Gate = uint32(slot.Gate) | uint32(m.phases[i])<<schema.GateShift
		elem += int64(imports[k].Count)
	}
}

func (slotEdges) printSegment(b *bytes.Buffer, s Segment) {
	if n := s.Program.Cluster; n > 0 {
		fmt.Fprintf(b, " cluster %d", n)
	}
}

func (slotEdges) parseSegment(p *planParser, s *Segment) {
	if p.optional("cluster") {
		s.Program.Cluster = int(p.number(1, math.MaxInt32))
	}
}

func (slotEdges) printProgram(b *bytes.Buffer, p *Program) {
	for _, s := range p.Slots {
		fmt.Fprintf(b, "slot %d buffer %d from %d to %d at %d gate %d\n", s.VEU, s.Buf, s.Lo, s.Hi, s.At, s.Gate)
	}
}

func (slotEdges) statements() map[string]func(*planParser) {
	return map[string]func(*planParser){"slot": (*planParser).slot}
}

// slot reads where in its shared memory a vEU takes elements.
func (p *planParser) slot() {
	prog := p.program()
	if p.bad {
		return
	}
	s := Slot{VEU: int32(p.number(0, int64(len(prog.Steps))-1))}
	p.keyword("buffer")
	s.Buf = int32(p.number(0, int64(len(p.plan.Arena))-1))
	p.keyword("from")
	s.Lo = p.number(0, math.MaxInt64)
	p.keyword("to")
	s.Hi = p.number(0, math.MaxInt64)
	p.keyword("at")
	s.At = int32(p.number(0, maxSlotWords))
	p.keyword("gate")
	s.Gate = int32(p.number(0, schema.Gates-1))
	if !p.bad {
		prog.Slots = append(prog.Slots, s)
	}
}

// form checks what a program says of its clusters, and that its slots are in range and sorted.
func (slotEdges) form(v *verifier, segment int, s Segment) {
	p := s.Program
	report := func(format string, args ...any) {
		v.l.Add(&diag.Diagnostic{ID: badCluster, Message: fmt.Sprintf("segment %d %s", segment,
			fmt.Sprintf(format, args...))})
	}
	if p.Cluster == 0 && len(p.Slots) == 0 {
		return
	}
	switch most := v.plan.Spec.Clusters.Of(p.Cluster); {
	case s.Kind != RProgram:
		report("has clusters, but is no rProgram")
	case most == 0:
		report("has clusters of %d vEUs, %s has none of that size", p.Cluster, v.plan.Spec.Name)
	case len(p.Steps) > most*p.Cluster:
		report("has %d vEUs in clusters of %d, %s has %d such clusters at once", len(p.Steps), p.Cluster,
			v.plan.Spec.Name, most)
	}
	for i := range p.Slots {
		x := &p.Slots[i]
		switch {
		case x.VEU < 0 || int(x.VEU) >= len(p.Steps) || x.Buf < 0 || int(x.Buf) >= len(v.plan.Graph.Buffers):
			report("has a slot of vEU %d for buffer %d, which is not there", x.VEU, x.Buf)
		case x.Lo < 0 || x.Hi <= x.Lo || x.Hi > v.plan.Graph.Buffers[x.Buf].Elems || x.At < 0 || x.At%slotAlign != 0 ||
			x.Hi-x.Lo > maxSlotWords || x.At > maxSlotWords:
			report("has a slot of vEU %d for elements %d … %d of buffer %d at %d, which is out of range or not a multiple of 4", x.VEU, x.Lo, x.Hi, x.Buf, x.At)
		case x.Gate < 0 || x.Gate >= schema.Gates:
			report("has a slot of vEU %d for elements %d … %d of buffer %d with gate %d, there are %d", x.VEU, x.Lo,
				x.Hi, x.Buf, x.Gate, schema.Gates)
		case i > 0 && compareSlots(p.Slots[i-1], *x) >= 0:
			report("has slots out of order: they are sorted by vEU, buffer and element")
		}
	}
}

// maxSlotWords bounds the words of slots that a vEU can have: no shared memory is larger.
const maxSlotWords = 1 << 21

// related checks that every slot is for elements that its vEU imports and only its cluster exports. It also checks that
// words and gates are used again only by producers that know that the readers before have taken theirs: otherwise a
// reader would compute with the elements that overwrite them.
func (slotEdges) related(v *verifier, segment int, h *order) {
	p := h.p
	if len(p.Slots) == 0 {
		return
	}
	possible := map[Slot]*slotUse{}
	all := p.possibleSlots()
	for i := range all {
		possible[all[i].Slot] = &all[i]
	}
	var mine []slotUse
	for _, s := range p.Slots {
		key := s
		key.At, key.Gate = 0, 0
		x := possible[key]
		if x == nil {
			v.l.Add(&diag.Diagnostic{ID: badCluster,
				Message: fmt.Sprintf("segment %d: the slot of vEU %d for elements %d … %d of %q is not for something that it imports in one piece from its own cluster",
					segment, s.VEU, s.Lo, s.Hi, v.name(int(s.Buf)))})
			continue
		}
		y := *x
		y.At, y.Gate = s.At, s.Gate
		mine = append(mine, y)
	}
	v.slotReuse(segment, newImported(h), mine)
}

// slotReuse goes through the slots of each vEU in the order in which they are done with.
func (v *verifier) slotReuse(segment int, known *imported, mine []slotUse) {
	slices.SortStableFunc(mine, func(a, b slotUse) int {
		if a.VEU != b.VEU {
			return int(a.VEU - b.VEU)
		}
		return int(a.last - b.last)
	})
	owner := map[int32]*slotUse{} // of a word
	var gates [schema.Gates]*slotUse
	for i := range mine {
		s := &mine[i]
		if i == 0 || mine[i-1].VEU != s.VEU {
			clear(owner)
			gates = [schema.Gates]*slotUse{}
		}
		since := known.byAllWriters(s)
		if i > 0 && mine[i-1].VEU == s.VEU && mine[i-1].last == s.last && mine[i-1].Gate != s.Gate {
			v.l.Add(&diag.Diagnostic{ID: badCluster,
				Message: fmt.Sprintf("segment %d: %s takes slots through gates %d and %d",
					segment, stepName(known.h.p, At{s.VEU, s.last}), mine[i-1].Gate, s.Gate)})
		}
		if before := gates[s.Gate]; before != nil && before.last != s.last && before.last >= since {
			v.l.Add(&diag.Diagnostic{ID: badCluster, Message: fmt.Sprintf(
				"segment %d: elements %d … %d of %q may come through gate %d of vEU %d while %s still waits there",
				segment, s.Lo, s.Hi, v.name(int(s.Buf)), s.Gate, s.VEU, stepName(known.h.p, At{s.VEU, before.last}))})
		}
		gates[s.Gate] = s
		for w := s.At; w < s.At+int32(s.Hi-s.Lo); w++ {
			if before := owner[w]; before != nil && before.last >= since {
				v.l.Add(&diag.Diagnostic{ID: badCluster, Message: fmt.Sprintf(
					"segment %d: vEU %d takes elements %d … %d of %q in words that may still hold elements %d … %d of %q, which %s reads",
					segment, s.VEU, s.Lo, s.Hi, v.name(int(s.Buf)), before.Lo, before.Hi, v.name(int(before.Buf)),
					stepName(known.h.p, At{s.VEU, before.last}))})
				break
			}
		}
		for w := s.At; w < s.At+int32(s.Hi-s.Lo); w++ {
			owner[w] = s
		}
	}
}
