package schedule

import (
	"slices"

	"github.com/rammerc/rammerc/roperator"
)

// handRows picks the candidates that hand whole rows to each other in tagged words, which rKernels store and poll
// themselves. A buffer travels so if one rOperator writes it and all that read it can poll it, since it is nowhere else
// then.
func (r *residence) handRows(g *roperator.Graph, worded [][]choice) {
	open := r.rowBuffers(g, worded)
	for {
		picks, stuck := rowChoices(g, worded, open)
		if len(stuck) == 0 {
			for op, ch := range picks {
				r.choice[op] = ch
			}
			break
		}
		for _, buf := range stuck {
			delete(open, buf)
		}
	}
	for buf := range open {
		r.tagged[buf] = true
	}
}

// rowBuffers are the buffers that may travel so, as far as each rOperator by itself says.
func (r *residence) rowBuffers(g *roperator.Graph, worded [][]choice) map[int]bool {
	writers, closed := make([]int, len(g.Buffers)), make([]bool, len(g.Buffers))
	for id, op := range g.Ops {
		polled, given := map[int]bool{}, map[int]bool{}
		for i := range worded[id] {
			c := worded[id][i].c
			for _, k := range c.Polls {
				polled[c.Reads[k].View.Buf.ID] = true
			}
			for _, k := range c.Gives {
				given[c.Writes[k].View.Buf.ID] = true
			}
		}
		for _, c := range op.Candidates {
			for i := range c.Reads {
				buf := c.Reads[i].View.Buf.ID
				closed[buf] = closed[buf] || !polled[buf] || r.choice[int32(id)] != nil
			}
		}
		for _, a := range op.Candidates[0].Writes {
			buf := a.View.Buf.ID
			writers[buf]++
			closed[buf] = closed[buf] || !given[buf] || r.choice[int32(id)] != nil || a.View.Buf.State ||
				a.View.Buf.Kind != roperator.Arena
		}
	}
	open := map[int]bool{}
	for buf := range g.Buffers {
		if writers[buf] == 1 && !closed[buf] {
			open[buf] = true
		}
	}
	return open
}

// rowChoices finds, for each rOperator that accesses open buffers, the fastest candidate that polls and stores just
// these. stuck are the buffers of rOperators that have none.
func rowChoices(g *roperator.Graph, worded [][]choice, open map[int]bool) (picks map[int32]*choice, stuck []int) {
	picks = map[int32]*choice{}
	for id, op := range g.Ops {
		want := openOnes(op.Candidates[0].Reads, nil, open)
		gives := openOnes(op.Candidates[0].Writes, nil, open)
		if len(want)+len(gives) == 0 {
			continue
		}
		var best *choice
		for i := range worded[id] {
			ch := &worded[id][i]
			if slices.Equal(openOnes(ch.c.Reads, ch.c.Polls, nil), want) &&
				slices.Equal(openOnes(ch.c.Writes, ch.c.Gives, nil), gives) && (best == nil || ch.opTime < best.opTime) {
				best = ch
			}
		}
		if best == nil {
			stuck = append(append(stuck, want...), gives...)
			continue
		}
		picks[int32(id)] = best
	}
	return picks, stuck
}

// openOnes lists the buffers of the accesses with the given indices, or of all that are open, in order.
func openOnes(list []roperator.Access, indices []int, open map[int]bool) []int {
	var out []int
	for i := range list {
		if buf := list[i].View.Buf.ID; open[buf] || slices.Contains(indices, i) {
			out = append(out, buf)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
