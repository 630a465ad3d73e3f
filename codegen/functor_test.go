package codegen

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels/functor"
)

// relu((x + bias) · 0.5 + residual) loads the bias as a constant and reads the scalar from its arguments.
func TestPrintedEpilogue(t *testing.T) {
	f32 := ir.Float32
	leaf := func(i int) *functor.Expr { return functor.Leaf(f32, i) }
	root := functor.Apply("Relu", functor.Apply("Add", functor.Apply("Mul", functor.Apply("Add", leaf(0), leaf(1)),
		functor.Scalar(f32, 0.5)), leaf(2)))
	operands := []functor.Operand{{Leaf: 1, DType: f32, Const: true}, {Leaf: 2, DType: f32}}
	body := FunctorBody(functor.NewEpilogue(f32, root, operands, 1))
	for _, want := range []string{
		"struct Args { rt::Operand3 op[2]; float s[1]; };",
		"rk::const_operand<float>(t, a.op[0], i0, i1, i2)", "rk::operand<float>(t, a.op[1], i0, i1, i2)",
		"rk::fn::Add<float>(x, x1)", "a.s[0]", "kIdentity = false",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	if id := FunctorBody(functor.NewEpilogue(f32, leaf(0), nil, 1)); !strings.Contains(id, "kIdentity = true") {
		t.Errorf("identity is\n%s", id)
	}
}

// Functors are one where the same code is printed for them: scalars and the nodes they come from do not count,
// operands, types, attributes and other constants do.
func TestFunctorKeysAreCode(t *testing.T) {
	f32 := ir.Float32
	x := func() *functor.Expr { return functor.Leaf(f32, 0) }
	named := func(e *functor.Expr, name string) *functor.Expr {
		e.Node.Origins = []ir.Origin{{Name: name}}
		return e
	}
	leaky := func(alpha float64) *functor.Expr {
		e := functor.Apply("LeakyRelu", x())
		e.Node.Attrs = ir.Attrs{"alpha": ir.FloatAttr(alpha)}
		return e
	}
	shared := functor.Apply("Exp", x())
	int64s := func(v int64) *functor.Expr {
		e := functor.Apply("Add", functor.Leaf(ir.Int64, 0), functor.Scalar(ir.Int64, float64(v)))
		return e
	}
	var all []*functor.Functor
	for _, e := range []*functor.Expr{
		nil, x(), named(functor.Apply("Relu", x()), "a"), named(functor.Apply("Relu", x()), "b"),
		functor.Apply("Mul", x(), functor.Scalar(f32, 2)), functor.Apply("Mul", x(), functor.Scalar(f32, 3)),
		functor.Apply("Mul", functor.Scalar(f32, 2), x()),
		functor.Apply("Clip", x(), functor.Scalar(f32, 0), functor.Scalar(f32, 0)),
		functor.Apply("Clip", x(), functor.Scalar(f32, 0), functor.Scalar(f32, 1)),
		functor.Apply("Clip", x(), nil, functor.Scalar(f32, 1)),
		leaky(0.1), leaky(0.2), functor.Apply("LeakyRelu", x()), leaky(0.01),
		functor.Apply("Identity", x()), functor.Apply("Dropout", x()),
		functor.Apply("Mul", shared, shared), functor.Apply("Mul", functor.Apply("Exp", x()),
			functor.Apply("Exp", x())),
		functor.Cast(ir.Float16, x()), functor.Cast(ir.Int32, x()),
	} {
		all = append(all, functor.NewPrologue(f32, e))
		if e != nil {
			all = append(all, functor.NewEpilogue(f32, e, nil, 1))
		}
	}
	for _, v := range []int64{1, 2} {
		all = append(all, functor.NewPrologue(ir.Int64, int64s(v)))
	}
	for _, c := range []bool{true, false} {
		all = append(all, functor.NewEpilogue(f32, functor.Apply("Add", x(), functor.Leaf(f32, 1)),
			[]functor.Operand{{Leaf: 1, DType: f32, Const: c}}, 1))
	}
	for i, f := range all {
		for _, g := range all[:i] {
			if same := FunctorBody(f) == FunctorBody(g); same != (f.Key() == g.Key()) {
				t.Errorf("keys\n%s\n%s\nof code that is the same: %t\n%s\n%s", f.Key(), g.Key(), same, FunctorBody(f),
					FunctorBody(g))
			}
		}
	}
}

// An epilogue that computes packs loads what is the same for all rows apart from what is not, in one access for a pack
// where the operand has an element for each column.
func TestPrintedEpiloguePack(t *testing.T) {
	f32 := ir.Float32
	root := functor.Apply("Add", functor.Apply("Mul", functor.Apply("Add", functor.Leaf(f32, 0), functor.Leaf(f32, 1)),
		functor.Leaf(f32, 2)), functor.Leaf(f32, 3))
	operands := []functor.Operand{
		{Leaf: 1, DType: f32, Const: true, Still: true}, {Leaf: 2, DType: f32, Const: true, Repeats: true},
		{Leaf: 3, DType: f32},
	}
	body := FunctorBody(functor.NewEpilogue(f32, root, operands, 4))
	for _, want := range []string{
		"kPack = 4;", "struct Column { rk::Pack<float, 4> x1; };", "struct Row { float x2; rk::Pack<float, 4> x3; };",
		"return {rk::const_operand<rk::Pack<float, 4>>(t, a.op[0], i0, i1, i2)};",
		"return {rk::const_operand<float>(t, a.op[1], i0, i1, i2), rk::operand<rk::Pack<float, 4>>(t, a.op[2], i0, i1, i2)};",
		"x1 = column.x1.v[i];", "x2 = row.x2;", "x3 = row.x3.v[i];",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	if one := FunctorBody(functor.NewEpilogue(f32, root, operands, 1)); strings.Contains(one, "apply_pack") {
		t.Errorf("an epilogue of single elements has packs:\n%s", one)
	}
}
