package vdevice

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice/vdevicetest"
)

// rowsPlan is an rProgram of vdevicetest.Rows with all rows but the last in tagged words, which rKernels poll and store.
func rowsPlan(t *testing.T) (*Plan, *Program) {
	t.Helper()
	const tasks, ops = 4, 4
	g := vdevicetest.Rows(ops, 64, 64/tasks)
	b := NewBuilder(testSpec(t, tasks), g)
	for op := range int32(ops) {
		b.Pick(op, len(g.Ops[op].Candidates)-1)
		b.NextWave()
		for i := range int32(tasks) {
			task := Task{op, i}
			if op > 0 {
				b.After(EdgeTagged, task, b.Front(allTasks(op-1, tasks)))
			}
			if op > 1 {
				b.After(EdgeTagged, task, b.Front([]Task{{op - 2, i}}))
			}
			b.Append(task, i)
		}
		if op < ops-1 {
			b.Carry(int(op)+1, Tagged, len(g.Buffers))
		}
	}
	p := b.Program()
	return laidOut(&Plan{Spec: p.Spec, Graph: g, Pick: p.Pick, Segments: []Segment{{Kind: RProgram, Program: p}}}), p
}

// Two values of 16 bits share a word, and words of a buffer begin on lines of their own.
func TestWordsOfPairs(t *testing.T) {
	plan, _ := rowsPlan(t)
	if err := Verify(plan); err != nil {
		t.Fatal(err)
	}
	if want := []int64{-1, 0, 32, 64, -1}; !slices.Equal(plan.Words, want) || plan.WordsLen != 96 {
		t.Errorf("words %v of %d, want %v of 96", plan.Words, plan.WordsLen, want)
	}
}

// Every rule of words that rKernels poll and store themselves: a program that breaks it is refused.
func TestPlantedRowFaults(t *testing.T) {
	for _, c := range []struct {
		name     string
		do       func(*Plan, *Program)
		id, want string
	}{
		{"a row that is polled and travels in memory", func(_ *Plan, p *Program) {
			p.Carry[2] = Plain
		}, badCarry, "polls such words"},
		{"a row with a plain copy that nobody writes", func(_ *Plan, p *Program) {
			p.Carry[2] = TaggedAndPlain
		}, badCarry, "stores such words"},
		{"a reader that does not poll", func(_ *Plan, p *Program) { p.Candidate(2).Polls = p.Candidate(2).Polls[1:] },
			badCarry, "has no plain copy, which"},
		{"a writer that stores values", func(_ *Plan, p *Program) { p.Candidate(1).Gives = nil }, badCarry,
			"writes it otherwise"},
		{"rTasks that share a word", func(_ *Plan, p *Program) {
			grid := vdevicetest.Grid{Shape: []int64{64}, Tile: []int64{17}}
			p.Candidate(1).Writes = []roperator.Access{grid.Of(p.Candidate(1).Writes[0].View)}
		}, badCarry, "has words of which rTask 0 of"},
		{"values that the executor moves", func(_ *Plan, p *Program) {
			c := p.Candidate(2)
			c.Imports = []roperator.Staged{{Access: c.Reads[0], Index: 0, Pitch: []int64{1}}}
		}, badCarry, "which the executor cannot move"},
		{"values of 64 bits", func(plan *Plan, _ *Program) { plan.Graph.Buffers[2].DType = ir.Int64 }, badCarry,
			"cannot be tagged"},
		{"an edge left out", func(_ *Plan, p *Program) {
			s := &p.Steps[0][2]
			s.SetIn(EdgeTagged, s.InOf(EdgeTagged)[1:]...)
		}, unordered, "but does not follow it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan, p := rowsPlan(t)
			c.do(plan, p)
			err := Verify(plan)
			wantIDs(t, err, c.id)
			if !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("want %q, got %v", c.want, err)
			}
		})
	}
}
