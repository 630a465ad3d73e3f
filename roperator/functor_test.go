package roperator

import (
	"math"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

func TestEpilogueFunctorComputesChainOverOperands(t *testing.T) {
	bias := contiguous(&Buffer{ID: 1, Kind: Const, DType: ir.Float32}, []int64{1, 8, 1})
	residual := contiguous(&Buffer{ID: 2, Kind: Arena, DType: ir.Float32}, []int64{2, 8, 9})
	f32 := ir.Float32
	root := opExpr("Relu", opExpr("Add", opExpr("Mul", opExpr("Add", leafExpr(f32, 0), leafExpr(f32, 1)),
		scalarExpr(f32, 0.5)), leafExpr(f32, 2)))
	f, args := epilogueFunctor(f32, root, []View{bias, residual})
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
	if id, _ := epilogueFunctor(f32, leafExpr(f32, 0), nil); !strings.Contains(id.Body, "kIdentity = true") {
		t.Errorf("identity is\n%s", id.Body)
	}
}

func TestHalfBitsRoundToNearestEven(t *testing.T) {
	for bits := uint16(0); bits < 0x7c00; bits++ { // every finite positive float16 is itself
		x := halfValue(bits)
		if got := halfBits(x); got != bits {
			t.Fatalf("%g: %#x, want %#x", x, got, bits)
		}
		if got := halfBits(-x); got != bits|0x8000 {
			t.Fatalf("-%g: %#x, want %#x", x, got, bits|0x8000)
		}
		mid := (x + halfValue(bits+1)) / 2
		if even := bits + bits&1; bits < 0x7bff && halfBits(mid) != even {
			t.Fatalf("%g: %#x, want the even neighbour %#x", mid, halfBits(mid), even)
		}
	}
}

func halfValue(bits uint16) float32 {
	exp, frac := int(bits>>10&31), float64(bits&1023)
	if exp == 0 {
		return float32(math.Ldexp(frac, -24))
	}
	return float32(math.Ldexp(1024+frac, exp-25))
}
