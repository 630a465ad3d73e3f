package engine

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// RandomInputs draws a value for every port from a seed: floats uniform in [-1, 1), integers in [0, limit), bools.
func RandomInputs(ports []Port, seed uint64, limit int64) Tensors {
	in := Tensors{}
	for i, p := range ports {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		t := ir.NewTensor(p.DType, drawnDims(&ports[i], seed)...)
		fillRandom(t, r, limit)
		in[p.Name] = t
	}
	return in
}

// drawnDims are the dims of a port, with extents drawn for those that have ranges. Dims of the same symbol get the same
// extent.
func drawnDims(p *Port, seed uint64) []int64 {
	dims := slices.Clone(p.Dims)
	for d := range dims {
		s := p.symbol(d)
		if s == nil {
			continue
		}
		h := fnv.New64a()
		h.Write([]byte(s.Name))
		r := rand.New(rand.NewPCG(seed, h.Sum64()))
		if dims[d] = s.Min + r.Int64N(s.Max-s.Min+1); len(s.Values) > 0 {
			dims[d] = s.Values[r.IntN(len(s.Values))]
		}
	}
	return dims
}

func fillRandom(t *ir.Tensor, r *rand.Rand, limit int64) {
	switch d := t.Data.(type) {
	case []float32:
		for i := range d {
			d[i] = 2*r.Float32() - 1
		}
	case []float64:
		for i := range d {
			d[i] = 2*r.Float64() - 1
		}
	case []uint16:
		for i := range d {
			d[i] = randomBits(t.DType, r, limit)
		}
	case []bool:
		for i := range d {
			d[i] = r.IntN(2) == 1
		}
	case []int8:
		fillInts(d, r, min(limit, 1<<(t.DType.Bits()-1)-1))
	case []int16:
		fillInts(d, r, min(limit, math.MaxInt16))
	case []int32:
		fillInts(d, r, min(limit, math.MaxInt32))
	case []int64:
		fillInts(d, r, limit)
	case []uint8:
		fillInts(d, r, min(limit, narrowLimit(t.DType)))
	case []uint32:
		fillInts(d, r, min(limit, math.MaxUint32))
	case []uint64:
		fillInts(d, r, limit)
	}
}

// randomBits are the bits of a float16 or bfloat16 in [0.5, 1) or its negative, or a uint16 in [0, limit).
func randomBits(t ir.DType, r *rand.Rand, limit int64) uint16 {
	switch t {
	case ir.Float16:
		return uint16(14<<10) | uint16(r.IntN(1<<10)) | uint16(r.IntN(2))<<15
	case ir.BFloat16:
		return uint16(126<<7) | uint16(r.IntN(1<<7)) | uint16(r.IntN(2))<<15
	}
	return uint16(r.Int64N(min(limit, 1<<16)))
}

// narrowLimit is the number of codes of a type of at most 8 bits from 0 on that stand for finite numbers.
func narrowLimit(t ir.DType) int64 {
	if t.IsNarrowFloat() {
		return 1 << (t.Bits() - 2)
	}
	return 1<<t.Bits() - 1
}

func fillInts[T int8 | int16 | int32 | int64 | uint8 | uint32 | uint64](d []T, r *rand.Rand, limit int64) {
	for i := range d {
		d[i] = T(r.Int64N(limit))
	}
}
