// Package recurrent lowers the cells of recurrent operators, one rOperator (two for some GRUs) a time step.
package recurrent

import (
	"fmt"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/gemv"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// element is the one type that cells take and give.
const element = ir.Float32

// weightRun is how many weights a lane loads at a time.
var weightRun = contraction.PerLoad(element)

// gateRow says what one packed row of a unit holds: the row of W and the row of R of these gates, -1 for zeros.
type gateRow struct{ w, r int64 }

// cellRows has the packed rows of a unit, by kind of cell, in the order in which the kernel expects their sums.
var cellRows = [][]gateRow{
	schema.CellRNN:       {{0, 0}},
	schema.CellLSTM:      {{0, 0}, {1, 1}, {2, 2}, {3, 3}},
	schema.CellGRULinear: {{0, 0}, {1, 1}, {2, -1}, {-1, 2}},
	schema.CellGRUGates:  {{0, 0}, {1, 1}},
	schema.CellGRUState:  {{2, 2}},
}

// cell is one rOperator of a recurrent cell.
type cell struct {
	kind                  int64
	batch, inputs, hidden int64          // inputs are the columns of x that are multiplied, none if projected
	gates                 int64          // of the operator, whatever the kind takes
	projected             bool           // x is the product with W, [batch][unit][gate]; w is absent
	x, h, state, gate     roperator.View // [batch][…]; gate and state where the kind has them
	out0, out1, y         roperator.View // y.Buf is nil when nobody asks for it
	lens                  roperator.View // lens.Buf likewise
	w, r, bias, peep      roperator.View // constants as ONNX has them; w, bias and peep may be absent
	step, inputForget     int64
	f, g, act             *functor.Expr
}

// cellPorts has the numbers of the inputs of a cell operator. Only LSTM has c and peep; others have -1 there.
type cellPorts struct{ c, w, r, bias, peep, lens int }

var (
	lstmPorts   = cellPorts{c: 2, w: 3, r: 4, bias: 5, peep: 6, lens: 7}
	simplePorts = cellPorts{c: -1, w: 2, r: 3, bias: 4, peep: -1, lens: 5}
)

func LSTMCell(b *build.Builder, g *build.Group) error {
	c, err := readCell(b, g, lstmPorts, []string{"Sigmoid", "Tanh", "Tanh"})
	if err != nil || c.isEmpty() {
		return err
	}
	c.kind, c.inputForget = schema.CellLSTM, g.Anchor.Int("input_forget", 0)
	c.out1 = cellOut(b, g, 1, "c")
	addCell(b, g, c)
	return nil
}

func RNNCell(b *build.Builder, g *build.Group) error {
	c, err := readCell(b, g, simplePorts, []string{"Tanh"})
	if err != nil || c.isEmpty() {
		return err
	}
	c.kind = schema.CellRNN
	addCell(b, g, c)
	return nil
}

// GRUCell takes two rOperators if the reset gate is applied before the product, since every unit then needs the reset
// gates of all units.
func GRUCell(b *build.Builder, g *build.Group) error {
	c, err := readCell(b, g, simplePorts, []string{"Sigmoid", "Tanh"})
	if err != nil || c.isEmpty() {
		return err
	}
	if g.Anchor.Int("linear_before_reset", 0) != 0 {
		c.kind = schema.CellGRULinear
		addCell(b, g, c)
		return nil
	}
	gates := *c
	gates.kind, gates.y, gates.lens = schema.CellGRUGates, roperator.View{}, roperator.View{}
	gates.out0 = b.Temp("z", element, []int64{c.batch, c.hidden})
	gates.out1 = b.Temp("reset", element, []int64{c.batch, c.hidden})
	addCell(b, g, &gates)
	c.kind, c.h, c.gate = schema.CellGRUState, gates.out1, gates.out0
	addCell(b, g, c)
	return nil
}

func (c *cell) isEmpty() bool { return c.batch == 0 || c.hidden == 0 }

// readCell reads what all cells have in common.
func readCell(b *build.Builder, g *build.Group, p cellPorts, activations []string) (*cell, error) {
	n := g.Anchor
	if d := n.Outputs[0].DType; d != element {
		return nil, build.UnsupportedType(d)
	}
	if g.Epilogue != nil {
		panic("BUG: an epilogue on a recurrent cell")
	}
	in := make([]roperator.View, len(g.Inputs))
	for i, v := range g.Inputs {
		if v == nil {
			continue
		}
		var err error
		if in[i], err = elementwise.Mapped(b, g.Prologue[i], v); err != nil {
			return nil, err
		}
	}
	at := func(i int) roperator.View {
		if i < 0 || i >= len(in) {
			return roperator.View{}
		}
		return in[i]
	}
	op := ir.LookupOp(n.Domain, n.Op)
	for _, i := range []int{p.w, p.r, p.bias, p.peep} {
		if v := at(i); v.Buf != nil && v.Buf.Kind != roperator.Const {
			return nil, fmt.Errorf("input %d (%s) must be constant: recurrent weights are packed at compile time", i,
				op.Inputs[i].Name)
		}
	}
	c := &cell{
		x: at(0), h: at(1), state: at(1), w: at(p.w), r: at(p.r), bias: at(p.bias), peep: at(p.peep), lens: at(p.lens),
		step: n.Int("step", 0),
	}
	if c.lens.Buf != nil {
		c.lens = elementwise.Contiguous(b, c.lens)
	}
	if p.c >= 0 {
		c.state = at(p.c)
	}
	c.batch, c.inputs, c.hidden = c.x.Shape[0], c.x.Shape[1], c.h.Shape[1]
	if c.hidden > 0 {
		c.gates = c.r.Shape[0] / c.hidden
	}
	if c.projected = c.w.Buf == nil; c.projected {
		c.inputs = 0
	}
	if err := c.readActivations(n, activations); err != nil {
		return nil, err
	}
	placeHidden(b, g, c)
	return c, nil
}

// placeHidden decides where the next h and y are written. Without sequence lengths they are equal, and are written
// once unless both have a destination of their own.
func placeHidden(b *build.Builder, g *build.Group, c *cell) {
	last := len(ir.LookupOp(g.Anchor.Domain, g.Anchor.Op).Outputs) - 1
	h, y := g.Outputs[0], (*ir.Value)(nil)
	if last < len(g.Outputs) {
		y = g.Outputs[last]
	}
	switch {
	case y == nil:
		c.out0 = cellOut(b, g, 0, "h")
	case h == nil && c.lens.Buf == nil:
		c.out0 = b.Out(y)
	case c.lens.Buf == nil && !b.HasHome(h):
		c.out0 = b.Out(y)
		b.Bind(h, c.out0)
	case c.lens.Buf == nil && !b.HasHome(y):
		c.out0 = b.Out(h)
		b.Bind(y, c.out0)
	default:
		c.out0, c.y = cellOut(b, g, 0, "h"), b.Out(y)
	}
}

// cellOut is where output i is written: a temporary buffer if nobody reads it.
func cellOut(b *build.Builder, g *build.Group, i int, what string) roperator.View {
	if i < len(g.Outputs) && g.Outputs[i] != nil {
		return b.Out(g.Outputs[i])
	}
	return b.Temp(what, element, b.Extents(g.Inputs[1], build.ForTiles))
}

// addCell adds the rOperator of c.
func addCell(b *build.Builder, g *build.Group, c *cell) {
	var candidates []*roperator.Candidate
	for _, s := range cellShapes(c.batch, c.inputs+c.hidden, int64(len(cellRows[c.kind]))) {
		candidates = append(candidates, cellCandidate(b, c, s))
	}
	candidates = append(candidates, residentCandidates(b, c)...)
	b.Add(g.Kind(), candidates...)
}

// cellShapes are the shapes worth trying, those with the most columns an rTask first. rows is how many packed rows a
// unit has.
func cellShapes(batch, k, rows int64) []gemv.Shape {
	mb := int64(1)
	for mb < batch && mb < gemv.MostRows {
		mb *= 2
	}
	shape := func(c, lk, wk int64) gemv.Shape { return gemv.Shape{MB: mb, C: c, LK: lk, WK: wk, Run: weightRun} }
	if k < 96 {
		return []gemv.Shape{shape(2, 8, 1), shape(1, 8, 1)}
	}
	shapes := []gemv.Shape{shape(4, 32, 1), shape(2, 32, 1)}
	if mb < 8 {
		shapes = append(shapes, shape(1, 32, 1))
	}
	if s := shape(1, 32, 2); mb < 8 && s.Columns() >= rows {
		shapes = append(shapes, s)
	}
	return shapes
}

func cellCandidate(b *build.Builder, c *cell, s gemv.Shape) *roperator.Candidate {
	rows := cellRows[c.kind]
	units := s.Columns() / int64(len(rows))
	tiles, blocks := build.CeilDiv(c.hidden, units), build.CeilDiv(c.batch, s.MB)
	k := c.inputs + c.hidden
	values := []any{c.kind, s.MB, s.C, s.LK, s.WK}
	var actArgs []rkernels.Struct
	for _, e := range []*functor.Expr{c.f, c.g, c.act} {
		f, args := tails.Prologue(element, e)
		values, actArgs = append(values, f), append(actArgs, args)
	}
	boxes := cellBoxes{batch: c.batch, hidden: c.hidden, mb: s.MB, units: units, tiles: tiles}
	reads := roperator.AppendRead(nil, c.x, boxes.rows(c.inputs))
	if c.projected {
		reads = roperator.AppendRead(nil, c.x, boxes.gates(c.gates))
	}
	reads = roperator.AppendRead(reads, c.h, boxes.rows(c.hidden))
	var writes []roperator.Access
	for _, v := range []roperator.View{c.state, c.gate} {
		if v.Buf != nil {
			reads = roperator.AppendRead(reads, v, boxes.slice)
		}
	}
	if c.lens.Buf != nil {
		reads = roperator.AppendRead(reads, c.lens, boxes.entries)
		if c.kind != schema.CellGRUGates {
			reads = roperator.AppendRead(reads, c.previous(), boxes.slice)
		}
	}
	for _, v := range []roperator.View{c.out0, c.out1, c.y} {
		if v.Buf != nil {
			writes = append(writes, roperator.Access{View: v, Box: boxes.slice})
		}
	}
	mb := float64(min(s.MB, c.batch))
	return &roperator.Candidate{
		Inst: b.Instance("recurrent_cell", values...), Tasks: int(tiles * blocks),
		Args: cellArgs(b, c, s, tiles, actArgs), Reads: reads, Writes: writes,
		Work: roperator.Work{
			Flops:      2*mb*float64(s.BlockElems(k)) + 40*mb*float64(s.Columns()),
			ConstBytes: c.r.Bytes(float64(s.BlockElems(k))),
			ReadBytes:  c.x.Bytes(mb * float64(k+2*units+c.projections()*units)),
			WriteBytes: c.out0.Bytes(mb * float64(units) * float64(len(writes))),
		},
	}
}

// projections is how many columns of a projected x are added up for one unit.
func (c *cell) projections() int64 {
	if c.projected {
		return c.gates
	}
	return 0
}

// previous is the h that a unit keeps after the end of its sequence.
func (c *cell) previous() roperator.View {
	if c.kind == schema.CellGRULinear || c.kind == schema.CellGRUState {
		return c.state
	}
	return c.h
}

func cellArgs(b *build.Builder, c *cell, s gemv.Shape, tiles int64, act []rkernels.Struct) []rkernels.Field {
	w, bias := packCell(b, c, s, element), packCellBias(b, c, s)
	optional := func(v roperator.View) rkernels.Ref {
		if v.Buf == nil {
			return bias.Ref()
		}
		return v.Ref()
	}
	peep := roperator.View{}
	if c.peep.Buf != nil && c.kind == schema.CellLSTM {
		peep = packPeepholes(b, c)
	}
	flag := func(v roperator.View) rkernels.Int {
		if v.Buf == nil {
			return 0
		}
		return 1
	}
	return []rkernels.Field{
		{Name: "x", Value: cellMatrix(c.x, c.x)}, {Name: "h", Value: cellMatrix(c.h, c.x)},
		{Name: "state", Value: cellMatrix(c.state, c.x)}, {Name: "gate", Value: cellMatrix(c.gate, c.x)},
		arg.Ref("w", w), arg.Ref("bias", bias), {Name: "peep", Value: optional(peep)},
		{Name: "lens", Value: optional(c.lens)},
		{Name: "out0", Value: cellMatrix(c.out0, c.x)}, {Name: "out1", Value: cellMatrix(c.out1, c.x)},
		{Name: "y", Value: cellMatrix(c.y, c.x)},
		arg.Int("batch", c.batch), arg.Int("inputs", c.inputs), arg.Int("hidden", c.hidden),
		arg.Int("gates", c.projections()),
		arg.Div("tiles", tiles), arg.Int("step", c.step),
		{Name: "has_peep", Value: flag(peep)}, {Name: "has_lens", Value: flag(c.lens)},
		{Name: "has_y", Value: flag(c.y)},
		arg.Int("input_forget", c.inputForget),
		{Name: "f", Value: act[0]}, {Name: "g", Value: act[1]}, {Name: "act_h", Value: act[2]},
	}
}

// cellMatrix is a view [batch][unit] as an rk::CellMatrix. An absent view refers to standIn, which is not read.
func cellMatrix(v, standIn roperator.View) rkernels.Struct {
	if v.Buf == nil {
		return rkernels.Struct{arg.Ref("ref", standIn), arg.Int("row", 0), arg.Int("col", 0)}
	}
	return rkernels.Struct{arg.Ref("ref", v), arg.Int("row", v.Stride(0)), arg.Int("col", v.Stride(1))}
}

// cellBoxes maps the rTask numbers of a cell to boxes. An rTask has some rows of the batch and a slice of the units;
// slices are numbered fastest.
type cellBoxes struct{ batch, hidden, mb, units, tiles int64 }

func (at *cellBoxes) entries(task int, lo, hi []int64) {
	b0 := int64(task) / at.tiles * at.mb
	lo[0], hi[0] = b0, min(b0+at.mb, at.batch)
}

func (at *cellBoxes) slice(task int, lo, hi []int64) {
	at.entries(task, lo, hi)
	u0 := int64(task) % at.tiles * at.units
	lo[1], hi[1] = u0, min(u0+at.units, at.hidden)
}

// gates is the box of columns that hold n gates for each unit of the slice.
func (at *cellBoxes) gates(n int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		at.slice(task, lo, hi)
		lo[1], hi[1] = lo[1]*n, hi[1]*n
	}
}

// rows is the box of whole rows, of n elements each, of a matrix with which an rTask multiplies its weights.
func (at *cellBoxes) rows(n int64) func(task int, lo, hi []int64) {
	return func(task int, lo, hi []int64) {
		at.entries(task, lo, hi)
		lo[1], hi[1] = 0, n
	}
}
