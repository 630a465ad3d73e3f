package schedule

import (
	"fmt"
	"slices"
	"sort"

	"github.com/rammerc/rammerc/roperator"
)

// stationary is a group of rOperators that use the same weights in successive waves, such as the steps of a recurrent
// layer. Each of their rTasks has a vEU of its own from the first wave to the last, and this vEU keeps the rTask's
// block of the weights on chip:
//
//	vEU 0   weights, rows 0 … 31     step 0 · step 1 · step 2 · …
//	vEU 1   weights, rows 32 … 63    step 0 · step 1 · step 2 · …
type stationary struct {
	ops         []int32
	first, last int        // waves
	widths      [][]choice // per rOperator: its resident candidates, those with the most rTasks first
	width       int        // the index in widths of the candidates that were chosen
	veus        []int32    // per rTask
}

func (g *stationary) tasks() int { return g.widths[0][g.width].c.Tasks }

// residence says which rOperators have fixed vEUs, and which buffers travel in tagged words. The zero value is for
// plans in which nothing is kept on chip.
type residence struct {
	group  map[int32]*stationary // by rOperator
	homes  map[int32][]int32     // by rOperator of a chain in a cluster: the vEU of each rTask
	choice map[int32]*choice
	handed map[int32]bool // rOperators that hand data over with tags though nothing stays
	tagged map[int]bool   // by Buffer.ID
	groups []*stationary
	free   [][]bool // per wave: the vEUs that no group or chain has reserved; nil if none is reserved
	waves  [][]int32

	veus    int
	cluster int // vEUs in a cluster; 0: there are none
}

// splitChoices separates the candidates that are for special use from the plain ones. Resident candidates are for
// rOperators in groups, staged ones for data that travel in tagged words, and those for clusters for data that stay
// in a cluster. worded ones poll and store tagged words themselves.
func splitChoices(all [][]choice) (plain, resident, staged, forClusters, worded [][]choice) {
	n := len(all)
	plain, resident, staged, forClusters, worded = make([][]choice, n), make([][]choice, n), make([][]choice, n),
		make([][]choice, n), make([][]choice, n)
	for op, choices := range all {
		if !slices.ContainsFunc(choices, func(ch choice) bool { return ch.special() || ch.c.Inst.Kernel.Near }) {
			plain[op] = choices
			continue
		}
		for _, ch := range choices {
			switch {
			case len(ch.c.Conditions) > 0 && ch.special():
				// An rTask that may be jumped over is in no run, and nobody polls what it writes.
			case ch.c.Like != nil:
				worded[op] = append(worded[op], ch)
			case ch.c.Resident != nil:
				resident[op] = append(resident[op], ch)
			case ch.c.Inst.Kernel.Near:
				forClusters[op] = append(forClusters[op], ch)
			case len(ch.c.Exports) > 0:
				staged[op] = append(staged[op], ch)
			default:
				plain[op] = append(plain[op], ch)
			}
		}
		sort.SliceStable(resident[op], func(i, j int) bool { return resident[op][i].c.Tasks > resident[op][j].c.Tasks })
	}
	return plain, resident, staged, forClusters, worded
}

// newResidence finds the groups, chooses for each the narrowest slices with which all groups find room that are in
// use at the same time, and gives their rTasks vEUs. Then it does the same for chains, and finds the buffers that may
// have tags. foreign are the buffers that rOperators beside those of g write, too.
func newResidence(g *roperator.Graph, resident, staged, forClusters [][]choice, waves [][]int32, veus,
	cluster int, foreign map[int]bool) *residence {
	r := &residence{
		group: map[int32]*stationary{}, homes: map[int32][]int32{}, choice: map[int32]*choice{},
		handed: map[int32]bool{}, tagged: map[int]bool{}, waves: waves, veus: veus, cluster: cluster,
	}
	r.groups = findGroups(resident, waves)
	r.fitClusters()
	r.narrow(len(waves), veus)
	r.assign(len(waves), veus)
	for _, s := range r.groups {
		for i, op := range s.ops {
			r.group[op], r.choice[op] = s, &s.widths[i][s.width]
		}
	}
	r.clusterChains(g, forClusters, waves)
	r.handOff(g, staged, veus)
	r.tag(g, foreign)
	return r
}

// findGroups joins rOperators whose resident candidates keep the same constants.
func findGroups(resident [][]choice, waves [][]int32) []*stationary {
	byKey := map[string]*stationary{}
	var groups []*stationary
	for w, wave := range waves {
		for _, op := range wave {
			if len(resident[op]) == 0 {
				continue
			}
			key := ""
			for _, ch := range resident[op] {
				key += fmt.Sprintf("%d/%s ", ch.c.Resident.ID, ch.c.Inst.Key())
			}
			s := byKey[key]
			if s == nil {
				s = &stationary{first: w}
				byKey[key] = s
				groups = append(groups, s)
			}
			s.last = w
			s.ops, s.widths = append(s.ops, op), append(s.widths, resident[op])
		}
	}
	out := groups[:0]
	for _, s := range groups {
		if len(s.ops) > 1 {
			out = append(out, s)
		}
	}
	return out
}

// narrow makes groups smaller until no wave asks for more vEUs than there are. Each time it gives wider slices, and so
// fewer rTasks, to the group with the most rTasks in the worst wave. If that group has no wider slices, it is dropped.
func (r *residence) narrow(waves, veus int) {
	for {
		demand := make([]int, waves)
		worst := 0
		for _, s := range r.groups {
			for w := s.first; w <= s.last; w++ {
				if demand[w] += s.tasks(); demand[w] > demand[worst] {
					worst = w
				}
			}
		}
		if waves == 0 || demand[worst] <= veus {
			return
		}
		widest := -1
		for i, s := range r.groups {
			if s.first <= worst && worst <= s.last && (widest < 0 || s.tasks() > r.groups[widest].tasks()) {
				widest = i
			}
		}
		if s := r.groups[widest]; s.width+1 < len(s.widths[0]) {
			s.width++
		} else {
			r.groups = append(r.groups[:widest], r.groups[widest+1:]...)
		}
	}
}

// assign gives every rTask of a group the lowest vEU that is free in all of the group's waves, in one cluster if
// possible.
func (r *residence) assign(waves, veus int) {
	sort.SliceStable(r.groups, func(i, j int) bool { return r.groups[i].first < r.groups[j].first })
	until := make([]int, veus) // first wave that a vEU is free in
	r.free = make([][]bool, waves)
	for _, s := range r.groups {
		s.veus = s.veus[:0]
		from, to := r.groupRange(s, until)
		for v := from; v < to; v++ {
			if len(s.veus) < s.tasks() && until[v] <= s.first {
				s.veus = append(s.veus, int32(v))
				until[v] = s.last + 1
			}
		}
		for w := s.first; w <= s.last; w++ {
			for _, v := range s.veus {
				r.hold(w, int(v))
			}
		}
	}
}

// tag finds the buffers that may travel in tagged words. Their writers are the members of one group, or a single
// rOperator, and export them, and some rTask imports them. The elements of a state are there before its writers run, so
// their words would have no tags yet.
func (r *residence) tag(g *roperator.Graph, foreign map[int]bool) {
	writer := make([]any, len(g.Buffers)) // a group, or the ID of an rOperator
	bad := make([]bool, len(g.Buffers))
	imported := make([]bool, len(g.Buffers))
	for id, op := range g.Ops {
		ch := r.choice[int32(id)]
		if ch == nil {
			for _, a := range op.Candidates[0].Writes {
				bad[a.View.Buf.ID] = true
			}
			continue
		}
		exported := ch.c.Exported()
		for i, a := range ch.c.Writes {
			buf := a.View.Buf
			var s any = int32(id)
			if group := r.group[int32(id)]; group != nil {
				s = group
			}
			if exported == nil || !exported[i] || !roperator.IsWord(buf.DType) || writer[buf.ID] != nil &&
				writer[buf.ID] != s {
				bad[buf.ID] = true
			}
			writer[buf.ID] = s
		}
		for i := range ch.c.Imports {
			imported[ch.c.Imports[i].Access.View.Buf.ID] = true
		}
	}
	for buf := range g.Buffers {
		if writer[buf] != nil && imported[buf] && !bad[buf] && !g.Buffers[buf].State && !foreign[buf] {
			r.tagged[buf] = true
		}
	}
}
