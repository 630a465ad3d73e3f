package vdevice

import "container/heap"

// byNodes runs launches on several streams. A launch is ready when those that it depends on have ended and it has
// come to the device. Its blocks go in order, each to the vEU that is free first. Blocks of launches that are ready
// earlier go first, and of launches that are ready at the same time those of the one that was launched first.
func (s *simulation) byNodes() {
	p := s.h.p
	n := &nodeSimulation{
		simulation: s, ready: make([]float64, p.Waves), reason: make([]At, p.Waves), end: make([]float64, p.Waves),
		last: make([]At, p.Waves),
		left: make([]int, p.Waves), next: make([][]int32, p.Waves), blocks: make([][]block, p.Waves),
		free: make([]float64, p.Spec.VEUs()), ran: make([]At, p.Spec.VEUs()),
	}
	for w := range n.last {
		n.last[w], n.reason[w] = At{-1, -1}, At{-1, -1}
		n.after(w, func(x int32) {
			n.left[w]++
			n.next[x] = append(n.next[x], int32(w))
		})
		if n.left[w] == 0 {
			heap.Push(n, int32(w))
		}
	}
	for v := range n.ran {
		n.ran[v] = At{-1, -1}
	}
	for v, steps := range p.Steps {
		for o := range steps {
			w := steps[o].Wave
			if k := len(n.blocks[w]) - 1; k < 0 || n.blocks[w][k].at.VEU != int32(v) {
				n.blocks[w] = append(n.blocks[w], block{at: At{int32(v), int32(o)}})
			}
			n.blocks[w][len(n.blocks[w])-1].steps++
		}
	}
	for len(n.queue) > 0 {
		n.launch(heap.Pop(n).(int32))
	}
}

// block is a run of steps of one launch on one vEU.
type block struct {
	at    At // the first of them
	steps int32
}

type nodeSimulation struct {
	*simulation
	queue  []int32 // launches that are ready, a heap
	ready  []float64
	reason []At // per launch: the step that it waited for the longest
	end    []float64
	last   []At // per launch: its step that ends last
	left   []int
	next   [][]int32
	blocks [][]block
	free   []float64 // per vEU of the device
	ran    []At      // per vEU of the device: its last step
}

// after calls yield with every launch that launch w waits for: the one before it on its stream, and those that it
// names.
func (n *nodeSimulation) after(w int, yield func(int32)) {
	at := n.h.nodes.onLane[w]
	if at.Order > 0 {
		yield(n.h.nodes.on[at.VEU][at.Order-1])
	}
	for _, x := range n.h.p.node(w).After {
		yield(x)
	}
}

func (n *nodeSimulation) launch(w int32) {
	early := n.ready[w] // when its loaders begin
	if at := n.h.nodes.onLane[w]; at.Order > 0 && n.overlaps() && len(n.h.p.node(int(w)).After) == 0 {
		early = n.ready[n.h.nodes.on[at.VEU][at.Order-1]]
	}
	for _, b := range n.blocks[w] {
		if n.streams.loaders != nil {
			n.streams.loaders[b.at.VEU].Open(early, n.h.p.Spec.Cost.Latency)
		}
		v := 0
		for u := range n.free {
			if n.free[u] < n.free[v] {
				v = u
			}
		}
		start, why := n.ready[w], n.reason[w]
		if n.free[v] > start {
			start, why = n.free[v], n.ran[v]
		}
		for o := range b.steps {
			at := At{b.at.VEU, b.at.Order + o}
			n.run(at, start, why)
			start, why = n.t.End[at.VEU][at.Order], at
		}
		n.free[v], n.ran[v] = start, why
		if start > n.end[w] || n.last[w].VEU < 0 {
			n.end[w], n.last[w] = start, why
		}
	}
	for _, x := range n.next[w] {
		if n.left[x]--; n.left[x] == 0 {
			n.becomesReady(x)
		}
	}
}

// becomesReady computes when a launch starts whose predecessors have all ended. If it waits for nothing but the launch
// before it on its stream, it may have come to the device while that one was running.
func (n *nodeSimulation) becomesReady(w int32) {
	launch := n.between
	if len(n.h.p.node(int(w)).After) > 0 {
		launch = n.h.p.Spec.Cost.Node
	}
	n.after(int(w), func(x int32) {
		if t := n.end[x] + launch; t >= n.ready[w] {
			n.ready[w], n.reason[w] = t, n.last[x]
		}
	})
	heap.Push(n, w)
}

func (n *nodeSimulation) Len() int      { return len(n.queue) }
func (n *nodeSimulation) Swap(i, j int) { n.queue[i], n.queue[j] = n.queue[j], n.queue[i] }
func (n *nodeSimulation) Push(x any)    { n.queue = append(n.queue, x.(int32)) }
func (n *nodeSimulation) Pop() any {
	k := len(n.queue) - 1
	x := n.queue[k]
	n.queue = n.queue[:k]
	return x
}

func (n *nodeSimulation) Less(i, j int) bool {
	a, b := n.queue[i], n.queue[j]
	return n.ready[a] < n.ready[b] || n.ready[a] == n.ready[b] && a < b
}
