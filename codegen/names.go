package codegen

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Names of rKernel instances and functors in the emitted source say what is computed, and where only one rOperator
// has it also which ONNX node that is:
//
//	gemv_packed_of_fc_Gemm       the only rOperator with this instance is /fc/Gemm
//	conv_pointwise_Conv_Relu     several have it, all of them a Conv with a Relu behind it
//	epilogue_Add_Relu            a functor that several rOperators share
//
// ONNX names may hold anything and be of any length. Of them only letters and digits are taken, and no more than
// nodePart of them. All names begin with that of the rKernel or of the functor's form, and instances and functors have
// namespaces of their own. So no name can meet a keyword, a macro or anything of the run time.

const (
	nodePart = 24 // characters of an ONNX node's name
	opPart   = 24 // characters of what is computed
	portPart = 40 // characters of an input's or output's name
)

// identifierPart is text as a part of an identifier: runs of other characters than letters and digits become one _. Of
// longer text the end is kept, which tells nodes of one model apart better than the beginning.
func identifierPart(text string, most int) string {
	var b strings.Builder
	gap := false
	for _, r := range text {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9') {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			b.WriteRune(r)
			gap = false
		} else {
			gap = true
		}
	}
	s := b.String()
	return strings.Trim(s[max(0, len(s)-most):], "_")
}

// joinParts joins the parts of an identifier that are not empty.
func joinParts(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, "_")
}

// ofNode is the part of a name that says whose it is.
func ofNode(name string) string {
	if part := identifierPart(name, nodePart); part != "" {
		return "of_" + part
	}
	return ""
}

// instanceName names an instance that the given rOperators have.
func instanceName(in *rkernels.Instance, users []*roperator.ROperator) string {
	kernel := identifierPart(in.Kernel.Name, 40)
	if len(users) == 1 {
		return joinParts(kernel, ofNode(users[0].Name))
	}
	for _, u := range users {
		if u.Kind != users[0].Kind {
			return kernel
		}
	}
	kind := identifierPart(users[0].Kind, opPart)
	if strings.EqualFold(kind, kernel) {
		kind = ""
	}
	return joinParts(kernel, kind)
}

// instanceLabel tells an instance by its rKernel and the numbers that it is bound to. Reports and NAME.plan.json name
// instances so; it is not an identifier.
func instanceLabel(in *rkernels.Instance) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, in.Name())
}

// functorForm is how names of functors begin.
var functorForm = map[functor.Form]string{
	functor.Epilogue: "epilogue", functor.Prologue: "prologue", functor.Map: "map", functor.Staged: "staged",
}

// functorName names a functor; shared says that several rOperators have it.
func functorName(f *functor.Functor, shared bool) string {
	const most = 3
	var ops []string
	var last *ir.Node
	for r := range f.Roots {
		for _, n := range f.Nodes(r) {
			ops, last = append(ops, identifierPart(n.Op, opPart)), n
		}
	}
	form := functorForm[f.Form]
	if len(ops) == 0 {
		return form + "_identity"
	}
	if more := len(ops) - most; more > 0 {
		ops = append(ops[:most:most], fmt.Sprintf("and_%d_more", more))
	}
	name := joinParts(form, joinParts(ops...))
	if shared || len(last.Origins) == 0 {
		return name
	}
	return joinParts(name, ofNode(last.Origins[0].Name))
}
