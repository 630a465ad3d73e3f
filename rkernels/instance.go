package rkernels

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/rkernels/functor"
)

// Instance is a Kernel with every template parameter bound.
type Instance struct {
	Kernel *Kernel
	Values []Value // one per Kernel.Params, in order

	threads, shared, registers, streamStep int
}

// Value binds one template parameter.
type Value struct {
	Int     int64            // for parameters of kind int (and bool: 0 or 1)
	Text    string           // for parameters of kind type: a C++ type such as "float"
	Functor *functor.Functor // for parameters of kind functor
}

// Key identifies the instance: equal keys mean equal code.
func (in *Instance) Key() string {
	b := make([]byte, 0, 128)
	b = append(b, in.Kernel.Name...)
	for i, p := range in.Kernel.Params {
		v := in.Values[i]
		b = append(b, '|')
		switch p.Kind {
		case ParamFunctor:
			b = append(b, v.Functor.Key()...)
		case ParamType:
			b = append(b, v.Text...)
		default:
			b = strconv.AppendInt(b, v.Int, 10)
		}
	}
	return string(b)
}

// Name is the name of the kernel with the values of its int and type parameters, such as "gemm_tiled_BM64_BN64_BK16".
// Instances that differ in their functors alone have the same Name, but different Keys.
func (in *Instance) Name() string {
	parts := []string{in.Kernel.Name}
	for i, p := range in.Kernel.Params {
		switch p.Kind {
		case ParamInt:
			parts = append(parts, fmt.Sprintf("%s%d", p.Name, in.Values[i].Int))
		case ParamType:
			parts = append(parts, in.Values[i].Text)
		}
	}
	return strings.Join(parts, "_")
}

// Functors lists the functors among the parameters, in order.
func (in *Instance) Functors() []*functor.Functor {
	var out []*functor.Functor
	for _, v := range in.Values {
		if v.Functor != nil {
			out = append(out, v.Functor)
		}
	}
	return out
}

// Int returns the bound value of the int parameter name.
func (in *Instance) Int(name string) int64 {
	for i, p := range in.Kernel.Params {
		if p.Name == name {
			return in.Values[i].Int
		}
	}
	panic("BUG: " + in.Kernel.Name + " has no parameter " + name)
}

// packedMode is the value of a parameter BMode for an operand that is a packed constant (rk::kLoadPacked).
const packedMode = 3

// Arithmetic names what the instance multiplies on tensor cores: "tf32", "fp16", "bf16" or "int8"; "fp16x3" and
// "tf32x3" for three products that make up one of float32, of parts of float16 where an operand is a constant packed as
// such. It is "scalar" where tensor cores are not used.
func (in *Instance) Arithmetic() string {
	products, packed := int64(0), in.Kernel.Packing != "" && !in.Kernel.WholeConstants
	multiplied := "float"
	for i, p := range in.Kernel.Params {
		switch {
		case p.Name == "Products":
			products = in.Values[i].Int
		case p.Name == "BMode":
			packed = in.Values[i].Int == packedMode
		case p.Kind == ParamType && (p.Name == "E" || p.Name == "T"):
			multiplied = in.Values[i].Text
		}
	}
	switch {
	case products == 0:
		return "scalar"
	case multiplied != "float":
		return map[string]string{"rk::half": "fp16", "rk::bfloat16": "bf16", "int8_t": "int8",
			"uint8_t": "int8"}[multiplied]
	case products == 3 && packed:
		return "fp16x3"
	case products == 3:
		return "tf32x3"
	}
	return "tf32"
}

// Threads is the number of threads one rTask uses.
func (in *Instance) Threads() int { return in.threads }

// Shared is the bytes of shared memory one rTask uses.
func (in *Instance) Shared() int { return in.shared }

// Registers is the manifest's estimate of how many registers a thread needs. How many it gets is decided by nvcc.
func (in *Instance) Registers() int { return in.registers }

// StreamStep is how many bytes of weights an rTask takes at a time from the ring, 0 if it streams none.
func (in *Instance) StreamStep() int { return in.streamStep }

// needs computes what the manifest's formulas say of the instance. The scheduler asks for it again and again, so Bind does
// this once.
func (in *Instance) needs() {
	k := in.Kernel
	in.threads, in.shared, in.registers = in.formula(k.threads), in.formula(k.shared), in.formula(k.registers)
	if k.streams != nil {
		in.streamStep = in.formula(k.streams)
	}
}

// formula computes f. An element type stands in it for the bytes of an element.
func (in *Instance) formula(f *Formula) int {
	n, err := f.Eval(in.parameter)
	if err != nil {
		panic("BUG: manifest of " + in.Kernel.Name + ": " + err.Error())
	}
	return int(n)
}

// parameter is what a formula's parameter stands for.
func (in *Instance) parameter(name string) (int64, bool) {
	for i, p := range in.Kernel.Params {
		if p.Name != name {
			continue
		}
		switch p.Kind {
		case ParamInt:
			return in.Values[i].Int, true
		case ParamType:
			n := elementSize(in.Values[i].Text)
			return n, n > 0
		}
	}
	return 0, false
}

// Field is one member of an rKernel's Args struct.
type Field struct {
	Name  string
	Value ArgValue
}

// ArgValue is Int, Float, Ref, TiledMatrix, List or Struct.
type ArgValue interface{ argValue() }

type (
	// Int initialises an int32_t or int64_t member.
	Int int64
	// Float initialises a float member.
	Float float32
	// Ref initialises an rt::Ref, an address in a buffer of the rOperator graph. Codegen replaces it by an address in
	// the arena, the weights, an input or an output.
	Ref struct {
		Buffer int   // roperator.Buffer.ID
		Offset int64 // bytes
	}
	// TiledMatrix initialises an rt::TiledMatrix, a matrix in the arena of which copy engines bring boxes of BoxRows rows
	// of 128 bytes.
	TiledMatrix struct {
		Matrix        Ref
		Columns, Rows int64 // in elements
		RowBytes      int64 // from a row to the next
		BoxRows       int64
		ElementBytes  int64 // 1, 2 or 4
		Plain         bool  // its rows are not swizzled in shared memory
		Images        TiledImages
	}
	// TiledImages says of a TiledMatrix that its rows are pixels of images, and its boxes those that a filter meets at
	// one position after another. It is nothing for matrices.
	TiledImages struct {
		Count, Width, Height int64
		LineBytes, Bytes     int64    // from a line of pixels to the next, and from an image to the next
		First                [2]int64 // the pixel of the first position, x before y
		Positions, Stride    [2]int64
	}
	// List initialises an array member.
	List []ArgValue
	// Struct initialises a nested struct member.
	Struct []Field
)

func (Int) argValue()         {}
func (Float) argValue()       {}
func (Ref) argValue()         {}
func (TiledMatrix) argValue() {}
func (List) argValue()        {}
func (Struct) argValue()      {}
