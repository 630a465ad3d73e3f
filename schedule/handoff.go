package schedule

import "github.com/rammerc/rammerc/roperator"

// handOffWords is the most elements that an rTask may poll: more cost as much as waiting for flags and
// reading plain memory.
const handOffWords = 256

// directWords is the most where each of many threads polls its own: the limit is what asking takes of the
// way to memory.
const directWords = 512

// handOff picks the staged candidates of rOperators that hand little data to each other: those with at
// most one rTask a vEU that take from, or give to, another such one.
func (r *residence) handOff(g *roperator.Graph, staged [][]choice, veus int) {
	best := make([]*choice, len(g.Ops))
	for id := range g.Ops {
		if r.choice[int32(id)] == nil {
			best[id] = handOffChoice(staged[id], veus, handOffWords)
		}
	}
	handOffs(g, best, func(from, to int32) { r.handed[from], r.handed[to] = true, true })
	for id := range g.Ops {
		if best[id] != nil && r.handed[int32(id)] {
			r.choice[int32(id)] = best[id]
		}
	}
}

// handOffs calls yield for every rOperator that takes what another one alone makes, both with one of the
// given choices.
func handOffs(g *roperator.Graph, choices []*choice, yield func(from, to int32)) {
	writers := make([][]int32, len(g.Buffers))
	for id, op := range g.Ops {
		for _, a := range op.Candidates[0].Writes {
			writers[a.View.Buf.ID] = append(writers[a.View.Buf.ID], int32(id))
		}
	}
	for id, ch := range choices {
		if ch == nil {
			continue
		}
		for _, s := range ch.c.Imports {
			w := writers[s.Access.View.Buf.ID]
			if len(w) == 1 && choices[w[0]] != nil {
				yield(w[0], int32(id))
			}
		}
	}
}

// handOffChoice is the first candidate of the given ones that can hand data over, with so many words at
// most, or as many as direct steps may have; nil when there is none.
func handOffChoice(staged []choice, veus int, most int64) *choice {
	for i := range staged {
		c := staged[i].c
		words, limit := int64(0), most
		if len(c.Imports) <= c.Inst.Kernel.Direct {
			limit = max(limit, directWords)
		}
		var runs []roperator.Run
		for k := range c.Imports {
			runs = c.Imports[k].AppendRuns(runs[:0], 0)
			for _, run := range runs {
				words += run.Count
			}
		}
		if c.Tasks <= veus && words <= limit {
			return &staged[i]
		}
	}
	return nil
}
