package schedule

import (
	"slices"

	"github.com/rammerc/rammerc/roperator"
)

// clusterWords is the most elements that an rTask of a chain in a cluster may import: slots have room for the
// elements of two steps.
const clusterWords = mostSlotWords / 2

// clusterChain is a set of rOperators that hand data to each other. It fits a cluster if no wave has more of their
// rTasks than a cluster has vEUs.
type clusterChain struct {
	ops         []int32 // by wave
	first, last int     // waves
	wide        int     // the most rTasks that it has in a wave
}

// clusterChains gives every chain that fits a cluster a cluster of its own for its waves. Inside a cluster rTasks may
// hand over more data than through global memory. A chain for which no cluster is free does without.
func (r *residence) clusterChains(g *roperator.Graph, forClusters [][]choice, waves [][]int32) {
	if r.cluster == 0 {
		return
	}
	picked := make([]*choice, len(g.Ops))
	for id := range g.Ops {
		if r.choice[int32(id)] == nil {
			picked[id] = clusterChoice(forClusters[id], r.cluster)
		}
	}
	for _, c := range findChains(g, picked, waves) {
		if c.wide <= r.cluster {
			r.house(c, picked, waves)
		}
	}
}

// clusterChoice is the candidate that an rOperator has in a cluster. It is nil if all candidates have more rTasks
// than a cluster has vEUs, or import too many elements.
func clusterChoice(choices []choice, cluster int) *choice {
	return handOffChoice(choices, cluster, clusterWords)
}

// findChains joins rOperators that hand data to each other to chains, in the order of the chains' first waves.
func findChains(g *roperator.Graph, picked []*choice, waves [][]int32) []*clusterChain {
	head := make([]int32, len(g.Ops)) // of the set that an rOperator is in (union-find)
	for id := range head {
		head[id] = int32(id)
	}
	find := func(id int32) int32 {
		for head[id] != id {
			head[id] = head[head[id]]
			id = head[id]
		}
		return id
	}
	handOffs(g, picked, func(from, to int32) { head[find(to)] = find(from) })
	byHead := map[int32]*clusterChain{}
	var out []*clusterChain
	for w, wave := range waves {
		wide := map[*clusterChain]int{}
		for _, op := range wave {
			if picked[op] == nil {
				continue
			}
			c := byHead[find(op)]
			if c == nil {
				c = &clusterChain{first: w}
				byHead[find(op)] = c
				out = append(out, c)
			}
			c.ops, c.last = append(c.ops, op), w
			wide[c] += picked[op].c.Tasks
			c.wide = max(c.wide, wide[c])
		}
	}
	return slices.DeleteFunc(out, func(c *clusterChain) bool { return len(c.ops) < 2 })
}

// house gives the chain the first cluster that is free in all of its waves, and each of its rTasks a vEU there.
func (r *residence) house(c *clusterChain, picked []*choice, waves [][]int32) {
	first := r.freeCluster(c)
	if first < 0 {
		return
	}
	next := map[int]int32{} // per wave: the next vEU
	wave := c.first
	for _, op := range c.ops {
		for !slices.Contains(waves[wave], op) {
			wave++
		}
		for range picked[op].c.Tasks {
			r.homes[op] = append(r.homes[op], int32(first)+next[wave])
			next[wave]++
		}
		r.choice[op], r.handed[op] = picked[op], true
	}
	for w := c.first; w <= c.last; w++ {
		for v := first; v < first+c.wide; v++ {
			r.hold(w, v)
		}
	}
}

// freeCluster is the first vEU of the first cluster that is free in all of the chain's waves, -1 if there is none.
func (r *residence) freeCluster(c *clusterChain) int {
	for first := 0; first+r.cluster <= r.veus; first += r.cluster {
		free := true
		for w := c.first; w <= c.last; w++ {
			for v := first; v < first+r.cluster; v++ {
				free = free && (r.free[w] == nil || r.free[w][v])
			}
		}
		if free {
			return first
		}
	}
	return -1
}

// hold reserves a vEU in a wave.
func (r *residence) hold(wave, veu int) {
	if r.free[wave] == nil {
		r.free[wave] = make([]bool, r.veus)
		for v := range r.free[wave] {
			r.free[wave][v] = true
		}
	}
	r.free[wave][veu] = false
}
