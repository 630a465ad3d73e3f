package ir

import (
	"fmt"
	"strconv"
)

const (
	maxTextDepth   = 100 // parentheses in dims, graphs in graphs
	maxParsedTerms = 256 // factors in one dim: products of long sums would otherwise take time and memory without bound
)

// ParseDim reads the form that Dim.String prints: sums of products of integers, symbols, quoted
// symbols, (a)/(b), max(a,b) and min(a,b).
func ParseDim(s string) (Dim, error) {
	p := dimParser{src: s}
	d := p.sum()
	if p.err == nil && p.pos < len(s) {
		p.fail("unexpected %q", s[p.pos:])
	}
	return d, p.err
}

// dimParser parses one dim and stops at the first character that cannot continue it. After an error all its methods
// return zero dims and do not move on, so that callers need not check after every call.
type dimParser struct {
	src   string
	pos   int
	depth int
	terms int
	err   error
}

func (p *dimParser) fail(format string, args ...any) Dim {
	if p.err == nil {
		for i, a := range args {
			if s, ok := a.(string); ok {
				args[i] = shorten(s)
			}
		}
		p.err = fmt.Errorf("bad dimension: "+format, args...)
	}
	return Dim{}
}

func (p *dimParser) peek() byte {
	if p.err != nil || p.pos == len(p.src) {
		return 0
	}
	return p.src[p.pos]
}

func (p *dimParser) accept(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.pos++
	return true
}

func (p *dimParser) expect(c byte) {
	if !p.accept(c) {
		p.fail("%q expected", string(c))
	}
}

// sum reads a sum of products, the form of a whole dim.
func (p *dimParser) sum() Dim {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxTextDepth {
		return p.fail("nested deeper than %d", maxTextDepth)
	}
	d := p.product(p.accept('-'))
	for p.err == nil {
		switch {
		case p.accept('+'):
			d = d.Add(p.product(false))
		case p.accept('-'):
			d = d.Add(p.product(true))
		default:
			return d
		}
	}
	return Dim{}
}

// product reads a term whose sign has been read. An integer is parsed together with the sign, because the smallest
// int64 has no positive counterpart.
func (p *dimParser) product(negative bool) Dim {
	var d Dim
	if isDigit(p.peek()) {
		d = p.integer(negative)
	} else if d = p.factor(); negative {
		d = d.Neg()
	}
	for p.err == nil && p.accept('*') {
		d = d.Mul(p.factor())
	}
	return d
}

// factor reads an integer, a symbol, a quotient (a)/(b), or a function such as max(a,b).
func (p *dimParser) factor() Dim {
	if p.terms++; p.terms > maxParsedTerms {
		return p.fail("more than %d terms", maxParsedTerms)
	}
	switch c := p.peek(); {
	case isDigit(c):
		return p.integer(false)
	case c == '(':
		return p.quotient()
	case c == '"':
		return p.quotedSymbol()
	case isLetter(c) || c == '_' || c == '.':
		return p.symbolOrCall()
	}
	return p.fail("an integer or a symbol is missing")
}

func (p *dimParser) integer(negative bool) Dim {
	start := p.pos
	for isDigit(p.peek()) {
		p.pos++
	}
	text := p.src[start:p.pos]
	if negative {
		text = "-" + text
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return p.fail("%q does not fit 64 bits", text)
	}
	return D(n)
}

func (p *dimParser) quotient() Dim {
	p.expect('(')
	a := p.sum()
	p.expect(')')
	p.expect('/')
	p.expect('(')
	b := p.sum()
	p.expect(')')
	if p.err != nil {
		return Dim{}
	}
	if n, ok := b.Const(); ok && n == 0 {
		return p.fail("division by zero")
	}
	return a.FloorDiv(b)
}

func (p *dimParser) quotedSymbol() Dim {
	text, err := strconv.QuotedPrefix(p.src[p.pos:])
	if err != nil {
		return p.fail("the quoted symbol is not terminated")
	}
	p.pos += len(text)
	name, err := strconv.Unquote(text)
	if err != nil {
		return p.fail("bad escape in the symbol %s", text)
	}
	return Sym(name)
}

// symbolOrCall reads a symbol, or a function with two arguments.
func (p *dimParser) symbolOrCall() Dim {
	start := p.pos
	for c := p.peek(); isNamePart(c); c = p.peek() {
		p.pos++
	}
	name := p.src[start:p.pos]
	if p.peek() != '(' {
		if dimFunctions[name] != nil {
			return p.fail("%s needs two arguments", name)
		}
		return Sym(name)
	}
	f := dimFunctions[name]
	if f == nil {
		return p.fail("unknown function %q", name)
	}
	p.pos++
	a := p.sum()
	p.expect(',')
	b := p.sum()
	p.expect(')')
	if p.err != nil {
		return Dim{}
	}
	return f(a, b)
}
