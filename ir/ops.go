package ir

import "slices"

// Ops is the operator table: every operator that a Node can have, by category. The importer's checks, the verifier,
// shape inference and docs/OPS.md all read these rows. The ports and attributes of a row are those of ai.onnx opset
// ReferenceOpset; where an older opset differs, the importer rewrites its nodes.
//
// To add an operator, add a row to the file of its category (ops_*.go) and its Infer function to infer_*.go.
var Ops = slices.Concat(
	elementwiseOps,
	contractionOps,
	convOps,
	normOps,
	reduceOps,
	shapeOps,
	indexedOps,
	samplingOps,
	selectionOps,
	textOps,
	signalOps,
	randomOps,
	recurrentOps,
	controlOps,
	internalOps,
	countedOps,
	extentOps,
	operandOps,
	repeatOps, referenceOps,
)

var opIndex = indexOps(Ops)

// opKey identifies an operator.
type opKey struct{ domain, name string }

// indexOps maps names to rows. Two rows of the same operator are a mistake in the table.
func indexOps(ops []Op) map[opKey]*Op {
	index := make(map[opKey]*Op, len(ops))
	for i := range ops {
		key := opKey{ops[i].Domain, ops[i].Name}
		if index[key] != nil {
			panic("BUG: operator " + key.name + " has two rows")
		}
		index[key] = &ops[i]
	}
	return index
}

// LookupOp returns the row of an operator, or nil when there is none.
func LookupOp(domain, name string) *Op { return opIndex[opKey{domain, name}] }

// Attr returns the row's description of an attribute, nil when the operator has none of that name.
func (o *Op) Attr(name string) *AttrSpec {
	for i := range o.Attrs {
		if o.Attrs[i].Name == name {
			return &o.Attrs[i]
		}
	}
	return nil
}

// InputPort returns the port that input i belongs to, nil when there are fewer.
func (o *Op) InputPort(i int) *Port { return portAt(o.Inputs, i) }

// OutputPort returns the port that output i belongs to, nil when there are fewer.
func (o *Op) OutputPort(i int) *Port { return portAt(o.Outputs, i) }

// portAt is the port that value i belongs to: a variadic last port takes all values from its own on.
func portAt(ports []Port, i int) *Port {
	last := len(ports) - 1
	switch {
	case i <= last:
		return &ports[i]
	case last >= 0 && ports[last].Variadic:
		return &ports[last]
	}
	return nil
}

// MinInputs returns how many inputs a node must have at least, trailing optional ones left out.
func (o *Op) MinInputs() int {
	for i := len(o.Inputs); i > 0; i-- {
		if !o.Inputs[i-1].Optional {
			return i
		}
	}
	return 0
}

// Attr returns the attribute called name. If n leaves it out, Attr returns the default of the operator's row, or the
// zero Attr when there is no default.
func (n *Node) Attr(name string) Attr {
	if op := LookupOp(n.Domain, n.Op); op != nil {
		return op.resolve(n, name)
	}
	return n.Attrs[name]
}

// HasAttr reports whether n itself sets the attribute.
func (n *Node) HasAttr(name string) bool {
	_, ok := n.Attrs[name]
	return ok
}

// Sets of element types that ports allow: those of the ONNX standard that all stages support.
var (
	floatTypes    = []DType{Float32, Float64, Float16, BFloat16}
	signedTypes   = []DType{Float32, Float64, Float16, BFloat16, Int8, Int16, Int32, Int64}
	integerTypes  = []DType{Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64}
	unsignedTypes = []DType{Uint8, Uint16, Uint32, Uint64}
	numericTypes  = []DType{
		Float32, Float64, Float16, BFloat16, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64,
	}
	quantizedTypes = []DType{Int8, Uint8, Int4, Uint4}
	boolType       = []DType{Bool}
	byteTypes      = []DType{Int8, Uint8}
	int64Type      = []DType{Int64}
	int32Type      = []DType{Int32}
	indexType      = []DType{Int32, Int64}
	anyType        []DType // all numeric ones and bool
	// storedTypes are the types of operators that move elements or convert them: narrow ones as well.
	storedTypes = []DType{
		Float32, Float64, Float16, BFloat16, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64, Bool,
		Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float8E8M0, Float4E2M1, Int4, Uint4, Int2, Uint2,
	}
)

func port(name, typeVar string, types []DType) Port {
	return Port{Name: name, Var: typeVar, Types: types}
}

func optional(name, typeVar string, types []DType) Port {
	return Port{Name: name, Var: typeVar, Types: types, Optional: true}
}

func variadic(name, typeVar string, types []DType) Port {
	return Port{Name: name, Var: typeVar, Types: types, Variadic: true}
}

func intAttr(name string, def int64) AttrSpec {
	return AttrSpec{Name: name, Kind: AttrInt, Default: IntAttr(def)}
}

// floatAttr takes the default as a float32, because that is what a model file can hold: an attribute that is written
// out with the default's value must equal one that is left out.
func floatAttr(name string, def float32) AttrSpec {
	return AttrSpec{Name: name, Kind: AttrFloat, Default: FloatAttr(float64(def))}
}

// enumAttr is a string attribute whose first value is the default.
func enumAttr(name string, values ...string) AttrSpec {
	return AttrSpec{Name: name, Kind: AttrString, Default: StringAttr(values[0]), Values: values}
}

// required is an attribute that every node must have.
func required(name string, kind AttrKind, values ...string) AttrSpec {
	return AttrSpec{Name: name, Kind: kind, Required: true, Values: values}
}

// absent is an attribute that a node may leave out and that has no default.
func absent(name string, kind AttrKind) AttrSpec { return AttrSpec{Name: name, Kind: kind} }
