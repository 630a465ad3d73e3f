// Package tolerance compares tensors and holds the one table of how far engines may differ.
package tolerance

import (
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// Limit is how far a result may be from the reference. Either no element is further than Abs away, or the tensor as a
// whole has ‖got - want‖ ≤ L2·‖want‖. The zero Limit, that of integers and bools, asks for equality.
type Limit struct {
	Abs float64 `json:"abs"`
	L2  float64 `json:"l2"`
}

// Limits is the table, by element type. Two engines that are both right differ so much because they add in different
// orders. The limit for the whole tensor is for deep models, in which single elements may lose all their digits by
// cancellation.
var Limits = map[ir.DType]Limit{
	ir.Float64:  {Abs: 1e-10, L2: 1e-9},
	ir.Float32:  {Abs: 1e-5, L2: 1e-4},
	ir.Float16:  {Abs: 1e-3, L2: 4e-3},
	ir.BFloat16: {Abs: 1e-2, L2: 2e-2},
}

// Quantised is the limit of floats and codes of models that round to 8 bits between operators. Floats that two right
// engines compute differently in the last bit may be rounded to neighbouring codes, and from layer to layer such steps add
// up: ONNX Runtime differs so from itself, with and without its fusions (bench/results/quantised-steps.json). By root mean
// square they must not be more than a step, of which eight standard deviations have 256.
var Quantised = Limit{Abs: 1, L2: 1.0 / 32}

// Difference describes how got differs from want.
type Difference struct {
	Name     string  `json:"name"`
	DType    string  `json:"dtype"`
	Elements int64   `json:"elements"`
	MaxAbs   float64 `json:"max_abs"`
	MaxRel   float64 `json:"max_rel"` // of elements whose reference is not 0
	MaxULP   float64 `json:"max_ulp"` // of float32 and float64
	RelL2    float64 `json:"rel_l2"`  // ‖got - want‖ / ‖want‖
	At       int64   `json:"at"`      // element of MaxAbs
	Special  int64   `json:"special"` // elements where one is NaN or infinite and the other differs
	Unequal  int64   `json:"unequal"` // elements that differ at all
	Problem  string  `json:"problem,omitempty"`
}

// Compare measures how got differs from want. For tensors of different types or shapes it only sets Problem.
func Compare(name string, got, want *ir.Tensor) Difference {
	d := Difference{Name: name, DType: want.DType.String(), Elements: want.Len()}
	switch {
	case got == nil:
		d.Problem = "no such output"
	case got.DType != want.DType:
		d.Problem = fmt.Sprintf("element type %v, want %v", got.DType, want.DType)
	case !equal(got.Dims, want.Dims):
		d.Problem = fmt.Sprintf("shape %v, want %v", got.Dims, want.Dims)
	default:
		d.measure(got, want)
	}
	return d
}

func equal(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (d *Difference) measure(got, want *ir.Tensor) {
	var diff2, want2 float64
	for i := int64(0); i < d.Elements; i++ {
		g, w := At(got, i), At(want, i)
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			if !math.IsInf(w, 0) && !math.IsNaN(w) {
				want2 += w * w
			}
			continue
		}
		d.Unequal++
		if math.IsNaN(g) || math.IsNaN(w) || math.IsInf(g, 0) || math.IsInf(w, 0) {
			d.Special++
			continue
		}
		abs := math.Abs(g - w)
		diff2 += abs * abs
		want2 += w * w
		if abs > d.MaxAbs {
			d.MaxAbs, d.At = abs, i
		}
		if w != 0 {
			d.MaxRel = max(d.MaxRel, abs/math.Abs(w))
		}
		d.MaxULP = max(d.MaxULP, ulps(want.DType, g, w))
	}
	switch {
	case want2 > 0:
		d.RelL2 = math.Sqrt(diff2 / want2)
	case diff2 > 0:
		d.RelL2 = math.MaxFloat64
	}
}

// ulps is |g - w| in units of the last place of w, 0 for types that are not compared so.
func ulps(t ir.DType, g, w float64) float64 {
	switch t {
	case ir.Float32:
		w32 := float32(math.Abs(w))
		return math.Abs(g-w) / float64(math.Nextafter32(w32, math.MaxFloat32)-w32)
	case ir.Float64:
		w = math.Abs(w)
		return math.Abs(g-w) / (math.Nextafter(w, math.MaxFloat64) - w)
	}
	return 0
}

// Within reports whether d is inside the limit for its element type, measured over the whole tensor.
func (d Difference) Within(l Limit) bool {
	return d.Problem == "" && d.Special == 0 && (d.MaxAbs == 0 || d.MaxAbs <= l.Abs || d.RelL2 <= l.L2)
}

// LimitFor is the limit for elements of type t.
func LimitFor(t ir.DType) Limit { return Limits[t] }

// LimitIn is LimitFor for a program of the given precision. tf32 has the mantissa of float16, so that operands are off by
// as much. Where values are stored in 16 bits, each operator rounds every element by at most one unit roundoff, and by
// 1/√3 of it in the mean square. Roundings of operators behind each other are independent: 192 of them amount to eight
// units, which is the limit.
func LimitIn(p precision.Precision, t ir.DType) Limit {
	if t != ir.Float32 {
		return LimitFor(t)
	}
	if p == precision.TF32 {
		return LimitFor(ir.Float16)
	}
	if unit := Roundoff(p.Storage()); unit > 0 {
		return Limit{Abs: 2 * unit, L2: 8 * unit}
	}
	return LimitFor(t)
}

// Roundoff is how far rounding to a 16-bit float may move a number, relative to it; 0 for other types.
func Roundoff(d ir.DType) float64 {
	return map[ir.DType]float64{ir.Float16: 1.0 / (1 << 11), ir.BFloat16: 1.0 / (1 << 8)}[d]
}

// Passing is the smallest whole-tensor limit that d would pass.
func (d Difference) Passing() string {
	switch {
	case d.Problem != "" || d.Special > 0:
		return "none"
	case d.MaxAbs == 0:
		return "exact"
	}
	return fmt.Sprintf("rel L2 %.1e", d.RelL2)
}

// At is element i as a float64; bools are 0 and 1. Integers beyond 2^53 lose their last bits.
func At(t *ir.Tensor, i int64) float64 {
	switch d := t.Data.(type) {
	case []float32:
		return float64(d[i])
	case []float64:
		return d[i]
	case []uint16:
		switch t.DType {
		case ir.Float16:
			return float64(halfToFloat(d[i]))
		case ir.BFloat16:
			return float64(math.Float32frombits(uint32(d[i]) << 16))
		}
		return float64(d[i])
	case []int8:
		return float64(d[i])
	case []int16:
		return float64(d[i])
	case []int32:
		return float64(d[i])
	case []int64:
		return float64(d[i])
	case []uint8:
		if t.DType.IsNarrowFloat() {
			return ir.FromNarrow(t.DType, d[i])
		}
		return float64(d[i])
	case []uint32:
		return float64(d[i])
	case []uint64:
		return float64(d[i])
	case []bool:
		if d[i] {
			return 1
		}
		return 0
	}
	panic("BUG: no number in a tensor of " + t.DType.String())
}

func halfToFloat(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch exp {
	case 0:
		f := float32(frac) / (1 << 24)
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}
