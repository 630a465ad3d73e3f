package codegen

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
)

// instanceText is the text that instances are sorted by: the name of the rKernel and the values of its parameters, of
// functors their C++.
func instanceText(in *rkernels.Instance) string {
	var b strings.Builder
	b.WriteString(in.Kernel.Name)
	for _, v := range templateArguments(in, FunctorBody) {
		b.WriteString("|" + v)
	}
	return b.String()
}

// InstanceType spells the C++ type of an instance; functorName gives the name of each functor's struct.
func InstanceType(in *rkernels.Instance, functorName func(*functor.Functor) string) string {
	args := templateArguments(in, functorName)
	if len(args) == 0 {
		return in.Kernel.Type
	}
	return in.Kernel.Type + "<" + strings.Join(args, ", ") + ">"
}

// templateArguments spells what the template parameters of an instance are bound to.
func templateArguments(in *rkernels.Instance, spell func(*functor.Functor) string) []string {
	var out []string
	for i, p := range in.Kernel.Params {
		v := in.Values[i]
		switch p.Kind {
		case rkernels.ParamFunctor:
			out = append(out, spell(v.Functor))
		case rkernels.ParamType:
			out = append(out, v.Text)
		default:
			out = append(out, fmt.Sprint(v.Int))
		}
	}
	return out
}
