// Package ir is the typed graph every stage of rammerc works on.
//
// A Graph is in SSA form: each Value is defined once, by a Node, as a graph input or as a constant.
// Nodes carry the semantics of one reference opset (ReferenceOpset) whatever opset the model was
// written in; the importer rewrites. Operators are rows of one table (Ops). Values and nodes remember
// the ONNX nodes they come from (Origin) through every pass.
package ir

// ReferenceOpset is the ai.onnx opset whose semantics every Node has.
const ReferenceOpset = 22

// NewestOpset is the last ai.onnx opset whose operators are known. Operators that came after
// ReferenceOpset mean what they mean in the opset that introduced them.
const NewestOpset = 27

// InternalDomain is the domain of operators that only passes create: View, Fused, LSTMCell, …
const InternalDomain = "rammer"

// Shape is a list of dims. nil means that even the rank is unknown; a scalar is Shape{}.
type Shape []Dim

// Value is an SSA value.
type Value struct {
	Name  string // unique in its graph and the graphs inside it; never empty
	DType DType
	Shape Shape
	Def   *Node   // nil for graph inputs and constants
	Const *Tensor // non-nil for constants
	// Elems are the elements of a small integer tensor as far as shape inference knows them
	// (what Shape, Gather, Concat … of dims compute); nil when unknown. InferShapes owns it.
	Elems []Dim
}

// Origin names an ONNX node that a Node or Value comes from.
type Origin struct {
	Name   string // node name, or "#index" when the model leaves it empty
	OpType string
}

// Node applies an operator.
type Node struct {
	Op      string // operator name, a row of Ops
	Domain  string // "" is ai.onnx
	Name    string // for messages and dumps; from ONNX where possible
	Inputs  []*Value
	Outputs []*Value // nil entries are optional outputs nobody asked for
	Attrs   Attrs
	Origins []Origin
}

// Graph is a sequence of nodes in topological order. Subgraphs (attributes of If, Loop, Scan, Fused)
// may use values of the graphs around them directly.
type Graph struct {
	Name    string
	Inputs  []*Value
	Outputs []*Value
	Consts  []*Value
	Nodes   []*Node
}

// Input returns input i or nil when it is absent.
func (n *Node) Input(i int) *Value {
	if i < len(n.Inputs) {
		return n.Inputs[i]
	}
	return nil
}

// Output returns output i or nil when it is absent.
func (n *Node) Output(i int) *Value {
	if i < len(n.Outputs) {
		return n.Outputs[i]
	}
	return nil
}

// Is reports whether n is the ai.onnx operator op.
func (n *Node) Is(op string) bool { return n.Domain == "" && n.Op == op }

// IsInternal reports whether n is the internal operator op.
func (n *Node) IsInternal(op string) bool { return n.Domain == InternalDomain && n.Op == op }

// AttrKind tells which field of an Attr counts.
type AttrKind uint8

const (
	AttrInt AttrKind = iota + 1
	AttrFloat
	AttrString
	AttrInts
	AttrFloats
	AttrStrings
	AttrTensor
	AttrGraph
)

// Attr is an attribute's value.
type Attr struct {
	Kind   AttrKind
	I      int64
	F      float64 // float32 values are held exactly
	S      string
	Ints   []int64
	Floats []float64
	Strs   []string
	T      *Tensor
	G      *Graph
}

// Attrs maps names to attributes. Iterate it by sorted name wherever order can reach output.
type Attrs map[string]Attr

func IntAttr(i int64) Attr         { return Attr{Kind: AttrInt, I: i} }
func FloatAttr(f float64) Attr     { return Attr{Kind: AttrFloat, F: f} }
func StringAttr(s string) Attr     { return Attr{Kind: AttrString, S: s} }
func IntsAttr(v ...int64) Attr     { return Attr{Kind: AttrInts, Ints: v} }
func FloatsAttr(v ...float64) Attr { return Attr{Kind: AttrFloats, Floats: v} }
func StringsAttr(v ...string) Attr { return Attr{Kind: AttrStrings, Strs: v} }
func TensorAttr(t *Tensor) Attr    { return Attr{Kind: AttrTensor, T: t} }
func GraphAttr(g *Graph) Attr      { return Attr{Kind: AttrGraph, G: g} }

// Int returns the integer attribute name, or def when it is absent.
func (n *Node) Int(name string, def int64) int64 {
	if a, ok := n.Attrs[name]; ok {
		return a.I
	}
	return def
}

// Float returns the float attribute name, or def when it is absent.
func (n *Node) Float(name string, def float64) float64 {
	if a, ok := n.Attrs[name]; ok {
		return a.F
	}
	return def
}

// Str returns the string attribute name, or def when it is absent.
func (n *Node) Str(name, def string) string {
	if a, ok := n.Attrs[name]; ok {
		return a.S
	}
	return def
}

// Ints returns the integers attribute name, nil when it is absent.
func (n *Node) Ints(name string) []int64 { return n.Attrs[name].Ints }
