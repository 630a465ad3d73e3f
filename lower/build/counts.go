package build

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/roperator"
)

// Extents that the device finds. What makes one tells the Builder where it lies, and each rOperator that comes after it
// and has an axis with that extent reads it.

// AxesOf are the axes of a value of the graph.
func (b *Builder) AxesOf(v *ir.Value) []axes.Axis {
	if b.axes == nil {
		return axes.StaticAxes(b.Extents(v, ForTiles))
	}
	return b.axes.Of[v]
}

// Number is the axis that is as long as the number of an Extent says.
func (b *Builder) Number(n *ir.Node) axes.Axis {
	if b.axes == nil {
		return axes.StaticAxis(n.Int("extent", 0))
	}
	return b.axes.Number(n)
}

// Leaves reports whether the live elements of an axis are those that a WriteRows leaves, if it writes so many rows.
func (b *Builder) Leaves(n *ir.Node, rows int64, axis axes.Axis) bool {
	if b.axes == nil {
		return axis.Equal(axes.StaticAxis(n.Int("extent", 0) + rows))
	}
	a, ok := b.axes.Behind(n, rows)
	return ok && a.Equal(axis)
}

// CountAt is where the count of a counted operator has to be; symbol is that of the count. v is the value of the graph
// that the count is, nil if no operator computes with it. If an output of the program has an axis with that extent, the
// caller must be told, so the count is written to an output of its own. Where v has another place already, the count must
// be copied to report; otherwise report.Buf is nil.
func (b *Builder) CountAt(symbol string, v *ir.Value) (count, report roperator.View) {
	r := b.rangeOf(symbol)
	reported := r >= 0 && slices.ContainsFunc(b.graph.Outputs, func(p roperator.Port) bool {
		return slices.ContainsFunc(p.Axes, func(a axes.Axis) bool { return a.Has(r) })
	})
	switch {
	case v != nil && b.HasHome(v):
		count = b.Out(v)
	case reported:
		count = b.reportCount(symbol, r)
	default:
		count = b.Temp("count", ir.Int64, []int64{1})
	}
	if v != nil {
		b.Bind(v, count)
		if reported && b.HasHome(v) {
			report = b.reportCount(symbol, r)
		}
	}
	if r >= 0 {
		b.counts[r] = count
	}
	return count, report
}

// reportCount adds the output of the program in which it tells callers the extent of range r.
func (b *Builder) reportCount(symbol string, r int) roperator.View {
	dims := []int64{1}
	buf := b.NewBuffer(symbol, roperator.Output, ir.Int64, dims)
	buf.Index = len(b.graph.Outputs)
	b.graph.Outputs = append(b.graph.Outputs, roperator.Port{Name: symbol, DType: ir.Int64, Dims: dims, Buffer: buf.ID,
		Counts: r + 1})
	return roperator.Contiguous(buf, dims)
}

// Required adds an output of the program, one int64 that its caller does not see. A run in which it is not 0 fails with
// the message.
func (b *Builder) Required(message string) roperator.View {
	dims := []int64{1}
	buf := b.NewBuffer(message, roperator.Output, ir.Int64, dims)
	buf.Index = len(b.graph.Outputs)
	b.graph.Outputs = append(b.graph.Outputs, roperator.Port{Name: fmt.Sprintf("required %d", buf.Index), DType: ir.Int64,
		Dims: dims, Buffer: buf.ID, Requires: message})
	return roperator.Contiguous(buf, dims)
}

// rangeOf is the number of the range that the symbol names, -1 where extents are the same in all runs.
func (b *Builder) rangeOf(symbol string) int {
	return slices.IndexFunc(b.graph.Ranges, func(r axes.Range) bool { return r.Name == symbol })
}

// readCounts lets a candidate read the counts that are extents of axes of what it writes, or that its rKernel is told.
func (b *Builder) readCounts(c *roperator.Candidate) {
	if len(b.counts) == 0 {
		return
	}
	var used []int
	note := func(a axes.Axis) {
		for _, f := range a {
			if f.Symbol != axes.Static && !slices.Contains(used, f.Symbol) {
				used = append(used, f.Symbol)
			}
		}
	}
	for _, w := range c.Writes {
		note(w.View.Buf.Factors)
	}
	for _, l := range c.Live {
		note(l.Axis)
	}
	slices.Sort(used)
	c.Reads = slices.Clip(c.Reads)
	for _, r := range used {
		count, ok := b.counts[r]
		if !ok || slices.ContainsFunc(c.Writes, func(w roperator.Access) bool { return w.View.Buf == count.Buf }) {
			continue // of the caller, or its own
		}
		c.Counts = append(slices.Clip(c.Counts), roperator.Count{Range: r, View: count})
		c.Reads = roperator.AppendRead(c.Reads, count, nil)
	}
}
