// Package ir is the typed graph on which the stages from the importer to lowering work.
//
// A Graph is in SSA form: each Value is defined exactly once, by a Node, as a graph input or as a constant. A Node
// applies an operator, and every operator is a row of one table (Ops) that says its inputs, outputs, attributes and
// its rule for types and shapes. All nodes have the semantics of one opset, ReferenceOpset, whatever opset the model
// was written in; the importer rewrites older forms. Values and nodes remember the ONNX nodes that they come from
// (Origin) through every pass, so that messages and profiles can name them.
//
// The text form (Print, ParseText) shows all of it. This graph has one input, one constant and one node:
//
//	graph "main" (%x: float32[batch,3]) {
//	  %w = const float32[3,2] {1, 2, 3, 4, 5, 6}
//	  %y: float32[batch,2] = MatMul(%x, %w) name "fc" origin("/fc/MatMul":"MatMul")
//	  return %y
//	}
//
// An extent of a shape is a Dim: a number, or an expression of named symbols such as batch. InferShapes computes the
// element types and shapes of all values from those of the inputs. BindDims replaces symbols by numbers; the stages
// after it require constant shapes. Verify checks the invariants of a graph.
//
// What the user got wrong is reported as *diag.Diagnostic values with the place of the node. States that no input can
// cause panic with "BUG:".
package ir

import "github.com/rammerc/rammerc/internal/diag"

// ReferenceOpset is the ai.onnx opset whose semantics every Node has.
const ReferenceOpset = 22

// NewestOpset is the last ai.onnx opset whose operators are known. Operators that came after
// ReferenceOpset mean what they mean in the opset that introduced them.
const NewestOpset = 27

// InternalDomain is the domain of operators that only passes create: View, Fused, LSTMCell, …
const InternalDomain = "rammer"

// Shape is a list of dims. nil means that even the rank is unknown; a scalar is Shape{}.
type Shape []Dim

// Value is an SSA value: a tensor that one place of the graph defines and any number of places read.
type Value struct {
	Name  string // unique in its graph and the graphs inside it; never empty
	DType DType
	Shape Shape
	Def   *Node   // nil for graph inputs and constants
	Const *Tensor // non-nil for constants
	// Elems are the elements of a small integer or bool tensor in row-major order, as far as shape inference can
	// compute them; nil when it cannot. Exporters compute shapes with ordinary operators (Shape, Gather, Concat), and
	// Reshape and others then take the result as an input: Elems carries the extents from one to the other. Only
	// InferShapes writes it.
	Elems []Dim
	// Order says how a node's result should be stored: its dims, from the outermost to the innermost. nil stands for
	// row-major order. For example, [0,2,3,1] stores images [N,C,H,W] with their channels innermost. Operators, shapes
	// and ir/eval know nothing of it, because it changes no element; lowering follows it where it is free to choose the
	// place of the value.
	Order []int
}

// Origin names an ONNX node that a Node or Value comes from.
type Origin struct {
	Name   string `json:"name"` // node name, or "#index" when the model leaves it empty
	OpType string `json:"op_type"`
}

// Node applies an operator.
type Node struct {
	Op      string   // operator name, a row of Ops
	Domain  string   // "" is ai.onnx
	Name    string   // for messages and dumps; from ONNX where possible
	Inputs  []*Value // nil entries are optional inputs that the node leaves out
	Outputs []*Value // nil entries are optional outputs that nothing reads
	Attrs   Attrs    // only those that the node sets; Attr adds the defaults
	Origins []Origin // the ONNX nodes whose work this node does; several after fusion
}

// Graph is a sequence of nodes in topological order. The body of an If, Loop or Scan is a Graph in an attribute of
// the node, and may use values of the graphs around it without declaring them as inputs. The body of a Fused node may
// not.
type Graph struct {
	Name    string
	Inputs  []*Value
	Outputs []*Value
	Consts  []*Value
	Nodes   []*Node
	// Untyped marks a branch of an If that is wrong for the shapes at hand, so that taking it would fail. Its values may
	// lack types, and passes leave it alone. Only InferShapes writes it.
	Untyped bool
}

// Input returns input i, or nil when the node leaves it out or has fewer inputs.
func (n *Node) Input(i int) *Value {
	if i < len(n.Inputs) {
		return n.Inputs[i]
	}
	return nil
}

// Output returns output i, or nil when nothing reads it or the node has fewer outputs.
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

// NodeDiag is a diagnostic about n, or about the ONNX node that n comes from.
func NodeDiag(n *Node, id, msg string) *diag.Diagnostic {
	d := &diag.Diagnostic{ID: id, Node: n.Name, Op: n.Op, Domain: n.Domain, Message: msg}
	if len(n.Origins) > 0 {
		d.Node, d.Op, d.Domain = n.Origins[0].Name, n.Origins[0].OpType, ""
	}
	for _, in := range n.Inputs {
		if in != nil {
			d.DType = in.DType.String()
			break
		}
	}
	return d
}

// AttrKind tells which field of an Attr holds its value. The kinds are those of ONNX's AttributeProto.
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

// Attr is an attribute's value. Only the field that Kind names is set; the zero Attr stands for an absent attribute.
type Attr struct {
	Kind   AttrKind
	I      int64
	F      float64 // ONNX has float32 attributes, which a float64 holds exactly
	S      string
	Ints   []int64
	Floats []float64
	Strs   []string
	T      *Tensor
	G      *Graph
}

// Attrs maps names to attributes. Code whose result depends on the order must iterate by Names, because Go's order of
// maps is random and the compiler's output must not be.
type Attrs map[string]Attr

func IntAttr(i int64) Attr         { return Attr{Kind: AttrInt, I: i} }
func FloatAttr(f float64) Attr     { return Attr{Kind: AttrFloat, F: f} }
func StringAttr(s string) Attr     { return Attr{Kind: AttrString, S: s} }
func IntsAttr(v ...int64) Attr     { return Attr{Kind: AttrInts, Ints: v} }
func FloatsAttr(v ...float64) Attr { return Attr{Kind: AttrFloats, Floats: v} }
func StringsAttr(v ...string) Attr { return Attr{Kind: AttrStrings, Strs: v} }
func TensorAttr(t *Tensor) Attr    { return Attr{Kind: AttrTensor, T: t} }
func GraphAttr(g *Graph) Attr      { return Attr{Kind: AttrGraph, G: g} }

// Int returns the integer attribute name, or def when n does not set it. Unlike Node.Attr it does not know the
// operator's default.
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
