package graphopt

import (
	"math"

	"github.com/rammerc/rammerc/ir"
)

// OpenExtents prepares a graph whose inputs have dims that only a run knows, each between the bounds that ranges has for
// its symbol, where binding the symbols alone would lose what depends on them. Behind it the symbols may be bound
// (BindExtents): what a run computes with an extent no longer follows from the extents that the graph has then.
//
//	%n = Shape(%past)[2]           %n = rammer.Extent() {of = "past"}, where the device computes with n
//	Concat(%past, %new)            rammer.Append(%past, %new), along an axis with such extents
//	Slice(%x, %n, %n+seq)          Gather(%x, Range(0, seq, 1) + rammer.Extent() {of = "past"})
//	Range(%n, %n+seq, 1)           Range(0, seq, 1) + rammer.Extent() {of = "past"}
//	Gather(%x, -1)                 Gather(%x, -1 + rammer.Extent() {of = "seq"}), along an axis of that extent
//
// changed says whether there was anything of the kind.
func OpenExtents(g *ir.Graph, ranges map[string]ir.Interval, opts Options) (changed bool, err error) {
	opts.After = nil
	open := func(c *Context, g *ir.Graph) (bool, error) {
		if g != c.Root {
			return false, nil
		}
		var err error
		changed, err = openExtents(c, g, ranges)
		return changed, err
	}
	return changed, runPasses(g, []Pass{
		{"dead-code", deadCode, "importers leave unused initializers and branches"},
		{"recognize-integers", recognizeIntegers, "folding would make floats of integers"},
		{"recognize-quantized", recognizeQuantized, "folding would make floats of quantised weights"},
		{"fold-constants", foldConstants, "bounds of slices and axes must be known"},
		{"inline-branches", inlineBranches, "exporters write conditions on extents that are constants in the whole range"},
		{"open-extents", open, "extents and what is computed from them are expressions of symbols"},
	}, opts)
}

// openExtents is the pass of OpenExtents.
func openExtents(c *Context, g *ir.Graph, ranges map[string]ir.Interval) (bool, error) {
	k := newExtentCounter(c, g)
	k.open = ranges
	for name, r := range ranges {
		k.most[name] = r.Hi
	}
	if err := k.allBranches(); err != nil {
		return true, err
	}
	for k.round(openers) {
		if err := k.settle(); err != nil {
			return true, err
		}
	}
	k.countValues()
	if !k.made {
		return false, nil
	}
	return true, k.settle()
}

// openers replace operators that take another part of their operand where an extent is another.
var openers = map[string]func(k *extentCounter, n *ir.Node) bool{
	"Concat": (*extentCounter).openConcat,
	"Slice":  (*extentCounter).openSlice,
	"Range":  (*extentCounter).openRange,
	"Gather": (*extentCounter).openGather,
}

// BindExtents gives the symbols of a graph behind OpenExtents one extent each.
func BindExtents(g *ir.Graph, extents map[string]int64) error {
	for _, n := range g.Nodes {
		if !n.IsInternal("Extent") {
			continue
		}
		d, err := ir.ParseDim(n.Attr("of").S)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		value, ok := d.Bind(extents).Const()
		if !ok {
			panic("BUG: no extent for " + d.String())
		}
		n.Attrs["extent"] = ir.IntAttr(value)
	}
	return ir.BindDims(g, extents).Err()
}

// ExtentSums are the sums among the extents of values, and among the numbers that a run computes with, of a graph behind
// OpenExtents: expressions of symbols that are neither numbers nor products.
func ExtentSums(g *ir.Graph) []ir.Dim {
	var out []ir.Dim
	seen := map[string]bool{}
	note := func(d ir.Dim) {
		terms, ok := d.Terms()
		if !ok || len(terms) < 2 || seen[d.String()] {
			return
		}
		seen[d.String()] = true
		out = append(out, d)
	}
	values := append([]*ir.Value{}, g.Inputs...)
	for _, n := range g.Nodes {
		for _, v := range n.Outputs {
			if v != nil {
				values = append(values, v)
			}
		}
		if n.IsInternal("Extent") {
			if d, err := ir.ParseDim(n.Attr("of").S); err == nil {
				note(d)
			}
		}
	}
	for _, v := range values {
		for _, d := range v.Shape {
			note(d)
		}
	}
	return out
}

// interval is what is known of a symbol.
func (k *extentCounter) interval(symbol string) (ir.Interval, bool) {
	i, ok := k.open[symbol]
	return i, ok
}

// decide simplifies d by the bounds of the symbols; ok is false unless a sum of products of them is left.
func (k *extentCounter) decide(d ir.Dim) (ir.Dim, bool) {
	d = d.Decided(k.interval)
	return d, k.known(d)
}

// isExtent reports whether d can be an extent: it is never negative, and not too large.
func (k *extentCounter) isExtent(d ir.Dim) bool {
	const largest = 1 << 30
	i := d.Bounds(k.interval)
	return i.Lo >= 0 && i.Hi <= largest
}

// extentOf is an int64[1] with the value of d in a run.
func (k *extentCounter) extentOf(n *ir.Node, d ir.Dim) *ir.Value {
	text := d.String()
	if v := k.told[text]; v != nil {
		return v
	}
	v := k.node(n, ir.InternalDomain, "Extent", ir.Attrs{"of": ir.StringAttr(text), "extent": ir.IntAttr(0)})
	k.told[text] = v
	return v
}

// shapeNumber is an int64[1] with the value of d that passes fold where the symbols have numbers: it is made of shapes
// of inputs.
func (k *extentCounter) shapeNumber(n *ir.Node, d ir.Dim) *ir.Value {
	terms, _ := d.Terms()
	var sum *ir.Value
	for _, t := range terms {
		product := k.ints(t.Coef)
		for _, s := range t.Symbols {
			product = k.op(n, "Mul", nil, product, k.inputExtent(n, s))
		}
		if sum == nil {
			sum = product
		} else {
			sum = k.op(n, "Add", nil, sum, product)
		}
	}
	if sum == nil {
		return k.ints(0)
	}
	return sum
}

// inputExtent is the extent of a symbol as that of a dim of an input, as passes may fold it.
func (k *extentCounter) inputExtent(n *ir.Node, symbol string) *ir.Value {
	for _, v := range k.g.Inputs {
		for axis, d := range v.Shape {
			if name, one := d.Symbol(); one && name == symbol {
				return k.op(n, "Gather", nil, k.op(n, "Shape", nil, v), k.ints(int64(axis)))
			}
		}
	}
	panic("BUG: no input has the dim " + symbol)
}

// toldSymbol is an int64[1] with the extent of a symbol in a run.
func (k *extentCounter) toldSymbol(n *ir.Node, symbol string) *ir.Value {
	for _, v := range k.g.Inputs {
		for _, d := range v.Shape {
			if name, one := d.Symbol(); one && name == symbol {
				return k.extentOf(n, d)
			}
		}
	}
	panic("BUG: no input has the dim " + symbol)
}

// upTo lists the numbers from 0 to d - 1.
func (k *extentCounter) upTo(n *ir.Node, d ir.Dim) *ir.Value {
	if count, ok := d.Const(); ok {
		list := make([]int64, max(count, 0))
		for i := range list {
			list[i] = int64(i)
		}
		return k.ints(list...)
	}
	key := d.String()
	if v := k.lists[key]; v != nil {
		return v
	}
	scalar := func(v *ir.Value) *ir.Value { return k.op(n, "Reshape", nil, v, k.ints()) }
	list := k.op(n, "Range", nil, scalar(k.ints(0)), scalar(k.shapeNumber(n, d)), scalar(k.ints(1)))
	k.lists[key] = list
	return list
}

// openConcat appends part by part, where the extents along the axis are those of a run.
func (k *extentCounter) openConcat(n *ir.Node) bool {
	axis := normalAxis(n.Int("axis", 0), len(n.Inputs[0].Shape))
	open := false
	for _, v := range n.Inputs {
		_, fixed := v.Shape[axis].Const()
		open = open || !fixed
	}
	if !open || len(n.Inputs) < 2 {
		return false
	}
	x := n.Inputs[0]
	for i, part := range n.Inputs[1:] {
		if i < len(n.Inputs)-2 {
			x = k.node(n, ir.InternalDomain, "Append", axisAttr(axis), x, part)
			continue
		}
		k.replace(n, "Append", axisAttr(axis), x, part)
		n.Domain = ir.InternalDomain
	}
	return true
}

// slicing is a slice along one axis, with bounds that are clamped to it.
type slicing struct {
	axis        int
	from, count ir.Dim
}

// openBound is element at of operand v of a Slice, clamped to the axis.
func (k *extentCounter) openBound(v *ir.Value, at int, extent ir.Dim) (d ir.Dim, ok bool) {
	if b, known := number(v, at); known {
		if d = ir.D(b); b >= math.MaxInt32 {
			return extent, true
		} else if b <= -math.MaxInt32 {
			return ir.D(0), true
		}
	} else if at < len(v.Elems) {
		d = v.Elems[at]
	} else {
		return d, false
	}
	switch i := d.Bounds(k.interval); {
	case i.Hi < 0:
		d = d.Add(extent)
	case i.Lo < 0:
		return d, false // it may be counted from either end
	}
	return k.decide(d.Max(ir.D(0)).Min(extent))
}

// openSlice gathers along the axes where the slice begins at another place in each run.
func (k *extentCounter) openSlice(n *ir.Node) bool {
	x, axes := n.Inputs[0], slicedAxes(n)
	var moved []slicing
	var kept []int
	for i, axis := range axes {
		from, okFrom := k.openBound(n.Inputs[1], i, x.Shape[axis])
		to, okTo := k.openBound(n.Inputs[2], i, x.Shape[axis])
		if _, fixed := from.Const(); fixed && okFrom {
			kept = append(kept, i)
			continue
		}
		step, ok := number(n.Input(4), i)
		count, okCount := k.decide(to.Sub(from).Max(ir.D(0)))
		if !okFrom || !okTo || !okCount || !ok || step != 1 {
			return false
		}
		moved = append(moved, slicing{axis, from, count})
	}
	if len(moved) == 0 {
		return false
	}
	if len(kept) > 0 {
		x = k.keptSlice(n, kept)
	}
	last := len(moved) - 1
	for i, s := range moved {
		places := k.op(n, "Add", nil, k.upTo(n, s.count), k.expression(n, s.from))
		if i < last {
			x = k.op(n, "Gather", axisAttr(s.axis), x, places)
		} else {
			k.replace(n, "Gather", axisAttr(s.axis), x, places)
		}
	}
	return true
}

// keptSlice slices along some of the axes of n as n does.
func (k *extentCounter) keptSlice(n *ir.Node, at []int) *ir.Value {
	in := []*ir.Value{n.Inputs[0]}
	axes := slicedAxes(n)
	list := make([]int64, len(at))
	for i, a := range at {
		list[i] = int64(a)
	}
	for port := 1; port < 5; port++ {
		switch v := n.Input(port); {
		case port == 3:
			named := make([]int64, len(at))
			for i, a := range at {
				named[i] = int64(axes[a])
			}
			in = append(in, k.ints(named...))
		case v == nil:
			steps := make([]int64, len(at))
			for i := range steps {
				steps[i] = 1
			}
			in = append(in, k.ints(steps...))
		default:
			in = append(in, k.op(n, "Gather", nil, k.int64s(n, v), k.ints(list...)))
		}
	}
	return k.op(n, "Slice", nil, in...)
}

// openRange counts from 0 on where the first number is an extent, and adds that.
func (k *extentCounter) openRange(n *ir.Node) bool {
	start, limit, step := n.Inputs[0], n.Inputs[1], n.Inputs[2]
	by, constant := number(step, 0)
	if !constant || by != 1 || len(start.Elems) != 1 || len(limit.Elems) == 0 && limit.Const == nil ||
		!start.DType.IsInt() {
		return false
	}
	from, okFrom := k.decide(start.Elems[0])
	last, okLast := k.openNumber(limit)
	count, ok := k.decide(last.Sub(from).Max(ir.D(0)))
	if _, fixed := from.Const(); fixed || !okFrom || !okLast || !ok {
		return false
	}
	list := k.op(n, "Add", nil, k.upTo(n, count), k.expression(n, from))
	k.replace(n, "Cast", ir.Attrs{"to": ir.IntAttr(start.DType.ONNX())}, list)
	return true
}

// openNumber is a number as an expression.
func (k *extentCounter) openNumber(v *ir.Value) (ir.Dim, bool) {
	if b, ok := number(v, 0); ok {
		return ir.D(b), true
	}
	if len(v.Elems) != 1 {
		return ir.Dim{}, false
	}
	return k.decide(v.Elems[0])
}

// openGather counts known indices from the end of an axis, where only a run knows the end.
func (k *extentCounter) openGather(n *ir.Node) bool {
	x, index := n.Inputs[0], n.Inputs[1]
	axis := normalAxis(n.Int("axis", 0), len(x.Shape))
	extent := x.Shape[axis]
	if _, fixed := extent.Const(); fixed || index.Const == nil {
		return false
	}
	places := ir.Slice[int64](convert(index.Const, ir.Int64))
	for _, p := range places {
		if p >= 0 || extent.Add(ir.D(p)).Bounds(k.interval).Lo < 0 {
			return false
		}
	}
	if len(places) == 0 {
		return false
	}
	at := k.op(n, "Add", nil, k.int64s(n, index), k.expression(n, extent))
	if len(index.Shape) == 0 {
		at = k.op(n, "Reshape", nil, at, k.ints())
	}
	k.replace(n, "Gather", axisAttr(axis), x, at)
	return true
}
