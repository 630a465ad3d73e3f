package onnx

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// initializerNames is the set of names of a graph's initializers, sparse ones included.
func initializerNames(pb *onnxpb.GraphProto) map[string]bool {
	names := map[string]bool{}
	for _, t := range pb.Initializer {
		names[t.GetName()] = true
	}
	for _, t := range pb.SparseInitializer {
		names[t.GetValues().GetName()] = true
	}
	return names
}

// warnOverridable warns about inputs that have an initializer. From IR version 4 on these are inputs with a default
// value, which a caller may override; here they become constants. Before that every initializer had to be listed as an
// input too, so it has no such meaning.
func (im *importer) warnOverridable(pb *onnxpb.GraphProto, initialized map[string]bool) {
	if im.model.IRVersion < 4 {
		return
	}
	var names []string
	for _, v := range pb.Input {
		if initialized[v.GetName()] {
			names = append(names, v.GetName())
		}
	}
	if len(names) > 0 {
		im.warnf("overridable-initializer", "", "%d inputs have a value in the model and become constants: %s",
			len(names), orNone(names))
	}
}

// initializers makes the constants of a graph.
func (s *scope) initializers(pb *onnxpb.GraphProto) {
	for i, t := range pb.Initializer {
		tensor, err := s.im.tensor(t)
		s.initializer(i, t.GetName(), tensor, err)
	}
	for i, t := range pb.SparseInitializer {
		tensor, err := s.im.dense(t)
		s.initializer(i, t.GetValues().GetName(), tensor, err)
	}
}

// initializer makes the constant of one initializer, whose tensor could be read unless err is not nil.
func (s *scope) initializer(index int, name string, t *ir.Tensor, err error) {
	port := fmt.Sprintf("initializer %q", name)
	if name == "" {
		s.im.portf("bad-name", fmt.Sprintf("initializer %d", index), "", "it has no name")
		return
	}
	v := s.newValue(name)
	if !s.define(name, v) {
		s.im.portf("duplicate-name", port, "", "the name is used already")
		return
	}
	if err != nil {
		var file *unreadable
		if !errors.As(err, &file) || s.im.once("file "+file.location) {
			s.im.portf(tensorID(err), port, "", "%v", err)
		}
		s.im.poison(v)
		return
	}
	s.b.addConst(v, t)
}

// tensorID is the diagnostic's id for an error of importer.tensor.
func tensorID(err error) string {
	var dtype errDType
	switch {
	case errors.As(err, &dtype):
		return "unsupported-dtype"
	case strings.Contains(err.Error(), "external data"):
		return "external-data"
	}
	return "bad-tensor"
}

// addConst makes v a constant of the graph.
func (b *builder) addConst(v *ir.Value, t *ir.Tensor) {
	v.DType, v.Const = t.DType, t
	v.Shape = ir.Dims(t.Dims...)
	b.g.Consts = append(b.g.Consts, v)
}

// tensor reads a tensor. A tensor in the body of a function is read once, however often the function is inlined.
func (im *importer) tensor(pb *onnxpb.TensorProto) (*ir.Tensor, error) {
	if t, ok := im.tensors[pb]; ok {
		return t, nil
	}
	t, err := tensorReader{im.ext}.read(pb)
	if err == nil {
		if t.DType == ir.String {
			t = im.texts.numbered(ir.Slice[string](t), t.Dims...)
		}
		im.tensors[pb] = t
	}
	return t, err
}

// The sparse tensors of a model may become maxSparseBase bytes when they are expanded, plus maxSparseFactor times the
// size of the file. A hostile file could otherwise ask for any amount of memory with a few bytes.
const (
	maxSparseFactor = 64
	maxSparseBase   = 1 << 24
)

// dense expands a sparse tensor.
func (im *importer) dense(pb *onnxpb.SparseTensorProto) (*ir.Tensor, error) {
	if pb.Values == nil || pb.Indices == nil {
		return nil, errors.New("the sparse tensor lacks values or indices")
	}
	values, err := im.tensor(pb.Values)
	if err != nil {
		return nil, err
	}
	indices, err := im.tensor(pb.Indices)
	if err != nil {
		return nil, fmt.Errorf("indices: %w", err)
	}
	n, err := countElems(pb.Dims)
	if err != nil {
		return nil, err
	}
	if im.texts.tensors[values] {
		return nil, errors.New("sparse tensors of strings are not supported")
	}
	flat, err := flatIndices(indices, pb.Dims, n, values.Len())
	if err != nil {
		return nil, err
	}
	im.sparse += n * int64(values.DType.Size())
	if im.sparse > maxSparseBase+maxSparseFactor*im.size {
		return nil, fmt.Errorf("the sparse tensor of shape %v is too large for its file of %d bytes", pb.Dims, im.size)
	}
	t := ir.NewTensor(values.DType, pb.Dims...)
	scatter(t, values, flat)
	return t, nil
}

// flatIndices returns the row-major index of each of the nnz values of a sparse tensor. By the standard the indices t
// are row-major already (rank 1), or tuples of coordinates (rank 2).
func flatIndices(t *ir.Tensor, dims []int64, n, nnz int64) ([]int64, error) {
	if t.DType != ir.Int64 {
		return nil, fmt.Errorf("the sparse indices are %s, not int64", t.DType)
	}
	idx := ir.Slice[int64](t)
	rank := int64(len(dims))
	switch {
	case len(t.Dims) == 1 && t.Dims[0] == nnz:
		rank = 1
		dims = []int64{n}
	case len(t.Dims) == 2 && t.Dims[0] == nnz && t.Dims[1] == rank:
	default:
		return nil, fmt.Errorf("sparse indices of shape %v do not fit %d values of shape %v", t.Dims, nnz, dims)
	}
	flat := make([]int64, nnz)
	for i := range flat {
		for k := range rank {
			j := idx[int64(i)*rank+k]
			if j < 0 || j >= dims[k] {
				return nil, fmt.Errorf("sparse index %d is outside of 0 to %d", j, dims[k]-1)
			}
			flat[i] = flat[i]*dims[k] + j
		}
	}
	return flat, nil
}

// scatter puts value i at the row-major index at[i] of t.
func scatter(t, values *ir.Tensor, at []int64) {
	switch d := t.Data.(type) {
	case []float32:
		put(d, values, at)
	case []float64:
		put(d, values, at)
	case []uint16:
		put(d, values, at)
	case []int8:
		put(d, values, at)
	case []int16:
		put(d, values, at)
	case []int32:
		put(d, values, at)
	case []int64:
		put(d, values, at)
	case []uint8:
		put(d, values, at)
	case []uint32:
		put(d, values, at)
	case []uint64:
		put(d, values, at)
	case []bool:
		put(d, values, at)
	default:
		panic("BUG: scatter of " + t.DType.String())
	}
}

func put[T ir.Elem](dst []T, values *ir.Tensor, at []int64) {
	src := ir.Slice[T](values)
	for i, j := range at {
		dst[j] = src[i]
	}
}
