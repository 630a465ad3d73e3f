// Package tensorio reads and writes the tensor files that commands take and make: NumPy's .npy and .npz, and serialised
// ONNX tensors (.pb), which are only read.
package tensorio

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/internal/npy"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
)

// Accept returns an error if the caller does not want a tensor of this type and shape, which then is not read.
type Accept func(d ir.DType, dims []int64) error

// Read reads the tensor in a .npy or .pb file, or one array of an .npz archive, which path names as FILE.npz:ARRAY.
// Without ARRAY it takes the archive's array called name, or the only one there is. accept may be nil.
func Read(path, name string, accept Accept) (*ir.Tensor, error) {
	if file, member, ok := splitMember(path); ok {
		return convert(npy.ReadZipMember(file, member, accept.array()))
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".npy":
		return convert(npy.ReadFile(path, accept.array()))
	case ".npz":
		return readArchive(path, name, accept.array())
	case ".pb":
		return readPB(path, accept)
	}
	return nil, errors.New("the file name must end in .npy, .npz or .pb")
}

// array asks the same of an array of NumPy's.
func (f Accept) array() npy.Accept {
	if f == nil {
		return nil
	}
	return func(_, dtype string, shape []int64) error {
		d, ok := ir.ParseDType(dtype)
		if !ok {
			return fmt.Errorf("element type %s is not supported", dtype)
		}
		return f(d, shape)
	}
}

// splitMember splits FILE.npz:ARRAY.
func splitMember(path string) (file, member string, ok bool) {
	i := strings.LastIndex(strings.ToLower(path), ".npz:")
	if i < 0 {
		return "", "", false
	}
	return path[:i+4], path[i+5:], true
}

func readArchive(path, name string, accept npy.Accept) (*ir.Tensor, error) {
	members, err := npy.ReadZip(path, func(string, string, []int64) error { return npy.ErrSkip })
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range members {
		if m.Name == name || len(members) == 1 {
			return convert(npy.ReadZipMember(path, m.Name, accept))
		}
		names = append(names, m.Name)
	}
	return nil, fmt.Errorf("the archive has no array %q; write %s:ARRAY with one of: %s",
		name, path, strings.Join(names, ", "))
}

// maxPB is the largest protobuf message there is, in bytes.
const maxPB = 1 << 31

func readPB(path string, accept Accept) (*ir.Tensor, error) {
	data, err := limits.Read(path, min(maxPB, limits.Memory()))
	if err != nil {
		return nil, err
	}
	_, t, err := onnx.ReadTensorPB(data)
	if err == nil && accept != nil {
		err = accept(t.DType, t.Dims)
	}
	return t, err
}

func convert(a *npy.Array, err error) (*ir.Tensor, error) {
	if err != nil {
		return nil, err
	}
	return FromArray(a)
}

// ReadAll reads the arrays of an .npz archive by name. Those that want does not accept are listed without a tensor; it
// may be nil.
func ReadAll(path string, want func(name string, d ir.DType, dims []int64) bool) (map[string]*ir.Tensor, error) {
	members, err := npy.ReadZip(path, func(name, dtype string, shape []int64) error {
		d, ok := ir.ParseDType(dtype)
		if ok && want != nil && !want(name, d, shape) {
			return npy.ErrSkip
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := map[string]*ir.Tensor{}
	for _, m := range members {
		if m.Array == nil {
			out[m.Name] = nil
			continue
		}
		t, err := FromArray(m.Array)
		if err != nil {
			return nil, fmt.Errorf("array %q: %w", m.Name, err)
		}
		out[m.Name] = t
	}
	return out, nil
}

// WriteNPY writes t as a .npy file. NumPy has no floats of less than 16 bits, nor bfloat16: tensors of these types
// are written as float32, which holds all their values. Integers of less than 8 bits are written with 8.
func WriteNPY(path string, t *ir.Tensor) error {
	a, err := ToArray(t)
	if err != nil {
		return err
	}
	return npy.WriteFile(path, a)
}

// FromArray converts an array to a tensor, which shares its elements.
func FromArray(a *npy.Array) (*ir.Tensor, error) {
	d, ok := ir.ParseDType(a.DType)
	if !ok {
		return nil, fmt.Errorf("element type %s is not supported", a.DType)
	}
	return &ir.Tensor{DType: d, Dims: a.Shape, Data: a.Data}, nil
}

// ToArray is the inverse of FromArray, except for types that NumPy lacks; see WriteNPY.
func ToArray(t *ir.Tensor) (*npy.Array, error) {
	switch t.DType {
	case ir.BFloat16:
		wide := make([]float32, t.Len())
		for i, b := range ir.Slice[uint16](t) {
			wide[i] = math.Float32frombits(uint32(b) << 16)
		}
		return &npy.Array{DType: "float32", Shape: t.Dims, Data: wide}, nil
	case ir.Int4, ir.Int2:
		return &npy.Array{DType: "int8", Shape: t.Dims, Data: t.Data}, nil
	case ir.Uint4, ir.Uint2:
		return &npy.Array{DType: "uint8", Shape: t.Dims, Data: t.Data}, nil
	case ir.String:
		return &npy.Array{DType: "string", Shape: t.Dims, Data: t.Data}, nil
	case ir.Invalid:
		return nil, fmt.Errorf("a .npy file cannot hold elements of type %v", t.DType)
	}
	if t.DType.IsNarrowFloat() {
		wide := make([]float32, t.Len())
		for i, b := range ir.Slice[uint8](t) {
			wide[i] = float32(ir.FromNarrow(t.DType, b))
		}
		return &npy.Array{DType: "float32", Shape: t.Dims, Data: wide}, nil
	}
	return &npy.Array{DType: t.DType.String(), Shape: t.Dims, Data: t.Data}, nil
}

// WriteNPZ writes tensors as an .npz archive, sorted by name; see WriteNPY about bfloat16.
func WriteNPZ(path string, tensors map[string]*ir.Tensor) error {
	var members []npy.Member
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		a, err := ToArray(tensors[name])
		if err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
		members = append(members, npy.Member{Name: name, Array: a})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(npy.WriteZip(f, members), f.Close())
}
