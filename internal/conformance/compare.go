package conformance

import (
	"errors"
	"fmt"
	"math"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
)

// limit says how far an element may be from the expected one: by abs + rel·|want|.
type limit struct{ abs, rel float64 }

// limits holds the limit of each element type. The relative limits of float32 and float64 are those of ONNX's own
// runner. The absolute limit of float32 is for sums of numbers around 1 that happen to be about 0: the expected result
// was computed in float32 too, so its digits there are rounding errors. 16-bit floats may differ in their last two
// bits. Elements of other types must be equal.
var limits = map[ir.DType]limit{
	ir.Float32:  {2e-6, 1e-3},
	ir.Float64:  {1e-7, 1e-3},
	ir.Float16:  {1e-4, 2e-3},
	ir.BFloat16: {1e-3, 1.6e-2},
}

// compare checks all outputs of a run. Elements may be off by what allowed says of their output in addition to their type's
// limit. Of models that draw random numbers it compares types and shapes only.
func (t *test) compare(got, want map[string]*ir.Tensor, order []string, allowed map[string]float64) error {
	var errs []error
	for _, name := range order {
		if err := t.compareOne(got[name], want[name], allowed[name]); err != nil {
			errs = append(errs, fmt.Errorf("output %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (t *test) compareOne(got, want *ir.Tensor, allowed float64) error {
	d := tolerance.Compare("", got, want)
	if d.Problem != "" {
		return errors.New(d.Problem)
	}
	if t.traits.random {
		return nil
	}
	l := limits[want.DType]
	l.abs += allowed
	wrong, first := 0, ""
	for i := range want.Len() {
		g, w := tolerance.At(got, i), tolerance.At(want, i)
		if g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= l.abs+l.rel*math.Abs(w) && !math.IsInf(w, 0) {
			continue
		}
		if wrong++; wrong == 1 {
			first = fmt.Sprintf("element %d is %v, want %v", i, g, w)
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d elements differ (%v%v): %s", wrong, want.Len(), want.DType, want.Dims, first)
	}
	return nil
}
