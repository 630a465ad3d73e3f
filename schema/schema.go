// Package schema is what Go and C++ share: the rows of the program tables, of the emitted program and of traces,
// numbers of enumerations, and constants that both sides compute with.
//
// Everything but this file is generated, as are the C++ headers of the same content, codegen/rt/schema/* and
// rkernels/common/modes.cuh. To change a row, change its description in schema/describe and run `go generate
// ./schema`. The C++ headers assert sizes and offsets, and a test compares all generated files with the
// description, so that neither language can be changed alone.
package schema

//go:generate go run ./generate

// Field is a member of a row that the emitted program spells as C++. Value is an int, a uint32, a uint64, a bool, a
// string, an Expr, a value of an enumeration with a method CXX, or a row.
type Field struct {
	Name  string
	Value any
}

// Expr is a C++ expression that stands for itself.
type Expr string

// Row is a row that the emitted program spells as C++.
type Row interface{ Fields() []Field }

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
