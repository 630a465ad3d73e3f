package vdevice

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/roperator"
)

// A box that lost elements of a large buffer is noticed, although the scheduler lost the same ones.
func TestExtentsOfLargeBuffers(t *testing.T) {
	const elems = 1 << 33
	b := &roperator.Buffer{Name: "large", Elems: elems, Canon: []int64{1 << 30, 1}}
	a := roperator.Access{View: roperator.Contiguous(b, []int64{elems}), Box: func(task int, lo, hi []int64) {
		lo[0], hi[0] = int64(task)*elems/2, int64(task+1)*elems/2
	}}
	op := &roperator.ROperator{Candidates: []*roperator.Candidate{{Tasks: 2, Writes: []roperator.Access{a}}}}
	check := func(canon ...int64) string {
		b.Canon = canon
		v := &verifier{plan: &Plan{Graph: &roperator.Graph{Buffers: []*roperator.Buffer{b}, Ops: []*roperator.ROperator{op}},
			Pick: []int{0}}}
		v.extents()
		if err := v.l.Err(); err != nil {
			return err.Error()
		}
		return ""
	}
	if got := check(1<<30, 1); got != "" {
		t.Errorf("right coordinates are refused: %s", got)
	}
	if got := check(1); !strings.Contains(got, "which 32 bits do not hold") {
		t.Errorf("one coordinate of 2³³ values: %q", got)
	}
	for address, want := range map[int64]bool{
		0: true, 5<<30 + 7: true, 6<<30 - 1: true, 6 << 30: false, elems - 1: false,
	} {
		box := roperator.Box{N: 2}
		box.Hi[0], box.Hi[1] = 6, 1<<30
		b.Canon = []int64{1 << 30, 1}
		if got := boxesHold(b, []roperator.Box{box}, address); got != want {
			t.Errorf("address %d in %v: %v", address, box, got)
		}
	}
	a.View.Shape = []int64{elems + 1}
	a.Box = nil
	op.Candidates[0].Writes = []roperator.Access{a}
	if got := check(1<<30, 1); !strings.Contains(got, "which has 8589934592") {
		t.Errorf("an access beyond the buffer: %q", got)
	}
}
