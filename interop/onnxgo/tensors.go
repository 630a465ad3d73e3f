package onnxgo

import (
	"fmt"
	"reflect"

	"gorgonia.org/tensor"

	"github.com/rammerc/rammerc/ir"
)

// element pairs an element type of rammerc with that of Gorgonia. Others have no counterpart there.
type element struct {
	ir   ir.DType
	onnx int32 // in TensorProto
	here tensor.Dtype
}

var elements = []element{
	{ir.Float32, 1, tensor.Float32}, {ir.Uint8, 2, tensor.Uint8}, {ir.Int8, 3, tensor.Int8},
	{ir.Uint16, 4, tensor.Uint16}, {ir.Int16, 5, tensor.Int16}, {ir.Int32, 6, tensor.Int32},
	{ir.Int64, 7, tensor.Int64}, {ir.String, 8, tensor.String}, {ir.Bool, 9, tensor.Bool},
	{ir.Float64, 11, tensor.Float64}, {ir.Uint32, 12, tensor.Uint32}, {ir.Uint64, 13, tensor.Uint64},
}

// ours is the element type for one of Gorgonia's.
func ours(d tensor.Dtype) (element, error) {
	for _, e := range elements {
		if e.here == d {
			return e, nil
		}
	}
	return element{}, fmt.Errorf("the element type %v has no counterpart in ONNX", d)
}

// fromTensor copies a tensor of Gorgonia, which may be a view or lie column by column.
func fromTensor(t tensor.Tensor) (*ir.Tensor, error) {
	e, err := ours(t.Dtype())
	if err != nil {
		return nil, err
	}
	dense, ok := t.(*tensor.Dense)
	if !ok {
		return nil, fmt.Errorf("a %T is no dense tensor", t)
	}
	dims := make([]int64, dense.Dims())
	for i, n := range dense.Shape() {
		dims[i] = int64(n)
	}
	out := ir.NewTensor(e.ir, dims...)
	data := reflect.ValueOf(out.Data)
	if dense.RequiresIterator() || !dense.DataOrder().IsRowMajor() {
		at := dense.Iterator()
		for i, err := at.Start(); err == nil; i, err = at.Next() {
			data.Index(0).Set(reflect.ValueOf(dense.Get(i)))
			data = data.Slice(1, data.Len())
		}
		return out, nil
	}
	if from := reflect.ValueOf(dense.Data()); from.Kind() == reflect.Slice {
		reflect.Copy(data, from)
	} else { // a scalar
		data.Index(0).Set(from)
	}
	return out, nil
}

// toTensor makes a tensor of Gorgonia that shares t's elements.
func toTensor(t *ir.Tensor) (tensor.Tensor, error) {
	shape := make([]int, len(t.Dims))
	for i, n := range t.Dims {
		shape[i] = int(n)
	}
	for _, e := range elements {
		if e.ir != t.DType {
			continue
		}
		if len(shape) == 0 {
			return tensor.New(tensor.FromScalar(reflect.ValueOf(t.Data).Index(0).Interface())), nil
		}
		return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(t.Data)), nil
	}
	return nil, fmt.Errorf("Gorgonia has no element type %v", t.DType)
}
