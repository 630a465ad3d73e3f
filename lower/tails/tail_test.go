package tails

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

func TestEpilogueFunctorComputesChainOverOperands(t *testing.T) {
	bias := roperator.Contiguous(&roperator.Buffer{ID: 1, Kind: roperator.Const, DType: ir.Float32}, []int64{1, 8, 1})
	residual := roperator.Contiguous(&roperator.Buffer{ID: 2, Kind: roperator.Arena, DType: ir.Float32}, []int64{2, 8, 9})
	f32 := ir.Float32
	root := functor.Apply("Relu", functor.Apply("Add", functor.Apply("Mul", functor.Apply("Add", functor.Leaf(f32, 0), functor.Leaf(f32, 1)),
		functor.Scalar(f32, 0.5)), functor.Leaf(f32, 2)))
	f, args := EpilogueFunctor(f32, root, []roperator.View{bias, residual})
	for _, want := range []string{
		"struct Args { rt::Operand3 op[2]; float s[1]; };",
		"rk::const_operand<float>(t, a.op[0], i0, i1, i2)", "rk::operand<float>(t, a.op[1], i0, i1, i2)",
		"rk::fn::Add<float>(x, x1)", "a.s[0]", "kIdentity = false",
	} {
		if !strings.Contains(f.Body, want) {
			t.Errorf("no %q in\n%s", want, f.Body)
		}
	}
	if len(args) != 2 || args[0].Name != "op" || args[1].Name != "s" {
		t.Errorf("args %v", args)
	}
	if id, _ := EpilogueFunctor(f32, functor.Leaf(f32, 0), nil); !strings.Contains(id.Body, "kIdentity = true") {
		t.Errorf("identity is\n%s", id.Body)
	}
}
