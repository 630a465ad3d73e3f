package schedule

import "github.com/rammerc/rammerc/roperator"

// handOffWords is the most elements that an rTask may poll as tagged words. To poll more costs as much as to wait for
// flags and to read plain memory.
const handOffWords = 256

// directWords is the most elements where each thread polls its own words. More polling would take too much of the
// bandwidth to memory.
const directWords = 512

// handOff picks the staged candidates of rOperators that hand a small amount of data to each other. Such an rOperator
// has no more rTasks than there are vEUs, and takes data from another one of the kind, or gives data to one.
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

// handOffs calls yield for every pair of rOperators of which one imports a buffer that only the other writes, if both
// have one of the given choices.
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

// handOffChoice is the first of the candidates whose rTasks import few enough elements, no more than most, or than
// direct steps may have, and which has no more rTasks than there are vEUs. It is nil if there is none.
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
