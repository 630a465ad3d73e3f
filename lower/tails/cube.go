package tails

import (
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/roperator"
)

// A cube is a value seen as [i0][i1][i2]. Kernels whose results are cubes need an input, an output and
// epilogue operands whose dims can be merged to three.

// CubeCuts splits shape into three runs of dims such that every view (each broadcast to shape, the most
// important one first) can be merged to them; views at the end are given up first. i2 is as long as
// possible. It fails when even the first view needs more runs.
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

// mergeBreaks adds to breaks (ascending) the dims of v that do not continue the run of the dims before.
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
