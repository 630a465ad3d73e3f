package ir

import "github.com/rammerc/rammerc/internal/diag"

// InferContext is what an operator's Infer function sees of its node.
type InferContext struct {
	Node  *Node
	Op    *Op
	Graph *Graph
	diags *diag.List
	fresh func() Dim
}
