package axes

import (
	"fmt"
	"reflect"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
)

// pairGraphs finds for each value of g the one of other that is at the same place. The graphs must have the same nodes
// with the same attributes, but for the windows of views and the extents that operators name.
func pairGraphs(twin map[*ir.Value]*ir.Value, g, other *ir.Graph) *diag.Diagnostic {
	if len(g.Inputs) != len(other.Inputs) || len(g.Outputs) != len(other.Outputs) || len(g.Nodes) != len(other.Nodes) {
		return &diag.Diagnostic{ID: "dynamic-structure",
			Message: "what the model consists of depends on the extents: with others it has other operators",
			Help:    "choose a range in which it does not, or give the dims one value each"}
	}
	for i, v := range g.Inputs {
		twin[v] = other.Inputs[i]
	}
	for i, n := range g.Nodes {
		if d := pairNodes(twin, n, other.Nodes[i]); d != nil {
			return d
		}
	}
	for i, v := range g.Outputs {
		if !paired(twin, v, other.Outputs[i]) {
			return &diag.Diagnostic{ID: "dynamic-structure", Port: "output " + v.Name,
				Message: "which node makes it depends on the extents"}
		}
	}
	return nil
}

func pairNodes(twin map[*ir.Value]*ir.Value, n, m *ir.Node) *diag.Diagnostic {
	differ := func(what string) *diag.Diagnostic {
		d := ir.NodeDiag(n, "dynamic-structure", what+" depends on the extents of dims with a range")
		d.Help = "choose a range in which it does not, or give the dims one value each"
		return d
	}
	if n.Op != m.Op || n.Domain != m.Domain || len(n.Inputs) != len(m.Inputs) || len(n.Outputs) != len(m.Outputs) {
		return differ("what it has become")
	}
	for i, v := range n.Inputs {
		if !paired(twin, v, m.Inputs[i]) {
			if v == nil || v.Const == nil || m.Inputs[i] == nil || m.Inputs[i].Const == nil {
				return differ("what it reads")
			}
			n.Inputs[i] = apart(twin, v, m.Inputs[i])
		}
	}
	if len(n.Attrs) != len(m.Attrs) {
		return differ("which attributes it has")
	}
	for _, name := range n.Attrs.Names() {
		x, y := n.Attrs[name], m.Attrs[name]
		switch {
		case x.Kind == ir.AttrGraph && y.Kind == ir.AttrGraph:
			if d := pairGraphs(twin, x.G, y.G); d != nil {
				return d
			}
		case n.IsInternal("View"): // viewAxes compares them
		case name == "extent" && (n.Counted() || n.IsInternal("Extent") || n.IsInternal("WriteRows")):
		case !reflect.DeepEqual(x, y):
			return differ("attribute " + name)
		}
	}
	for i, v := range n.Outputs {
		if (v == nil) != (m.Outputs[i] == nil) {
			return differ("which outputs are used")
		}
		if v != nil {
			twin[v] = m.Outputs[i]
		}
	}
	return nil
}

// apart is a constant of its own for one use of v, of which w is the twin. Constants that happen to be equal at some
// extents are one there.
func apart(twin map[*ir.Value]*ir.Value, v, w *ir.Value) *ir.Value {
	c := *v
	c.Name = fmt.Sprintf("%s.%d", v.Name, len(twin))
	twin[&c] = w
	return &c
}

// paired reports whether w is the value for v. Constants are paired when they are met first.
func paired(twin map[*ir.Value]*ir.Value, v, w *ir.Value) bool {
	if v == nil || w == nil {
		return v == w
	}
	if v.Const != nil && w.Const != nil {
		if t, ok := twin[v]; ok {
			return t == w
		}
		twin[v] = w
		return true
	}
	return twin[v] == w
}

// constantAxes are the axes of a constant. Where it is longer at larger extents, such as a range of positions or a
// triangular mask, the elements that all points have must be the same. The problem says why they are not.
func (a *analyser) constantAxes(v *ir.Value) (list []Axis, problem string) {
	for d := range a.dims(0, v) {
		x, ok := a.repeatedWith(a.extentsOf(v, d))
		if !ok {
			return StaticAxes(a.dims(0, v)), "the extents of the constant " + v.Name + " are computed from those of a run"
		}
		list = append(list, x)
	}
	for k := 1; k < len(a.points); k++ {
		if !sameElements(v.Const, a.at(k, v).Const) {
			return list, "the elements of the constant " + v.Name + " depend on extents that only a run knows"
		}
	}
	return list, ""
}

// repeatedWith is the axis of a constant that has the given extent at each point: as axisWith finds it, or a symbol times a
// number, such as that of a row of labels that was repeated for each box. What is live of it stands at its beginning.
func (a *analyser) repeatedWith(extent func(k int) int64) (Axis, bool) {
	if x, ok := a.axisWith(extent); ok {
		return x, true
	}
	for s, r := range a.Ranges {
		if n := extent(0) / r.Hi; n > 1 {
			if x := (Axis{{s, r.Hi}, {Static, n}}); a.fits(x, extent) {
				return x, true
			}
		}
	}
	return nil, false
}

// sameElements reports whether the elements that both tensors have are the same.
func sameElements(x, y *ir.Tensor) bool {
	if x.DType != y.DType || len(x.Dims) != len(y.Dims) {
		return false
	}
	switch d := x.Data.(type) {
	case []float32:
		return sameIn(d, y.Data.([]float32), x.Dims, y.Dims)
	case []float64:
		return sameIn(d, y.Data.([]float64), x.Dims, y.Dims)
	case []uint16:
		return sameIn(d, y.Data.([]uint16), x.Dims, y.Dims)
	case []bool:
		return sameIn(d, y.Data.([]bool), x.Dims, y.Dims)
	case []int32:
		return sameIn(d, y.Data.([]int32), x.Dims, y.Dims)
	case []int64:
		return sameIn(d, y.Data.([]int64), x.Dims, y.Dims)
	}
	return reflect.DeepEqual(x, y)
}

// sameIn compares the elements of row-major tensors in the block that both have. A NaN equals a NaN.
func sameIn[T comparable](x, y []T, xd, yd []int64) bool {
	if len(xd) <= 1 {
		n := len(x)
		if len(xd) == 1 {
			n = int(min(xd[0], yd[0]))
		}
		for i, e := range x[:n] {
			if e != y[i] && (e == e || y[i] == y[i]) {
				return false
			}
		}
		return true
	}
	xs, ys := ir.Count(xd[1:]), ir.Count(yd[1:])
	for i := range min(xd[0], yd[0]) {
		if !sameIn(x[i*xs:(i+1)*xs], y[i*ys:(i+1)*ys], xd[1:], yd[1:]) {
			return false
		}
	}
	return true
}
