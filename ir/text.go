package ir

import (
	"bufio"
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"
)

// PrintOptions says how Print shows large constants.
type PrintOptions struct {
	// ElideAbove leaves out the elements of constants with more than this many elements; 0 keeps all. Strings are kept.
	// ParseText needs ParseOptions.Elided to read an elided constant.
	ElideAbove int64
	// Elided, unless nil, is called for each constant whose elements are left out, so that the caller can keep them
	// elsewhere under their hash.
	Elided func(hash string, t *Tensor) error
}

// Print writes the text form (.rir) of g. ParseText reads it back to an equal graph, except for Value.Elems, which
// shape inference computes again. An absent input or output is written as _; a result that is not stored in row-major
// order has its order behind its type. The form is:
//
//	graph "name" (%x: float32[batch,3], %n: int64[]) {
//	  %w = const float32[2] {1, -inf}
//	  %y: float32[batch,3] order [1, 0], _ = Op(%x, _, %w) {axis = 1, mode = "fast"} name "op1" origin("/a/op1":"Op")
//	  return %y
//	}
func Print(w io.Writer, g *Graph, opts PrintOptions) error {
	p := &printer{w: bufio.NewWriter(w), opts: opts, splats: splatBudget}
	p.graph(g)
	p.byte('\n')
	if err := p.w.Flush(); err != nil {
		return err
	}
	return p.err
}

// String is the text form of g for people, without the elements of large constants. If part of g cannot be printed, the
// text ends with a comment that says so.
func (g *Graph) String() string {
	var b strings.Builder
	if err := Print(&b, g, PrintOptions{ElideAbove: 64}); err != nil {
		fmt.Fprintf(&b, "// %v\n", err)
	}
	return b.String()
}

// printer writes the text form. Its methods are named after what they print.
type printer struct {
	w      *bufio.Writer
	opts   PrintOptions
	depth  int
	splats int64 // how many elements may still be printed as splat; see splatBudget
	err    error
}

func (p *printer) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("cannot print the graph: "+format, args...)
	}
}

func (p *printer) str(s string) { _, _ = p.w.WriteString(s) } // Flush reports errors
func (p *printer) byte(c byte)  { _ = p.w.WriteByte(c) }

func (p *printer) line() {
	p.byte('\n')
	for range p.depth {
		p.str("  ")
	}
}

func (p *printer) graph(g *Graph) {
	if g == nil || p.depth >= maxTextDepth {
		p.fail("a graph is nil or nested deeper than %d", maxTextDepth)
		return
	}
	p.str("graph " + strconv.Quote(g.Name) + " (")
	for i, v := range g.Inputs {
		p.comma(i)
		p.define(v)
	}
	p.str(") {")
	p.depth++
	for _, v := range g.Consts {
		p.line()
		p.constant(v)
	}
	for _, n := range g.Nodes {
		p.line()
		p.node(n)
	}
	p.line()
	p.str("return")
	for i, v := range g.Outputs {
		p.comma(i)
		if i == 0 {
			p.byte(' ')
		}
		p.use(v)
	}
	p.depth--
	p.line()
	p.byte('}')
}

func (p *printer) comma(i int) {
	if i > 0 {
		p.str(", ")
	}
}

func (p *printer) use(v *Value) {
	if v == nil {
		p.byte('_')
		return
	}
	p.str("%" + valueText(v.Name))
}

func valueText(name string) string {
	if plain(name, nil, isNamePart) {
		return name
	}
	return strconv.Quote(name)
}

func (p *printer) define(v *Value) {
	p.use(v)
	if v != nil {
		p.str(": " + typeText(v.DType, v.Shape))
		p.order(v.Order)
	}
}

func (p *printer) order(order []int) {
	if order == nil {
		return
	}
	p.str(" order ")
	printList(p, "", order, strconv.Itoa)
}

func typeText(d DType, s Shape) string { return d.String() + s.String() }

func (p *printer) constant(v *Value) {
	if v == nil || v.Const == nil {
		p.fail("a constant has no elements")
		return
	}
	p.use(v)
	p.str(" = const ")
	p.tensor(v.Const)
}

func (p *printer) node(n *Node) {
	if n == nil {
		p.fail("a node is nil")
		return
	}
	for i, v := range n.Outputs {
		p.comma(i)
		p.define(v)
	}
	if len(n.Outputs) > 0 {
		p.byte(' ')
	}
	p.str("= ")
	if n.Domain != "" {
		p.str(wordText(n.Domain) + ".")
	}
	p.str(wordText(n.Op) + "(")
	for i, v := range n.Inputs {
		p.comma(i)
		p.use(v)
	}
	p.byte(')')
	p.attrs(n.Attrs)
	if n.Name != "" {
		p.str(" name " + strconv.Quote(n.Name))
	}
	p.origins(n.Origins)
}

// wordText quotes operator, domain and attribute names that are not identifiers.
func wordText(s string) string {
	if plain(s, isIdentStart, isIdentPart) {
		return s
	}
	return strconv.Quote(s)
}

func (p *printer) origins(list []Origin) {
	if len(list) == 0 {
		return
	}
	p.str(" origin(")
	for i, o := range list {
		p.comma(i)
		p.str(strconv.Quote(o.Name) + ":" + strconv.Quote(o.OpType))
	}
	p.byte(')')
}

func (p *printer) attrs(attrs Attrs) {
	if len(attrs) == 0 {
		return
	}
	p.str(" {")
	for i, name := range attrs.Names() {
		p.comma(i)
		p.str(wordText(name) + " = ")
		p.attr(name, attrs[name])
	}
	p.byte('}')
}

// Names returns the attribute names in sorted order.
func (a Attrs) Names() []string {
	names := make([]string, 0, len(a))
	for name := range a {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func (p *printer) attr(name string, a Attr) {
	switch a.Kind {
	case AttrInt:
		p.str(strconv.FormatInt(a.I, 10))
	case AttrFloat:
		p.str(floatAttrText(a.F))
	case AttrString:
		p.str(strconv.Quote(a.S))
	case AttrInts:
		printList(p, "ints", a.Ints, func(i int64) string { return strconv.FormatInt(i, 10) })
	case AttrFloats:
		printList(p, "floats", a.Floats, floatAttrText)
	case AttrStrings:
		printList(p, "strings", a.Strs, strconv.Quote)
	case AttrTensor:
		if a.T == nil {
			p.fail("tensor attribute %q is nil", name)
			return
		}
		p.tensor(a.T)
	case AttrGraph:
		p.graph(a.G)
	default:
		p.fail("attribute %q has kind %d", name, a.Kind)
	}
}

// printList prints a list. Only an empty list is preceded by its element type, because elsewhere the elements show it.
func printList[T any](p *printer, empty string, list []T, text func(T) string) {
	if len(list) == 0 {
		p.str(empty)
	}
	p.byte('[')
	for i, v := range list {
		p.comma(i)
		p.str(text(v))
	}
	p.byte(']')
}

// floatAttrText prints f so that it reads back as the same float64 and never looks like an integer.
// Values that are a float32 print as the shortest decimal of that width, marked by an f.
func floatAttrText(f float64) string {
	long := strconv.FormatFloat(f, 'g', -1, 64)
	if float64(float32(f)) == f {
		if short := strconv.FormatFloat(f, 'g', -1, 32); len(short) < len(long) {
			return short + "f"
		}
	}
	if strings.ContainsAny(long, ".eIN") {
		return floatSpecial(long)
	}
	return long + ".0"
}

// floatSpecial spells Go's +Inf, -Inf and NaN as the text form does.
func floatSpecial(s string) string {
	switch s {
	case "+Inf":
		return "inf"
	case "-Inf":
		return "-inf"
	case "NaN":
		return "nan"
	}
	return s
}
