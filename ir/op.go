package ir

// Op is a row of the operator table.
type Op struct {
	Domain string // "" is ai.onnx, InternalDomain for operators that passes create
	Name   string
	Since  int // first ai.onnx opset that has it
	Inputs []Port
	// Outputs lists the outputs; a variadic last port repeats.
	Outputs []Port
	Attrs   []AttrSpec
	Kind    OpKind
	// Infer computes dtypes and shapes of n's outputs from its inputs. It reports what is wrong with
	// the node through c; it never panics, whatever the attributes hold.
	Infer func(c *InferContext)
	Doc   string // one line, for docs/OPS.md
}

// Port describes an input or output.
type Port struct {
	Name     string
	Var      string  // type variable: all ports of a node with the same Var have one element type; "" is free
	Types    []DType // allowed element types; nil allows all numeric ones and bool
	Optional bool
	Variadic bool // only the last port
}

// AttrSpec describes an attribute.
type AttrSpec struct {
	Name     string
	Kind     AttrKind
	Required bool
	Default  Attr     // Kind 0: no default
	Values   []string // legal values of a string attribute, nil for any
}

// OpKind says how an operator lowers; roperator and graphopt go by it.
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
