// Package arg makes the arguments of rKernels: it is the Go side of the structs in rkernels/common, such as rt::Ref,
// rt::Div and rk::Strided.
package arg

import (
	"math/bits"

	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// HeadMatrix is a view of five dims as an rk::HeadMatrix.
func HeadMatrix(v roperator.View) rkernels.Struct {
	return rkernels.Struct{
		Ref("ref", v), Int("s0", v.Stride(0)), Int("s1", v.Stride(1)), Int("s2", v.Stride(2)),
		Int("row", v.Stride(3)), Int("col", v.Stride(4)),
	}
}

// Ref is a Ref field.
func Ref(name string, v roperator.View) rkernels.Field {
	return rkernels.Field{Name: name, Value: v.Ref()}
}

// Operand3 is a view of three dims as an rt::Operand3.
func Operand3(v roperator.View) rkernels.Struct {
	return rkernels.Struct{
		Ref("ref", v),
		Int("s0", v.Stride(0)), Int("s1", v.Stride(1)), Int("s2", v.Stride(2)),
	}
}

func Int(name string, x int64) rkernels.Field {
	return rkernels.Field{Name: name, Value: rkernels.Int(x)}
}

// Div is an rt::Div member.
func Div(name string, x int64) rkernels.Field {
	return rkernels.Field{Name: name, Value: DivOf(x)}
}

// DivOf is the rt::Div by d: n / d = (high(n·mul) + n) >> shift for 0 ≤ n < 2^31 (Granlund and
// Montgomery, "Division by invariant integers using multiplication", 1994).
func DivOf(d int64) rkernels.Struct {
	shift := bits.Len64(uint64(d - 1))
	mul := (uint64(1)<<32*(uint64(1)<<shift-uint64(d)))/uint64(d) + 1
	return rkernels.Struct{Int("d", d), Int("mul", int64(mul)), Int("shift", int64(shift))}
}

// Strided is a view as an rk::Strided; the last dim's stride is multiplied by unit.
func Strided(v roperator.View, unit int64) rkernels.Struct {
	s := rkernels.List{}
	for d := range v.Shape {
		step := v.Stride(d)
		if d == len(v.Shape)-1 && unit > 1 {
			step *= unit
		}
		s = append(s, rkernels.Int(step))
	}
	return rkernels.Struct{Ref("ref", v), {Name: "s", Value: s}}
}

// Scalars are the float32 scalars of a functor, the last member of its arguments. A functor without any has no such
// member.
func Scalars(f *functor.Functor) []rkernels.Field {
	if len(f.Scalars()) == 0 {
		return nil
	}
	list := rkernels.List{}
	for _, x := range f.Scalars() {
		list = append(list, rkernels.Float(x))
	}
	return []rkernels.Field{{Name: "s", Value: list}}
}
