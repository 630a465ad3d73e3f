package vdevice

import (
	"fmt"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/roperator"
)

const badLoop = "bad-loop" // a turn of a loop would not find what it needs

// repeats proves that the segments of loops may be repeated. The other checks look at one turn. Between two turns
// there is a launch boundary, which orders all accesses; so it is left to show that each turn finds the same as the
// first one, but for what the turn before leaves to it:
//
//   - the segments of a loop follow each other, and have the rOperators of the loop and no others;
//   - what a turn reads it has written itself before (roperator.Verify), or the turn before has left it, or it is from
//     outside of the loop, which does not write it;
//   - nothing that a turn writes takes bytes of what is from outside, of what a turn leaves, or of what turns collect;
//   - what is read behind the loop is what the last turn has left, or what all turns have collected.
func (v *verifier) repeats() {
	for id, op := range v.plan.Graph.Ops {
		if s := v.seg[id]; s >= 0 && v.plan.Segments[s].Loop != op.Loop {
			v.l.Add(v.opDiag(badLoop, int32(id), "it is part of loop %d and in segment %d, which is part of loop %d; 0 is none",
				op.Loop, s, v.plan.Segments[s].Loop))
		}
	}
	for loop := 1; loop <= len(v.plan.Graph.Loops) && v.l.Errors() == 0; loop++ {
		first, last := v.plan.loopSegments(loop)
		for i := first; i >= 0 && i <= last; i++ {
			if v.plan.Segments[i].Loop != loop {
				v.l.Add(v.problem(badLoop, "segment %d is between segments of loop %d and not part of it", i, loop))
			}
		}
		v.loop(loop)
	}
}

// loopUse is how a loop and the rest of the program use a buffer of the arena.
type loopUse struct {
	written, read bool // in the loop
	collected     bool // each turn writes a part
	whole         bool // each turn writes the same
	left          bool // a turn reads what the turn before has written
	outside       bool // it is accessed outside of the loop
}

// loop checks the buffers of one loop.
func (v *verifier) loop(loop int) {
	uses := map[int]*loopUse{}
	for id, op := range v.plan.Graph.Ops {
		v.plan.accessed(id, func(a *roperator.Access, write bool) {
			u := uses[a.View.Buf.ID]
			if u == nil {
				u = &loopUse{}
				uses[a.View.Buf.ID] = u
			}
			switch {
			case op.Loop != loop:
				u.outside = true
			case write:
				u.written, u.collected, u.whole = true, u.collected || a.Turns.Trips > 0, u.whole || a.Turns.Trips == 0
			default:
				u.read, u.left = true, u.left || a.Before
			}
		})
	}
	var written, kept []int
	for id := range v.plan.Graph.Buffers {
		u := uses[id]
		if u == nil || !u.written && !u.read {
			continue
		}
		if why := u.problem(v.plan.Graph.Buffers[id]); why != "" {
			v.l.Add(&diag.Diagnostic{ID: badLoop, Message: fmt.Sprintf("buffer %q of loop %d %s", v.name(id), loop, why)})
		}
		if u.written {
			written = append(written, id)
		}
		if u.outside || u.left || u.collected {
			kept = append(kept, id)
		}
	}
	for _, k := range kept {
		for _, w := range written {
			if k != w && v.overlap(k, w) {
				v.l.Add(&diag.Diagnostic{ID: badLoop, Message: fmt.Sprintf(
					"buffer %q, which turns of loop %d write, has bytes of %q, which other turns need", v.name(w), loop, v.name(k))})
			}
		}
	}
}

// problem says why turns would not find what they need in a buffer, "" if they do.
func (u *loopUse) problem(b *roperator.Buffer) string {
	switch {
	case u.left && !u.whole:
		return "is to have what the turn before has left, and no turn leaves it"
	case u.collected && (u.read || u.whole):
		return "is used in the loop whose turns each write a part of it"
	case u.whole && u.outside && !b.State:
		return "is used outside of the loop, and is not what the last turn leaves"
	}
	return ""
}

// overlap reports that two buffers have common bytes of the arena.
func (v *verifier) overlap(a, b int) bool {
	x, y := v.plan.Arena[a], v.plan.Arena[b]
	if x < 0 || y < 0 {
		return false
	}
	return x < y+v.plan.Graph.Buffers[b].Bytes() && y < x+v.plan.Graph.Buffers[a].Bytes()
}
