package roperator

import (
	"errors"
	"fmt"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
)

// Builder lowers one graph. Lowerings use it to look up and make views and to add rOperators.
type Builder struct {
	g      *Graph
	views  map[*ir.Value]View
	homes  map[*ir.Value]View // where a value must be written: graph outputs, concats in place
	consts map[*ir.Tensor]*Buffer
	packed map[string]*Buffer // by layout and sources
	names  map[string]int
	diags  diag.List
	group  *Group // being lowered, for names and origins
	shares map[*ir.Node]float64
}

// Group is what one rOperator computes: an anchor node with what fusion put around it. Without
// fusion Node is Anchor, and prologue and epilogue are empty.
type Group struct {
	Node   *ir.Node // the node of the graph: a Fused node, or the anchor itself
	Anchor *ir.Node // nil for a fused map
	// Inputs are the values (outside the body) that feed the anchor's inputs, nil where absent.
	Inputs []*ir.Value
	// Prologue is, per anchor input, what is done to each element when it is loaded (leaf 0); nil for nothing.
	Prologue []*Expr
	// Epilogue computes the output's element from leaf 0, the anchor's result, and from leaves 1…,
	// elements of Extra broadcast to the output's shape. nil for nothing.
	Epilogue *Expr
	Extra    []*ir.Value
	// Maps are the outputs of a fused map (Anchor nil) over Extra (leaf i is Extra[i]).
	Maps    []*Expr
	Outputs []*ir.Value // of Node
}

// Lower builds the rOperator graph of g, whose dims must all be constants. Unsupported nodes are
// reported all at once.
func Lower(g *ir.Graph) (*Graph, error) {
	b := &Builder{
		g: &Graph{Name: g.Name}, views: map[*ir.Value]View{}, homes: map[*ir.Value]View{},
		consts: map[*ir.Tensor]*Buffer{}, packed: map[string]*Buffer{}, names: map[string]int{},
		shares: shares(g),
	}
	for i, v := range g.Inputs {
		buf := b.newBuffer(v.Name, Input, v.DType, v.Shape.MustConsts())
		buf.Index = i
		b.views[v] = contiguous(buf, v.Shape.MustConsts())
		b.g.Inputs = append(b.g.Inputs, Port{v.Name, v.DType, v.Shape.MustConsts(), buf.ID})
	}
	b.placeOutputs(g)
	b.placeConcats(g)
	for _, n := range g.Nodes {
		b.lowerNode(n)
	}
	b.copyOutputs(g)
	if err := b.diags.Err(); err != nil {
		return nil, err
	}
	b.finish()
	return b.g, nil
}

// placeOutputs gives each graph output its buffer, and makes the producing node write there.
func (b *Builder) placeOutputs(g *ir.Graph) {
	for i, v := range g.Outputs {
		dims := v.Shape.MustConsts()
		buf := b.newBuffer(v.Name, Output, v.DType, dims)
		buf.Index = i
		b.g.Outputs = append(b.g.Outputs, Port{v.Name, v.DType, dims, buf.ID})
		if _, taken := b.homes[v]; !taken && v.Def != nil {
			b.homes[v] = contiguous(buf, dims)
		}
	}
}

// placeConcats walks backwards and hands the place a value must be written to on to where it comes
// from: the inputs that a rammer.Concat marks in_place are written into slices of its result, and what a dense
// view shows is written where the view has to be. Outer concats come first, so concats of concats nest.
func (b *Builder) placeConcats(g *ir.Graph) {
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		switch {
		case n.IsInternal("Concat"):
			b.placeParts(n)
		case isDenseView(n):
			home, ok := b.homes[n.Outputs[0]]
			if !ok {
				continue
			}
			if v, ok := home.Reshape(n.Inputs[0].Shape.MustConsts()); ok {
				b.place(n.Inputs[0], v)
			}
		}
	}
}

func (b *Builder) placeParts(n *ir.Node) {
	out, ok := b.homes[n.Outputs[0]]
	if !ok {
		dims := n.Outputs[0].Shape.MustConsts()
		out = contiguous(b.newBuffer(n.Outputs[0].Name, Arena, n.Outputs[0].DType, dims), dims)
		b.homes[n.Outputs[0]] = out
	}
	axis := n.Int("axis", 0)
	if axis < 0 {
		axis += int64(len(out.Shape))
	}
	at := int64(0)
	for k, v := range n.Inputs {
		part := out.Slice(int(axis), at, v.Shape.MustConsts()[axis])
		at += part.Shape[axis]
		if n.Ints("in_place")[k] != 0 {
			b.place(v, part)
		}
	}
}

// place makes v's producer write to home, unless v is written elsewhere already or by nobody.
func (b *Builder) place(v *ir.Value, home View) {
	if _, taken := b.homes[v]; !taken && v.Def != nil {
		b.homes[v] = home
	}
}

// isDenseView reports a node that shows all its input's elements in their order.
func isDenseView(n *ir.Node) bool {
	switch {
	case n.Domain == "" && (n.Op == "Reshape" || n.Op == "Flatten" || n.Op == "Squeeze" || n.Op == "Unsqueeze"):
		return true
	case n.IsInternal("View"):
		v := ir.ViewOf(n)
		return v.Offset == 0 && v.IsDense() && ir.Count(v.Shape) == ir.Count(n.Inputs[0].Shape.MustConsts())
	}
	return false
}

// copyOutputs copies values that are outputs but were not written to their output buffer: views of
// other values, inputs, constants, values that are two outputs at once.
func (b *Builder) copyOutputs(g *ir.Graph) {
	for i, v := range g.Outputs {
		buf := b.g.Buffers[b.g.Outputs[i].Buffer]
		if v.Const != nil {
			b.views[v] = b.In(v)
		}
		src, ok := b.views[v]
		if !ok || src.Buf == buf {
			continue // not lowered because of an error, or in place
		}
		b.group = &Group{Node: &ir.Node{Op: "Identity", Name: v.Name, Outputs: []*ir.Value{v}}}
		if v.Def != nil {
			b.group.Node.Origins = v.Def.Origins
		}
		b.Copy(contiguous(buf, src.Shape), src)
	}
}

func (b *Builder) lowerNode(n *ir.Node) {
	grp, err := newGroup(n)
	if err != nil {
		b.diags.Add(nodeDiag(n, "unsupported-op", err.Error()))
		return
	}
	b.group = grp
	key := [2]string{n.Domain, n.Op}
	if grp.Anchor != nil {
		key = [2]string{grp.Anchor.Domain, grp.Anchor.Op}
	}
	low := findLowering(key[0], key[1], grp.Anchor == nil)
	if low == nil {
		b.reportMissing(n, key[1])
		return
	}
	b.reportError(n, low(b, grp))
}

// reportError reports what a lowering of n refuses.
func (b *Builder) reportError(n *ir.Node, err error) {
	var missing *notConstant
	switch {
	case errors.As(err, &missing):
		d := nodeDiag(n, "not-constant", err.Error())
		d.Help = BindHelp(missing.node.Input(missing.input))
		if b.group != nil && missing.node == b.group.Anchor {
			d.Help = BindHelp(b.group.Inputs[missing.input]) // outside of a fused body
		}
		b.diags.Add(d)
	case err != nil:
		b.diags.Add(nodeDiag(n, "unsupported-op", err.Error()))
	}
}

func nodeDiag(n *ir.Node, id, msg string) *diag.Diagnostic {
	d := &diag.Diagnostic{ID: id, Node: n.Name, Op: n.Op, Domain: n.Domain, Message: msg}
	if len(n.Origins) > 0 {
		d.Node, d.Op, d.Domain = n.Origins[0].Name, n.Origins[0].OpType, ""
	}
	for _, in := range n.Inputs {
		if in != nil {
			d.DType = in.DType.String()
			break
		}
	}
	return d
}

// In returns the view of a value some earlier node produced, of an input or of a constant.
func (b *Builder) In(v *ir.Value) View {
	if view, ok := b.views[v]; ok {
		return view
	}
	if v.Const != nil {
		return b.Constant(v.Name, v.Const)
	}
	// Its producer could not be lowered (reported there); a buffer keeps the walk going.
	view := contiguous(b.newBuffer(v.Name, Arena, v.DType, v.Shape.MustConsts()), v.Shape.MustConsts())
	b.views[v] = view
	return view
}

// Out returns the view a node must write its output v to: the output buffer or concat slice it is
// destined for, or a new arena buffer.
func (b *Builder) Out(v *ir.Value) View {
	if view, ok := b.views[v]; ok {
		return view
	}
	view, ok := b.homes[v]
	if !ok {
		dims := v.Shape.MustConsts()
		view = contiguous(b.newBuffer(v.Name, Arena, v.DType, dims), dims)
	}
	b.views[v] = view
	return view
}

// Alias makes v a view of what another value wrote. When v has a home of its own (it is written into
// a concat or output), the data is copied there.
func (b *Builder) Alias(v *ir.Value, view View) {
	home, ok := b.homes[v]
	if !ok || sameView(home, view) || home.Buf.Kind == Output && isWhole(home) {
		b.views[v] = view // copyOutputs moves it if it has to
		return
	}
	b.views[v] = home
	b.Copy(home, view)
}

// isWhole reports a view of its whole buffer.
func isWhole(v View) bool { return v.IsContiguous() && v.Count() == v.Buf.Elems }

// Temp makes an arena buffer for something between two rOperators of one node.
func (b *Builder) Temp(what string, d ir.DType, dims []int64) View {
	return contiguous(b.newBuffer(b.group.Node.Name+"."+what, Arena, d, dims), dims)
}

// Constant is the view of a constant tensor as it stands in the model.
func (b *Builder) Constant(name string, t *ir.Tensor) View {
	buf, ok := b.consts[t]
	if !ok {
		buf = b.newBuffer(name, Const, t.DType, t.Dims)
		buf.Data = func() []byte { return t.LittleEndian() }
		b.consts[t] = buf
	}
	return contiguous(buf, t.Dims)
}

// Packed makes a constant buffer whose bytes pack computes when (and only when) it is chosen. When
// sources are given, name must spell the layout: a buffer of the same name made from the same sources
// is shared, so that the steps of a recurrence do not each have weights of their own.
func (b *Builder) Packed(name string, d ir.DType, elems int64, pack func() []byte, sources ...View) View {
	key := ""
	if len(sources) > 0 {
		key = fmt.Sprint(name, elems)
		for _, v := range sources {
			id := -1
			if v.Buf != nil {
				id = v.Buf.ID
			}
			key += fmt.Sprint(id, v.Strided())
		}
		if buf, ok := b.packed[key]; ok {
			return contiguous(buf, []int64{elems})
		}
	}
	buf := b.newBuffer(name, Const, d, []int64{elems})
	buf.Data = pack
	if key != "" {
		b.packed[key] = buf
	}
	return contiguous(buf, []int64{elems})
}

// Contiguous returns v itself when it is row-major dense, otherwise a dense copy.
func (b *Builder) Contiguous(v View) View {
	if v.IsContiguous() {
		return v
	}
	t := b.Temp("dense", v.DType(), v.Shape)
	b.Copy(t, v)
	return t
}

// Add appends an rOperator of the current group. kind says what it computes ("Conv+Relu", "copy").
func (b *Builder) Add(kind string, candidates ...*Candidate) *ROperator {
	if len(candidates) == 0 {
		panic("BUG: rOperator without candidates")
	}
	base := b.group.Node.Name
	if base == "" {
		base = b.group.Node.Op
	}
	name := base
	if k := b.names[base]; k > 0 {
		name = fmt.Sprintf("%s.%d", base, k)
	}
	b.names[base]++
	op := &ROperator{ID: len(b.g.Ops), Name: name, Kind: kind, Origins: b.group.Node.Origins, Candidates: candidates}
	b.g.Ops = append(b.g.Ops, op)
	return op
}

func (b *Builder) newBuffer(name string, kind BufferKind, d ir.DType, dims []int64) *Buffer {
	buf := &Buffer{ID: len(b.g.Buffers), Name: name, Kind: kind, DType: d, Elems: ir.Count(dims), Index: -1}
	b.g.Buffers = append(b.g.Buffers, buf)
	return buf
}

// finish computes every buffer's canonical coordinates from the views on it.
func (b *Builder) finish() {
	writes := make([][]View, len(b.g.Buffers))
	reads := make([][]View, len(b.g.Buffers))
	for _, op := range b.g.Ops {
		for _, c := range op.Candidates {
			for _, a := range c.Writes {
				writes[a.View.Buf.ID] = append(writes[a.View.Buf.ID], a.View)
			}
			for _, a := range c.Reads {
				reads[a.View.Buf.ID] = append(reads[a.View.Buf.ID], a.View)
			}
		}
	}
	for i, buf := range b.g.Buffers {
		buf.canonise(writes[i], reads[i])
	}
}
