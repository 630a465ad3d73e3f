package build

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// UnsupportedType says that an operator has no kernel for an element type.
func UnsupportedType(d ir.DType) error {
	return fmt.Errorf("element type %s has no compiled form for this operator", d)
}

// Lowering adds the rOperators that carry out a group. An error names the input or attribute that is not supported;
// the caller adds the node.
type Lowering func(b *Builder, g *Group) error
