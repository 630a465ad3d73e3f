package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// applyBind turns the inputs that Options.Bind names into constants. Their extents bind symbols, as those of
// Options.Shapes do.
func (im *importer) applyBind(list []modelInput) {
	for _, name := range sortedKeys(im.opts.Bind) {
		if in := im.inputNamed(list, name, "the model has no such input to bind"); in != nil {
			im.bindInput(in, im.opts.Bind[name])
		}
	}
}

// bindInput makes the input a constant with the elements of t.
func (im *importer) bindInput(in *modelInput, t *ir.Tensor) {
	if in.bad {
		return // reported
	}
	dims := t.Dims
	if want := in.typ.shape; want != nil && len(want) != len(dims) && t.Len() == 1 {
		dims = slices.Repeat([]int64{1}, len(want)) // the user writes a single number without regard to the rank
	}
	value, err := exactly(t, in.typ.dtype)
	if err != nil {
		im.portf("bad-type", inputPort(in.name), "", "the value bound to it: %v", err)
		return
	}
	in.value = &ir.Tensor{DType: value.DType, Dims: dims, Data: value.Data}
	if want := in.typ.shape; want != nil && len(want) == len(dims) {
		for i, d := range want {
			if n, ok := d.Const(); ok && n != dims[i] {
				im.portf("bad-shape", inputPort(in.name), "",
					"the value bound to it has the shape %v, the model wants %v", dims, want)
				return
			}
		}
	}
	im.applyShape(in, dims)
}

// exactly converts numbers to element type d. An integer type must hold each number exactly; a floating-point type gets
// the nearest value.
func exactly(t *ir.Tensor, d ir.DType) (*ir.Tensor, error) {
	if t.DType == d {
		return t, nil
	}
	out := ir.NewTensor(d, t.Dims...)
	var err error
	switch from := t.Data.(type) {
	case []int64:
		err = assign(out, from)
	case []float64:
		err = assign(out, from)
	default:
		err = fmt.Errorf("its elements are %v, wanted %v", t.DType, d)
	}
	return out, err
}

// assign sets the elements of out to numbers, as exactly says.
func assign[N int64 | float64](out *ir.Tensor, from []N) error {
	switch to := out.Data.(type) {
	case []float32:
		for i, x := range from {
			to[i] = float32(x)
		}
		return nil
	case []float64:
		for i, x := range from {
			to[i] = float64(x)
		}
		return nil
	case []uint16:
		if out.DType != ir.Uint16 {
			for i, x := range from {
				to[i] = bits16(out.DType, float32(x))
			}
			return nil
		}
		return assignInts(out.DType, to, from)
	case []int8:
		return assignInts(out.DType, to, from)
	case []int16:
		return assignInts(out.DType, to, from)
	case []int32:
		return assignInts(out.DType, to, from)
	case []int64:
		return assignInts(out.DType, to, from)
	case []uint8:
		return assignInts(out.DType, to, from)
	case []uint32:
		return assignInts(out.DType, to, from)
	case []uint64:
		return assignInts(out.DType, to, from)
	case []bool:
		for i, x := range from {
			if x != 0 && x != 1 {
				return fmt.Errorf("%v is not a bool, wanted 0 or 1", x)
			}
			to[i] = x != 0
		}
		return nil
	}
	return fmt.Errorf("numbers cannot be converted to %v", out.DType)
}

func assignInts[I int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64, N int64 | float64](d ir.DType,
	to []I, from []N) error {
	for i, x := range from {
		if math.Abs(float64(x)) > 1<<63 || N(I(x)) != x || (x < 0) != (I(x) < 0) {
			return fmt.Errorf("%v is no value of element type %v", x, d)
		}
		to[i] = I(x)
	}
	return nil
}
