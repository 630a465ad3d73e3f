package roperator

// A cube is a value seen as [i0][i1][i2]. Kernels whose results are cubes need an input, an output and
// epilogue operands whose dims can be merged to three.

// cubeCuts splits shape into three runs of dims such that every view (each broadcast to shape, the most
// important one first) can be merged to them; views at the end are given up first. i2 is as long as
// possible. It fails when even the first view needs more runs.
func cubeCuts(shape []int64, views ...View) (cuts [2]int, ok bool) {
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
func mergeBreaks(breaks []int, v View) []int {
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
		if !v.isRun(from, d+1) {
			out = append(out, d)
		}
	}
	return out
}

// isRun reports that dims [from, to) can be merged.
func (v View) isRun(from, to int) bool {
	w := View{Buf: v.Buf, Shape: v.Shape[from:to], Strides: v.Strides[from:to]}
	_, ok := w.Collapse()
	return ok
}

// groupOperands are the views of an epilogue's operands, broadcast to shape.
func (b *Builder) groupOperands(g *Group, shape []int64) []View {
	var out []View
	if g.Epilogue == nil {
		return nil
	}
	for _, v := range g.Extra {
		out = append(out, b.In(v).Broadcast(shape))
	}
	return out
}

// keptBox is the box of a cube's tile followed by whole dims.
func keptBox(t tiling, whole []int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		n := len(t.dims)
		t.box(task, lo[:n], hi[:n])
		for d, extent := range whole {
			lo[n+d], hi[n+d] = 0, extent
		}
	}
}
