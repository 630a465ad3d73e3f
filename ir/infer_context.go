package ir

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rammerc/rammerc/internal/diag"
)

// InferContext is an operator's view of a node whose outputs it infers. An Infer function is called only if the node's
// inputs, attributes and element types fit the operator's row. Outputs whose element type follows from the row's ports
// have it already; the others, and all shapes, are the function's to set.
//
// The methods want… check a property, report an error if it does not hold, and return whether it may hold. A property
// that depends on something unknown counts as fulfilled: BindDims infers again with exact values.
type InferContext struct {
	Node  *Node
	Op    *Op
	Graph *Graph

	in       *inferrer
	index    int // of Node in Graph
	typeVars map[string]DType
}

// Report adds an error about the node. port names the input, output or attribute, and is "" for the node itself. The
// result is always false, so that a check can return it.
func (c *InferContext) Report(id, port, format string, args ...any) bool {
	c.in.diags.Add(c.diagnostic(id, port, fmt.Sprintf(format, args...)))
	return false
}

func (c *InferContext) reportType(input int, d DType, message string) {
	item := c.diagnostic("bad-type", c.inputPlace(input), message)
	item.DType = d.String()
	c.in.diags.Add(item)
}

func (c *InferContext) diagnostic(id, port, message string) *diag.Diagnostic {
	name := c.Node.Name
	if name == "" {
		name = "#" + strconv.Itoa(c.index)
	}
	return &diag.Diagnostic{ID: id, Node: name, Op: c.Node.Op, Domain: c.Node.Domain, Port: port, Message: message}
}

// inputPlace and outputPlace name a port in messages, e.g. "input 1 (B)".
func (c *InferContext) inputPlace(i int) string  { return place("input", i, c.Op.InputPort(i)) }
func (c *InferContext) outputPlace(i int) string { return place("output", i, c.Op.OutputPort(i)) }

func place(what string, i int, p *Port) string {
	if p == nil {
		return fmt.Sprintf("%s %d", what, i)
	}
	return fmt.Sprintf("%s %d (%s)", what, i, p.Name)
}

// badInput reports a problem of input i.
func (c *InferContext) badInput(id string, i int, format string, args ...any) bool {
	return c.Report(id, c.inputPlace(i), format, args...)
}

// badAttr reports a problem of an attribute.
func (c *InferContext) badAttr(name, format string, args ...any) bool {
	return c.Report("bad-attribute", "attribute "+name, format, args...)
}

// attr returns an attribute or its default.
func (c *InferContext) attr(name string) Attr { return c.Op.resolve(c.Node, name) }

func (c *InferContext) int(name string) int64    { return c.attr(name).I }
func (c *InferContext) str(name string) string   { return c.attr(name).S }
func (c *InferContext) ints(name string) []int64 { return c.attr(name).Ints }

// resolve is Node.Attr for a caller that has n's row already.
func (o *Op) resolve(n *Node, name string) Attr {
	if a, ok := n.Attrs[name]; ok {
		return a
	}
	if spec := o.Attr(name); spec != nil {
		return spec.Default
	}
	return Attr{}
}

// shape returns input i's shape, nil when the input is absent or its rank unknown.
func (c *InferContext) shape(i int) Shape {
	if v := c.Node.Input(i); v != nil {
		return v.Shape
	}
	return nil
}

// has reports whether the node has input i.
func (c *InferContext) has(i int) bool { return c.Node.Input(i) != nil }

// dtype returns input i's element type, Invalid when absent or unknown.
func (c *InferContext) dtype(i int) DType {
	if v := c.Node.Input(i); v != nil {
		return v.DType
	}
	return Invalid
}

// set sets output i's shape. It does nothing if the node leaves the output out.
func (c *InferContext) set(i int, s Shape) {
	if v := c.Node.Output(i); v != nil {
		v.Shape = slices.Clone(s)
	}
}

func (c *InferContext) setType(i int, d DType) {
	if v := c.Node.Output(i); v != nil {
		v.DType = d
	}
}

// setElems sets output i's known elements, provided that they are integers or bools and as many as its shape says.
func (c *InferContext) setElems(i int, elems []Dim) {
	v := c.Node.Output(i)
	if v == nil || elems == nil || !v.DType.IsInt() && v.DType != Bool {
		return
	}
	if _, count := trackable(v.Shape); count == len(elems) {
		v.Elems = elems
	}
}

// boundedCount is the product of extents; it saturates instead of overflowing, because extents come from model files.
func boundedCount(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n = satMul(n, d)
	}
	return n
}

// elems returns the elements of input i, nil when they are not known. Single ones may be symbols.
func (c *InferContext) elems(i int) []Dim { return knownElems(c.Node.Input(i)) }

// constInts returns the elements of input i when all of them are constants.
func (c *InferContext) constInts(i int) ([]int64, bool) { return Shape(c.elems(i)).Consts() }

// listLen returns the number of elements of the rank-1 (or scalar) input i, -1 when unknown.
func (c *InferContext) listLen(i int) int {
	s := c.shape(i)
	if s == nil {
		return -1
	}
	dims, ok := s.Consts()
	if n := boundedCount(dims); ok && n <= maxRank {
		return int(n)
	}
	return -1
}

// list checks that input i is a list, or a scalar as some exporters write it, and returns its elements. If only their
// number is known, they are fresh symbols; if not even that is known, elems is nil. ok is false after a report.
func (c *InferContext) list(i int) (elems []Dim, ok bool) {
	if s := c.shape(i); len(s) > 1 {
		return nil, c.badInput("bad-rank", i, "the rank is %d, wanted 1", len(s))
	}
	if e := c.elems(i); e != nil {
		return e, true
	}
	n := c.listLen(i)
	if n < 0 {
		return nil, true
	}
	elems = make([]Dim, n)
	for k := range elems {
		elems[k] = c.in.freshElem()
	}
	return elems, true
}

// scalar checks that input i has exactly one element and returns it; ok is false when it is not known.
func (c *InferContext) scalar(i int) (d Dim, ok bool) {
	if !c.wantOne(i) {
		return Dim{}, false
	}
	if e := c.elems(i); len(e) == 1 {
		return e[0], true
	}
	return Dim{}, false
}

// wantOne wants input i to have exactly one element.
func (c *InferContext) wantOne(i int) bool {
	dims, ok := c.shape(i).Consts()
	if ok && boundedCount(dims) != 1 {
		return c.badInput("bad-shape", i, "the shape is %v, wanted a scalar", c.shape(i))
	}
	return true
}

// wantRank wants the rank of input i to be from lo to hi; hi < 0 means that there is no upper limit.
func (c *InferContext) wantRank(i, lo, hi int) bool {
	s := c.shape(i)
	switch {
	case s == nil || len(s) >= lo && (hi < 0 || len(s) <= hi):
		return true
	case lo == hi:
		return c.badInput("bad-rank", i, "the shape %v has rank %d, wanted %d", s, len(s), lo)
	case hi < 0 || len(s) < lo:
		return c.badInput("bad-rank", i, "the shape %v has rank %d, wanted at least %d", s, len(s), lo)
	}
	return c.badInput("bad-rank", i, "the shape %v has rank %d, wanted at most %d", s, len(s), hi)
}

// wantShape wants input i to have the shape want; nil is any shape.
func (c *InferContext) wantShape(i int, want Shape) bool {
	s := c.shape(i)
	if s == nil || want == nil {
		return true
	}
	if len(s) != len(want) {
		return c.badInput("bad-rank", i, "the shape is %v, wanted %v", s, want)
	}
	for d := range s {
		if !mayEqual(s[d], want[d]) {
			return c.badInput("bad-shape", i, "the shape is %v, wanted %v", s, want)
		}
	}
	return true
}

// wantBroadcast wants input i to broadcast to want by ONNX's unidirectional rule: the result must have the shape want.
func (c *InferContext) wantBroadcast(i int, want Shape) bool {
	s := c.shape(i)
	if s == nil || want == nil {
		return true
	}
	ok := len(s) <= len(want)
	for k := 1; ok && k <= len(s); k++ {
		n, isConst := s[len(s)-k].Const()
		ok = isConst && n == 1 || mayEqual(s[len(s)-k], want[len(want)-k])
	}
	if !ok {
		return c.badInput("bad-shape", i, "the shape %v does not broadcast to %v", s, want)
	}
	return true
}

// axis resolves an axis of a tensor of the given rank and reports one that is out of range.
func (c *InferContext) axis(port string, axis int64, rank int) (int, bool) {
	a, ok := NormalizeAxis(axis, rank)
	if !ok {
		id := "bad-shape"
		if c.Op.Attr("axis") != nil && port == "attribute axis" {
			id = "bad-attribute"
		}
		return 0, c.Report(id, port, "the axis %d is outside rank %d", axis, rank)
	}
	return a, true
}

// axisAttr resolves the attribute axis.
func (c *InferContext) axisAttr(rank int) (int, bool) {
	return c.axis("attribute axis", c.int("axis"), rank)
}

// axes resolves several axes and reports those that are out of range or named twice.
func (c *InferContext) axes(port string, axes []int64, rank int) ([]int, bool) {
	out := make([]int, 0, min(len(axes), rank))
	for _, axis := range axes {
		a, ok := c.axis(port, axis, rank)
		if !ok {
			return nil, false
		}
		if slices.Contains(out, a) {
			return nil, c.Report("bad-shape", port, "the axis %d is named twice", axis)
		}
		out = append(out, a)
	}
	return out, true
}

// mul multiplies extents. A product of too many terms becomes a fresh symbol, which bounds the cost of inference.
func (c *InferContext) mul(a, b Dim) Dim {
	if len(a.t)*len(b.t) > maxDimTerms || a.textLen()+b.textLen() > 2*maxDimText {
		return c.in.fresh()
	}
	return a.Mul(b)
}

// product multiplies all extents.
func (c *InferContext) product(dims []Dim) Dim {
	p := D(1)
	for _, d := range dims {
		p = c.mul(p, d)
	}
	return p
}

// joinShapes is the concatenation of shapes. Unlike slices.Concat it never returns nil, which would mean an unknown
// rank, but an empty shape.
func joinShapes(parts ...Shape) Shape {
	out := Shape{}
	for _, s := range parts {
		out = append(out, s...)
	}
	return out
}
