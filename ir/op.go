package ir

// Op is a row of the operator table.
type Op struct {
	Domain  string // "" is ai.onnx, InternalDomain for operators that passes create
	Name    string
	Since   int    // first ai.onnx opset that has the operator
	Inputs  []Port // if the last port is variadic, it stands for any number of inputs
	Outputs []Port // likewise
	Attrs   []AttrSpec
	Kind    OpKind
	// Infer computes the element types and shapes of the outputs of c.Node from its inputs. It reports what is wrong
	// with the node through c. It must not panic, whatever the attributes hold, because they come from model files.
	Infer func(c *InferContext)
	Doc   string // one line, for docs/OPS.md
}

// Port describes an input or output of an operator.
type Port struct {
	Name string // as in the ONNX standard
	// Var is a type variable, as "T" in the ONNX standard: all ports of a node with the same Var have the same element
	// type. A port with "" is independent of the others.
	Var      string
	Types    []DType // allowed element types; nil allows all numeric ones and bool
	Optional bool
	Variadic bool // the port stands for any number of values; only the last port may
}

// AttrSpec describes an attribute of an operator.
type AttrSpec struct {
	Name     string
	Kind     AttrKind
	Required bool
	Default  Attr     // Kind 0: no default
	Values   []string // legal values of a string attribute, nil for any
}

// OpKind groups operators by the form of their work. Graph passes and lowering decide by it: for example, only
// elementwise operators are fused into others, and views become index maps without work of their own.
type OpKind uint8

const (
	KindElementwise OpKind = iota + 1 // one output element from the same (broadcast) element of each input
	KindView                          // moves no data when its operands' strides allow: Reshape, Transpose, Slice, …
	KindConcat                        // writes its inputs side by side
	KindContraction                   // MatMul, Gemm, Einsum
	KindConv                          // Conv, ConvTranspose
	KindPool                          // windows without weights
	KindReduce                        // Reduce*, ArgMax, ArgMin
	KindNorm                          // LayerNormalization, Softmax, …: statistics over axes, then a map
	KindRecurrent                     // LSTM, GRU, RNN and their cells
	KindIndexed                       // element moves by computed or given indices: Gather, Pad, Resize, TopK, …
	KindShape                         // computes with shapes only: Shape, Size
	KindSource                        // makes a value from nothing: Constant, Range, ConstantOfShape
	KindFused                         // internal: a body with an anchor
	KindControl                       // If, Loop, Scan
)
