package ir

import (
	"fmt"
	"sort"
	"strconv"

	"github.com/rammerc/rammerc/internal/diag"
)

// maxParseErrors ends parsing of a text that is not in this form at all.
const maxParseErrors = 20

// ParseText reads the text form that Print writes; file is the name of src in messages. Several errors are reported at
// once, as a *diag.List with line numbers: after an error, parsing goes on at the next line.
//
// In the result every value is defined once and before its uses. Whether nodes fit their operators is not checked here;
// Verify does that.
//
// Constants whose elements the text leaves out are looked for as opts says.
func ParseText(file string, src []byte, opts ParseOptions) (*Graph, error) {
	p := &parser{file: file, opts: opts, lex: lexer{src: string(src), line: 1}, splats: splatBudget}
	p.advance()
	g := p.oneGraph()
	if err := p.diags.Err(); err != nil {
		sort.SliceStable(p.diags.Items, func(i, j int) bool { return p.diags.Items[i].Line < p.diags.Items[j].Line })
		return nil, err
	}
	return g, nil
}

// ParseOptions says where ParseText finds what the text leaves out.
type ParseOptions struct {
	// Elided returns the bytes of a constant whose elements were left out, as LittleEndian has them. If it is nil, such a
	// constant is an error.
	Elided func(hash string) ([]byte, error)
}

// parser is a recursive-descent parser. Its methods are named after what they read.
type parser struct {
	file   string
	opts   ParseOptions
	lex    lexer
	tok    token // the current token; lex stands right behind it
	scopes []*scope
	splats int64 // how many elements splats may still stand for; see splatBudget
	braces int   // open braces among the tokens before tok
	diags  diag.List
}

// scope holds the values of one graph. Names are unique along a chain of scopes.
type scope struct{ values map[string]*Value }

// syntaxError is the panic that leaves the functions of a statement after a syntax error has been reported. recovering
// catches it; it never leaves the parser.
type syntaxError struct{}

func (p *parser) advance() {
	switch {
	case p.at("{"):
		p.braces++
	case p.at("}"):
		p.braces--
	}
	p.tok = p.lex.next()
}

// report adds a diagnostic and lets parsing go on.
func (p *parser) report(line int, id, format string, args ...any) {
	if len(p.diags.Items) < maxParseErrors {
		p.diags.Add(&diag.Diagnostic{ID: id, File: p.file, Line: line, Message: fmt.Sprintf(format, args...)})
	}
}

// fail reports a syntax error at the current token and gives up the statement.
func (p *parser) fail(format string, args ...any) {
	p.report(p.tok.line, "bad-syntax", format, args...)
	panic(syntaxError{})
}

// unexpected fails with what was wanted and what is there.
func (p *parser) unexpected(wanted string) {
	if p.tok.kind == tokBad {
		p.fail("%s", p.tok.text)
	}
	p.fail("%s expected, found %v", wanted, p.tok)
}

func (p *parser) at(punct string) bool   { return p.tok.kind == tokPunct && p.tok.text == punct }
func (p *parser) atWord(w string) bool   { return p.tok.kind == tokIdent && p.tok.text == w }
func (p *parser) is(kind tokenKind) bool { return p.tok.kind == kind }

func (p *parser) accept(punct string) bool {
	if !p.at(punct) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) acceptWord(w string) bool {
	if !p.atWord(w) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(punct string) {
	if !p.accept(punct) {
		p.unexpected(fmt.Sprintf("%q", punct))
	}
}

// take returns the current token's text when it is of the kind.
func (p *parser) take(kind tokenKind, wanted string) string {
	if !p.is(kind) {
		p.unexpected(wanted)
	}
	text := p.tok.text
	p.advance()
	return text
}

// list reads elements separated by commas up to the closing punctuation, which it consumes.
func (p *parser) list(closing string, element func()) {
	for first := true; !p.accept(closing); first = false {
		if !first {
			p.expect(",")
		}
		element()
	}
}

// recovering runs f and reports whether it ended without a syntax error.
func (p *parser) recovering(f func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, mine := r.(syntaxError); !mine {
				panic(r)
			}
			ok = false
		}
	}()
	f()
	return true
}

// oneGraph reads the one graph a file holds.
func (p *parser) oneGraph() *Graph {
	var g *Graph
	p.recovering(func() {
		if !p.atWord("graph") {
			p.unexpected(`"graph"`)
		}
		g = p.graph(true)
		if !p.is(tokEOF) {
			p.unexpected("the end of the file")
		}
	})
	return g
}

// graph reads a graph, which may use the values of the graphs around it. After a syntax error only the outermost graph
// goes on with its next statement. A nested graph is part of a statement of the outermost one, which is given up as a
// whole, because the end of a nested statement is hard to find.
func (p *parser) graph(outermost bool) *Graph {
	if len(p.scopes) >= maxTextDepth {
		p.fail("graphs are nested deeper than %d", maxTextDepth)
	}
	depth := len(p.scopes)
	p.scopes = append(p.scopes, &scope{values: map[string]*Value{}})
	defer func() { p.scopes = p.scopes[:depth] }()
	p.advance() // graph
	g := &Graph{Name: p.take(tokString, "the graph's name in quotes")}
	p.expect("(")
	p.list(")", func() { g.Inputs = append(g.Inputs, p.definition()) })
	p.expect("{")
	for !p.atWord("return") {
		statement := func() { p.statement(g) }
		if !outermost {
			statement()
		} else if !p.recovering(statement) {
			p.skipStatement()
		}
		if p.is(tokEOF) || len(p.diags.Items) >= maxParseErrors {
			p.unexpected(`"return"`)
		}
	}
	p.advance()
	if !p.at("}") {
		g.Outputs = append(g.Outputs, p.use())
	}
	for !p.accept("}") {
		p.expect(",")
		g.Outputs = append(g.Outputs, p.use())
	}
	return g
}

// skipStatement moves to the first token on a later line that is not inside a nested graph.
func (p *parser) skipStatement() {
	for line := p.tok.line; !p.is(tokEOF) && (p.tok.line == line || p.braces > 1); {
		p.advance()
	}
}

// statement reads a constant or a node.
func (p *parser) statement(g *Graph) {
	n := &Node{}
	var lines []int
	result := func() {
		lines = append(lines, p.tok.line)
		n.Outputs = append(n.Outputs, p.result())
	}
	// Results are defined even when the rest of the line is wrong. Otherwise every later use of them would be an error.
	defer func() {
		for i, v := range n.Outputs {
			if v != nil {
				v.Def = n
				p.define(v, lines[i])
			}
		}
	}()
	if p.is(tokValue) {
		line := p.tok.line
		v := &Value{Name: p.valueName()}
		if p.accept("=") {
			p.constant(g, v, line)
			return
		}
		p.expect(":")
		v.DType, v.Shape = p.typ()
		v.Order = p.order()
		n.Outputs, lines = append(n.Outputs, v), append(lines, line)
		if !p.at("=") {
			p.expect(",")
			result()
		}
	}
	for !p.accept("=") {
		if len(n.Outputs) > 0 {
			p.expect(",")
		}
		result()
	}
	p.node(n)
	g.Nodes = append(g.Nodes, n)
}

// result reads "%name: type" with an order, or "_" for an output that nobody asked for.
func (p *parser) result() *Value {
	if p.accept("_") {
		return nil
	}
	v := &Value{Name: p.valueName()}
	p.expect(":")
	v.DType, v.Shape = p.typ()
	v.Order = p.order()
	return v
}

// order reads "order [0, 2, 1]" behind a result's type, nil if there is none.
func (p *parser) order() []int {
	if !p.acceptWord("order") {
		return nil
	}
	order := []int{}
	p.expect("[")
	p.list("]", func() {
		d, err := strconv.Atoi(p.take(tokNumber, "the number of a dim"))
		if err != nil {
			p.fail("a dim's number is too large")
		}
		order = append(order, d)
	})
	return order
}

func (p *parser) valueName() string {
	name := p.take(tokValue, "a value")
	if name == "" {
		p.fail("a value has an empty name")
	}
	return name
}

// definition reads "%name: type" and enters it into the scope.
func (p *parser) definition() *Value {
	line := p.tok.line
	v := &Value{Name: p.valueName()}
	p.expect(":")
	v.DType, v.Shape = p.typ()
	p.define(v, line)
	return v
}

func (p *parser) define(v *Value, line int) {
	for _, s := range p.scopes {
		if s.values[v.Name] != nil {
			p.report(line, "duplicate-value", "the value %%%s is defined twice", v.Name)
			return
		}
	}
	p.scopes[len(p.scopes)-1].values[v.Name] = v
}

// use reads "%name" and returns the value, or reports that there is none of this name.
func (p *parser) use() *Value {
	line := p.tok.line
	name := p.valueName()
	for i := len(p.scopes) - 1; i >= 0; i-- {
		if v := p.scopes[i].values[name]; v != nil {
			return v
		}
	}
	p.report(line, "undefined-value", "the value %%%s is not defined before this use", name)
	return &Value{Name: name}
}

// typ reads an element type followed by a shape.
func (p *parser) typ() (DType, Shape) {
	name := p.take(tokIdent, "an element type")
	d, ok := ParseDType(name)
	if !ok && name != Invalid.String() {
		p.fail("unknown element type %q", shorten(name))
	}
	return d, p.shape()
}

// shape reads "[d,…]" or "?".
func (p *parser) shape() Shape {
	if p.accept("?") {
		return nil
	}
	if !p.at("[") {
		p.unexpected("a shape")
	}
	s := Shape{}
	dims := dimParser{src: p.lex.src, pos: p.lex.pos}
	for !dims.accept(']') && dims.err == nil {
		if len(s) > 0 {
			dims.expect(',')
		}
		for dims.accept(' ') {
		}
		s = append(s, dims.sum())
		dims.terms = 0
	}
	if dims.err != nil {
		p.fail("%v", dims.err)
	}
	p.lex.pos = dims.pos
	p.advance()
	return s
}

// node reads the part of a node behind "=".
func (p *parser) node(n *Node) {
	n.Op = p.word("an operator")
	if p.accept(".") {
		n.Domain, n.Op = n.Op, p.word("an operator")
	}
	p.expect("(")
	p.list(")", func() {
		if p.accept("_") {
			n.Inputs = append(n.Inputs, nil)
			return
		}
		n.Inputs = append(n.Inputs, p.use())
	})
	if p.accept("{") {
		n.Attrs = Attrs{}
		p.list("}", func() { p.attr(n.Attrs) })
	}
	if p.acceptWord("name") {
		n.Name = p.take(tokString, "the node's name in quotes")
	}
	if p.acceptWord("origin") {
		p.expect("(")
		p.list(")", func() {
			o := Origin{Name: p.take(tokString, "an ONNX node's name in quotes")}
			p.expect(":")
			o.OpType = p.take(tokString, "an ONNX operator in quotes")
			n.Origins = append(n.Origins, o)
		})
	}
}

// word reads an identifier or a quoted name.
func (p *parser) word(wanted string) string {
	if p.is(tokString) && p.tok.text != "" {
		return p.take(tokString, wanted)
	}
	return p.take(tokIdent, wanted)
}
