package ir

import (
	"fmt"
	"slices"
	"strconv"
)

// Use is a place where a value is read.
type Use struct {
	Graph *Graph
	Node  *Node // nil when the use is an output of Graph
	Index int   // input of Node, or output of Graph
}

// Uses lists the uses of every value in g and the graphs inside it. The order does not depend on chance: first come
// the uses in g, by its nodes and then by its outputs, then those in the graphs inside it, in the order of EachGraph.
func Uses(g *Graph) map[*Value][]Use {
	uses := map[*Value][]Use{}
	EachGraph(g, func(g *Graph) {
		for _, n := range g.Nodes {
			for i, v := range n.Inputs {
				if v != nil {
					uses[v] = append(uses[v], Use{g, n, i})
				}
			}
		}
		for i, v := range g.Outputs {
			uses[v] = append(uses[v], Use{g, nil, i})
		}
	})
	return uses
}

// UseCounts is the number of uses of each value that Uses lists, without the lists: passes ask for it again and again.
func UseCounts(g *Graph) map[*Value]int {
	counts := make(map[*Value]int, len(g.Nodes)+len(g.Inputs))
	EachGraph(g, func(g *Graph) {
		for _, n := range g.Nodes {
			for _, v := range n.Inputs {
				if v != nil {
					counts[v]++
				}
			}
		}
		for _, v := range g.Outputs {
			counts[v]++
		}
	})
	return counts
}

// EachGraph calls f for g and then for every graph nested in it, in the order of nodes and attribute names.
func EachGraph(g *Graph, f func(*Graph)) {
	f(g)
	for _, n := range g.Nodes {
		for _, sub := range n.Subgraphs() {
			EachGraph(sub, f)
		}
	}
}

// Subgraphs returns the graph attributes of n in the order of their names.
func (n *Node) Subgraphs() []*Graph {
	var out []*Graph
	for _, a := range n.Attrs {
		if a.Kind == AttrGraph {
			out = make([]*Graph, 0, len(n.Attrs))
			break
		}
	}
	if out == nil {
		return nil
	}
	for _, name := range n.Attrs.Names() {
		if a := n.Attrs[name]; a.Kind == AttrGraph && a.G != nil {
			out = append(out, a.G)
		}
	}
	return out
}

// ReplaceAll makes every use of old in g, subgraphs and graph outputs included, a use of new.
func ReplaceAll(g *Graph, old, new *Value) { ReplaceMany(g, map[*Value]*Value{old: new}) }

// ReplaceMany replaces each key by its value in one walk; chains (a by b, b by c) are followed.
func ReplaceMany(g *Graph, by map[*Value]*Value) {
	if len(by) == 0 {
		return
	}
	replace := func(list []*Value) {
		for i, v := range list {
			for steps := 0; v != nil && by[v] != nil; steps++ {
				if steps > len(by) {
					panic("BUG: values replace each other in a circle: %" + v.Name)
				}
				v = by[v]
			}
			list[i] = v
		}
	}
	EachGraph(g, func(g *Graph) {
		for _, n := range g.Nodes {
			replace(n.Inputs)
		}
		replace(g.Outputs)
	})
}

// Captured lists the values that g, or a graph inside it, uses without defining them, each once, in
// the order of first use.
func Captured(g *Graph) []*Value {
	defined, seen := map[*Value]bool{}, map[*Value]bool{}
	EachGraph(g, func(g *Graph) {
		for _, list := range [][]*Value{g.Inputs, g.Consts} {
			for _, v := range list {
				defined[v] = true
			}
		}
		for _, n := range g.Nodes {
			for _, v := range n.Outputs {
				defined[v] = true
			}
		}
	})
	var out []*Value
	collect := func(list []*Value) {
		for _, v := range list {
			if v != nil && !defined[v] && !seen[v] {
				seen[v] = true
				out = append(out, v)
			}
		}
	}
	EachGraph(g, func(g *Graph) {
		for _, n := range g.Nodes {
			collect(n.Inputs)
		}
		collect(g.Outputs)
	})
	return out
}

// TopoSort orders the nodes of g (not of graphs inside it) so that definitions come before uses. It keeps the present
// order where it can. A cycle is an error that names a node on it or behind it.
func TopoSort(g *Graph) error {
	return TopoSortBy(g, func(i int) int { return i })
}

// TopoSortBy is TopoSort that prefers, among the nodes that could come next, the one with the lowest
// rank; rank maps indexes of g.Nodes to distinct numbers from 0 to len(g.Nodes)-1.
func TopoSortBy(g *Graph, rank func(i int) int) error {
	index := make(map[*Node]int, len(g.Nodes))
	at := make([]*Node, len(g.Nodes)) // by rank
	for i, n := range g.Nodes {
		index[n] = rank(i)
		at[rank(i)] = n
	}
	waits := make([]int, len(at))   // by rank: how many dependencies have not been placed yet
	users := make([][]int, len(at)) // by rank: the nodes that depend on this one
	for i, n := range at {
		for _, d := range dependencies(n) {
			if j, ok := index[d]; ok {
				waits[i]++
				users[j] = append(users[j], i)
			}
		}
	}
	var ready minHeap
	for i, w := range waits {
		if w == 0 {
			ready.push(i)
		}
	}
	order := make([]*Node, 0, len(at))
	for len(ready) > 0 {
		i := ready.pop()
		order = append(order, at[i])
		for _, u := range users[i] {
			if waits[u]--; waits[u] == 0 {
				ready.push(u)
			}
		}
	}
	if len(order) < len(at) {
		i := slices.IndexFunc(waits, func(w int) bool { return w > 0 })
		return fmt.Errorf("the graph has a cycle: node %q (%s) is on it or depends on it", at[i].Name, at[i].Op)
	}
	g.Nodes = order
	return nil
}

// dependencies lists the nodes that define what n uses, directly or in its subgraphs. Nodes inside the subgraphs may be
// among them; the caller ignores those, because it orders the nodes of one graph only.
func dependencies(n *Node) []*Node {
	var out []*Node
	add := func(list []*Value) {
		for _, v := range list {
			if v != nil && v.Def != nil {
				out = append(out, v.Def)
			}
		}
	}
	add(n.Inputs)
	for _, sub := range n.Subgraphs() {
		EachGraph(sub, func(g *Graph) {
			for _, m := range g.Nodes {
				add(m.Inputs)
			}
			add(g.Outputs)
		})
	}
	return out
}

// minHeap is a binary heap of distinct numbers.
type minHeap []int

func (h *minHeap) push(v int) {
	*h = append(*h, v)
	s := *h
	for i := len(s) - 1; i > 0 && s[i] < s[(i-1)/2]; i = (i - 1) / 2 {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
	}
}

func (h *minHeap) pop() int {
	s := *h
	top := s[0]
	s[0] = s[len(s)-1]
	s = s[:len(s)-1]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(s); c++ {
			if s[c] < s[least] {
				least = c
			}
		}
		if least == i {
			break
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
	*h = s
	return top
}

// Namer hands out value names that are not used yet.
type Namer struct {
	used map[string]bool
	next map[string]int
}

// NewNamer makes a Namer that avoids the names of all values in g and the graphs inside it.
func NewNamer(g *Graph) *Namer {
	n := &Namer{used: map[string]bool{}, next: map[string]int{}}
	EachGraph(g, func(g *Graph) {
		for _, list := range [][]*Value{g.Inputs, g.Consts} {
			n.take(list)
		}
		for _, node := range g.Nodes {
			n.take(node.Outputs)
		}
	})
	return n
}

func (n *Namer) take(list []*Value) {
	for _, v := range list {
		if v != nil {
			n.used[v.Name] = true
		}
	}
}

// Fresh returns a name that is not used yet and marks it as used: base itself or, if that is taken or empty, base with
// a number behind it (conv_1, conv_2, …).
func (n *Namer) Fresh(base string) string {
	name := base
	for base == "" || n.used[name] {
		n.next[base]++
		name = base + "_" + strconv.Itoa(n.next[base])
		if !n.used[name] {
			break
		}
	}
	n.used[name] = true
	return name
}
