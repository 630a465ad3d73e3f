package tails

import (
	"reflect"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// An epilogue's arguments are its operands, those that it repeats along a dim with a stride of 0, and its scalars.
func TestEpilogueArguments(t *testing.T) {
	f32 := ir.Float32
	bias := roperator.Contiguous(&roperator.Buffer{ID: 1, Kind: roperator.Const, DType: f32}, []int64{1, 8, 1})
	residual := roperator.Contiguous(&roperator.Buffer{ID: 2, Kind: roperator.Arena, DType: f32}, []int64{2, 8, 9})
	half := functor.Apply("Mul", functor.Apply("Add", functor.Leaf(f32, 0), functor.Leaf(f32, 1)),
		functor.Scalar(f32, 0.5))
	f, args := Epilogue(f32, functor.Apply("Add", half, functor.Leaf(f32, 2)), []roperator.View{bias, residual})
	operand := func(buffer int, steps ...rkernels.Int) rkernels.Struct {
		return rkernels.Struct{
			{Name: "ref", Value: rkernels.Ref{Buffer: buffer}},
			{Name: "s0", Value: steps[0]}, {Name: "s1", Value: steps[1]}, {Name: "s2", Value: steps[2]},
		}
	}
	want := rkernels.Struct{
		{Name: "op", Value: rkernels.List{operand(1, 0, 1, 0), operand(2, 72, 9, 1)}},
		{Name: "s", Value: rkernels.List{rkernels.Float(0.5)}},
	}
	if !reflect.DeepEqual(args, want) {
		t.Errorf("arguments are %v, want %v", args, want)
	}
	operands := []functor.Operand{{Leaf: 1, DType: f32, Const: true}, {Leaf: 2, DType: f32}}
	if !reflect.DeepEqual(f.Operands, operands) || f.Identity {
		t.Errorf("functor %+v", f)
	}
}
