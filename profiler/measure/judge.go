package measure

import (
	"fmt"
	"os"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/profiler/db"
)

// verdicts collects what came of a group's subjects until all are there.
type verdicts struct {
	left    int
	entries []db.Entry
	outputs []string // files; "" where there is nothing to compare
	best    float64  // the shortest cold time of all rTasks, ns
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
