package vdevice

import (
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// Launches of a branch that is not taken start blocks that end at once, each of which takes about as long as an empty
// launch. In a CUDA graph launches can also be the body of a conditional node, which does not run at all:
//
//	launches     c · then₁ then₂ … then₄₀ · else₁ … else₅₀ · z
//	graph        c · IF c (then₁ … then₄₀) · IF not c (else₁ … else₅₀) · z
//
// Nodes stand inside of nodes, as branches do.

// minBranchLaunches is how many launches a conditional node has at least. On an H200 the first node of a graph takes 8 µs
// where it is not taken, further ones 6 µs, and 12 µs more than its launches where it is taken; a launch that ends at once
// takes 0.7 µs (conditional_nodes in bench/results/h200-changes.json).
const minBranchLaunches = 32

// Branch is successive waves, First up to, but without, Last, of which nothing is needed unless a condition holds.
type Branch struct {
	Condition   roperator.Condition
	First, Last int
}

// Branches lists the waves of a program that are conditional nodes where they are launched one by one: outer branches
// before those inside of them, and earlier ones before later ones.
func (p *Program) Branches() []Branch {
	if !p.Conditional() {
		return nil
	}
	waves := p.waveConditions()
	var out []Branch
	for w, mine := range waves {
		first := 0
		if w > 0 {
			first = roperator.SharedConditions(waves[w-1], mine)
		}
		for l := first; l < len(mine); l++ {
			end := w + 1
			for end < len(waves) && roperator.SharedConditions(waves[end], mine) > l {
				end++
			}
			if end-w >= minBranchLaunches {
				out = append(out, Branch{mine[l], w, end})
			}
		}
	}
	return out
}

// waveConditions are, for each wave, the conditions that all of its rTasks begin with.
func (p *Program) waveConditions() [][]roperator.Condition {
	out := make([][]roperator.Condition, p.Waves)
	met := make([]bool, p.Waves)
	for _, steps := range p.Steps {
		for i := range steps {
			w, mine := steps[i].Wave, p.conditionsOf(&steps[i])
			if !met[w] {
				out[w], met[w] = mine, true
				continue
			}
			out[w] = out[w][:roperator.SharedConditions(out[w], mine)]
		}
	}
	return out
}

// BranchRow is the row of a branch whose first wave is launch number `before` of its segment plus First.
func BranchRow(b Branch, before int, at Addresses) schema.BranchRow {
	v := b.Condition.View
	return schema.BranchRow{
		At: at.Plain(v.Buf, v.Ref().Offset), Unless: b.Condition.Not, First: before + b.First, Last: before + b.Last,
	}
}
