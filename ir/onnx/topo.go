package onnx

import (
	"container/heap"
	"slices"

	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// sortNodes returns the indexes of nodes in topological order: of the nodes that could come next, always the first one
// of the file. If there is a cycle, order lacks the nodes on it and those that depend on it, and cycle lists the nodes
// of one cycle, each of which is used by the next.
func (im *importer) sortNodes(nodes []*onnxpb.NodeProto) (order, cycle []int) {
	deps := im.dependencies(nodes)
	waits := make([]int, len(nodes))
	users := make([][]int, len(nodes))
	for i, list := range deps {
		waits[i] = len(list)
		for _, d := range list {
			users[d] = append(users[d], i)
		}
	}
	ready := &intHeap{}
	for i, w := range waits {
		if w == 0 {
			heap.Push(ready, i)
		}
	}
	for ready.Len() > 0 {
		i := heap.Pop(ready).(int)
		order = append(order, i)
		for _, u := range users[i] {
			if waits[u]--; waits[u] == 0 {
				heap.Push(ready, u)
			}
		}
	}
	if len(order) < len(nodes) {
		cycle = findCycle(deps, waits)
	}
	return order, cycle
}

// dependencies lists, for each node, the nodes that define the values that it and its subgraphs use.
func (im *importer) dependencies(nodes []*onnxpb.NodeProto) [][]int {
	producer := map[string]int{}
	for i, n := range nodes {
		for _, name := range n.Output {
			if _, taken := producer[name]; name != "" && !taken {
				producer[name] = i
			}
		}
	}
	deps := make([][]int, len(nodes))
	for i, n := range nodes {
		add := func(name string) {
			if p, ok := producer[name]; ok && name != "" {
				deps[i] = append(deps[i], p)
			}
		}
		for _, name := range n.Input {
			add(name)
		}
		for _, a := range n.Attribute {
			for _, name := range im.attributeNames(a) {
				add(name)
			}
		}
	}
	return deps
}

// attributeNames lists the names that the graphs of an attribute use from the graph around them.
func (im *importer) attributeNames(a *onnxpb.AttributeProto) []string {
	var out []string
	if a.G != nil {
		out = im.freeNames(a.G)
	}
	for _, g := range a.Graphs {
		out = append(out[:len(out):len(out)], im.freeNames(g)...)
	}
	return out
}

// freeNames lists the names that g uses and does not define, each once.
func (im *importer) freeNames(g *onnxpb.GraphProto) []string {
	if names, ok := im.free[g]; ok {
		return names
	}
	known := initializerNames(g)
	for _, v := range g.Input {
		known[v.GetName()] = true
	}
	for _, n := range g.Node {
		for _, name := range n.Output {
			known[name] = true
		}
	}
	known[""] = true
	var out []string
	use := func(name string) {
		if !known[name] {
			known[name] = true
			out = append(out, name)
		}
	}
	for _, n := range g.Node {
		for _, name := range n.Input {
			use(name)
		}
		for _, a := range n.Attribute {
			for _, name := range im.attributeNames(a) {
				use(name)
			}
		}
	}
	for _, v := range g.Output {
		use(v.GetName())
	}
	im.free[g] = out
	return out
}

// findCycle walks from a node that could not be ordered to one on which it depends, and so on, until it meets a node
// for the second time. The nodes between the two visits form a cycle. It lists at most 20, from the first of the file
// on.
func findCycle(deps [][]int, waits []int) []int {
	at := 0
	for waits[at] == 0 {
		at++
	}
	seen := map[int]int{} // node → its place in path
	var path []int
	for {
		if start, ok := seen[at]; ok {
			path = path[start:]
			break
		}
		seen[at] = len(path)
		path = append(path, at)
		for _, d := range deps[at] {
			if waits[d] > 0 {
				at = d
				break
			}
		}
	}
	slices.Reverse(path)
	first := slices.Index(path, slices.Min(path))
	path = append(path[first:], path[:first]...)
	const most = 20
	return path[:min(len(path), most)]
}

// intHeap is a min-heap for package container/heap.
type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int)) }
func (h *intHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
