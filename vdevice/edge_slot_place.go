package vdevice

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// stagedRun is a run of elements of a tagged buffer that a step imports or exports.
type stagedRun struct {
	at     At
	lo, hi int64
}

// stagedRuns lists what the program's steps import and export of tagged buffers, per Buffer.ID. If some of a buffer's
// runs are not contiguous, none of them is listed.
type stagedRuns struct{ imports, exports map[int32][]stagedRun }

func (p *Program) stagedRuns() stagedRuns {
	out := stagedRuns{map[int32][]stagedRun{}, map[int32][]stagedRun{}}
	strided := map[int32]bool{}
	var runs []roperator.Run
	for v, steps := range p.Steps {
		for o := range steps {
			t := steps[o].Task
			c := p.Candidate(t.Op)
			add := func(to map[int32][]stagedRun, staged []roperator.Staged) {
				for i := range staged {
					buf := int32(staged[i].Access.View.Buf.ID)
					if !p.CarryOf(int(buf)).HasTags() {
						continue
					}
					runs = staged[i].AppendRuns(runs[:0], int(t.Index))
					for _, r := range runs {
						strided[buf] = strided[buf] || r.Stride != 1 && r.Count > 1
						to[buf] = append(to[buf], stagedRun{At{int32(v), int32(o)}, r.Elem, r.Elem + r.Count})
					}
				}
			}
			add(out.imports, c.Imports)
			add(out.exports, c.Exports)
		}
	}
	for buf := range strided {
		if strided[buf] {
			delete(out.imports, buf)
			delete(out.exports, buf)
		}
	}
	return out
}

// slotUse is a slot with the steps that use it.
type slotUse struct {
	Slot
	last    int32 // the order of the step that takes the elements, on the slot's vEU
	writers []At  // the steps that store them
}

// possibleSlots lists the slots that the program could have: one for every run of elements that a vEU imports, if all
// steps that write the run are in the vEU's cluster. A run that a vEU imports several times has none, since a word of a
// slot is taken once.
func (p *Program) possibleSlots() []slotUse {
	var out []slotUse
	all := p.stagedRuns()
	for _, buf := range sortedKeys(all.imports) {
		exports := all.exports[buf]
		slices.SortFunc(exports, func(a, b stagedRun) int { return compare(a.lo, b.lo) })
		longest := int64(0)
		for _, e := range exports {
			longest = max(longest, e.hi-e.lo)
		}
		byVEU := map[int32][]stagedRun{}
		for _, x := range all.imports[buf] {
			byVEU[x.at.VEU] = append(byVEU[x.at.VEU], x)
		}
		for _, v := range sortedKeys(byVEU) {
			for _, s := range takenOnce(buf, v, byVEU[v]) {
				from, _ := slices.BinarySearchFunc(exports, s.Lo-longest,
					func(e stagedRun, lo int64) int { return compare(e.lo, lo) })
				inCluster := true
				for _, e := range exports[from:] {
					if e.lo >= s.Hi {
						break
					}
					if e.hi > s.Lo {
						s.writers = append(s.writers, e.at)
						inCluster = inCluster && int(e.at.VEU)/p.Cluster == int(v)/p.Cluster
					}
				}
				if inCluster && len(s.writers) > 0 {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// takenOnce makes a slot of every run that overlaps no other.
func takenOnce(buf, veu int32, ps []stagedRun) []slotUse {
	slices.SortFunc(ps, func(a, b stagedRun) int { return compare(a.lo, b.lo) })
	var out []slotUse
	end := int64(0) // of the stagedRuns so far
	for i, x := range ps {
		if x.lo >= end && (i+1 == len(ps) || ps[i+1].lo >= x.hi) {
			out = append(out, slotUse{Slot: Slot{VEU: veu, Buf: buf, Lo: x.lo, Hi: x.hi}, last: x.at.Order})
		}
		end = max(end, x.hi)
	}
	return out
}

// PlaceSlots gives slots to the vEUs of a program with clusters, of no more than most words each. Elements for which
// there is no room go through global memory, as those from other clusters do.
func PlaceSlots(p *Program, most int) {
	p.Slots = nil
	h, cycle := newOrder(p, RProgram)
	if cycle != nil {
		panic("BUG: the slots of a program with circular waits")
	}
	known := newImported(h)
	all := p.possibleSlots()
	slices.SortStableFunc(all, func(a, b slotUse) int {
		if a.VEU != b.VEU {
			return int(a.VEU - b.VEU)
		}
		return int(a.last - b.last)
	})
	owner := make([]int32, most)  // per word: order of the step that took it last
	var gates [schema.Gates]int32 // likewise
	for first := 0; first < len(all); {
		end := first + 1
		for end < len(all) && all[end].VEU == all[first].VEU && all[end].last == all[first].last {
			end++
		}
		if first == 0 || all[first-1].VEU != all[first].VEU {
			for w := range owner {
				owner[w] = -1
			}
			for g := range gates {
				gates[g] = -1
			}
		}
		p.placeStep(all[first:end], owner, &gates, known)
		first = end
	}
	slices.SortFunc(p.Slots, compareSlots)
}

// placeStep gives slots to what one step takes, as far as there are words for them and a gate.
func (p *Program) placeStep(taken []slotUse, owner []int32, gates *[schema.Gates]int32, known *imported) {
	least := int32(math.MaxInt32)
	for i := range taken {
		least = min(least, taken[i].freeBefore(known))
	}
	gate := slices.IndexFunc(gates[:], func(last int32) bool { return last < least })
	if gate < 0 {
		return
	}
	for i := range taken {
		s := &taken[i]
		if s.At = firstFree(owner, int(s.Hi-s.Lo), s.freeBefore(known)); s.At < 0 {
			continue
		}
		for w := s.At; w < s.At+int32(s.Hi-s.Lo); w++ {
			owner[w] = s.last
		}
		gates[gate], s.Gate = s.last, int32(gate)
		p.Slots = append(p.Slots, s.Slot)
	}
}

// GatePhases says, for every slot, how many steps of its vEU have taken elements through the slot's gate before the
// step that takes the slot. An mbarrier counts these phases.
func (p *Program) GatePhases() []int32 {
	out := make([]int32, len(p.Slots))
	var runs []roperator.Run
	for v, steps := range p.Steps {
		var phases [schema.Gates]int32
		for o := range steps {
			t := steps[o].Task
			imports := p.Candidate(t.Op).Imports
			gate := int32(-1)
			for i := range imports {
				buf := int32(imports[i].Access.View.Buf.ID)
				if !p.CarryOf(int(buf)).HasTags() {
					continue
				}
				runs = imports[i].AppendRuns(runs[:0], int(t.Index))
				for _, r := range runs {
					if at := p.FindSlot(int32(v), buf, r.Elem); at >= 0 {
						gate = p.Slots[at].Gate
						out[at] = phases[gate]
					}
				}
			}
			if gate >= 0 {
				phases[gate]++
			}
		}
	}
	return out
}

func compareSlots(a, b Slot) int {
	if a.VEU != b.VEU {
		return int(a.VEU - b.VEU)
	}
	if a.Buf != b.Buf {
		return int(a.Buf - b.Buf)
	}
	return compare(a.Lo, b.Lo)
}

// byAllWriters is how many steps of the slot's vEU have imported whenever one of the slot's writers computes. Words
// that those steps took are free.
func (s *imported) byAllWriters(x *slotUse) int32 {
	least := int32(math.MaxInt32)
	for _, w := range x.writers {
		least = min(least, s.of(w, x.VEU))
	}
	return least
}

// freeBefore is byAllWriters, except that a writer on the slot's own vEU is taken for one of another vEU, which knows
// less. So slots for elements that several vEUs import get the same words in all of them, and one move stores the
// elements into all of these slots.
func (x *slotUse) freeBefore(s *imported) int32 {
	least := s.byAllWriters(x)
	for _, w := range x.writers {
		if w.VEU == x.VEU {
			least = min(least, w.Order)
		}
	}
	return least
}

// slotAlign is what slots begin at multiples of, in words: they are read four at a time.
const slotAlign = 4

// firstFree finds the first n successive words whose last readers are among the vEU's first steps, as many as imported
// says. It returns -1 if there are none.
func firstFree(owner []int32, n int, imported int32) int32 {
	first := 0
	for w, last := range owner {
		switch {
		case last >= imported:
			first = (w/slotAlign + 1) * slotAlign
		case w-first+1 == n:
			return int32(first)
		}
	}
	return -1
}

// FindSlot is the number of the slot in which the vEU takes an element of a buffer, -1 if the element comes through
// global memory.
func (p *Program) FindSlot(veu, buf int32, elem int64) int {
	i, found := slices.BinarySearchFunc(p.Slots, Slot{VEU: veu, Buf: buf, Lo: elem}, compareSlots)
	if !found {
		i--
	}
	if i < 0 || p.Slots[i].VEU != veu || p.Slots[i].Buf != buf || elem >= p.Slots[i].Hi {
		return -1
	}
	return i
}

// EachSlot calls yield with the numbers of all slots in veu's cluster that are for any of the elements from lo up to
// hi.
func (p *Program) EachSlot(veu, buf int32, lo, hi int64, yield func(slot int)) {
	if len(p.Slots) == 0 {
		return
	}
	first := veu / int32(p.Cluster) * int32(p.Cluster)
	for v := first; v < first+int32(p.Cluster); v++ {
		i, found := slices.BinarySearchFunc(p.Slots, Slot{VEU: v, Buf: buf, Lo: lo}, compareSlots)
		if !found && i > 0 && p.Slots[i-1].VEU == v && p.Slots[i-1].Buf == buf && p.Slots[i-1].Hi > lo {
			i--
		}
		for ; i < len(p.Slots) && p.Slots[i].VEU == v && p.Slots[i].Buf == buf && p.Slots[i].Lo < hi; i++ {
			yield(i)
		}
	}
}

// Polled reports, for every tagged buffer, whether any vEU takes any of its elements from global memory.
func (p *Program) Polled() map[int32]bool {
	out := map[int32]bool{}
	var runs []roperator.Run
	for v, steps := range p.Steps {
		for o := range steps {
			t := steps[o].Task
			imports := p.Candidate(t.Op).Imports
			for i := range imports {
				buf := int32(imports[i].Access.View.Buf.ID)
				if out[buf] || !p.CarryOf(int(buf)).HasTags() {
					continue
				}
				runs = imports[i].AppendRuns(runs[:0], int(t.Index))
				for _, r := range runs {
					out[buf] = out[buf] || p.FindSlot(int32(v), buf, r.Elem) < 0
				}
			}
		}
	}
	return out
}

// takesFromSlots reports whether the step at at takes all that the step at from gives it from slots.
func (p *Program) takesFromSlots(at, from At) bool {
	if len(p.Slots) == 0 || int(at.VEU)/p.Cluster != int(from.VEU)/p.Cluster {
		return false
	}
	to, by := p.stepAt(at).Task, p.stepAt(from).Task
	exports := p.Candidate(by.Op).Exports
	var runs []roperator.Run
	for i := range exports {
		buf := exports[i].Access.View.Buf
		if !importsFrom(p.Candidate(to.Op), buf) {
			continue
		}
		runs = exports[i].AppendRuns(runs[:0], int(by.Index))
		for _, r := range runs {
			if p.FindSlot(at.VEU, int32(buf.ID), r.Elem) < 0 {
				return false
			}
		}
	}
	return true
}

func importsFrom(c *roperator.Candidate, buf *roperator.Buffer) bool {
	for i := range c.Imports {
		if c.Imports[i].Access.View.Buf == buf {
			return true
		}
	}
	return false
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func sortedKeys[T any](m map[int32]T) []int32 {
	out := make([]int32, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
