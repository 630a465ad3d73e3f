package build

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// NotConstant is the error of a lowering that needs the value of an input when the program is compiled.
type NotConstant struct {
	Node  *ir.Node
	Input int
	Name  string
}

func (e *NotConstant) Error() string {
	return fmt.Sprintf("input %d (%s) must be constant at compile time", e.Input, e.Name)
}

// mostBound is how many elements an input of the model may have for BindHelp to suggest a value for it. Inputs with
// more elements are data.
const mostBound = 64

// BindHelp suggests how to make values of g constant: by fixing the inputs of the model from which they are computed, if
// these are shapes, axes, conditions and the like, and no data. It is empty if there are none.
func BindHelp(g *ir.Graph, values ...*ir.Value) string {
	var flags []string
	for _, v := range ir.InputsBehind(values...) {
		dims, known := v.Shape.Consts()
		if known && ir.Count(dims) > mostBound || len(v.Shape) > 1 || !known && v.DType.IsFloat() || ir.IsData(g, v) {
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

// BindHelp is BindHelp for values of the graph that is lowered.
func (b *Builder) BindHelp(values ...*ir.Value) string { return BindHelp(b.source, values...) }

// ConstInts is the value of input i of n, which must be a constant of integers; name is what ONNX calls the input.
func ConstInts(n *ir.Node, i int, name string) ([]int64, error) {
	v := n.Input(i)
	if v == nil || v.Const == nil {
		return nil, &NotConstant{n, i, name}
	}
	switch d := v.Const.Data.(type) {
	case []int64:
		return d, nil
	case []int32:
		out := make([]int64, len(d))
		for k, x := range d {
			out[k] = int64(x)
		}
		return out, nil
	}
	return nil, fmt.Errorf("input %d (%s) has element type %s, want int64", i, name, v.DType)
}
