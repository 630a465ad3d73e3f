package graphopt

import (
	"cmp"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// hoistProjections computes the products of W and x of all steps of a recurrent layer at once, where every x is there
// before the layer's first step can begin: one product of [steps·batch, I], instead of one of [batch, I]
// in each step, where it would take part of the time between two states. Each cell takes its rows of it.
//
// A layer that reads another step by step is left alone: the two run side by side, which is worth more. So
// is one with an x narrower than its state, or with few steps, for what the product takes before the first;
// and one beside another that keeps products as wide, whose steps it would still wait for.
//
// Requires: cells with constant weights, x as a view where it is part of a sequence. Leaves: cells without
// W; the columns of the product are [unit][gate], so that what an rTask of a cell reads lies together.
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

// leastHoistedSteps is how many steps a product before them must serve.
const leastHoistedSteps = 4

// cellWeight is the number of input W by operator; x is input 0 and h input 1.
var cellWeight = map[string]int{"LSTMCell": 3, "GRUCell": 2, "RNNCell": 2}

// cellLayer is the cells of one operator that multiply x of one shape by the same W.
type cellLayer struct {
	cellLayerKey
	cells []*ir.Node
	// How many cells stand before the last x, and on the longest paths to the first and the last result,
	// itself included.
	input, first, last int
}

type cellLayerKey struct {
	op    string
	w     *ir.Value
	batch int64
}

// cellLayers finds the cells of g with a constant W of float32, in order of their first cells.
func cellLayers(g *ir.Graph) []*cellLayer {
	by := map[cellLayerKey]*cellLayer{}
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
		key := cellLayerKey{n.Op, w, n.Inputs[0].Shape.MustConsts()[0]}
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

// isEarly reports whether the layer is worth a product of its own, and no cell has to wait for it longer
// than for what it waits for anyway.
func (l *cellLayer) isEarly() bool {
	rows, inputs := l.w.Const.Dims[0], l.w.Const.Dims[1]
	return len(l.cells) >= leastHoistedSteps && inputs >= rows/cellGates[l.op] && l.batch > 0 && inputs > 0 && l.input < l.first
}

// isHeldUpBy reports whether a layer that keeps its products runs beside l and has as much to do in a step.
func (l *cellLayer) isHeldUpBy(other *cellLayer) bool {
	return other.work() >= l.work() && l.first <= other.last && other.first <= l.last
}

// work is how many products a step has.
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

// byUnit is W with the gates of a unit side by side.
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

// stackedRows is all x of a layer as one matrix [count·batch, I].
type stackedRows struct {
	matrix *ir.Value
	count  int64
	order  []*ir.Value
	batch  int64
	inner  bool // the steps of a batch row follow each other, otherwise the batch rows of a step
}

// at is the row of the matrix where x begins, and how far its rows are apart.
func (s *stackedRows) at(x *ir.Value) (first, stride int64) {
	i := int64(slices.Index(s.order, x))
	if s.inner {
		return i, s.count
	}
	return i * s.batch, 1
}

// rows makes one matrix of all x: a view where they are regular views of one value.
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

// fromViews makes the matrix a view of what all x are views of.
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
