package schedule

import "github.com/rammerc/rammerc/roperator"

// handOffWords is the most elements that an rTask may poll: more cost as much as waiting for flags and
// reading plain memory.
const handOffWords = 256

// handOff picks the staged candidates of rOperators that hand little data to each other: those with at
// most one rTask a vEU that take from, or give to, another such one.
func (r *residence) handOff(g *roperator.Graph, staged [][]choice, veus int) {
	best := make([]*choice, len(g.Ops))
	writers := make([][]int32, len(g.Buffers))
	for id, op := range g.Ops {
		best[id] = handOffChoice(staged[id], veus)
		for _, a := range op.Candidates[0].Writes {
			writers[a.View.Buf.ID] = append(writers[a.View.Buf.ID], int32(id))
		}
	}
	for id := range g.Ops {
		if r.choice[int32(id)] != nil || best[id] == nil {
			continue
		}
		for _, s := range best[id].c.Imports {
			w := writers[s.Access.View.Buf.ID]
			if len(w) == 1 && best[w[0]] != nil && r.choice[w[0]] == nil {
				r.handed[int32(id)], r.handed[w[0]] = true, true
			}
		}
	}
	for id := range g.Ops {
		if r.handed[int32(id)] {
			r.choice[int32(id)] = best[id]
		}
	}
}

// handOffChoice is the candidate to hand data over with, nil when there is none.
func handOffChoice(staged []choice, veus int) *choice {
	for i := range staged {
		c := staged[i].c
		words := int64(0)
		var runs []roperator.Run
		for k := range c.Imports {
			runs = c.Imports[k].AppendRuns(runs[:0], 0)
			for _, run := range runs {
				words += run.Count
			}
		}
		if c.Tasks <= veus && words <= handOffWords {
			return &staged[i]
		}
	}
	return nil
}
