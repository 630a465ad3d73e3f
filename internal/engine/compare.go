package engine

import (
	"math"
	"slices"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/precision"
)

// Expected is the reference of samples that say what should come out.
const Expected = "expected outputs"

// OutputDiff is the largest difference of an output over all samples.
type OutputDiff struct {
	tolerance.Difference
	Limit   tolerance.Limit `json:"limit"`
	OK      bool            `json:"ok"`
	Passing string          `json:"passing"`           // the tolerance that would pass
	Classes *Classes        `json:"classes,omitempty"` // of outputs [N, classes]
	// Sway, where the limit is exceeded, is how far the model itself moves when inputs and weights change by a rounding: as
	// relative L2, or as the share of elements that are no floats.
	Sway float64 `json:"sway,omitempty"`
}

// Classes counts rows whose largest element is in the same place.
type Classes struct {
	Same int `json:"same"`
	Rows int `json:"rows"`
}

// Comparison says how an engine differs from its reference.
type Comparison struct {
	Reference string // Expected or Eval
	Samples   int
	Outputs   []OutputDiff
	OK        bool // every output of every sample is within its limit
}

// Comparer compares an engine with a reference.
type Comparer struct {
	Engine  Engine
	Outputs []Port
	Model   *ir.Graph // computes what samples do not say
	Limit   float64   // relative L2 error that may be; 0 takes the table of package tolerance
	// Precision is in which the engine makes products of float32: the table's limits depend on it.
	Precision precision.Precision
	Progress  func(done, total int) // of samples
	// Memory has the states that a library keeps, for the evaluator, which keeps none.
	Memory Memory
	// Search computes in the place of Model what a library that generates should answer; nil for others.
	Search *Search
}

// Compare runs all samples through the engine and keeps the worst difference of each output.
func (c *Comparer) Compare(samples *Samples) (*Comparison, error) {
	r := &Comparison{Reference: Expected, OK: true}
	worst, quantised := map[string]*OutputDiff{}, c.Limit == 0 && quantises(c.Model)
	for i := range samples.N {
		x := samples.At(i)
		if err := c.begin(x.Reset); err != nil {
			return nil, err
		}
		got, err := c.Engine.Run(x.In)
		if err != nil {
			return nil, err
		}
		in := x.In
		if c.Model != nil {
			in = c.Memory.With(in, c.Model)
		}
		want, s := x.Want, &sway{c: c, in: in}
		if want == nil {
			r.Reference = Eval
			if c.Search != nil {
				want, err = c.Search.Follow(x.In, got)
			} else {
				want, err = eval.Run(c.Model, in, eval.Options{})
			}
			if err != nil {
				return nil, EvalError(err, "")
			}
			s.want = want
			c.Memory.Learn(want)
		}
		for _, p := range c.Outputs {
			if w := want[p.Name]; w != nil {
				limit := LimitFor(p.DType, c.Precision, c.Limit)
				if quantised {
					limit = quantisedLimit(p.DType, limit)
				}
				worsen(worst, p, keepRows(got[p.Name], x.Keep), keepRows(w, x.Keep), limit, s)
			}
		}
		r.Samples++
		c.Progress(i+1, samples.N)
	}
	for _, p := range c.Outputs {
		if d := worst[p.Name]; d != nil {
			d.Passing = d.Difference.Passing()
			r.OK = r.OK && d.OK
			r.Outputs = append(r.Outputs, *d)
		}
	}
	return r, nil
}

// begin empties the states of the engine and of the reference.
func (c *Comparer) begin(reset bool) error {
	l, ok := c.Engine.(*Library)
	if !reset || !ok || len(c.Memory.States) == 0 {
		return nil
	}
	c.Memory.Reset()
	return l.ResetStates()
}

// quantises reports whether g rounds floats that it has computed to 8 bits: by itself in one operator, or, after import,
// in several, of which the last is a Cast.
func quantises(g *ir.Graph) bool {
	return g != nil && slices.ContainsFunc(g.Nodes, func(n *ir.Node) bool {
		if n.Is("QuantizeLinear") || n.Is("DynamicQuantizeLinear") {
			return true
		}
		if !n.Is("Cast") || n.Outputs[0] == nil {
			return false
		}
		from, to := n.Inputs[0], n.Outputs[0].DType
		return (to == ir.Int8 || to == ir.Uint8) && from.DType.IsFloat() && from.Def != nil
	})
}

// quantisedLimit is the limit of outputs of type d in models that quantise, where that of other models is usual.
func quantisedLimit(d ir.DType, usual tolerance.Limit) tolerance.Limit {
	switch {
	case d == ir.Int8 || d == ir.Uint8:
		return tolerance.Quantised
	case d.IsFloat():
		usual.L2 = max(usual.L2, tolerance.Quantised.L2)
	}
	return usual
}

// LimitFor is how far an output of type d may be from its reference: by relative L2 error l2, or where that is 0 as the
// table of package tolerance says for a program of precision p.
func LimitFor(d ir.DType, p precision.Precision, l2 float64) tolerance.Limit {
	if l2 > 0 {
		return tolerance.Limit{L2: l2}
	}
	return tolerance.LimitIn(p, d)
}

// worsen adds the difference of one sample to the worst of an output. Beyond the limit it may be as far off as the model
// itself sways.
func worsen(worst map[string]*OutputDiff, p Port, got, want *ir.Tensor, limit tolerance.Limit, s *sway) {
	d := tolerance.Compare(p.Name, got, want)
	w := worst[p.Name]
	if w == nil {
		w = &OutputDiff{Difference: d, Limit: limit, OK: true}
		w.Special = 0 // every sample's are added below
		worst[p.Name] = w
		if len(want.Dims) == 2 && want.Dims[1] > 1 {
			w.Classes = &Classes{}
		}
	}
	if !d.Within(limit) {
		ok, by := s.explains(d)
		w.OK, w.Sway = w.OK && ok, max(w.Sway, by)
	}
	if w.Classes != nil && d.Problem == "" {
		same, rows := sameClass(got, want)
		w.Classes.Same += same
		w.Classes.Rows += rows
	}
	w.Special += d.Special
	w.Unequal = max(w.Unequal, d.Unequal)
	if d.Problem != "" {
		w.Problem = d.Problem
	}
	if d.MaxAbs > w.MaxAbs {
		w.MaxAbs, w.At = d.MaxAbs, d.At
	}
	w.MaxRel, w.MaxULP, w.RelL2 = larger(w.MaxRel, d.MaxRel), larger(w.MaxULP, d.MaxULP), larger(w.RelL2, d.RelL2)
}

// larger is the larger number, or the largest finite one: JSON has no infinities.
func larger(a, b float64) float64 { return min(max(a, b), math.MaxFloat64) }

// sameClass counts the rows of outputs [N, classes] whose largest element is in the same place.
func sameClass(got, want *ir.Tensor) (same, rows int) {
	classes := want.Dims[1]
	for r := int64(0); r < want.Dims[0]; r++ {
		if argMax(got, r*classes, classes) == argMax(want, r*classes, classes) {
			same++
		}
		rows++
	}
	return same, rows
}

func argMax(t *ir.Tensor, from, n int64) int64 {
	best := int64(0)
	for i := int64(1); i < n; i++ {
		if tolerance.At(t, from+i) > tolerance.At(t, from+best) {
			best = i
		}
	}
	return best
}
