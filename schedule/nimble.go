package schedule

// The plan nimble allocates streams as Nimble does (Kwon and others, "Nimble: Lightweight and Parallel GPU Task
// Scheduling for Deep Learning"): with as many streams as let everything run side by side that may, it has the fewest
// synchronisations between streams. It is here for comparison. Launches are in the order of the graph, and rOperators
// have their fastest candidates.

// matchedStreams is Nimble's Algorithm 1. It reduces the graph to its minimum equivalent, in which no edge follows from
// others. In the bipartite graph of its edges, with every rOperator once as the source and once as the target of
// edges, it finds a maximum matching. rOperators that the matching joins share a stream:
//
//	A ──▶ B ──▶ D        matching  A–B, B–D; C finds none        stream 0: A B D
//	└───▶ C ──────▶ D                                            stream 1: C
func matchedStreams(preds [][]int32) []int32 {
	succs := make([][]int32, len(preds))
	for v, ps := range minimumEquivalent(preds) {
		for _, p := range ps {
			succs[p] = append(succs[p], int32(v))
		}
	}
	before := maximumMatching(succs)
	stream, streams := make([]int32, len(preds)), int32(0)
	for v, p := range before { // p comes before v in the order of the graph
		if p >= 0 {
			stream[v] = stream[p]
			continue
		}
		stream[v] = streams
		streams++
	}
	return stream
}

// minimumEquivalent leaves out the predecessors that are predecessors of others too.
func minimumEquivalent(preds [][]int32) [][]int32 {
	before := newReach(preds)
	out := make([][]int32, len(preds))
	for v, ps := range preds {
		for _, p := range ps {
			needed := true
			for _, q := range ps {
				needed = needed && !before.has(q, p)
			}
			if needed {
				out[v] = append(out[v], p)
			}
		}
	}
	return out
}

// matching is the state of Hopcroft and Karp's algorithm, which finds a largest set of edges no two of which have a
// source or a target in common.
type matching struct {
	edges    [][]int32 // per source: its targets
	targetOf []int32   // per source, -1: none
	sourceOf []int32   // per target, -1: none
	depth    []int32   // per source: its place on shortest augmenting paths, -1: on none
	next     []int     // per source: the first edge that was not tried in this phase
}

// maximumMatching gives, for each target, the source that it is matched with, -1 if there is none. There are as many
// sources as targets.
func maximumMatching(edges [][]int32) []int32 {
	n := len(edges)
	m := &matching{
		edges: edges, targetOf: make([]int32, n), sourceOf: make([]int32, n), depth: make([]int32, n),
		next: make([]int, n),
	}
	for i := range n {
		m.targetOf[i], m.sourceOf[i] = -1, -1
	}
	for m.layer() {
		clear(m.next)
		for s := range int32(n) {
			if m.targetOf[s] < 0 {
				m.augment(s)
			}
		}
	}
	return m.sourceOf
}

// layer finds how far the sources are from one without a target, along edges that alternate between such outside of
// the matching and such in it. It reports whether a target can be reached that has no source.
func (m *matching) layer() bool {
	var queue []int32
	for s, t := range m.targetOf {
		m.depth[s] = -1
		if t < 0 {
			m.depth[s] = 0
			queue = append(queue, int32(s))
		}
	}
	found := false
	for ; len(queue) > 0; queue = queue[1:] {
		for _, t := range m.edges[queue[0]] {
			switch s := m.sourceOf[t]; {
			case s < 0:
				found = true
			case m.depth[s] < 0:
				m.depth[s] = m.depth[queue[0]] + 1
				queue = append(queue, s)
			}
		}
	}
	return found
}

// augment looks for a path from source s to a target without source, and exchanges the edges on it: those in the
// matching leave it, and the others join it, which are one more. Paths are as long as the graph is deep at most, so
// it keeps its place in a stack of its own.
func (m *matching) augment(s int32) bool {
	path := []int32{s}
	for len(path) > 0 {
		at := path[len(path)-1]
		if m.next[at] == len(m.edges[at]) {
			m.depth[at] = -1
			path = path[:len(path)-1]
			continue
		}
		t := m.edges[at][m.next[at]]
		m.next[at]++
		switch owner := m.sourceOf[t]; {
		case owner < 0:
			for i := len(path) - 1; i >= 0; i-- {
				t, m.targetOf[path[i]], m.sourceOf[t] = m.targetOf[path[i]], t, path[i]
			}
			return true
		case m.depth[owner] == m.depth[at]+1:
			path = append(path, owner)
		}
	}
	return false
}
