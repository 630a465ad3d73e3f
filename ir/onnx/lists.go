package onnx

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// Graphs have tensors only. While a model is read, the name of a sequence stands for a value that no node defines, and
// importer.lists has the values of its tensors: operators on sequences choose among values, and add few nodes or none.
// So it must be known how many tensors a sequence has. Of one that is an input, Options.Dims says it; one that is an
// output becomes as many outputs (lists_ports.go). Loops that change sequences are written out turn by turn, and of two
// branches that give sequences, each tensor is an output (lists_control.go).
//
// An optional value that holds something is that tensor or sequence itself, since it is known while the model is read
// whether it does.

// list is what the name of a sequence, or of an optional value that holds nothing, stands for.
type list struct {
	items []*ir.Value
	empty bool // an optional value that holds nothing
}

// sequenceWhy is why operators that make sequences are in no graph.
const sequenceWhy = "the tensors of a sequence are known while the model is read"

// listOps are the operators whose inputs may be sequences; If and Loop may have them too.
var listOps = []string{
	"ConcatFromSequence", "Identity", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt",
	"SequenceConstruct", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap",
}

// takesLists reports an error if a node has an input that is a sequence, and its operator takes none.
func (s *scope) takesLists(p *place, n *ir.Node) bool {
	if p.domain == "" && slices.Contains(listOps, n.Op) {
		return true
	}
	for i, v := range n.Inputs {
		if s.im.lists[v] != nil {
			p.report("unsupported-dtype", fmt.Sprintf("input %d", i), "", errDType{"sequence"}.Error())
			return false
		}
	}
	return true
}

// known are the elements of v, a list of a few integers, if they are known.
func (s *scope) known(v *ir.Value) ([]int64, bool) {
	if v == nil {
		return nil, false
	}
	if v.Const != nil {
		return ir.KnownElems(v)
	}
	s.b.infer()
	if x, ok := ir.KnownElems(v); ok {
		return x, ok
	}
	w := &cone{seen: map[*ir.Node]bool{}}
	w.add(v)
	if len(w.nodes) > mostKnown {
		return nil, false
	}
	inferNodes(w.nodes)
	return ir.KnownElems(v)
}

// mostKnown bounds how many nodes are inferred again to find what a number is.
const mostKnown = 256

// cone is the nodes from which a value is computed, in topological order. Of tensors whose shape is read no more is
// needed than that.
type cone struct {
	nodes []*ir.Node
	seen  map[*ir.Node]bool
}

func (w *cone) add(v *ir.Value) {
	if v == nil || v.Def == nil || w.seen[v.Def] || len(w.nodes) > mostKnown {
		return
	}
	w.seen[v.Def] = true
	if !v.Def.Is("Shape") && !v.Def.Is("Size") {
		for _, in := range v.Def.Inputs {
			w.add(in)
		}
	}
	w.nodes = append(w.nodes, v.Def)
}

// alias makes out another name of v, by an Identity if v is a tensor.
func (s *scope) alias(p *place, v, out *ir.Value) {
	if out == nil {
		return
	}
	if l := s.im.lists[v]; l != nil {
		s.im.lists[out] = l
		return
	}
	s.emit(&ir.Node{Op: "Identity", Name: p.name, Inputs: []*ir.Value{v}, Outputs: []*ir.Value{out}, Origins: p.origin()})
}

// listInput is the sequence that is input i.
func (c *rewriting) listInput(i int) ([]*ir.Value, bool) {
	v := c.n.Input(i)
	l := c.s.im.lists[v]
	switch {
	case v != nil && c.s.im.poisoned[v]:
		c.refused = true // its error has been reported
	case l == nil || l.empty:
		c.refuse("bad-type", fmt.Sprintf("input %d", i), "", "it is no sequence")
	default:
		return l.items, true
	}
	return nil, false
}

// giveList makes the node's output a sequence of these tensors.
func (c *rewriting) giveList(items []*ir.Value) {
	for _, v := range items {
		if v == nil || c.s.im.lists[v] != nil {
			c.refuse("bad-type", "", "", "an element of the sequence is absent, or no tensor")
			return
		}
	}
	if c.s.im.listed += len(items); c.s.im.listed > mostListed {
		c.refuse("function-too-large", "", "", "the sequences of the model have too many tensors")
		return
	}
	if out := c.n.Output(0); out != nil {
		c.s.im.lists[out] = &list{items: items}
	}
	c.dropped = true
}

// mostListed bounds how many tensors all sequences of a model have together.
const mostListed = 1 << 24

// placeIn is the place in a list of n that input i says; most is the largest that is allowed.
func (c *rewriting) placeIn(i, n, most int) (int, bool) {
	at, ok := c.s.known(c.n.Input(i))
	if !ok || len(at) != 1 {
		c.refuse("not-constant", fmt.Sprintf("input %d (position)", i), "", "the position in a sequence must be known")
		return 0, false
	}
	if at[0] < -int64(n) || at[0] > int64(most) {
		c.refuse("bad-value", fmt.Sprintf("input %d (position)", i), "", "the sequence has %d tensors, and none at %d", n, at[0])
		return 0, false
	}
	if at[0] < 0 {
		at[0] += int64(n)
	}
	return int(at[0]), true
}

func sequenceEmpty(c *rewriting) { c.giveList(nil) }

func sequenceConstruct(c *rewriting) { c.giveList(c.n.Inputs) }

func sequenceLength(c *rewriting) {
	if items, ok := c.listInput(0); ok {
		c.finish(c.int64("length", int64(len(items))))
	}
}

// sequenceAt chooses a tensor. If the position is not known, and all have one shape, a run chooses.
func sequenceAt(c *rewriting) {
	items, ok := c.listInput(0)
	if !ok {
		return
	}
	if _, known := c.s.known(c.n.Input(1)); !known && c.n.Input(1) != nil && c.alike(items) {
		c.finish(c.emit("Gather", axisAttr(0), c.joined(items, 0, true), c.reshape(c.n.Input(1), []int64{}...)))
		return
	}
	if at, ok := c.placeIn(1, len(items), len(items)-1); ok {
		c.finish(items[at])
	}
}

// alike reports whether the tensors have one known shape.
func (c *rewriting) alike(items []*ir.Value) bool {
	for _, v := range items {
		shape := c.inferredShape(v)
		if _, known := shape.Consts(); shape == nil || !known || !shape.Equal(c.inferredShape(items[0])) {
			return false
		}
	}
	return len(items) > 0
}

func sequenceInsert(c *rewriting) {
	items, ok := c.listInput(0)
	if !ok || !c.arity(2, 3) {
		return
	}
	at := len(items)
	if c.n.Input(2) != nil {
		if at, ok = c.placeIn(2, len(items), len(items)); !ok {
			return
		}
	}
	c.giveList(slices.Insert(slices.Clone(items), at, c.n.Input(1)))
}

func sequenceErase(c *rewriting) {
	items, ok := c.listInput(0)
	if !ok {
		return
	}
	at := len(items) - 1
	if c.n.Input(1) != nil || len(items) == 0 {
		if at, ok = c.placeIn(1, len(items), len(items)-1); !ok {
			return
		}
	}
	c.giveList(slices.Delete(slices.Clone(items), at, at+1))
}

func concatFromSequence(c *rewriting) {
	items, ok := c.listInput(0)
	if !ok {
		return
	}
	if len(items) == 0 {
		c.refuse("bad-value", "input 0", "", "the sequence is empty")
		return
	}
	if _, ok := c.n.Attrs["axis"]; !ok {
		c.refuse("bad-attribute", "attribute axis", "", "the attribute is absent, the operator needs it")
		return
	}
	axis := c.takeInt("axis", 0)
	c.finish(c.joined(items, axis, c.takeInt("new_axis", 0) != 0))
}

// joined are the tensors one behind the other along an axis, a new one or one that they have.
func (c *rewriting) joined(items []*ir.Value, axis int64, fresh bool) *ir.Value {
	if fresh {
		items = slices.Clone(items)
		for i, v := range items {
			items[i] = c.unsqueeze(v, axis)
		}
	}
	return c.concat(axis, items...)
}

// splitToSequence divides a tensor along an axis: into parts of one extent, of several, or of extent 1.
func splitToSequence(c *rewriting) {
	if !c.arity(1, 2) {
		return
	}
	x, axis := c.n.Input(0), c.takeInt("axis", 0)
	keep := c.takeInt("keepdims", 1) != 0
	shape, ok := c.shapeOf(x)
	if !ok {
		return
	}
	if at := axis + int64(len(shape)); axis < 0 {
		axis = at
	}
	if axis < 0 || axis >= int64(len(shape)) {
		c.refuse("bad-attribute", "attribute axis", "", "the input has rank %d, and no axis %d", len(shape), axis)
		return
	}
	parts, ok := c.parts(shape[axis])
	if !ok || !c.s.withinBudget(c.p, len(parts)) {
		c.refused = true
		return
	}
	items := make([]*ir.Value, len(parts))
	begin := int64(0)
	for i, n := range parts {
		items[i] = c.slice(x, axis, begin, begin+n)
		if begin += n; !keep && c.n.Input(1) == nil {
			items[i] = c.squeeze(items[i], axis)
		}
	}
	c.giveList(items)
}

// mostParts bounds how many tensors SplitToSequence makes.
const mostParts = 1 << 16

// parts are the extents into which SplitToSequence divides an axis.
func (c *rewriting) parts(extent ir.Dim) ([]int64, bool) {
	n, ok := extent.Const()
	size := int64(1)
	if c.n.Input(1) != nil {
		split, known := c.s.known(c.n.Input(1))
		rank := c.inferredShape(c.n.Input(1))
		switch {
		case !known || rank == nil:
			c.refuse("not-constant", "input 1 (split)", "", "it must be known into which parts the tensor is divided")
			return nil, false
		case len(rank) > 0 && slices.ContainsFunc(split, func(n int64) bool { return n < 0 }):
			c.refuse("bad-value", "input 1 (split)", "", "a part has a negative extent: %v", split)
			return nil, false
		case len(rank) > 0:
			return split, true
		}
		size = split[0]
	}
	switch {
	case !ok:
		c.later("unknown-extent", "the extent of the axis that is divided cannot be inferred")
	case size < 1 || n/size > mostParts:
		c.refuse("bad-value", "input 1 (split)", "", "%d elements cannot be divided into parts of %d", n, size)
	}
	if c.refused {
		return nil, false
	}
	var out []int64
	for ; n > 0; n -= size {
		out = append(out, min(size, n))
	}
	return out, true
}

// optional is what it holds, if it holds something.
func optional(c *rewriting) {
	v := c.n.Input(0)
	switch out := c.n.Output(0); {
	case out == nil:
	case v == nil:
		c.s.im.lists[out] = &list{empty: true}
	default:
		c.s.alias(c.p, v, out)
	}
	c.dropped = true
}

func optionalHasElement(c *rewriting) {
	l := c.s.im.lists[c.n.Input(0)]
	has := c.n.Input(0) != nil && (l == nil || !l.empty)
	c.finish(c.constant("has", ir.FromSlice(ir.Bool, []bool{has})))
}

func optionalGetElement(c *rewriting) {
	v := c.n.Input(0)
	if l := c.s.im.lists[v]; v == nil || l != nil && l.empty {
		c.refuse("bad-value", "input 0", "", "the optional value holds nothing")
		return
	}
	c.s.alias(c.p, v, c.n.Output(0))
	c.dropped = true
}

// sequenceIdentity gives a sequence another name.
func sequenceIdentity(c *rewriting) {
	if c.s.im.lists[c.n.Input(0)] != nil {
		c.s.alias(c.p, c.n.Input(0), c.n.Output(0))
		c.dropped = true
	}
}

// elementType is the type of the tensors of a sequence, and whether pb is that of a sequence. An optional type is the
// one of what it may hold.
func elementType(pb *onnxpb.TypeProto) (*onnxpb.TypeProto, bool) {
	pb = heldType(pb)
	if t, ok := pb.GetValue().(*onnxpb.TypeProto_SequenceType); ok {
		return t.SequenceType.GetElemType(), true
	}
	return pb, false
}

func heldType(pb *onnxpb.TypeProto) *onnxpb.TypeProto {
	if t, ok := pb.GetValue().(*onnxpb.TypeProto_OptionalType); ok {
		return t.OptionalType.GetElemType()
	}
	return pb
}
