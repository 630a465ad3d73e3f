package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// storeChannelsLast decides which values are stored with their channels, dim 1, innermost. Convolutions on tensor cores
// read and write such values in pieces of 16 bytes, while in row-major order the elements that a product needs are far
// from each other. Depthwise convolutions read and write them so in any arithmetic; other convolutions of scalar
// arithmetic want rows of positions. Nothing is converted: each value has one order, and an operator whose operands
// have different ones reads some of them across.
//
// Values that elementwise operators, pools and concatenations connect get the same order. For each such set the bytes
// that operators read or write with advantage in channels-last order are weighed against those that they read or write
// with disadvantage:
//
//	Conv ─▶ %a ─▶ Relu ─▶ %b ─▶ MaxPool ─▶ %c ─▶ Conv     %a, %b and %c are one set, both Convs are for it
//
// Requires: the last form of the graph. Leaves: ir.Value.Order set on results that lowering is free to place.
func storeChannelsLast(c *Context, g *ir.Graph) (bool, error) {
	o := newOrderer(c, g)
	for _, n := range g.Nodes {
		o.join(n)
	}
	for _, n := range g.Nodes {
		if constantShapes(n) {
			o.weigh(n)
		}
	}
	changed := false
	for _, v := range o.free {
		if o.gain[o.set(v)] > 0 && v.Order == nil {
			v.Order = channelsLast(len(v.Shape))
			changed = true
		}
	}
	return changed, nil
}

// channelsLast is the order of a value with so many dims whose dim 1 is innermost.
func channelsLast(rank int) []int {
	order := []int{0}
	for d := 2; d < rank; d++ {
		order = append(order, d)
	}
	return append(order, 1)
}

// orderer collects what speaks for and against storing values with their channels last.
type orderer struct {
	opts   *Options
	uses   map[*ir.Value][]ir.Use
	free   []*ir.Value             // results whose place lowering may choose, in the order of the graph
	isFree map[*ir.Value]bool      // the same
	next   map[*ir.Value]*ir.Value // towards the value that stands for a set (union-find)
	gain   map[*ir.Value]float64   // of each set, in bytes, by the value that stands for it
}

func newOrderer(c *Context, g *ir.Graph) *orderer {
	o := &orderer{opts: &c.Opts, uses: c.usesIn(g), isFree: map[*ir.Value]bool{}, next: map[*ir.Value]*ir.Value{},
		gain: map[*ir.Value]float64{}}
	for _, n := range g.Nodes {
		for _, v := range n.Outputs {
			if v != nil && isImages(v) && constantShapes(n) && orderRole(n) != fixedOrder &&
				!slices.Contains(g.Outputs, v) {
				o.free = append(o.free, v)
				o.isFree[v] = true
			}
		}
	}
	return o
}

// isImages reports whether the order of v's dims makes a difference: v has several channels and several positions.
func isImages(v *ir.Value) bool {
	dims, ok := v.Shape.Consts()
	return ok && len(dims) >= 3 && (v.DType.IsFloat() && v.DType.Size() <= 4 || isByte(v.DType)) && dims[1] > 1 &&
		ir.Count(dims[2:]) > 1
}

func (o *orderer) set(v *ir.Value) *ir.Value {
	for o.next[v] != nil {
		v = o.next[v]
	}
	return v
}

// role says what an operator does with the order of its operands and results.
type role int

const (
	fixedOrder role = iota // it wants row-major operands, and its results are row-major
	sameOrder              // it serves any order, provided that all its images have the same
	convOrder              // a convolution: its result has the order of its epilogue's operands
)

var orderRoles = map[string]role{
	"Conv": convOrder, "ConvTranspose": convOrder, "IntegerConv": convOrder,
	"map": sameOrder, "MaxPool": sameOrder, "AveragePool": sameOrder, "Concat": sameOrder, "SqueezeExcite": sameOrder,
}

// orderRole looks up what n carries out: elementwise operators, which go by the name map, or its anchor.
func orderRole(n *ir.Node) role {
	switch {
	case n.IsInternal("Fused"):
		return orderRoles[n.Attrs["anchor"].S]
	case isElementwise(n):
		return orderRoles["map"]
	}
	return orderRoles[n.Op]
}

// join connects the values that must have one order for n to serve them well.
func (o *orderer) join(n *ir.Node) {
	r := orderRole(n)
	if r == fixedOrder {
		return
	}
	var first *ir.Value
	for _, v := range append(slices.Clone(n.Outputs), n.Inputs...) {
		if v == nil || !o.isFree[v] || r == convOrder && !v.Shape.Equal(n.Outputs[0].Shape) {
			continue
		}
		if first == nil {
			first = v
		} else if a, b := o.set(first), o.set(v); a != b {
			o.next[b] = a
		}
	}
}

// weigh adds what n's reads and writes gain.
func (o *orderer) weigh(n *ir.Node) {
	switch orderRole(n) {
	case convOrder:
		o.weighConv(n)
	case sameOrder:
		for _, v := range n.Inputs { // the others, which are row-major whatever is decided
			if v != nil && isImages(v) && !o.isFree[v] && v.Const == nil {
				for _, w := range n.Outputs {
					o.add(w, -bytesOf(v)*storedFor(v))
				}
			}
		}
	case fixedOrder:
		if flattened(n) != nil && weightsOf(o.uses, n.Outputs[0]) != nil {
			return // the product takes either order (flattenAsStored)
		}
		for _, v := range n.Inputs {
			if v != nil && o.isFree[v] {
				o.add(v, readGain(n, v))
			}
		}
	}
}

func (o *orderer) add(v *ir.Value, bytes float64) {
	if v != nil && o.isFree[v] {
		o.gain[o.set(v)] += bytes
	}
}

func bytesOf(v *ir.Value) float64 {
	return float64(ir.Count(v.Shape.MustConsts())) * float64(v.DType.Size())
}

// storedFor is 1 for values in row-major order, and -1 for those whose channels are innermost already: windows such as
// the transposed result of a matrix product.
func storedFor(v *ir.Value) float64 {
	if v.Def != nil && v.Def.IsInternal("View") && ir.ViewOf(v.Def).Strides[1] == 1 {
		return -1
	}
	return 1
}

// readGain is what an operator that is no convolution gains, in bytes, if its operand v has its channels last.
func readGain(n *ir.Node, v *ir.Value) float64 {
	switch a := anchorOf(n); {
	case a.IsInternal("View"):
		return viewGain(ir.ViewOf(a), v)
	case a.Is("GlobalAveragePool") || a.Is("GlobalMaxPool") || a.Is("ReduceMean"):
		return 0 // reductions over positions read lines of channels as well as lines of positions
	}
	return -bytesOf(v)
}

// viewGain is the gain of reading v through a window. One that a copy would have to make loses; one that makes rows of
// channels wins as much, since operators such as LayerNormalization would go across the others.
func viewGain(w ir.Strided, v *ir.Value) float64 {
	stored := ir.Dense(v.Shape.MustConsts())
	step := int64(1)
	order := channelsLast(len(stored.Shape))
	for i := len(order) - 1; i >= 0; i-- {
		stored.Strides[order[i]] = step
		step *= stored.Shape[order[i]]
	}
	through, ok := w.Compose(stored)
	switch {
	case !ok:
		return -2 * bytesOf(v)
	case through.IsDense():
		return 2 * bytesOf(v)
	}
	return 0
}

// weighConv adds what a convolution gains by reading its input and writing its result.
func (o *orderer) weighConv(n *ir.Node) {
	a := anchorOf(n)
	x, out := dataOf(n, a), n.Outputs[0]
	groups, channels := a.Int("group", 1), x.Shape.MustConsts()[1]
	inC, outC := channels/groups, out.Shape.MustConsts()[1]/groups
	const leastTile, fewest = 16, 4   // output channels of a group worth a tile; channels that a thread has
	run := int64(16 / x.DType.Size()) // channels that are copied at a time
	few := outC < leastTile && a.Is("Conv") && x.DType.IsFloat() && fillsFragments(groups, inC, outC, run)
	rows := (outC >= leastTile || few) && o.onTensorCores(n)
	if depthwise := a.Is("Conv") && inC == 1 && outC == 1 && len(x.Shape) == 4; depthwise {
		inC, rows, run = channels, channels%fewest == 0, fewest
	}
	if !rows || !isConstant(n, a.Inputs[1]) {
		o.add(x, -bytesOf(x))
		o.add(out, -bytesOf(out))
		return
	}
	o.add(out, bytesOf(out))
	if (inC%run == 0 || few) && a.Op != "ConvTranspose" {
		o.add(x, bytesOf(x))
	} else {
		o.add(x, -bytesOf(x))
	}
}

// fillsFragments reports whether groups of so many channels fill the fragments of tensor cores, of eight output channels
// and runs of the input's, where not more than four of them are joined to one. conv_groups serves such groups.
func fillsFragments(groups, inC, outC, run int64) bool {
	const columns, mostJoined = 8, 4
	for joined := int64(1); groups > 1 && joined <= mostJoined; joined++ {
		if groups%joined == 0 && joined*inC%run == 0 && joined*outC%columns == 0 {
			return true
		}
	}
	return false
}

// onTensorCores reports whether n, a convolution that is not depthwise, multiplies on tensor cores.
func (o *orderer) onTensorCores(n *ir.Node) bool {
	return isByte(dataOf(n, anchorOf(n)).DType) || o.opts.ConvolvesOnTensorCores == nil ||
		o.opts.ConvolvesOnTensorCores(o.opts.Precision.Of(n))
}

// isConstant reports whether w, an input of the anchor of n, is a constant of the graph, or a cast of one.
func isConstant(n *ir.Node, w *ir.Value) bool {
	if cast := definedBy(w, "Cast"); cast != nil && n.IsInternal("Fused") {
		w = cast.Inputs[0]
	}
	v := outside(n, w)
	return v != nil && v.Const != nil
}

// dataOf is the value of the graph from which input 0 of the anchor of n is computed.
func dataOf(n, anchor *ir.Node) *ir.Value {
	v := anchor.Inputs[0]
	for v.Def != nil && n != anchor {
		v = v.Def.Inputs[0] // the prologue
	}
	return outside(n, v)
}

// outside is the value of the graph that v, an input of the body of n if that is fused, stands for. It is nil if there
// is none.
func outside(n *ir.Node, v *ir.Value) *ir.Value {
	if !n.IsInternal("Fused") {
		return v
	}
	for i, in := range n.Attrs["body"].G.Inputs {
		if in == v {
			return n.Inputs[i]
		}
	}
	return nil
}
