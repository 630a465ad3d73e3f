package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// recognizeCells finds steps of LSTM, GRU and RNN that are written out as products with constant matrices, slices and
// activations, and replaces each by a cell. Exporters write LSTMCell, GRUCell and RNNCell of their frameworks in this
// way. The products may be MatMul or Gemm, of x and h separately or joined; gates may be computed together or one by
// one.
//
// It goes in four parts:
//
//	match         each node that may define a next h is compared with the formulas (cell_gates.go, cell_gru.go)
//	findStates    steps that follow each other show which input of a step is the state h
//	settle        matches whose state is unknown, or whose inner values are used elsewhere, are given up
//	replace       the others become cells (cell_build.go)
//
// Requires: constants folded and equal ones merged, identities removed; it must run before sums and products are
// rearranged. Leaves: cells; equal weights of several cells are one constant. The formula of RNN is that of any layer
// with two products, so a match of it becomes a cell only if its result enters another step with the same weights.
func recognizeCells(c *Context, g *ir.Graph) (bool, error) {
	f := newCellFinder(c, g)
	for _, n := range g.Nodes {
		f.try(n, f.lstmMatch, f.gruMatch)
	}
	for _, n := range g.Nodes {
		if !f.claimed[n] {
			f.try(n, f.rnnMatch)
		}
	}
	f.findStates()
	f.settle()
	if len(f.matches) == 0 {
		return false, nil
	}
	b := cellBuilder{finder: f, constants: map[string]*ir.Value{}}
	drop := map[*ir.Node]bool{}
	for _, m := range f.matches {
		for _, n := range m.nodes.list {
			drop[n] = true
		}
	}
	for _, m := range f.matches {
		b.replace(m)
		drop[m.root] = false
	}
	g.Nodes = slices.DeleteFunc(slices.Concat(b.nodes, g.Nodes), func(n *ir.Node) bool { return drop[n] })
	if err := ir.TopoSort(g); err != nil {
		panic("BUG: " + err.Error())
	}
	return true, nil
}

// cellMatch is a step of a recurrent layer.
type cellMatch struct {
	op          string
	root        *ir.Node // defines the next h
	nodes       absorbed
	inputs      []cellInput    // the matrices that are multiplied, among them h unless it is a folded constant 0
	biases      [][2][]float64 // by gate: those of W and R
	acts        []cellActivation
	h           *ir.Value // of a GRU, whose formula shows which value is h; otherwise nil
	c, cNext    *ir.Value // of an LSTM
	state       cellState // found by settle
	inputForget bool      // the attribute input_forget of LSTM
	linear      bool      // the attribute linear_before_reset of GRU
}

// cellInput is a matrix that a cell multiplies, with its weights by gate.
type cellInput struct {
	x      *ir.Value
	blocks []block
}

// cellFinder finds the cells of one graph.
type cellFinder struct {
	c       *Context
	g       *ir.Graph
	uses    map[*ir.Value][]ir.Use
	here    map[*ir.Node]bool // the nodes of g
	claimed map[*ir.Node]bool // the nodes of matches
	matches []*cellMatch
	byOut   map[*ir.Value]*cellMatch // by the next h
	byC     map[*ir.Value]*cellMatch // by the next c
	// isR holds the weights that multiply a state, by blocksKey. partner holds these weights by the key of the weights
	// of the other inputs of the same cell: they identify the layer in a first step whose state is a folded constant 0.
	isR     map[string]bool
	partner map[string][]block
}

func newCellFinder(c *Context, g *ir.Graph) *cellFinder {
	f := &cellFinder{
		c: c, g: g, uses: c.usesIn(g), here: map[*ir.Node]bool{}, claimed: map[*ir.Node]bool{},
		byOut: map[*ir.Value]*cellMatch{}, byC: map[*ir.Value]*cellMatch{}, isR: map[string]bool{},
		partner: map[string][]block{},
	}
	for _, n := range g.Nodes {
		f.here[n] = true
	}
	return f
}

// try applies rules to n and records the first match.
func (f *cellFinder) try(n *ir.Node, rules ...func(*ir.Node) *cellMatch) {
	for _, rule := range rules {
		m := rule(n)
		if m == nil {
			continue
		}
		for _, inner := range m.nodes.list {
			f.claimed[inner] = true
		}
		f.matches = append(f.matches, m)
		f.byOut[n.Outputs[0]] = m
		if m.cNext != nil {
			f.byC[m.cNext] = m
		}
		return
	}
}

// fits checks that all of m is in this graph, and that nothing is broadcast but biases.
func (f *cellFinder) fits(m *cellMatch) bool {
	if slices.ContainsFunc(m.nodes.list, func(n *ir.Node) bool { return !f.here[n] }) {
		return false
	}
	out := m.root.Outputs[0].Shape
	if len(out) != 2 {
		return false
	}
	for _, in := range m.inputs {
		for _, b := range in.blocks {
			if !in.x.Shape[0].Equal(out[0]) || !out[1].Equal(ir.D(b.n)) {
				return false
			}
		}
	}
	return m.cNext == nil || m.cNext.Shape.Equal(out)
}

// settle keeps the matches whose state is known and whose inner values are used only inside matches. A node may belong
// to several matches: the product of an x that is the same for all steps is computed once. When a match is given up,
// its nodes stay, and other matches that share them may have to be given up too; so it repeats until nothing changes.
func (f *cellFinder) settle() {
	f.matches = slices.DeleteFunc(f.matches, func(m *cellMatch) bool {
		var ok bool
		m.state, ok = f.stateOf(m)
		return !ok
	})
	for before := -1; before != len(f.matches); {
		before = len(f.matches)
		inside := map[*ir.Node]bool{}
		for _, m := range f.matches {
			for _, n := range m.nodes.list {
				inside[n] = true
			}
		}
		f.matches = slices.DeleteFunc(f.matches, func(m *cellMatch) bool { return f.isNeeded(m, inside) })
	}
}

// isNeeded reports whether a node outside of all matches uses an inner value of m.
func (f *cellFinder) isNeeded(m *cellMatch, inside map[*ir.Node]bool) bool {
	for _, n := range m.nodes.list {
		for _, v := range n.Outputs {
			if v == nil || v == m.cNext || v == m.root.Outputs[0] {
				continue
			}
			if slices.ContainsFunc(f.uses[v], func(u ir.Use) bool { return !inside[u.Node] }) {
				return true
			}
		}
	}
	return false
}

// findStates finds out which weights multiply the state. The formula of a GRU shows it. For an LSTM the step before
// shows it, which is the one that computes c; for an RNN it is an input that is the result of a step with the same
// weights.
func (f *cellFinder) findStates() {
	for _, m := range f.matches {
		i := -1
		switch {
		case m.h != nil:
			i = m.input(m.h)
		case m.c != nil:
			if before := f.byC[m.c]; before != nil {
				i = m.input(before.root.Outputs[0])
			}
		default:
			i = slices.IndexFunc(m.inputs, func(in cellInput) bool { return f.follows(in, m) })
		}
		if i >= 0 && m.isSquare(i) {
			f.learn(m, i)
		}
	}
}

// follows reports whether in, an input of the RNN step m, is the result of a step of the same layer: one that has some
// of m's weights.
func (f *cellFinder) follows(in cellInput, m *cellMatch) bool {
	before := f.byOut[in.x]
	if before == nil || before.op != m.op {
		return false
	}
	return slices.ContainsFunc(before.inputs, func(other cellInput) bool {
		return slices.ContainsFunc(m.inputs, func(mine cellInput) bool { return blocksKey(mine.blocks) == blocksKey(other.blocks) })
	})
}

// learn notes that the input numbered state is the state of m.
func (f *cellFinder) learn(m *cellMatch, state int) {
	f.isR[blocksKey(m.inputs[state].blocks)] = true
	for i, in := range m.inputs {
		if i != state {
			f.partner[blocksKey(in.blocks)] = m.inputs[state].blocks
		}
	}
}

// input is the number of the input x, -1 if m has no such input.
func (m *cellMatch) input(x *ir.Value) int {
	return slices.IndexFunc(m.inputs, func(in cellInput) bool { return in.x == x })
}

// isSquare reports whether input i can be the state: it has the type of the result.
func (m *cellMatch) isSquare(i int) bool {
	in := m.inputs[i]
	return sameType(in.x, m.root.Outputs[0]) && in.blocks[0].k == in.blocks[0].n
}

// cellState says which input of a step is the state.
type cellState struct {
	input  int     // its number; -1 if the state is a constant 0 whose product was folded
	blocks []block // its weights by gate
}

// stateOf decides which of m's inputs is the state; ok is false if that is not known. For a single LSTM step the choice
// does not matter, since the formula is symmetric in x and h; any input of the right shape is taken.
func (f *cellFinder) stateOf(m *cellMatch) (cellState, bool) {
	at := func(i int) (cellState, bool) {
		if i < 0 || !m.isSquare(i) || len(m.inputs) < 2 {
			return cellState{}, false
		}
		return cellState{i, m.inputs[i].blocks}, true
	}
	if m.h != nil && m.input(m.h) >= 0 {
		return at(m.input(m.h))
	}
	for i, in := range m.inputs {
		if m.h == nil && f.isR[blocksKey(in.blocks)] && m.isSquare(i) {
			return at(i)
		}
	}
	if len(m.inputs) == 1 {
		blocks, ok := f.partner[blocksKey(m.inputs[0].blocks)]
		if _, known := m.root.Outputs[0].Shape.Consts(); !known && m.h == nil {
			return cellState{}, false // the zeros would have to be made
		}
		return cellState{-1, blocks}, ok
	}
	if m.op != "LSTMCell" {
		return cellState{}, false
	}
	for i := range m.inputs {
		if s, ok := at(i); ok {
			return s, true
		}
	}
	return cellState{}, false
}
