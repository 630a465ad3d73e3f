package vdevice

import (
	"slices"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/roperator"
)

// nodeOrder is the happens-before relation of a segment whose launches are of one rOperator each. Its lanes are the
// streams: for each launch it says how many launches of each stream are complete when it starts.
type nodeOrder struct {
	on     [][]int32 // per stream: its nodes
	onLane []At      // per node: its stream and the number of nodes before it there
	first  []At      // per node: its first step
	clock  [][]int32 // per node: how many nodes of each stream end before it starts
}

// newNodeOrder computes the relation. The nodes must be in form, as Verify checks it.
func newNodeOrder(p *Program) *nodeOrder {
	o := &nodeOrder{onLane: make([]At, p.Waves), first: make([]At, p.Waves), on: make([][]int32, p.streams())}
	for w := range o.onLane {
		s := p.node(w).Stream
		o.onLane[w] = At{s, int32(len(o.on[s]))}
		o.on[s] = append(o.on[s], int32(w))
		o.clock = append(o.clock, o.clockOf(p.node(w)))
	}
	for v := len(p.Steps) - 1; v >= 0; v-- {
		for i := len(p.Steps[v]) - 1; i >= 0; i-- {
			o.first[p.Steps[v][i].Wave] = At{int32(v), int32(i)}
		}
	}
	return o
}

// clockOf is the clock of node n, which must be the last one that was entered on its stream: it merges the clocks of
// the node before it on the stream and of those that it names.
func (o *nodeOrder) clockOf(n Node) []int32 {
	c := make([]int32, len(o.on))
	learn := func(w int32) {
		maxInto(c, o.clock[w])
		at := o.onLane[w]
		c[at.VEU] = max(c[at.VEU], at.Order+1)
	}
	if own := o.on[n.Stream]; len(own) > 1 {
		learn(own[len(own)-2])
	}
	for _, w := range n.After {
		learn(w)
	}
	return c
}

func (o *nodeOrder) known(place At, stream int32) int32 {
	return o.clock[o.on[place.VEU][place.Order]][stream]
}

// node describes the launch of wave w. Only Parallel segments have nodes; the launches of others are all on one stream.
func (p *Program) node(w int) Node {
	if len(p.Nodes) == 0 {
		return Node{}
	}
	return p.Nodes[w]
}

// streams is the number of streams of the program's launches.
func (p *Program) streams() int {
	n := int32(1)
	for _, x := range p.Nodes {
		n = max(n, x.Stream+1)
	}
	return int(n)
}

// Streams is the number of streams of the segment's launches.
func (s Segment) Streams() int { return s.Program.streams() }

// Launch is an rOperator that gets a kernel launch of its own.
type Launch struct {
	Op        int32
	Candidate int // index of the chosen candidate
	Node      Node
}

// NodeProgram makes the program of a LaunchSequence segment, or with streams of a Parallel one, from launches in the
// order given. A launch has a thread block for each rTask of its rOperator, but no more blocks than the device has
// vEUs. If there are more rTasks, each block has several neighbouring ones.
func NodeProgram(spec *device.Spec, g *roperator.Graph, kind SegmentKind, launches []Launch) *Program {
	p := &Program{Spec: spec, Ops: g.Ops, Pick: make([]int, len(g.Ops)), Waves: len(launches)}
	for i := range p.Pick {
		p.Pick[i] = -1
	}
	veus, streams := spec.VEUs(), int32(1)
	for _, l := range launches {
		if kind == Parallel {
			p.Nodes = append(p.Nodes, l.Node)
			streams = max(streams, l.Node.Stream+1)
		}
		p.Pick[l.Op] = l.Candidate
	}
	p.Steps = make([][]Step, int(streams)*veus)
	for w, l := range launches {
		tasks, first := p.Candidate(l.Op).Tasks, int(p.node(w).Stream)*veus
		blocks := min(tasks, veus)
		for b := range blocks {
			for t := b * tasks / blocks; t < (b+1)*tasks/blocks; t++ {
				p.Steps[first+b] = append(p.Steps[first+b], Step{Task: Task{l.Op, int32(t)}, Wave: int32(w)})
			}
		}
	}
	return p
}

// Reduce fills in After of launches on streams. deps lists for each launch those that it depends on, as indices into
// launches that are all smaller than its own. Dependencies that follow from others are left out.
func Reduce(launches []Launch, deps [][]int32) {
	o := &nodeOrder{}
	for _, l := range launches {
		for int(l.Node.Stream) >= len(o.on) {
			o.on = append(o.on, nil)
		}
	}
	for w := range launches {
		n := &launches[w].Node
		o.onLane = append(o.onLane, At{n.Stream, int32(len(o.on[n.Stream]))})
		o.on[n.Stream] = append(o.on[n.Stream], int32(w))
		n.After = o.needed(*n, deps[w])
		o.clock = append(o.clock, o.clockOf(*n))
	}
}

// needed lists, ascending, those of deps that follow neither from the order on n's stream nor from other ones of deps.
func (o *nodeOrder) needed(n Node, deps []int32) []int32 {
	own := o.clockOf(Node{Stream: n.Stream})
	latest := make([]int32, len(o.on)) // per stream: one more than the position of the last one that is needed
	for _, x := range deps {
		if at := o.onLane[x]; at.VEU != n.Stream && at.Order >= own[at.VEU] {
			latest[at.VEU] = max(latest[at.VEU], at.Order+1)
		}
	}
	implied := func(at At) bool {
		for s, k := range latest {
			if k > 0 && int32(s) != at.VEU && o.clock[o.on[s][k-1]][at.VEU] > at.Order {
				return true
			}
		}
		return false
	}
	var out []int32
	for s, k := range latest {
		if at := (At{int32(s), k - 1}); k > 0 && !implied(at) {
			out = append(out, o.on[s][k-1])
		}
	}
	slices.Sort(out)
	return out
}
