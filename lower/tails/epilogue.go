package tails

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// Epilogue is the functor that computes root from the kernel's result (leaf 0, of type in) and the operands (leaves
// 1…), and the arguments that go with it. Kernels call it for one element at a time.
func Epilogue(in ir.DType, root *functor.Expr, operands []roperator.View) (*functor.Functor, rkernels.Struct) {
	return epilogue(in, root, operands, 1)
}

// PackedEpilogue is Epilogue for kernels whose tiles begin and end at multiples of run along i2 (Spec.Run). Where out
// and the operands allow it, such kernels compute packs: neighbours along i2, which are loaded and stored in one access.
func PackedEpilogue(in ir.DType, root *functor.Expr, operands []roperator.View, out roperator.View,
	run int64) (*functor.Functor, rkernels.Struct) {
	return epilogue(in, root, operands, packOf(root, operands, out, run))
}

const (
	packBytes = 16 // the widest access of a thread
	mostPack  = 8  // elements that a thread has in registers
	// longPack is the largest pack of an expression with more than shortLength instructions, which are repeated for each
	// element of a pack.
	longPack, shortLength = 4, 14
)

// packOf is the largest number of elements of which runs, out and the operands are made up, and none of which takes
// more than an access; 1 if there is none. Beside results of 16 bits a constant that is the same for all rows, and loaded
// once, may take two.
func packOf(root *functor.Expr, operands []roperator.View, out roperator.View, run int64) int {
	return packBeside(root, operands, out, run, out.DType().Size() == ir.Float16.Size())
}

// packBeside is packOf, but that twice says whether such constants may take two.
func packBeside(root *functor.Expr, operands []roperator.View, out roperator.View, run int64, twice bool) int {
	if run <= 0 || out.Stride(2) != 1 {
		return 1
	}
	n := min(mostPack, int64(packBytes/out.DType().Size()))
	for _, v := range operands {
		if v.Stride(2) == 0 {
			continue
		}
		bytes := packBytes
		if v.Buf.Kind == roperator.Const && v.Stride(1) == 0 && twice {
			bytes *= 2
		}
		n = min(n, int64(bytes/v.DType().Size()))
	}
	if functor.Length(root) > shortLength {
		n = min(n, longPack)
	}
	for ; n > 1; n /= 2 {
		if run%n == 0 && inPacks(out, n) && allInPacks(operands, n) {
			return int(n)
		}
	}
	return 1
}

// allInPacks reports whether each view is the same along i2, or made up of aligned packs of n.
func allInPacks(views []roperator.View, n int64) bool {
	for _, v := range views {
		if v.Stride(2) != 0 && !inPacks(v, n) {
			return false
		}
	}
	return true
}

// inPacks reports whether the rows of v along i2 are dense, and each begins at a multiple of n elements.
func inPacks(v roperator.View, n int64) bool {
	return v.Stride(2) == 1 && v.Offset%n == 0 && v.Stride(0)%n == 0 && v.Stride(1)%n == 0
}

func epilogue(in ir.DType, root *functor.Expr, operands []roperator.View,
	pack int) (*functor.Functor, rkernels.Struct) {
	f := functor.NewEpilogue(in, root, loads(operands, pack, nil), pack)
	return f, epilogueArgs(f, operands)
}

// loads says how operands, leaves 1…, are loaded, those of the given buffers as tagged words.
func loads(operands []roperator.View, pack int, words []*roperator.Buffer) []functor.Operand {
	var list []functor.Operand
	for i, v := range operands {
		o := functor.Operand{Leaf: i + 1, DType: v.DType(), Const: v.Buf.Kind == roperator.Const,
			Words: slices.Contains(words, v.Buf)}
		if pack > 1 {
			o.Repeats, o.Still = v.Stride(2) == 0, o.Const && v.Stride(1) == 0
		}
		list = append(list, o)
	}
	return list
}

func epilogueArgs(f *functor.Functor, operands []roperator.View) rkernels.Struct {
	args := rkernels.Struct{}
	if len(operands) > 0 {
		var list rkernels.List
		for _, v := range operands {
			list = append(list, arg.Operand3(v))
		}
		args = append(args, rkernels.Field{Name: "op", Value: list})
	}
	return append(args, arg.Scalars(f)...)
}
