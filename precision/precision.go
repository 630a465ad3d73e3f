// Package precision names the arithmetic that a user can ask for. It concerns products of float32 matrices and
// convolutions, and what is stored between operators: norms, softmax, reductions, and the states of recurrences are
// float32 in all of them, and inputs and outputs keep the types that the model declares.
package precision

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// Precision is how the products of float32 contractions are made. Sums are always float32.
type Precision uint8

const (
	// FP32 is the default: the accuracy of float32 by whatever method is fastest. On tensor cores every operand is split
	// in two numbers of float16, where one operand is constant, or of tf32, and three products of these are added.
	FP32 Precision = iota
	// Strict makes every product in IEEE float32, so that results do not depend on what hardware is at hand.
	Strict
	// TF32 rounds operands to tf32, which has the range of float32 and the 10 bits of mantissa of float16, where that is
	// faster. It is what PyTorch does for convolutions unless it is told otherwise.
	TF32
	// FP16 and BF16 store weights, and what one operator hands to another, in 16 bits, and multiply them so.
	FP16
	BF16
)

var names = []string{"fp32", "strict", "tf32", "fp16", "bf16"}

// storage is what values of float32 are stored in, where that is something else.
var storage = map[Precision]ir.DType{FP16: ir.Float16, BF16: ir.BFloat16}

// Storage is the element type in which values of float32 are stored between operators, ir.Invalid if that is their own.
func (p Precision) Storage() ir.DType { return storage[p] }

// Names lists the precisions, the default first.
func Names() []string { return slices.Clone(names) }

// Parse is the precision with the given name.
func Parse(name string) (p Precision, ok bool) {
	i := slices.Index(names, name)
	return Precision(max(i, 0)), i >= 0
}

func (p Precision) String() string { return names[p] }

// Products is how many products on tensor cores stand for one product of float32; 0 where tensor cores are not used.
// Where values are stored in 16 bits, what is left of float32, such as weights that are too large for 16 bits, needs no
// more digits than these have.
func (p Precision) Products() int64 {
	switch p {
	case Strict:
		return 0
	case FP32:
		return 3
	}
	return 1
}
