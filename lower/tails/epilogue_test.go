package tails

import (
	"math"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Packs are as wide as the widest access of a thread, where the result and all operands are made up of them.
func TestPacks(t *testing.T) {
	view := func(d ir.DType, shape ...int64) roperator.View {
		return roperator.Contiguous(&roperator.Buffer{DType: d}, shape)
	}
	bias := func(d ir.DType, shape ...int64) roperator.View {
		return roperator.Contiguous(&roperator.Buffer{DType: d, Kind: roperator.Const}, shape)
	}
	at := func(v roperator.View, offset int64) roperator.View {
		v.Offset = offset
		return v
	}
	f32, f16 := ir.Float32, ir.Float16
	short, long := functor.Leaf(f32, 0), functor.Apply("Erf", functor.Apply("Exp", functor.Leaf(f32, 0)))
	for _, c := range []struct {
		what     string
		root     *functor.Expr
		out      roperator.View
		operands []roperator.View
		run      int64
		want     int
	}{
		{"float32", short, view(f32, 1, 3, 8), nil, 8, 4},
		{"float16", short, view(f16, 1, 3, 8), nil, 8, 8},
		{"float16 of a long expression", long, view(f16, 1, 3, 8), nil, 8, 4},
		{"float16 beside float32", short, view(f16, 1, 3, 8), []roperator.View{view(f32, 1, 3, 8)}, 8, 4},
		{"float16 beside a float32 bias", short, view(f16, 1, 3, 8), []roperator.View{bias(f32, 1, 1, 8)}, 8, 8},
		{"a bias for each row", short, view(f32, 1, 3, 8), []roperator.View{view(f32, 1, 3, 1)}, 8, 4},
		{"rows of 6", short, view(f32, 1, 3, 6), nil, 6, 2},
		{"odd rows", short, view(f32, 1, 3, 7), nil, 7, 1},
		{"tiles that end at odd columns", short, view(f32, 1, 3, 8), nil, 3, 1},
		{"a kernel without packs", short, view(f32, 1, 3, 8), nil, 0, 1},
		{"an operand that begins in a pack", short, view(f32, 1, 3, 8), []roperator.View{at(view(f32, 1, 3, 8), 2)}, 8, 2},
		{"a result across rows", short, view(f32, 1, 8, 3).Permute([]int64{0, 2, 1}), nil, 8, 1},
	} {
		if got := packOf(c.root, c.operands, c.out, c.run); got != c.want {
			t.Errorf("%s: packs of %d, want %d", c.what, got, c.want)
		}
	}
}

// Where a group ends in a Relu of its anchor's result, rTasks that store partial sums run the same code as rTasks that
// store the result: a Relu that minus infinity is given to changes nothing.
func TestPartialSumsOfRelu(t *testing.T) {
	out := roperator.Contiguous(&roperator.Buffer{DType: ir.Float32}, []int64{1, 3, 8})
	x := functor.Leaf(ir.Float32, 0)
	relu, sigmoid := functor.Apply("Relu", x), functor.Apply("Sigmoid", x)
	for _, c := range []struct {
		what string
		root *functor.Expr
		same bool
	}{
		{"Relu", relu, true},
		{"Relu of Relu", functor.Apply("Relu", relu), false},
		{"Sigmoid", sigmoid, false},
		{"Relu of Sigmoid", functor.Apply("Relu", sigmoid), false},
	} {
		tail := &Tail{floored: isRelu(c.root)}
		root := c.root
		if tail.floored {
			root = atLeast(root, 0)
		}
		whole, _ := PackedEpilogue(ir.Float32, root, nil, out, 8)
		parts := tail.PartialSums(ir.Float32, out, 8)
		if got := whole.Key() == parts.Functor.Key(); got != c.same {
			t.Errorf("%s: the same code as partial sums: %t, want %t", c.what, got, c.same)
		}
		if c.same && !math.IsInf(float64(parts.Functor.Scalars()[0]), -1) {
			t.Errorf("%s: partial sums are at least %g", c.what, parts.Functor.Scalars()[0])
		}
	}
}
