package build

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// maxTable is the most entries of a table that lowering makes, such as the source of each element along an axis. A model
// asks for a table with nothing but an extent, so without a bound a small file could take any amount of memory.
const maxTable = 1 << 24

// CheckTable returns an error if a table with so many entries is not made.
func CheckTable(entries int64) error {
	if entries > maxTable {
		return fmt.Errorf("it would need a table of %d entries, more than the %d that are compiled", entries, maxTable)
	}
	return nil
}

// UnsupportedType says that an operator has no kernel for an element type.
func UnsupportedType(d ir.DType) error {
	return fmt.Errorf("element type %s has no compiled form for this operator", d)
}

// Lowering adds the rOperators that carry out a group. An error names the input or attribute that is not supported;
// the caller adds the node.
type Lowering func(b *Builder, g *Group) error
