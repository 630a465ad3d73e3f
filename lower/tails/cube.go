package tails

import (
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/roperator"
)

// A cube is a value seen as [i0][i1][i2]. Kernels whose results are cubes need an input, an output and
// epilogue operands whose dims can be merged to three.

// CubeCuts cuts shape into three runs of dims, [0, cuts[0]), [cuts[0], cuts[1]) and the rest, such that the dims of a
// run can be merged in every view. The views are broadcast to shape, the most important one first; if not all of them
// fit, the last ones are given up. It fails if the first view alone does not fit.
func CubeCuts(shape []int64, views ...roperator.View) (cuts [2]int, ok bool) {
	var breaks []int
	for _, v := range views {
		merged := mergeBreaks(breaks, v)
		if len(merged) <= 2 {
			breaks, ok = merged, true
		}
	}
	switch len(breaks) {
	case 1:
		cuts = [2]int{breaks[0], breaks[0]}
		cuts[0] = 0
	case 2:
		cuts = [2]int{breaks[0], breaks[1]}
	}
	return cuts, ok || len(views) == 0
}

// mergeBreaks adds to breaks, which are ascending, the dims of v at which a new run must begin because they do not
// continue the dims before.
func mergeBreaks(breaks []int, v roperator.View) []int {
	var out []int
	k := 0
	for d := 1; d < len(v.Shape); d++ {
		if k < len(breaks) && breaks[k] == d {
			out = append(out, d)
			k++
			continue
		}
		from := 0
		if len(out) > 0 {
			from = out[len(out)-1]
		}
		if !v.IsRun(from, d+1) {
			out = append(out, d)
		}
	}
	return out
}

// GroupOperands are the views of an epilogue's operands, broadcast to shape.
func GroupOperands(b *build.Builder, g *build.Group, shape []int64) []roperator.View {
	var out []roperator.View
	if g.Epilogue == nil {
		return nil
	}
	for _, v := range g.Extra {
		out = append(out, b.In(v).Broadcast(shape))
	}
	return out
}
