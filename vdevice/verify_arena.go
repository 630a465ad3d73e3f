package vdevice

import (
	"fmt"
	"math"
	"sort"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
)

// arena checks that every buffer that is accessed has a place, and that bytes of the arena pass from one buffer to
// another only when all accesses of the first are complete.
func (v *verifier) arena() {
	plan := v.plan
	if len(plan.Arena) != len(plan.Graph.Buffers) {
		v.l.Add(&diag.Diagnostic{ID: badArena, Message: fmt.Sprintf("the plan places %d buffers, the graph has %d",
			len(plan.Arena), len(plan.Graph.Buffers))})
		return
	}
	uses := bufferUses(plan, v.at, v.seg, v.lanes, nil)
	var live []int
	for id, b := range plan.Graph.Buffers {
		if why := v.badPlace(b, &uses[id]); why != "" {
			v.l.Add(&diag.Diagnostic{ID: badArena, Message: fmt.Sprintf("buffer %d (%q) %s", id, b.Name, why)})
		} else if uses[id].firstSeg >= 0 && b.Bytes() > 0 && v.plan.Arena[id] >= 0 {
			live = append(live, id)
		}
	}
	if v.l.Errors() == 0 {
		v.succession(live, uses, v.others())
		v.flush()
	}
}

func (v *verifier) badPlace(b *roperator.Buffer, u *use) string {
	off := v.plan.Arena[b.ID]
	switch {
	case b.Kind != roperator.Arena && off != -1:
		return fmt.Sprintf("is of kind %v and must not be in the arena", b.Kind)
	case b.Kind == roperator.Arena && u.firstSeg >= 0 && off < 0 && v.plan.HasPlain(b.ID):
		return "is accessed but has no place in the arena"
	case off < -1 || off >= 0 && (off%ArenaAlign != 0 || off > v.plan.ArenaLen-b.Bytes()):
		return fmt.Sprintf("of %d bytes is at %d; want a multiple of %d inside the arena of %d bytes", b.Bytes(), off,
			ArenaAlign, v.plan.ArenaLen)
	}
	return ""
}

// span is a run of arena bytes and the buffer that had it last.
type span struct {
	from, to int64
	buf      int
}

// succession goes through the buffers in the order of their first accesses, and compares each with the buffers that had
// its bytes last:
//
//	bytes     │ A A A A │ B B │            C takes bytes of A and of B. Both are compared with C; what had those bytes
//	          │   C C C C C   │            before A or B was compared with A or B, and so is ordered before C as well.
//
// others has of operands that results replace the accesses that count. Where rTasks may be jumped over, each buffer is
// compared with all before it that had some of its bytes.
func (v *verifier) succession(live []int, uses []use, others map[inheritance]use) {
	starts := v.starts(live, uses)
	sort.SliceStable(live, func(i, j int) bool { return starts[live[i]] < starts[live[j]] })
	if v.plan.conditional() {
		v.successions(live, uses, others)
		return
	}
	var owners []span // disjoint, ascending
	for _, id := range live {
		from := v.plan.Arena[id]
		to := from + v.plan.Graph.Buffers[id].Bytes()
		lo := sort.Search(len(owners), func(i int) bool { return owners[i].to > from })
		hi := lo
		var parts []span
		seen := map[int]bool{}
		for ; hi < len(owners) && owners[hi].from < to; hi++ {
			o := owners[hi]
			if !seen[o.buf] {
				seen[o.buf] = true
				old := uses[o.buf]
				if u, ok := others[inheritance{o.buf, id}]; ok {
					old = u
				}
				v.succeeds(o.buf, id, &old, &uses[id])
			}
			if o.from < from {
				parts = append(parts, span{o.from, from, o.buf})
			}
			if o.to > to {
				parts = append(parts, span{to, o.to, o.buf})
			}
		}
		parts = append(parts, span{from, to, id})
		sort.Slice(parts, func(i, j int) bool { return parts[i].from < parts[j].from })
		owners = append(owners[:lo], append(parts, owners[hi:]...)...)
	}
}

// successions compares each buffer with all of which it takes bytes.
func (v *verifier) successions(live []int, uses []use, others map[inheritance]use) {
	for i, id := range live {
		from := v.plan.Arena[id]
		to := from + v.plan.Graph.Buffers[id].Bytes()
		for _, before := range live[:i] {
			at := v.plan.Arena[before]
			if at >= to || from >= at+v.plan.Graph.Buffers[before].Bytes() {
				continue
			}
			old := uses[before]
			if u, ok := others[inheritance{before, id}]; ok {
				old = u
			}
			v.succeeds(before, id, &old, &uses[id])
		}
	}
}

// starts numbers the first access of each buffer, in an order that happens-before allows.
func (v *verifier) starts(live []int, uses []use) map[int]int {
	positions := make([][]int, len(v.orders))
	n := 0
	for i, h := range v.orders {
		positions[i] = h.positions(n)
		n += len(h.topo)
	}
	out := map[int]int{}
	for _, id := range live {
		u, first := &uses[id], math.MaxInt
		h := v.orders[u.firstSeg]
		for _, t := range u.first {
			first = min(first, positions[u.firstSeg][h.id(At{t.veu, t.first})])
		}
		out[id] = first
	}
	return out
}

// succeeds reports accesses of the buffer old, which are a, that may come after an access of the buffer next, which are b.
func (v *verifier) succeeds(old, next int, a, b *use) {
	if a.lastSeg < b.firstSeg {
		return
	}
	k := findingKey{id: arenaUnordered, buf: int32(old), buf2: int32(next)}
	h := v.orders[b.firstSeg]
	if a.lastSeg > b.firstSeg {
		k.to = h.task(At{b.first[0].veu, b.first[0].first}).Op
		v.found.add(k, func() string {
			return fmt.Sprintf("buffer %q takes bytes of %q in segment %d, which is accessed until segment %d",
				v.name(next), v.name(old), b.firstSeg, a.lastSeg)
		})
		return
	}
	for _, y := range b.first {
		here := At{y.veu, y.first}
		for _, x := range a.last {
			if h.known(here, x.veu) > x.last {
				continue
			}
			k.to, k.from = h.task(here).Op, h.task(At{x.veu, x.last}).Op
			v.found.add(k, func() string {
				return fmt.Sprintf("buffer %q takes bytes of %q, but %s may run before %s has", v.name(next),
					v.name(old), h.name(here), h.name(At{x.veu, x.last}))
			})
		}
	}
}

// others finds the results that lie exactly where a replaceable operand of their rOperator lies, and those accesses of
// the operands that must be complete before.
func (v *verifier) others() map[inheritance]use {
	plan := v.plan
	by := map[int]inheritanceOf{} // by operand
	for _, x := range plan.inheritances() {
		if plan.Arena[x.operand] >= 0 && plan.Arena[x.operand] == plan.Arena[x.result] {
			by[x.operand] = x
		}
	}
	if len(by) == 0 {
		return nil
	}
	uses, out := disturbances(plan, v.at, v.seg, v.lanes, by), map[inheritance]use{}
	for operand, x := range by {
		out[x.inheritance] = uses[operand]
	}
	return out
}

func (v *verifier) name(buf int) string { return v.plan.Graph.Buffers[buf].Name }
