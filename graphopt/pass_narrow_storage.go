package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// narrowStorage stores what one operator hands to another, and the weights of contractions, in the 16-bit floats of the
// operators' precisions (Options.Precision). Operators still compute in float32: they widen what they load, and round
// what they store, by Cast nodes in Fused bodies. The operands of products are rounded too, so that tensor cores can
// multiply them.
//
//	%x ─▶ Fused(Conv, Relu) ─▶ %y      becomes      %x ─▶ Fused(Cast, Conv, Relu, Cast) ─▶ %y: float16
//
// A value is stored in 16 bits only if the operator that makes it and all that take it are of precisions with that
// storage. Where one of them is not, the value stays float32, and products of 16 bits round it when they load it.
//
// Inputs and outputs of the model keep their types. So do values that an operator takes which is neither rewritten in
// this way nor a mere move of elements: recurrent states, masks of attention, the scales of normalisations, and what
// cells read. Single numbers do, too. A value that is moved, by a view or Gather for example, has the type of the moved elements; a constant
// with numbers that are too large for 16 bits stays as it is.
//
// Requires: fused groups; every Fused node but compounds has one output. Leaves: the same operators, in Fused
// nodes where they need Cast nodes. It changes nothing if no precision stores values in 16 bits.
func narrowStorage(c *Context, g *ir.Graph) (bool, error) {
	halves := slices.ContainsFunc(c.Opts.Precision.Used(), func(p precision.Precision) bool {
		return p.Storage() != ir.Invalid
	})
	if !halves || g != c.Root {
		return false, nil
	}
	n := &narrowing{c: c, g: g, parent: map[*ir.Value]*ir.Value{}, wanted: map[*ir.Value]ir.DType{},
		copies: map[narrowConst]*ir.Value{}, fuser: newFuser(c, g)}
	n.pinInterface()
	for _, m := range g.Nodes {
		n.classify(m)
		n.pinSingle(m)
	}
	for _, m := range g.Nodes {
		if list := moves(m); list != nil {
			n.pinLarge(m, list)
		}
	}
	return n.rewrite(), nil
}

// narrowing decides for each value of float32 in which type it is stored. Values that moves connect are of one class,
// which has one type.
type narrowing struct {
	c      *Context
	g      *ir.Graph
	parent map[*ir.Value]*ir.Value // of the classes of values
	// wanted is the type that all operators want which make or take values of a class, by its representative: float32 if
	// they do not agree, ir.Invalid as long as there are none.
	wanted map[*ir.Value]ir.DType
	copies map[narrowConst]*ir.Value // constants in 16 bits; nil where a number is too large
	fuser  *fuser
}

// narrowConst is a constant and the type of its copy.
type narrowConst struct {
	v  *ir.Value
	to ir.DType
}

func (n *narrowing) find(v *ir.Value) *ir.Value {
	for n.parent[v] != nil {
		v = n.parent[v]
	}
	return v
}

// agreed is the type of a class of which one part wants d and another e.
func agreed(d, e ir.DType) ir.DType {
	switch {
	case d == ir.Invalid || d == e:
		return e
	case e == ir.Invalid:
		return d
	}
	return ir.Float32
}

func (n *narrowing) join(v, w *ir.Value) {
	v, w = n.find(v), n.find(w)
	if v != w {
		n.parent[v] = w
		n.wanted[w] = agreed(n.wanted[w], n.wanted[v])
	}
}

// want says that an operator wants values in type d.
func (n *narrowing) want(d ir.DType, list ...*ir.Value) {
	for _, v := range list {
		if v != nil && v.Const == nil {
			v = n.find(v)
			n.wanted[v] = agreed(n.wanted[v], d)
		}
	}
}

// pin keeps the type of values.
func (n *narrowing) pin(list ...*ir.Value) { n.want(ir.Float32, list...) }

// storage is the type that the precision of m stores values of float32 in.
func (n *narrowing) storage(m *ir.Node) ir.DType {
	if d := n.c.Opts.Precision.Of(m).Storage(); d != ir.Invalid {
		return d
	}
	return ir.Float32
}

// pinInterface keeps the types of the model's inputs and outputs, and of what control flow captures.
func (n *narrowing) pinInterface() {
	n.pin(n.g.Inputs...)
	n.pin(n.g.Outputs...)
	for _, m := range n.g.Nodes {
		if !m.IsInternal("Fused") {
			for _, sub := range m.Subgraphs() {
				n.pin(ir.Captured(sub)...)
			}
		}
	}
}

// pinSingle keeps the types of single numbers, such as scales: 16 bits of them save nothing, and would lose digits of
// whatever they are multiplied by.
func (n *narrowing) pinSingle(m *ir.Node) {
	for _, v := range m.Outputs {
		if v != nil && isOne(v.Shape) {
			n.pin(v)
		}
	}
}

// classify joins values, and says which types m wants them in.
func (n *narrowing) classify(m *ir.Node) {
	op := ir.LookupOp(m.Domain, m.Op)
	if list := moves(m); list != nil {
		n.classifyMove(m, list)
		return
	}
	if op != nil && op.Kind == ir.KindShape {
		return // only the shape of what it takes counts
	}
	if convertsTensors(m) { // operands that are not narrowed are constants
		n.want(n.storage(m), slices.Concat(m.Inputs, m.Outputs)...)
		return
	}
	anchor := anchorOf(m)
	if anchor == nil && len(m.Outputs) == 1 { // maps widen and round everything
		n.want(n.storage(m), slices.Concat(m.Inputs, m.Outputs)...)
		return
	}
	if anchor != nil {
		if list, _, ok := operands(anchor); ok && len(m.Outputs) == 1 {
			n.want(n.storage(m), slices.Concat(m.Inputs, m.Outputs)...)
			n.pinOthers(m, anchor, list)
			return
		}
	}
	n.pin(m.Inputs...)
	n.pin(m.Outputs...)
}

// classifyMove joins the values whose elements m moves. Those that it takes beside them stay as they are. A move stores
// what its neighbours store, unless a rule names it.
func (n *narrowing) classifyMove(m *ir.Node, list []*ir.Value) {
	in := map[*ir.Value]bool{}
	var first *ir.Value
	for _, v := range list {
		in[v] = true
		switch {
		case v == nil || v.DType != ir.Float32 || v.Const != nil:
		case first == nil:
			first = v
		default:
			n.join(first, v)
		}
	}
	if n.c.Opts.Precision.Names(m) {
		n.want(n.storage(m), first)
	}
	for _, v := range m.Inputs {
		if !in[v] {
			n.pin(v)
		}
	}
}

// pinLarge keeps the type of what m moves if that includes a constant with a number that is too large.
func (n *narrowing) pinLarge(m *ir.Node, list []*ir.Value) {
	to := n.stored(m.Outputs[0])
	for _, v := range list {
		if to != ir.Invalid && v != nil && v.DType == ir.Float32 && v.Const != nil && n.narrowed(v, to) == nil {
			n.pin(m.Outputs...)
		}
	}
}

// pinOthers pins the values that the anchor of m takes at other places than list.
func (n *narrowing) pinOthers(m, anchor *ir.Node, list []int) {
	taken := map[int]bool{}
	for _, i := range list {
		taken[i] = true
	}
	for i, v := range anchor.Inputs {
		if v == nil || taken[i] {
			continue
		}
		if m == anchor {
			n.pin(v)
		} else if k := slices.Index(m.Attrs["body"].G.Inputs, v); k >= 0 {
			n.pin(m.Inputs[k])
		}
	}
}

// stored is the 16-bit type of v from now on, ir.Invalid if v is a constant or keeps its type.
func (n *narrowing) stored(v *ir.Value) ir.DType {
	if v == nil || v.Const != nil || v.DType != ir.Float32 || v.Def == nil {
		return ir.Invalid
	}
	if d := n.wanted[n.find(v)]; d != ir.Float32 {
		return d
	}
	return ir.Invalid
}

// narrowed is a constant of float32 in type to, nil if a number is too large for that.
func (n *narrowing) narrowed(v *ir.Value, to ir.DType) *ir.Value {
	key := narrowConst{v, to}
	if w, ok := n.copies[key]; ok {
		return w
	}
	n.copies[key] = nil
	x := ir.Slice[float32](v.Const)
	bits, ok := make([]uint16, len(x)), true
	round, infinite := ir.ToFloat16, uint16(0x7c00)
	if to == ir.BFloat16 {
		round, infinite = ir.ToBFloat16, 0x7f80
	}
	for i, f := range x {
		bits[i] = round(f)
		ok = ok && (bits[i]&0x7fff != infinite || f-f != 0)
	}
	if ok {
		w := &ir.Value{Name: n.c.Name(v.Name), DType: to, Shape: v.Shape,
			Const: ir.FromSlice(to, bits, v.Const.Dims...)}
		n.g.Consts = append(n.g.Consts, w)
		n.copies[key] = w
	}
	return n.copies[key]
}

// rewrite gives values their new types and operators what they need to take and give them.
func (n *narrowing) rewrite() bool {
	narrow := map[*ir.Value]ir.DType{}
	for _, m := range n.g.Nodes {
		for _, v := range slices.Concat(m.Inputs, m.Outputs) {
			if d := n.stored(v); d != ir.Invalid {
				narrow[v] = d
			}
		}
	}
	changed := false
	for i, m := range n.g.Nodes {
		if moves(m) != nil {
			changed = n.retype(m, narrow) || changed
		} else if r := n.rewritten(m, narrow); r != nil {
			n.g.Nodes[i] = r
			changed = true
		}
	}
	for v, d := range narrow {
		v.DType = d
	}
	return changed
}

// rewritten is a Fused node that computes what m does out of narrow values and to narrow values, nil if m needs no
// change.
func (n *narrowing) rewritten(m *ir.Node, narrow map[*ir.Value]ir.DType) *ir.Node {
	anchor := anchorOf(m)
	var list []int
	products := false
	if anchor != nil && !convertsTensors(m) {
		var ok bool
		if list, products, ok = operands(anchor); !ok || len(m.Outputs) != 1 {
			return nil
		}
	}
	if anchor == nil && len(m.Outputs) != 1 {
		return nil
	}
	to := n.storage(m)
	products = products && computesIn32(anchor) && to != ir.Float32
	isNarrow := func(v *ir.Value) bool { return narrow[v] != ir.Invalid }
	if !products && !slices.ContainsFunc(slices.Concat(m.Inputs, m.Outputs), isNarrow) {
		return nil
	}
	if !m.IsInternal("Fused") {
		m = n.fuser.fusedNode(&fusion{nodes: []*ir.Node{m}, result: m.Outputs[0], anchor: anchor})
		keepIntegers(m)
	}
	b := &narrowBody{n: n, to: to, node: m, body: m.Attrs["body"].G, widened: map[*ir.Value]*ir.Value{}}
	b.rewrite(narrow, list, products)
	return m
}

// computesIn32 reports whether an anchor computes with float32.
func computesIn32(anchor *ir.Node) bool {
	return anchor.Inputs[0].DType == ir.Float32 && anchor.Outputs[0].DType == ir.Float32
}

// retype gives a move narrow constants where its result is narrow.
func (n *narrowing) retype(m *ir.Node, narrow map[*ir.Value]ir.DType) bool {
	to := narrow[m.Outputs[0]]
	if to == ir.Invalid {
		return false
	}
	list := map[*ir.Value]bool{}
	for _, v := range moves(m) {
		list[v] = true
	}
	for i, v := range m.Inputs {
		if v != nil && v.Const != nil && v.DType == ir.Float32 && list[v] {
			m.Inputs[i] = n.narrowed(v, to)
		}
	}
	return true
}
