package roperator

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// notConstant says that an input has to be known when the program is compiled.
type notConstant struct {
	node  *ir.Node
	input int
	name  string
}

func (e *notConstant) Error() string {
	return fmt.Sprintf("input %d (%s) must be constant at compile time", e.input, e.name)
}

// mostBound is how many elements an input has at most for a value to be suggested for it; longer ones are data.
const mostBound = 64

// BindHelp says how to make what values are computed from constants: the inputs of the model that they
// depend on and that can be shapes, axes and the like. It is empty when there are none.
func BindHelp(values ...*ir.Value) string {
	var flags []string
	for _, v := range ir.InputsBehind(values...) {
		dims, known := v.Shape.Consts()
		if known && ir.Count(dims) > mostBound || len(v.Shape) > 1 || !known && v.DType.IsFloat() {
			continue
		}
		example := "[1,2]"
		if len(v.Shape) == 0 {
			example = "1"
		}
		flags = append(flags, fmt.Sprintf("--bind %s=%s", v.Name, example))
	}
	if len(flags) == 0 {
		return ""
	}
	return "fix its value when compiling, e.g. " + strings.Join(flags, " ") + " (or =@FILE)"
}
