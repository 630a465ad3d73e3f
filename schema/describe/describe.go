// Package describe is the one description of what Go and C++ share: the rows that one of them writes and the
// other reads, the numbers of enumerations, and the constants that both compute with. From it are made package
// schema and the C++ headers that Files names. Nothing else may spell such a layout or number by hand.
//
// The description itself is in the files tables.go, memory.go, trace.go, library.go and modes.go, one Group each.
package describe

// Group is a part of the description: one Go file of package schema and one C++ header.
type Group struct {
	Name      string // of the Go file, without .go
	Doc       string // what the group is about, for both files
	Header    string // the C++ header's path in the repository
	Namespace string // of the C++ header
	Includes  []string
	Constants []Constant
	Enums     []Enum
	Structs   []Struct
}

// Constant is a number or a text. Value is an expression of literals and names of earlier constants, of the
// operators + - * / << and parentheses; both languages compute it. In C++ names begin with k.
type Constant struct {
	Name  string
	Value string
	Type  string // in C++; uint32_t if empty. "text" is a string
	Doc   string
}

// Enum is an enumeration. Its values are Prefix+Name in Go and k+Name in C++, or k+Prefix+Name with Qualified.
type Enum struct {
	Name       string
	Underlying string // the C++ type; empty for the compiler's choice, which is int in Go
	Prefix     string
	Qualified  bool
	Untyped    bool   // Go has constants without a type, which parameters of rKernels of any integer type take
	Spelled    bool   // Go can tell the C++ name of a value
	Count      string // the name of a constant that is the number of values; empty for none
	Doc        string
	Values     []Value
}

// Value is a value of an enumeration.
type Value struct {
	Name   string
	Number int
	Doc    string
}

// Struct is a row with named fields.
type Struct struct {
	Name   string
	Doc    string
	Align  int  // of the C++ type, in bytes; 0: what its fields ask for
	Size   int  // in bytes, what the fields must add up to; 0: a row of the emitted program, which has no fixed layout
	Decode bool // C++ writes it and Go reads it; otherwise it is the other way round
	Fields []Field
}

// Field is a member of a Struct. Type is C++'s: uint16_t, uint32_t, uint64_t, char[N], T[N], a Struct of the
// description, and in rows of the emitted program also int, bool, const char* and pointers to rows. GoType says
// what Go takes it for where it is not the same: bool, an Enum, or Expr for a C++ expression.
type Field struct {
	Name   string // in C++; Go's follows from it
	Type   string
	GoType string
	Doc    string
}

// Groups is the whole description.
func Groups() []Group { return []Group{tables, memory, trace, library, modes} }
