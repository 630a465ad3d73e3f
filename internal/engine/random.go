package engine

import (
	"cmp"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/ir"
)

// RandomInputs draws a value for every port from a seed: floats uniform in [-1, 1), integers in the domain of their port
// or, if it has none, bytes of all values and other integers in [0, limit), and bools.
func RandomInputs(ports []Port, seed uint64, limit int64) Tensors {
	return RandomInputsAt(ports, seed, limit, nil)
}

// RandomInputsAt is RandomInputs with certain extents for some symbols.
func RandomInputsAt(ports []Port, seed uint64, limit int64, fixed map[string]int64) Tensors {
	in := Tensors{}
	for i, p := range ports {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		t := ir.NewTensor(p.DType, drawnDims(&ports[i], seed, fixed)...)
		if p.Domain != nil {
			fillDomain(t, r, *p.Domain)
		} else {
			fillRandom(t, r, limit)
		}
		in[p.Name] = t
	}
	return in
}

// drawnDims are the dims of a port, with extents drawn for those that have ranges. Dims of the same symbol get the same
// extent, sums follow from their parts, and some are fixed.
func drawnDims(p *Port, seed uint64, fixed map[string]int64) []int64 {
	dims := slices.Clone(p.Dims)
	extent := func(s *runner.Symbol) int64 {
		if n, ok := fixed[s.Name]; ok {
			return n
		}
		return drawnExtent(s, seed)
	}
	for d := range dims {
		s := p.symbol(d)
		switch {
		case s == nil:
		case s.Parts == nil:
			dims[d] = extent(s)
		default:
			bind := map[string]int64{}
			for _, x := range s.Parts {
				bind[x.Name] = extent(x)
			}
			sum, err := ir.ParseDim(s.Name)
			if err != nil {
				panic("BUG: " + err.Error())
			}
			dims[d], _ = sum.Bind(bind).Const()
		}
	}
	return dims
}

// drawnExtent is an extent that a symbol may have; states are empty.
func drawnExtent(s *runner.Symbol, seed uint64) int64 {
	if s.State {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(s.Name))
	r := rand.New(rand.NewPCG(seed, h.Sum64()))
	n := s.Min + r.Int64N(s.Max-s.Min+1)
	if len(s.Values) > 0 {
		n = s.Values[r.IntN(len(s.Values))]
	}
	return n
}

// fillDomain draws whole numbers of a domain.
func fillDomain(t *ir.Tensor, r *rand.Rand, in Domain) {
	list := make([]int64, t.Len())
	for i := range list {
		list[i] = in.Low + r.Int64N(in.High-in.Low)
	}
	if in.Sorted {
		slices.SortFunc(list, func(a, b int64) int { return cmp.Compare(b, a) })
	}
	switch d := t.Data.(type) {
	case []float32:
		assignWhole(d, list)
	case []float64:
		assignWhole(d, list)
	case []int8:
		assignWhole(d, list)
	case []int16:
		assignWhole(d, list)
	case []int32:
		assignWhole(d, list)
	case []int64:
		assignWhole(d, list)
	case []uint8:
		assignWhole(d, list)
	case []uint32:
		assignWhole(d, list)
	case []uint64:
		assignWhole(d, list)
	case []uint16:
		for i, x := range list {
			switch t.DType {
			case ir.Float16:
				d[i] = ir.ToFloat16(float32(x))
			case ir.BFloat16:
				d[i] = ir.ToBFloat16(float32(x))
			default:
				d[i] = uint16(x)
			}
		}
	}
}

func assignWhole[T int8 | int16 | int32 | int64 | uint8 | uint32 | uint64 | float32 | float64](to []T, list []int64) {
	for i, x := range list {
		to[i] = T(x)
	}
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
		fillCodes(d, t.DType, r)
	case []int16:
		fillInts(d, r, min(limit, math.MaxInt16))
	case []int32:
		fillInts(d, r, min(limit, math.MaxInt32))
	case []int64:
		fillInts(d, r, limit)
	case []uint8:
		fillCodes(d, t.DType, r)
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

// fillCodes draws all values of a type of at most 8 bits; of a floating-point type, numbers from 0 on that are finite.
func fillCodes[T int8 | uint8](d []T, t ir.DType, r *rand.Rand) {
	low, count := int64(0), int64(1)<<t.Bits()
	switch {
	case t.IsNarrowFloat():
		count = 1 << (t.Bits() - 2)
	case t == ir.Int8 || t == ir.Int4 || t == ir.Int2:
		low = -count / 2
	}
	for i := range d {
		d[i] = T(low + r.Int64N(count))
	}
}

func fillInts[T int16 | int32 | int64 | uint32 | uint64](d []T, r *rand.Rand, limit int64) {
	for i := range d {
		d[i] = T(r.Int64N(limit))
	}
}
