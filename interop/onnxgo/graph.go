package onnxgo

import (
	"fmt"
	"slices"

	"github.com/owulveryck/onnx-go"
	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/iterator"
	"gorgonia.org/tensor"
)

// value is a node of onnx-go's graph: a tensor that an operator computes, or one that is given. It is an onnx.Namer and
// an onnx.DataCarrier.
type value struct {
	id   int64
	name string
	data tensor.Tensor
	// declared says that data, or its type, was set while the model was decoded, and given that it was set since.
	declared, given bool

	owner *Backend
	op    *operation // computes the value; nil if it is given
}

func (v *value) ID() int64                { return v.id }
func (v *value) SetName(name string)      { v.name = name }
func (v *value) GetName() string          { return v.name }
func (v *value) GetTensor() tensor.Tensor { return v.data }

// SetTensor gives v a value. What is set once the operators are known is an input; tensors that were set before are
// constants of the model, or the types of inputs and outputs.
func (v *value) SetTensor(t tensor.Tensor) error {
	if t == nil {
		return fmt.Errorf("onnxgo: the tensor of %q is nil", v.name)
	}
	v.data = t
	if len(v.owner.operations) == 0 {
		v.declared = true
	} else {
		v.given = true
	}
	return nil
}

// edge leads from a result to an operand, whose position is the weight.
type edge struct {
	from, to *value
	weight   float64
}

func (e *edge) From() graph.Node         { return e.from }
func (e *edge) To() graph.Node           { return e.to }
func (e *edge) Weight() float64          { return e.weight }
func (e *edge) ReversedEdge() graph.Edge { return &edge{e.to, e.from, e.weight} }

// operation is a node of the ONNX graph.
type operation struct {
	onnx.Operation
	inputs, outputs []*value
}

// values is onnx-go's graph. An operator may take the same tensor twice, so there may be several edges between two
// nodes.
type values struct {
	list []*value
	from map[int64][]*edge // by the edge's from: a result's operands
	to   map[int64][]*edge
}

// Node returns the node with an ID, nil if there is none.
func (g *values) Node(id int64) graph.Node {
	if id < 0 || id >= int64(len(g.list)) || g.list[id] == nil {
		return nil
	}
	return g.list[id]
}

// Nodes returns all nodes in the order of their IDs.
func (g *values) Nodes() graph.Nodes {
	var out []graph.Node
	for _, v := range g.list {
		if v != nil {
			out = append(out, v)
		}
	}
	return iterator.NewOrderedNodes(out)
}

// From returns the operands of a result.
func (g *values) From(id int64) graph.Nodes {
	return ends(g.from[id], func(e *edge) *value { return e.to })
}

// To returns the results that have a tensor as an operand.
func (g *values) To(id int64) graph.Nodes {
	return ends(g.to[id], func(e *edge) *value { return e.from })
}

func ends(edges []*edge, end func(*edge) *value) graph.Nodes {
	var out []graph.Node
	for _, e := range edges {
		if v := graph.Node(end(e)); !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return iterator.NewOrderedNodes(out)
}

// HasEdgeFromTo reports whether vid is an operand of uid.
func (g *values) HasEdgeFromTo(uid, vid int64) bool {
	return slices.ContainsFunc(g.from[uid], func(e *edge) bool { return e.to.id == vid })
}

// HasEdgeBetween reports whether one of two nodes is an operand of the other.
func (g *values) HasEdgeBetween(xid, yid int64) bool {
	return g.HasEdgeFromTo(xid, yid) || g.HasEdgeFromTo(yid, xid)
}

// Edge returns the first edge between two nodes, nil if there is none.
func (g *values) Edge(uid, vid int64) graph.Edge {
	for _, e := range g.from[uid] {
		if e.to.id == vid {
			return e
		}
	}
	return nil
}

// AddNode adds a node that NewNode has made. It panics if there is one of its ID, as gonum asks.
func (g *values) AddNode(n graph.Node) {
	v := n.(*value)
	for int64(len(g.list)) <= v.id {
		g.list = append(g.list, nil)
	}
	if g.list[v.id] != nil {
		panic(fmt.Sprintf("onnxgo: there is a node %d", v.id))
	}
	g.list[v.id] = v
}

// NewWeightedEdge makes an edge from a result to an operand; the weight is the operand's position.
func (g *values) NewWeightedEdge(from, to graph.Node, weight float64) graph.WeightedEdge {
	return &edge{from.(*value), to.(*value), weight}
}

// SetWeightedEdge adds an edge.
func (g *values) SetWeightedEdge(e graph.WeightedEdge) {
	added := &edge{e.From().(*value), e.To().(*value), e.Weight()}
	g.from[added.from.id] = append(g.from[added.from.id], added)
	g.to[added.to.id] = append(g.to[added.to.id], added)
}
