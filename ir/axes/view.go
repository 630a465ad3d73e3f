package axes

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
)

// viewAxes are the axes of the result of a View. At each point the window must show the same of the input: each dim of
// it either walks through adjacent factors of the input as a whole, or through a part of one factor, or repeats
// elements. Where it fixes the index of a factor, that index must be the same at all points. For example, on
// x[batch,seq,64]
//
//	{0, [batch,64,seq], [seq·64,1,64]}   is x transposed: axes batch, 64, seq
//	{0, [batch·seq,64], [64,1]}          is x reshaped: the first axis has the factors batch and seq
//	{0, [batch,new,64], [seq·64,64,1]}   are the first new of seq elements, if new is never larger than seq
//	{64·(seq-1), [batch,64], [seq·64,1]} is refused: the last of seq elements is another one in each run
func (a *analyser) viewAxes(n *ir.Node, in []Axis) ([]Axis, error) {
	windows := make([]ir.Strided, len(a.points))
	for k := range a.points {
		windows[k] = ir.ViewOf(a.at(k, n.Outputs[0]).Def)
	}
	factors := Join(in...)
	out, err := a.windowAxes(in, factors, windows)
	if err == nil {
		return out, nil
	}
	if parts := a.split(factors, windows); len(parts) > len(factors) {
		if out, apart := a.windowAxes(in, parts, windows); apart == nil {
			return out, nil
		}
	}
	return nil, err
}

// strides are those of factors at each point.
func (a *analyser) strides(factors Axis) [][]int64 {
	strides := make([][]int64, len(a.points))
	for k, p := range a.points {
		strides[k] = make([]int64, len(factors))
		step := int64(1)
		for i := len(factors) - 1; i >= 0; i-- {
			strides[k][i] = step
			step *= factors[i : i+1].At(p.Extents)
		}
	}
	return strides
}

// split splits static factors where dims of the windows begin. For example, x[seq,4,2] has the factors seq and 8; where it
// is seen as [seq·4,2], the 8 are 4 times 2.
func (a *analyser) split(factors Axis, windows []ir.Strided) Axis {
	strides := a.strides(factors)
	var out Axis
	for i, f := range factors {
		rest := f.N
		for d := range windows[0].Shape { // from the outermost
			inner := windows[0].Strides[d] / strides[0][i]
			if f.Symbol != Static || inner < 2 || inner >= rest || rest%inner != 0 ||
				!a.all(func(k int) bool { return windows[k].Strides[d] == inner*strides[k][i] }) {
				continue
			}
			out = append(out, Factor{Static, rest / inner})
			rest = inner
		}
		f.N = rest
		out = append(out, f)
	}
	return out
}

// windowAxes are the axes of windows on a value with certain factors.
func (a *analyser) windowAxes(in []Axis, factors Axis, windows []ir.Strided) ([]Axis, error) {
	strides := a.strides(factors)
	if err := a.sameStart(factors, windows, strides); err != nil {
		return nil, err
	}
	out := make([]Axis, len(windows[0].Shape))
	lo, hi := make([]int64, len(factors)), make([]int64, len(factors)) // indices of each factor that the window reaches
	for i, f := range factors {
		lo[i] = windows[0].Offset / strides[0][i] % f.N
		hi[i] = lo[i]
	}
	for d := range out {
		w, ok := a.dimWalk(factors, windows, strides, d)
		if !ok {
			return nil, fmt.Errorf("dim %d of its window on %s shows different parts of it at different extents", d,
				a.text(in))
		}
		out[d] = w.axis
		for i := w.first; i < w.behind; i++ {
			reach := w.step * (w.axis.Largest() - 1)
			if w.whole {
				reach = factors[i].N - 1
			}
			lo[i], hi[i] = lo[i]+min(reach, 0), hi[i]+max(reach, 0)
		}
	}
	for i, f := range factors {
		if lo[i] < 0 || hi[i] >= f.N {
			return nil, fmt.Errorf("its window on %s runs over the end of %s", a.text(in), a.text([]Axis{{f}}))
		}
	}
	return out, nil
}

// walk is how a dim of a window walks through the factors [first, behind) of the input: through all of their elements,
// or by steps through a part of one static factor. A dim along which elements repeat walks through none.
type walk struct {
	axis          Axis
	first, behind int
	whole         bool
	step          int64
}

// sameStart checks that the window starts at the same index of each factor at all points.
func (a *analyser) sameStart(factors Axis, windows []ir.Strided, strides [][]int64) error {
	for i, f := range factors {
		var first int64
		for k, p := range a.points {
			index := windows[k].Offset / strides[k][i] % factors[i:i+1].At(p.Extents)
			if k > 0 && index != first {
				return fmt.Errorf("where its window starts depends on the extent of %s", a.text([]Axis{{f}}))
			}
			first = index
		}
	}
	return nil
}

// dimWalk is how dim d of the windows walks, in the same way at all points.
func (a *analyser) dimWalk(factors Axis, windows []ir.Strided, strides [][]int64, d int) (walk, bool) {
	extent := func(k int) int64 { return windows[k].Shape[d] }
	static := a.fits(StaticAxis(extent(0)), extent)
	if static && extent(0) == 1 {
		return walk{axis: StaticAxis(1)}, true
	}
	if a.all(func(k int) bool { return windows[k].Strides[d] == 0 }) { // elements repeat
		x, ok := a.axisWith(extent)
		return walk{axis: x}, ok
	}
	for last := range factors {
		for first := last; first >= 0; first-- { // whole factors, of which at least one is dynamic
			run := factors[first : last+1]
			if run.Dynamic() && a.fits(run, extent) &&
				a.all(func(k int) bool { return windows[k].Strides[d] == strides[k][last] }) {
				return walk{axis: run, first: first, behind: last + 1, whole: true}, true
			}
		}
		step := windows[0].Strides[d] / strides[0][last]
		if f := factors[last]; static && f.Symbol == Static && step != 0 && max(step, -step) < f.N &&
			a.all(func(k int) bool { return windows[k].Strides[d] == step*strides[k][last] }) {
			return walk{axis: StaticAxis(extent(0)), first: last, behind: last + 1, step: step}, true
		}
		if w, ok := a.partWalk(factors, windows, strides, d, last); ok {
			return w, true
		}
	}
	return walk{}, false
}

// partWalk is a walk through a part of factor i, from the same element on at all points, but through as many as another
// axis has: the first seq of 512 positions, or all of seq elements but the first.
func (a *analyser) partWalk(factors Axis, windows []ir.Strided, strides [][]int64, d, i int) (walk, bool) {
	f, step := factors[i], windows[0].Strides[d]/strides[0][i]
	x, ok := a.axisWith(func(k int) int64 { return windows[k].Shape[d] })
	if !ok || step < 1 || !a.all(func(k int) bool { return windows[k].Strides[d] == step*strides[k][i] }) {
		return walk{}, false
	}
	if f.Symbol != Static {
		from := windows[0].Offset / strides[0][i] % f.N
		ok = step == 1 && a.never(x, factors[i:i+1], from)
	}
	return walk{axis: x, first: i, behind: i + 1, step: step}, ok && step < f.N
}
