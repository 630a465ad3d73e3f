package measure

import (
	"fmt"
	"os"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/profiler/db"
	"github.com/rammerc/rammerc/roperator"
)

// verdicts collects what came of a group's subjects until all are there.
type verdicts struct {
	left    int
	entries []db.Entry
	outputs []string // files; "" where there is nothing to compare
	// best is the shortest cold time of all rTasks, ns, of candidates that are standalone and of the others.
	best map[bool]float64
}

// judge gives a problem to every entry whose candidate computed something else than the others. The candidate that most
// others agree with is right; of several such candidates that is the first one. Two that differ prove nothing against
// either but the order of lowering, which puts the safest candidate first.
func (v *verdicts) judge(gr *group, p precision.Precision) error {
	results := make([][]*ir.Tensor, len(v.entries))
	for i, file := range v.outputs {
		if file == "" {
			continue
		}
		var err error
		if results[i], err = tensors(gr, file); err != nil {
			return err
		}
		results[i] = joined(gr.op.Parts, results[i])
		_ = os.Remove(file)
	}
	right := reference(results, p)
	for i, r := range results {
		if r == nil {
			continue
		}
		if err := different(r, results[right], p); err != nil {
			v.entries[i].Problem, v.entries[i].Times = err.Error(), db.Times{}
		}
	}
	return nil
}

// joined makes of partial results what is comparable: the sums over the parts of each group, or nothing.
func joined(parts roperator.Parts, outputs []*ir.Tensor) []*ir.Tensor {
	switch {
	case parts.Count == 0:
		return outputs
	case !parts.Sum:
		return []*ir.Tensor{}
	}
	var out []*ir.Tensor
	for _, t := range outputs {
		sums := make([]float64, t.Len()/parts.Count)
		for i := range t.Len() {
			if group := i / (parts.Count * parts.Length); group*parts.Length < int64(len(sums)) {
				sums[group*parts.Length+i%parts.Length] += tolerance.At(t, i)
			}
		}
		out = append(out, ofType(t.DType, sums))
	}
	return out
}

// ofType is a tensor of float64 or, for all other types, of float32.
func ofType(d ir.DType, data []float64) *ir.Tensor {
	if d == ir.Float64 {
		return ir.FromSlice(d, data, int64(len(data)))
	}
	out := make([]float32, len(data))
	for i, x := range data {
		out[i] = float32(x)
	}
	return ir.FromSlice(ir.Float32, out, int64(len(out)))
}

// reference is the number of the result that most others agree with.
func reference(results [][]*ir.Tensor, p precision.Precision) int {
	first, disagree := -1, 0
	for i, r := range results {
		switch {
		case r == nil:
		case first < 0:
			first = i
		case different(r, results[first], p) != nil:
			disagree++
		}
	}
	if disagree == 0 {
		return first
	}
	best, votes := first, -1
	for i, r := range results {
		n := 0
		for j, x := range results {
			if r != nil && x != nil && i != j && different(x, r, p) == nil {
				n++
			}
		}
		if r != nil && n > votes {
			best, votes = i, n
		}
	}
	return best
}

// different returns an error if got differs from want by more than the tolerance.
func different(got, want []*ir.Tensor, p precision.Precision) error {
	for i := range want {
		d := tolerance.Compare("", got[i], want[i])
		if !d.Within(tolerance.LimitIn(p, want[i].DType)) {
			return fmt.Errorf("wrong numbers: output %d of %d differs from that of other candidates (%s)", i+1,
				len(want),
				d.Passing())
		}
	}
	return nil
}
