package build

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/roperator"
)

// Condition is a value of the graph, one bool, that a run computes; Not turns it around.
type Condition struct {
	Value *ir.Value
	Not   bool
}

// SetConditions says under which conditions nodes are needed. In runs in which one of them does not hold, the rTasks of
// a node's rOperators end at once.
func (b *Builder) SetConditions(of map[*ir.Node][]Condition) { b.conditions = of }

// Always reports whether n is carried out once in each run.
func (b *Builder) Always(n *ir.Node) bool { return len(b.conditions[n]) == 0 && b.loops.of[n] == 0 }

// readConditions lets a candidate of the current group read the conditions under which it is needed.
func (b *Builder) readConditions(c *roperator.Candidate) {
	for _, x := range b.conditions[b.group.Node] {
		view := b.In(x.Value)
		c.Conditions = append(slices.Clip(c.Conditions), roperator.Condition{View: view, Not: x.Not})
		c.Reads = roperator.AppendRead(slices.Clip(c.Reads), view, nil)
	}
}
