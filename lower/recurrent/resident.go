package recurrent

import (
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

// stepBytes is how many bytes of weights the threads of an rTask load at a time: one load each.
const stepBytes = 256 * 16

// residentShapes are the rows of a slice that a lane owns (C), and the lanes that share a row (LK); the narrowest
// slices come first.
var residentShapes = []struct{ c, lk int64 }{
	{1, 32}, {1, 16}, {1, 8}, {2, 8}, {5, 16}, {4, 8},
}

// residentCell is a slice of a cell whose weights stay on chip.
type residentCell struct {
	gemv.Shape         // how the weights are packed
	regs, shared int64 // steps of k in registers and in shared memory
	units        int64
}

// residentCells lists the slices whose weights fit on chip, for a cell whose inputs have k values.
func residentCells(c *cell, k int64) []residentCell {
	rows := int64(len(cellRows[c.kind]))
	mb := int64(1)
	for mb < c.batch && mb < gemv.MostRows {
		mb *= 2
	}
	var out []residentCell
	for _, s := range residentShapes {
		r := residentCell{Shape: gemv.Shape{MB: mb, C: s.c, LK: s.lk, WK: 1}}
		if r.Columns()%rows != 0 {
			continue
		}
		r.units = r.Columns() / rows
		steps := build.CeilDiv(k, r.Depth())
		r.regs = min(steps, residentRegisters/(contraction.PerLoad(element)*s.c))
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
	for _, r := range residentCells(c, c.inputs+c.hidden) {
		out = append(out, residentCandidate(b, c, r))
	}
	return out
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

func residentCandidate(b *build.Builder, c *cell, r residentCell) *roperator.Candidate {
	rows := cellRows[c.kind]
	tiles, blocks := build.CeilDiv(c.hidden, r.units), build.CeilDiv(c.batch, r.MB)
	k := c.inputs + c.hidden
	values := []any{c.kind, r.MB, r.C, r.LK, r.regs, r.shared, c.has()}
	var actArgs []rkernels.Struct
	for _, e := range []*functor.Expr{c.f, c.g, c.act} {
		f, args := tails.Prologue(c.x.DType(), e)
		values, actArgs = append(values, f), append(actArgs, args)
	}
	at := cellBoxes{batch: c.batch, hidden: c.hidden, mb: r.MB, units: r.units, tiles: tiles}
	cand := &roperator.Candidate{Inst: b.Instance("recurrent_cell_resident", values...), Tasks: int(tiles * blocks)}
	read := func(v roperator.View, box func(task int, lo, hi []int64)) (roperator.Access, int) {
		n := len(cand.Reads)
		if cand.Reads = roperator.AppendRead(cand.Reads, v, box); len(cand.Reads) == n {
			return roperator.Access{View: v, Box: box}, -1
		}
		return cand.Reads[n], n
	}
	write := func(v roperator.View) (roperator.Access, int) {
		cand.Writes = append(cand.Writes, roperator.Access{View: v, Box: at.slice})
		return cand.Writes[len(cand.Writes)-1], len(cand.Writes) - 1
	}
	// x and h are the two parts of the rows that the product takes.
	in := stagedArea{end: r.MB * k}
	row := func(v roperator.View, n, first int64) {
		x, i := read(v, at.rows(n))
		in.staged = append(in.staged, roperator.Staged{Access: x, Index: i, At: first, Pitch: []int64{k, 1}})
	}
	slice := func(v roperator.View) int64 {
		x, i := read(v, at.slice)
		return in.matrix(x, i, r.MB, r.units)
	}
	var out stagedArea
	result := func(v roperator.View) int64 {
		x, i := write(v)
		return out.matrix(x, i, r.MB, r.units)
	}
	projection := roperator.View{}
	if c.projected {
		projection = c.x
		read(c.x, at.gates(c.gates))
	} else {
		row(c.x, c.inputs, 0)
	}
	row(c.h, c.hidden, c.inputs)
	var h0, gate, outR, y int64
	lstm := c.kind == schema.CellLSTM
	switch {
	case lstm:
		read(c.state, at.slice)
	case c.kind != schema.CellRNN:
		h0 = slice(c.state)
	}
	if c.gate.Buf != nil {
		gate = slice(c.gate)
	}
	if c.lens.Buf != nil {
		read(c.lens, at.entries)
	}
	out0 := result(c.out0)
	switch {
	case lstm:
		write(c.out1)
	case c.out1.Buf != nil:
		outR = result(c.out1)
	}
	if c.y.Buf != nil {
		y = result(c.y)
	}
	cand.Imports, cand.Exports = in.staged, out.staged

	w, bias := packCell(b, c, r.Shape), packCellBias(b, c, r.Shape)
	cand.Resident = w.Buf
	optional := func(v roperator.View) rkernels.Ref {
		if v.Buf == nil {
			return bias.Ref()
		}
		return v.Ref()
	}
	peep := roperator.View{}
	if c.peep.Buf != nil && lstm {
		peep = packPeepholes(b, c)
	}
	hasY := int64(0)
	if c.y.Buf != nil {
		hasY = 1
	}
	state, out1 := roperator.View{}, roperator.View{}
	if lstm {
		state, out1 = c.state, c.out1
	}
	cand.Args = []rkernels.Field{
		{Name: "state", Value: cellMatrix(state, bias)}, {Name: "out1", Value: cellMatrix(out1, bias)},
		{Name: "projection", Value: cellMatrix(projection, bias)},
		arg.Ref("w", w), arg.Ref("bias", bias), {Name: "peep", Value: optional(peep)}, {Name: "lens", Value: optional(c.lens)},
		arg.Int("x", 0), arg.Int("h0", h0), arg.Int("gate", gate),
		arg.Int("out0", out0), arg.Int("out_r", outR), arg.Int("y", y),
		arg.Int("batch", c.batch), arg.Int("inputs", c.inputs), arg.Int("hidden", c.hidden), arg.Int("gates", c.projections()),
		arg.Div("tiles", tiles), arg.Int("step", c.step), arg.Int("has_y", hasY),
		{Name: "f", Value: actArgs[0]}, {Name: "g", Value: actArgs[1]}, {Name: "act_h", Value: actArgs[2]},
	}
	mb := float64(min(r.MB, c.batch))
	columns := float64(r.units * int64(len(rows)))
	cand.Work = roperator.Work{
		Flops:      2*mb*float64(k)*columns + 40*mb*columns,
		ConstBytes: c.r.Bytes(float64(k) * columns),
		ReadBytes:  c.x.Bytes(mb * float64(k+2*r.units+c.projections()*r.units)),
		WriteBytes: c.out0.Bytes(mb * float64(r.units) * float64(len(cand.Writes))),
	}
	return cand
}
