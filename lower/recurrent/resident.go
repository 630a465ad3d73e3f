package recurrent

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/gemv"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// Limits of what an rTask of recurrent_cell_resident keeps on chip: weights in a thread's registers,
// beside which it needs about fifty for itself, and bytes of shared memory.
const (
	residentRegisters = 160
	residentShared    = 180 << 10
)

// loadRegisters is how many registers a load of 16 bytes fills.
const loadRegisters = 4

// stepBytes is how many bytes of weights the threads of an rTask load at a time: one load each.
const stepBytes = 256 * 16

// residentShapes are the rows of a slice that a lane owns (C), and the lanes that share a row (LK); the narrowest
// slices come first.
var residentShapes = []struct{ c, lk int64 }{
	{1, 32}, {1, 16}, {1, 8}, {2, 8}, {5, 16}, {4, 8},
}

// residentCell is a slice of a cell whose weights stay on chip.
type residentCell struct {
	gemv.Shape            // how the weights are packed
	weights      ir.DType // as what they are packed
	regs, shared int64    // steps of k in registers and in shared memory
	units        int64
}

// residentCells lists the slices whose weights, of the given type, fit on chip, for a cell whose inputs have k values.
func residentCells(c *cell, k int64, weights ir.DType) []residentCell {
	rows := int64(len(cellRows[c.kind]))
	mb := int64(1)
	for mb < c.batch && mb < gemv.MostRows {
		mb *= 2
	}
	var out []residentCell
	for _, s := range residentShapes {
		run := contraction.PerLoad(weights)
		r := residentCell{Shape: gemv.Shape{MB: mb, C: s.c, LK: s.lk, WK: 1, Run: run}, weights: weights}
		if r.Columns()%rows != 0 {
			continue
		}
		r.units = r.Columns() / rows
		steps := build.CeilDiv(k, r.Depth())
		r.regs = min(steps, residentRegisters/(loadRegisters*s.c))
		r.shared = steps - r.regs
		if mb*r.units > 256 || mb*s.c > 16 || r.shared*s.c*stepBytes > residentShared {
			continue
		}
		out = append(out, r)
	}
	return out
}

// residentCandidates are the candidates of a cell that keep their weights on chip. There are none for cells whose
// operands cannot go through the import area in quads.
func residentCandidates(b *build.Builder, c *cell) []*roperator.Candidate {
	if c.inputs%4 != 0 || c.hidden%4 != 0 || !c.stageable() {
		return nil
	}
	var out []*roperator.Candidate
	for _, d := range residentWeights(b, c) {
		for _, r := range residentCells(c, c.inputs+c.hidden, d) {
			out = append(out, residentCandidate(b, c, r))
		}
	}
	return out
}

// residentWeights are the types of weights on chip: float32, and that in which the precision stores values, of which
// twice as many fit, unless some weight is too large for it.
func residentWeights(b *build.Builder, c *cell) []ir.DType {
	d := b.Precision().Storage()
	if d == ir.Invalid || !b.Fits(c.r, d) || !c.projected && !b.Fits(c.w, d) {
		return []ir.DType{element}
	}
	return []ir.DType{element, d}
}

// stageable reports whether the rows of the cell's operands are contiguous.
func (c *cell) stageable() bool {
	for _, v := range []roperator.View{c.x, c.h, c.state, c.gate, c.out0, c.out1, c.y} {
		if v.Buf != nil && v.Shape[1] > 1 && v.Strides[1] != 1 {
			return false
		}
	}
	return true
}

// has tells what all steps of the cell have beside their gates, as bits (schema.CellHasPeep and those after it): one
// instance must fit them all. Whether y is asked for differs between steps, and is an argument.
func (c *cell) has() int64 {
	bits := int64(0)
	for _, x := range []struct {
		has bool
		bit int64
	}{
		{c.peep.Buf != nil && c.kind == schema.CellLSTM, schema.CellHasPeep},
		{c.lens.Buf != nil, schema.CellHasLens},
		{c.projected, schema.CellHasProjection},
		{c.inputForget != 0, schema.CellHasInputForget},
	} {
		if x.has {
			bits |= x.bit
		}
	}
	return bits
}

// stagedArea lays staged operands out one after another.
type stagedArea struct {
	staged []roperator.Staged
	end    int64
}

// matrix adds the box of a [rows][cols] matrix, and returns where it begins.
func (a *stagedArea) matrix(x roperator.Access, index int, rows, cols int64) int64 {
	at := a.end
	a.staged = append(a.staged, roperator.Staged{Access: x, Index: index, At: at, Pitch: []int64{cols, 1}})
	a.end = roperator.WholeQuads(a.end + rows*cols)
	return at
}

// residentLayout is a resident candidate in the making: where the executor brings the operands to, and takes the
// results from.
type residentLayout struct {
	c       *cell
	r       residentCell
	boxes   cellBoxes
	cand    *roperator.Candidate
	in, out stagedArea
	// Where operands begin in the import area, and results among the exports; 0 for absent ones.
	h0, gate, out0, outR, y int64
}

func residentCandidate(b *build.Builder, c *cell, r residentCell) *roperator.Candidate {
	tiles, blocks := build.CeilDiv(c.hidden, r.units), build.CeilDiv(c.batch, r.MB)
	values := []any{c.kind, r.MB, r.C, r.LK, r.regs, r.shared, c.has(), r.weights}
	var actArgs []rkernels.Struct
	for _, e := range []*functor.Expr{c.f, c.g, c.act} {
		f, args := tails.Prologue(c.x.DType(), e)
		values, actArgs = append(values, f), append(actArgs, args)
	}
	l := &residentLayout{
		c: c, r: r, boxes: cellBoxes{batch: c.batch, hidden: c.hidden, mb: r.MB, units: r.units, tiles: tiles},
		cand: &roperator.Candidate{Inst: b.Instance("recurrent_cell_resident", values...), Tasks: int(tiles * blocks)},
	}
	l.operands()
	l.results()
	l.cand.Imports, l.cand.Exports = l.in.staged, l.out.staged
	l.arguments(b, tiles, actArgs)
	k, mb := c.inputs+c.hidden, float64(min(r.MB, c.batch))
	columns := float64(r.units * int64(len(cellRows[c.kind])))
	conversions := 0.0 // of weights of 16 bits, in every step
	if r.weights != element {
		conversions = float64(k) * columns
	}
	l.cand.Work = roperator.Work{
		Flops:      2*mb*float64(k)*columns + conversions + 40*mb*columns,
		ConstBytes: float64(r.weights.Size()) * float64(k) * columns,
		ReadBytes:  c.x.Bytes(mb * float64(k+2*r.units+c.projections()*r.units)),
		WriteBytes: c.out0.Bytes(mb * float64(r.units) * float64(len(l.cand.Writes))),

		SharedBytes: float64(r.shared * r.C * stepBytes),
	}
	return l.cand
}

// isLSTM reports whether the kernel reads and writes the cell state itself, beside what the executor moves.
func (l *residentLayout) isLSTM() bool { return l.c.kind == schema.CellLSTM }

// read adds a read, and returns it with its index, -1 for constants.
func (l *residentLayout) read(v roperator.View, box func(task int, lo, hi []int64)) (roperator.Access, int) {
	n := len(l.cand.Reads)
	if l.cand.Reads = roperator.AppendRead(l.cand.Reads, v, box); len(l.cand.Reads) == n {
		return roperator.Access{View: v, Box: box}, -1
	}
	return l.cand.Reads[n], n
}

// row imports rows of n elements that the product takes, from column first on. They lie beside those of the other
// factor, so that a row of both is k long.
func (l *residentLayout) row(v roperator.View, n, first int64) {
	x, i := l.read(v, l.boxes.rows(n))
	pitch := []int64{l.c.inputs + l.c.hidden, 1}
	l.in.staged = append(l.in.staged, roperator.Staged{Access: x, Index: i, At: first, Pitch: pitch})
}

// slice imports the units of the rTask, and returns where they begin.
func (l *residentLayout) slice(v roperator.View) int64 {
	x, i := l.read(v, l.boxes.slice)
	return l.in.matrix(x, i, l.r.MB, l.r.units)
}

// operands adds all reads. Those that the executor does not move, the kernel reads itself.
func (l *residentLayout) operands() {
	c := l.c
	l.in.end = l.r.MB * (c.inputs + c.hidden)
	if c.projected {
		l.read(c.x, l.boxes.gates(c.gates))
	} else {
		l.row(c.x, c.inputs, 0)
	}
	l.row(c.h, c.hidden, c.inputs)
	switch {
	case l.isLSTM():
		l.read(c.state, l.boxes.slice)
	case c.kind != schema.CellRNN:
		l.h0 = l.slice(c.state)
	}
	if c.gate.Buf != nil {
		l.gate = l.slice(c.gate)
	}
	if c.lens.Buf != nil {
		l.read(c.lens, l.boxes.entries)
	}
}

// write adds a write of the units of the rTask, and returns it with its index.
func (l *residentLayout) write(v roperator.View) (roperator.Access, int) {
	l.cand.Writes = append(l.cand.Writes, roperator.Access{View: v, Box: l.boxes.slice})
	return l.cand.Writes[len(l.cand.Writes)-1], len(l.cand.Writes) - 1
}

// result exports the units of the rTask, and returns the number of the first.
func (l *residentLayout) result(v roperator.View) int64 {
	x, i := l.write(v)
	return l.out.matrix(x, i, l.r.MB, l.r.units)
}

// results adds all writes.
func (l *residentLayout) results() {
	c := l.c
	l.out0 = l.result(c.out0)
	switch {
	case l.isLSTM():
		l.write(c.out1)
	case c.out1.Buf != nil:
		l.outR = l.result(c.out1)
	}
	if c.y.Buf != nil {
		l.y = l.result(c.y)
	}
}

// arguments packs the weights and fills in the arguments.
func (l *residentLayout) arguments(b *build.Builder, tiles int64, act []rkernels.Struct) {
	c := l.c
	w, bias := packCell(b, c, l.r.Shape, l.r.weights), packCellBias(b, c, l.r.Shape)
	l.cand.Resident = w.Buf
	optional := func(v roperator.View) rkernels.Ref {
		if v.Buf == nil {
			return bias.Ref()
		}
		return v.Ref()
	}
	var projection, peep, state, out1 roperator.View
	if c.projected {
		projection = c.x
	}
	if l.isLSTM() {
		state, out1 = c.state, c.out1
		if c.peep.Buf != nil {
			peep = packPeepholes(b, c)
		}
	}
	hasY := int64(0)
	if c.y.Buf != nil {
		hasY = 1
	}
	l.cand.Args = []rkernels.Field{
		{Name: "state", Value: cellMatrix(state, bias)}, {Name: "out1", Value: cellMatrix(out1, bias)},
		{Name: "projection", Value: cellMatrix(projection, bias)},
		arg.Ref("w", w), arg.Ref("bias", bias), {Name: "peep", Value: optional(peep)},
		{Name: "lens", Value: optional(c.lens)},
		arg.Int("x", 0), arg.Int("h0", l.h0), arg.Int("gate", l.gate),
		arg.Int("out0", l.out0), arg.Int("out_r", l.outR), arg.Int("y", l.y),
		arg.Int("batch", c.batch), arg.Int("inputs", c.inputs), arg.Int("hidden", c.hidden),
		arg.Int("gates", c.projections()),
		arg.Div("tiles", tiles), arg.Int("step", c.step), arg.Int("has_y", hasY),
		{Name: "f", Value: act[0]}, {Name: "g", Value: act[1]}, {Name: "act_h", Value: act[2]},
	}
}
