package graphopt

import (
	"cmp"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// hoistProjections computes the products of W and x of all steps of a recurrent layer at once. That is one product of
// [steps·batch, I] before the layer, instead of one of [batch, I] in each step, where it takes part of the time from
// one state to the next. Each cell then reads its rows of the result. It is done for layers all of whose x are there
// before the first step can begin, by the levels of cellLevels.
//
// It is not done in these cases:
//
//   - The layer reads another one step by step. Then the two layers run side by side, which saves more.
//   - x is narrower than the state, or there are few steps. Then the product saves less than the time that it takes
//     before the first step.
//   - A layer beside it keeps products that are at least as wide. Both would still go at that layer's pace.
//
// Requires: cells with constant weights; x is a view where it is part of a sequence. Leaves: cells without W. The
// columns of the product have the order [unit][gate], so that what an rTask of a cell reads is contiguous.
func hoistProjections(c *Context, g *ir.Graph) (bool, error) {
	levels := newCellLevels(g)
	var early, others []*cellLayer
	for _, layer := range cellLayers(g) {
		if layer.measure(levels); layer.isEarly() {
			early = append(early, layer)
		} else {
			others = append(others, layer)
		}
	}
	early = slices.DeleteFunc(early, func(l *cellLayer) bool { return slices.ContainsFunc(others, l.isHeldUpBy) })
	if len(early) == 0 {
		return false, nil
	}
	for _, layer := range early {
		layer.hoist(c, g)
	}
	if err := ir.TopoSort(g); err != nil {
		panic("BUG: " + err.Error())
	}
	return true, nil
}

// leastHoistedSteps is the least number of steps of a layer whose products are hoisted.
const leastHoistedSteps = 4

// cellWeight is the index of the input W by operator; x is input 0 and h input 1.
var cellWeight = map[string]int{"LSTMCell": 3, "GRUCell": 2, "RNNCell": 2}

// cellLayer consists of the cells of one operator that multiply an x of the same shape with the same W.
type cellLayer struct {
	cellLayerKey
	cells []*ir.Node
	// input is the highest level of an x; first and last are the lowest and the highest level of a state (see
	// cellLevels).
	input, first, last int
}

// cellLayerKey is what the cells of a layer have in common.
type cellLayerKey struct {
	op    string
	w     *ir.Value
	batch int64
	loop  *ir.Node // the end of the loop in whose body they are, nil if they are in none
}

// cellLayers finds the cells of g with a constant W of float32, in order of their first cells.
func cellLayers(g *ir.Graph) []*cellLayer {
	by := map[cellLayerKey]*cellLayer{}
	loopOf := map[*ir.Node]*ir.Node{}
	for _, r := range ir.Repeats(g) {
		for _, n := range r.Body {
			loopOf[n] = r.End
		}
	}
	var layers []*cellLayer
	for _, n := range g.Nodes {
		port, ok := cellWeight[n.Op]
		if !ok || n.Domain != ir.InternalDomain || !constantShapes(n) {
			continue
		}
		w := n.Inputs[port]
		if w == nil || w.Const == nil || w.DType != ir.Float32 {
			continue
		}
		key := cellLayerKey{n.Op, w, n.Inputs[0].Shape.MustConsts()[0], loopOf[n]}
		if by[key] == nil {
			by[key] = &cellLayer{cellLayerKey: key}
			layers = append(layers, by[key])
		}
		by[key].cells = append(by[key].cells, n)
	}
	return layers
}

func (l *cellLayer) measure(levels *cellLevels) {
	l.first = levels.of[l.cells[0].Outputs[0]]
	for _, n := range l.cells {
		at := levels.of[n.Outputs[0]]
		l.input, l.first, l.last = max(l.input, levels.of[n.Inputs[0]]), min(l.first, at), max(l.last, at)
	}
}

// isEarly reports whether the layer's products are worth hoisting, and every x is there before the first step.
func (l *cellLayer) isEarly() bool {
	rows, inputs := l.w.Const.Dims[0], l.w.Const.Dims[1]
	return len(l.cells) >= leastHoistedSteps && inputs >= rows/cellGates[l.op] && l.batch > 0 && inputs > 0 &&
		l.input < l.first
}

// isHeldUpBy reports whether other, a layer that keeps its products, runs at the same time as l and has at least as
// much work in a step.
func (l *cellLayer) isHeldUpBy(other *cellLayer) bool {
	return other.work() >= l.work() && l.first <= other.last && other.first <= l.last
}

// work is the number of multiplications in a step.
func (l *cellLayer) work() int64 {
	rows, inputs := l.w.Const.Dims[0], l.w.Const.Dims[1]
	return l.batch * rows * (inputs + rows/cellGates[l.op])
}

// hoist adds the product and makes the cells read it.
func (l *cellLayer) hoist(c *Context, g *ir.Graph) {
	m := newMaker(g, c.names, l.cells[0])
	m.origins = mergeOrigins(l.cells...)
	rows := l.rows(m)
	width := l.w.Const.Dims[0]
	product := m.value("projection", ir.Float32, ir.Dims(rows.count*l.batch, width))
	m.node("projection", "", "Gemm", ir.Attrs{"transB": ir.IntAttr(1)},
		[]*ir.Value{rows.matrix, m.constant("W", l.byUnit())}, []*ir.Value{product})
	views := map[*ir.Value]*ir.Value{}
	for _, n := range l.cells {
		x := n.Inputs[0]
		if views[x] == nil {
			offset, stride := rows.at(x)
			views[x] = m.view("projected", product, offset*width, []int64{l.batch, width}, []int64{stride * width, 1})
		}
		n.Inputs[0], n.Inputs[cellWeight[l.op]] = views[x], nil
	}
	g.Nodes = append(g.Nodes, m.nodes...)
}

// byUnit is W with its rows in the order [unit][gate] instead of ONNX's [gate][unit].
func (l *cellLayer) byUnit() *ir.Tensor {
	rows, k := l.w.Const.Dims[0], l.w.Const.Dims[1]
	gates := cellGates[l.op]
	hidden, data := rows/gates, ir.Slice[float32](l.w.Const)
	out := make([]float32, 0, len(data))
	for r := range rows {
		from := (r%gates*hidden + r/gates) * k
		out = append(out, data[from:from+k]...)
	}
	return ir.FromSlice(ir.Float32, out, rows, k)
}

// stackedRows is a matrix [count·batch, I] of all different x of a layer.
type stackedRows struct {
	matrix *ir.Value
	count  int64
	order  []*ir.Value // the x, in the order of the matrix
	batch  int64
	inner  bool // rows have the order [batch][x], as in a sequence with the batch first; otherwise [x][batch]
}

// at is the first row of x in the matrix, and the distance between its rows.
func (s *stackedRows) at(x *ir.Value) (first, stride int64) {
	i := int64(slices.Index(s.order, x))
	if s.inner {
		return i, s.count
	}
	return i * s.batch, 1
}

// rows makes the matrix of all x: a view if they are regular views of one value, otherwise a Concat.
func (l *cellLayer) rows(m *maker) stackedRows {
	s := stackedRows{batch: l.batch}
	for _, n := range l.cells {
		if !slices.Contains(s.order, n.Inputs[0]) {
			s.order = append(s.order, n.Inputs[0])
		}
	}
	s.count = int64(len(s.order))
	if s.count == 1 {
		s.matrix = s.order[0]
		return s
	}
	if s.fromViews(m) {
		return s
	}
	dims := s.order[0].Shape.MustConsts()
	s.matrix = m.value("inputs", ir.Float32, ir.Dims(s.count*dims[0], dims[1]))
	m.node("inputs", "", "Concat", ir.Attrs{"axis": ir.IntAttr(0)}, slices.Clone(s.order), []*ir.Value{s.matrix})
	return s
}

// fromViews makes the matrix a view of the value of which all x are views. It returns false if the views are not
// equally far apart, or the rows cannot be addressed with one stride.
func (s *stackedRows) fromViews(m *maker) bool {
	for _, x := range s.order {
		if x.Def == nil || !x.Def.IsInternal("View") || x.Def.Inputs[0] != s.order[0].Def.Inputs[0] {
			return false
		}
	}
	offset := func(x *ir.Value) int64 { return ir.ViewOf(x.Def).Offset }
	slices.SortStableFunc(s.order, func(a, b *ir.Value) int { return cmp.Compare(offset(a), offset(b)) })
	first := ir.ViewOf(s.order[0].Def)
	step := offset(s.order[1]) - first.Offset
	for i, x := range s.order {
		v := ir.ViewOf(x.Def)
		if !slices.Equal(v.Strides, first.Strides) || v.Offset != first.Offset+int64(i)*step {
			return false
		}
	}
	stride := first.Strides[0]
	switch {
	case s.batch == 1 || step == s.batch*stride:
		if s.batch == 1 {
			stride = step
		}
	case stride == s.count*step:
		s.inner, stride = true, step
	default:
		return false
	}
	shape := []int64{s.count * s.batch, first.Shape[1]}
	s.matrix = m.view("inputs", s.order[0].Def.Inputs[0], first.Offset, shape, []int64{stride, first.Strides[1]})
	return true
}
