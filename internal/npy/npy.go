// Package npy reads and writes NumPy's .npy arrays and .npz archives.
//
// It reads arrays of bool, of integers of 8 to 64 bits, of floats of 16 to 64 bits and of strings, of either byte order
// and in C or Fortran order. In memory they are always in C order. NEP 1 and the documentation of numpy.lib.format define
// the format. Files are not trusted: headers are read first, and what they claim must fit the file, the memory that the
// process may take, and what the caller wants (Accept), before elements are read.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"reflect"

	"github.com/rammerc/rammerc/internal/limits"
)

// Array is an n-dimensional array in row-major order. Data is a slice whose element type is that of DType: []float32
// for "float32" and so on, []bool for "bool", []string for "string", and for "float16" a []uint16 with the bits.
type Array struct {
	DType string
	Shape []int64 // empty for a scalar
	Data  any
}

// kind is an element type with NumPy's code for it.
type kind struct {
	name string
	code string // without the byte order
	size int64
	make func(n int64) any
}

var kinds = []kind{
	{"bool", "b1", 1, func(n int64) any { return make([]bool, n) }},
	{"int8", "i1", 1, func(n int64) any { return make([]int8, n) }},
	{"int16", "i2", 2, func(n int64) any { return make([]int16, n) }},
	{"int32", "i4", 4, func(n int64) any { return make([]int32, n) }},
	{"int64", "i8", 8, func(n int64) any { return make([]int64, n) }},
	{"uint8", "u1", 1, func(n int64) any { return make([]uint8, n) }},
	{"uint16", "u2", 2, func(n int64) any { return make([]uint16, n) }},
	{"uint32", "u4", 4, func(n int64) any { return make([]uint32, n) }},
	{"uint64", "u8", 8, func(n int64) any { return make([]uint64, n) }},
	{"float16", "f2", 2, func(n int64) any { return make([]uint16, n) }},
	{"float32", "f4", 4, func(n int64) any { return make([]float32, n) }},
	{"float64", "f8", 8, func(n int64) any { return make([]float64, n) }},
}

func kindNamed(name string) (kind, bool) {
	for _, k := range kinds {
		if k.name == name {
			return k, true
		}
	}
	return kind{}, false
}

// Accept returns an error if the caller does not want an array of this element type and shape. name is that of the
// archive's member, "" outside of archives. The elements of an array that is refused are not read.
type Accept func(name, dtype string, shape []int64) error

// ReadFile reads a .npy file. accept may be nil.
func ReadFile(path string, accept Accept) (*Array, error) {
	f, size, err := limits.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f, uint64(size), "", accept)
}

// read decodes an array of size bytes, with its header.
func read(r io.Reader, size uint64, name string, accept Accept) (*Array, error) {
	h, headerBytes, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	n, err := count(h.shape)
	if err != nil {
		return nil, err
	}
	hi, want := bits.Mul64(uint64(n), uint64(h.kind.size))
	if hi != 0 || want != size-headerBytes {
		return nil, fmt.Errorf("not a NumPy array: %s%v does not fit the %d bytes behind the header",
			h.kind.name, h.shape, size-headerBytes)
	}
	if accept != nil {
		if err := accept(name, h.kind.name, h.shape); err != nil {
			return nil, err
		}
	}
	most := want
	if h.fortran {
		most *= 2 // there are two copies while the order is changed
	}
	if h.kind.name == textKind {
		if n > maxTexts {
			return nil, fmt.Errorf("not a NumPy array: %d strings are too many", n)
		}
		most += want + uint64(n)*textHead
	}
	if err := limits.CheckMemory(fmt.Sprintf("%s%v", h.kind.name, h.shape), int64(most)); err != nil {
		return nil, err
	}
	a := &Array{DType: h.kind.name, Shape: h.shape, Data: h.kind.make(n)}
	if err := readElements(r, h.order, a.Data); err != nil {
		return nil, fmt.Errorf("not a NumPy array: %w", err)
	}
	if points, ok := a.Data.([]uint32); ok && h.kind.name == textKind {
		a.Data = textsOf(points, n, h.kind.size/4)
	}
	if h.fortran {
		a.Data = rowMajor(a.Data, a.Shape)
	}
	return a, nil
}

// readElements fills a slice. binary.Read has a copy of what it reads, so it is called for a part at a time.
func readElements(r io.Reader, order binary.ByteOrder, data any) error {
	const part = 1 << 16
	elements := reflect.ValueOf(data)
	for i := 0; i < elements.Len(); i += part {
		if err := binary.Read(r, order, elements.Slice(i, min(i+part, elements.Len())).Interface()); err != nil {
			return err
		}
	}
	return nil
}

// count is the product of extents. It refuses negative extents and products that overflow.
func count(shape []int64) (int64, error) {
	n := uint64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("not a NumPy array: the shape %v has a negative extent", shape)
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > 1<<62 {
			return 0, fmt.Errorf("not a NumPy array: the shape %v is too large", shape)
		}
		n = lo
	}
	return int64(n), nil
}

// Write encodes a as a .npy file of version 1.0 in little-endian C order.
func Write(w io.Writer, a *Array) error {
	if texts, ok := a.Data.([]string); ok {
		return writeTexts(w, texts, a.Shape)
	}
	k, ok := kindNamed(a.DType)
	if !ok {
		return fmt.Errorf("a .npy file cannot hold %s", a.DType)
	}
	n, err := count(a.Shape)
	if err != nil {
		return err
	}
	if binary.Size(a.Data) != int(n*k.size) {
		return fmt.Errorf("%d bytes of data do not fit %s%v", binary.Size(a.Data), a.DType, a.Shape)
	}
	if _, err := w.Write(header(k, a.Shape)); err != nil {
		return err
	}
	return binary.Write(w, binary.LittleEndian, a.Data)
}

// WriteFile writes a .npy file.
func WriteFile(path string, a *Array) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(Write(f, a), f.Close())
}
