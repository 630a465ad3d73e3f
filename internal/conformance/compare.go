package conformance

import (
	"errors"
	"fmt"
	"math"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
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

// limitIn is the limit for an output of a program in precision p. The operands of a product are rounded by at most one
// unit roundoff each, and its result by another one. What a sum of products is off by is measured in its largest
// terms, which are not known here; the largest element of the output stands for them.
func limitIn(p precision.Precision, want *ir.Tensor) limit {
	unit := tolerance.Roundoff(p.Storage())
	if p == precision.TF32 {
		unit = tolerance.Roundoff(ir.Float16) // which has as many digits
	}
	l := limits[want.DType]
	if unit == 0 || want.DType != ir.Float32 {
		return l
	}
	largest := 0.0
	for i := range want.Len() {
		if x := math.Abs(tolerance.At(want, i)); !math.IsInf(x, 0) && !math.IsNaN(x) {
			largest = max(largest, x)
		}
	}
	return limit{l.abs + 4*unit*largest, l.rel + 4*unit}
}

// compare checks all outputs of a run. Of models that draw random numbers it compares types and shapes only.
func (t *test) compare(got, want map[string]*ir.Tensor, order []string,
	p precision.Precision) error {
	var errs []error
	for _, name := range order {
		if err := t.compareOne(got[name], want[name], p); err != nil {
			errs = append(errs, fmt.Errorf("output %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (t *test) compareOne(got, want *ir.Tensor, p precision.Precision) error {
	d := tolerance.Compare("", got, want)
	if d.Problem != "" {
		return errors.New(d.Problem)
	}
	if t.traits.random {
		return nil
	}
	l := limitIn(p, want)
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
