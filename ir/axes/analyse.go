package axes

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
)

// Point is the graph as the passes leave it for certain extents of the ranges.
type Point struct {
	Graph   *ir.Graph
	Extents []int64 // of each range
}

// Extents proposes what to give to Analyse: for the largest extents and for some others in which no two ranges agree,
// neither with each other nor with themselves, and in which what is made of two of them differs, too. They are near the
// largest, because passes look at sizes: the further apart the extents, the more the graphs may differ. They avoid 1, at
// which axes disappear; so a short range is left at its upper end, but sums of extents are not if that can be.
func Extents(ranges []Range) [][]int64 {
	const attempts = 64
	var last [][]int64
	for attempt := range 3 * attempts {
		shift, draw := attempt%attempts, attempt/attempts == 1
		points := proposed(ranges, shift, draw)
		for _, p := range points {
			Follow(ranges, p)
		}
		if toldApart(ranges, points) && (sumsFit(ranges, points) || attempt >= 2*attempts) {
			return points
		}
		last = points
	}
	return last
}

// sumsFit reports whether the extents that are sums of others are none that no run has.
func sumsFit(ranges []Range, points [][]int64) bool {
	for i, r := range ranges {
		for _, p := range points {
			if r.Derived() && p[i] > r.Hi {
				return false
			}
		}
	}
	return true
}

// proposed is Extents without the extents that are sums of others. Another shift is another choice, drawn at random or
// by a rule.
func proposed(ranges []Range, shift int, draw bool) [][]int64 {
	const others = 2
	out := make([][]int64, others+1)
	r := rand.New(rand.NewPCG(1, uint64(shift)))
	for i, x := range ranges {
		var list []int64
		for n := x.Hi - 1; n >= max(x.Lo, 2) && len(list) < others+shift+len(ranges); n-- {
			list = append(list, n)
		}
		for n := x.Hi + 1; len(list) < others+shift+len(ranges); n++ {
			list = append(list, n)
		}
		out[0] = append(out[0], x.Hi)
		drawn := r.Perm(min(len(list), others+len(ranges)))
		for k := range others {
			at := (k + i*(1+shift)) % len(list)
			if draw {
				at = drawn[k]
			}
			out[k+1] = append(out[k+1], list[at])
		}
	}
	return out
}

// toldApart reports whether no two ranges have the same extent at each point, and no range, nor the sum, the difference
// or the product of two, looks like a constant. For past and seq of 9 and 3, 8 and 4, and 7 and 5, whatever has
// past + seq places would be taken for something that has twelve in all runs. An extent that is made of others differs
// from one of them by as much in all runs, as past + 1 does from past.
func toldApart(ranges []Range, points [][]int64) bool {
	same := func(of func(p []int64) int64) bool {
		for _, p := range points {
			if of(p) != of(points[0]) {
				return false
			}
		}
		return true
	}
	for i := range points[0] {
		if same(func(p []int64) int64 { return p[i] }) {
			return false
		}
		for j := range i {
			if ranges[i].Derived() || ranges[j].Derived() {
				if same(func(p []int64) int64 { return p[i] - p[j] }) && points[0][i] == points[0][j] {
					return false
				}
				continue
			}
			if same(func(p []int64) int64 { return p[i] + p[j] }) || same(func(p []int64) int64 { return p[i] - p[j] }) ||
				same(func(p []int64) int64 { return p[i] * p[j] }) {
				return false
			}
		}
	}
	return true
}

// Analyse finds the axes of all values of points[0].Graph, which is that of the largest extents. inputs are the shapes
// of its inputs with symbols. The other points show what of the graph depends on the extents: the graphs must be the
// same but for shapes, windows of views, and constants that are longer where an extent is larger. Operators for which
// dead elements could reach live ones are reported, all at once.
func Analyse(ranges []Range, inputs []ir.Shape, points []Point) (*Axes, error) {
	a := &analyser{Axes: Axes{ranges, map[*ir.Value][]Axis{}}, points: points, unknown: map[*ir.Value]bool{}}
	main := points[0].Graph
	a.twins = make([]map[*ir.Value]*ir.Value, len(points))
	for k := 1; k < len(points); k++ {
		a.twins[k] = map[*ir.Value]*ir.Value{}
		if d := pairGraphs(a.twins[k], main, points[k].Graph); d != nil {
			d.Message += fmt.Sprintf(" (with %s)", a.extentsText(k))
			return nil, &diag.List{Items: []*diag.Diagnostic{d}}
		}
	}
	for i, v := range main.Inputs {
		a.input(v, inputs[i])
	}
	for _, n := range main.Nodes {
		a.node(n)
	}
	for _, v := range main.Outputs {
		if v.Const != nil {
			a.axesOf(nil, v)
		}
	}
	return &a.Axes, a.diags.Err()
}

// analyser follows the axes through a graph.
type analyser struct {
	Axes
	points []Point
	twins  []map[*ir.Value]*ir.Value // of each point but the first: its value for a value of points[0]
	diags  diag.List
	// unknown are the values that refused nodes make, and what depends on them. Of nodes that read them nothing is said.
	unknown map[*ir.Value]bool
	// compound says that the node is in one of ir.Compounds, whose rKernels are told no more than where rows end.
	compound bool
}

func (a *analyser) extentsText(k int) string {
	text := ""
	for i, r := range a.Ranges {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s=%d", r.Name, a.points[k].Extents[i])
	}
	return text
}

// input takes the axes of an input from its symbolic shape, whose dims must be numbers, symbols, or sums that have a
// range.
func (a *analyser) input(v *ir.Value, shape ir.Shape) {
	list := make([]Axis, len(shape))
	for i, d := range shape {
		n, _ := v.Shape[i].Const()
		list[i] = StaticAxis(n)
		for s, r := range a.Ranges {
			if d.Equal(a.expression(Axis{{s, r.Hi}})) {
				list[i] = Axis{{s, r.Hi}}
			}
		}
	}
	a.Of[v] = list
	if !a.agree(v, list) {
		a.diags.Add(&diag.Diagnostic{ID: "dynamic-dim", Port: "input " + v.Name, DType: v.DType.String(),
			Message: fmt.Sprintf("a dim of the shape %v is computed from symbols with a range", shape),
			Help:    "give its symbols one value each"})
	}
}

// at is the value for v in the graph of point k.
func (a *analyser) at(k int, v *ir.Value) *ir.Value {
	if k == 0 {
		return v
	}
	return a.twins[k][v]
}

// dims are the extents of v at point k.
func (a *analyser) dims(k int, v *ir.Value) []int64 {
	dims, _ := a.at(k, v).Shape.Consts()
	return dims
}

// agree reports whether the axes have the extents that v has at all points.
func (a *analyser) agree(v *ir.Value, list []Axis) bool {
	for k := range a.points {
		if len(a.dims(k, v)) != len(list) {
			return false
		}
	}
	for d, x := range list {
		if !a.fits(x, a.extentsOf(v, d)) {
			return false
		}
	}
	return true
}

// extentsOf gives the extent of dim d of v at each point.
func (a *analyser) extentsOf(v *ir.Value, d int) func(k int) int64 {
	return func(k int) int64 { return a.dims(k, v)[d] }
}

// fits reports whether x has the given extent at each point.
func (a *analyser) fits(x Axis, extent func(k int) int64) bool {
	return a.all(func(k int) bool { return x.At(a.points[k].Extents) == extent(k) })
}

// all reports whether something holds at each point.
func (a *analyser) all(holds func(k int) bool) bool {
	for k := range a.points {
		if !holds(k) {
			return false
		}
	}
	return true
}

// axisWith is the axis that has the given extent at each point: static, or one symbol.
func (a *analyser) axisWith(extent func(k int) int64) (Axis, bool) {
	if x := StaticAxis(extent(0)); a.fits(x, extent) {
		return x, true
	}
	for s, r := range a.Ranges {
		if x := (Axis{{s, r.Hi}}); a.fits(x, extent) {
			return x, true
		}
	}
	return nil, false
}

// varies reports whether the shape of v differs between the points.
func (a *analyser) varies(v *ir.Value) bool { return !a.agree(v, StaticAxes(a.dims(0, v))) }

// axesOf are the axes of an operand of n. Those of constants follow from their extents and elements.
func (a *analyser) axesOf(n *ir.Node, v *ir.Value) []Axis {
	if list, ok := a.Of[v]; ok {
		return list
	}
	list, problem := StaticAxes(a.dims(0, v)), ""
	if v.Const != nil {
		list, problem = a.constantAxes(v)
	}
	if problem != "" {
		a.refuse(n, "%s", problem)
	}
	a.Of[v] = list
	return list
}

// refuse reports that n, or a constant that is an output of the graph (n is nil), cannot be a part of a general program.
func (a *analyser) refuse(n *ir.Node, format string, args ...any) {
	d := &diag.Diagnostic{ID: "dynamic-axis", Message: fmt.Sprintf(format, args...)}
	if n != nil {
		d = ir.NodeDiag(n, d.ID, d.Message)
	}
	d.Help = "give one value to the dims that it depends on"
	a.diags.Add(d)
}

// node finds the axes of what n makes.
func (a *analyser) node(n *ir.Node) {
	if n.IsInternal("Fused") {
		a.fused(n)
		return
	}
	if a.spoilt(n.Inputs, n.Outputs) {
		return
	}
	in := make([][]Axis, len(n.Inputs))
	dynamic := false
	for i, v := range n.Inputs {
		if v != nil && !shapeOperand(n, i) {
			in[i] = a.axesOf(n, v)
			dynamic = dynamic || anyDynamic(in[i])
		}
	}
	for _, v := range n.Outputs {
		dynamic = dynamic || v != nil && a.varies(v)
	}
	var out [][]Axis
	var err error
	if dynamic {
		out, err = a.apply(n, in)
	}
	for i, v := range n.Outputs {
		if v == nil {
			continue
		}
		list := StaticAxes(a.dims(0, v))
		if dynamic && err == nil && i < len(out) {
			list = out[i]
		}
		a.Of[v] = list
		if err == nil && !a.agree(v, list) {
			err = fmt.Errorf("the shape of its output %d does not follow from the axes of its inputs", i)
		}
	}
	if err != nil {
		for _, v := range n.Outputs {
			a.unknown[v] = true
		}
		a.refuse(n, "has no form for extents that only a run knows: %v", err)
	}
}

// spoilt reports whether one of the inputs is unknown; then the outputs are, too.
func (a *analyser) spoilt(inputs, outputs []*ir.Value) bool {
	if !slices.ContainsFunc(inputs, func(v *ir.Value) bool { return v != nil && a.unknown[v] }) {
		return false
	}
	for _, v := range outputs {
		if v != nil {
			a.unknown[v], a.Of[v] = true, StaticAxes(a.dims(0, v))
		}
	}
	return true
}

// fused follows the axes through the body of a Fused node.
func (a *analyser) fused(n *ir.Node) {
	body := n.Attrs["body"].G
	if a.spoilt(n.Inputs, n.Outputs) {
		return
	}
	for i, v := range body.Inputs {
		a.Of[v] = a.axesOf(n, n.Inputs[i])
	}
	a.compound = ir.IsCompound(n.Str("anchor", ""))
	for _, m := range body.Nodes {
		a.node(m)
	}
	a.compound = false
	for i, v := range n.Outputs {
		if v != nil {
			a.Of[v], a.unknown[v] = a.axesOf(n, body.Outputs[i]), a.unknown[body.Outputs[i]]
		}
	}
}
