package ir

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// tokenKind classifies the tokens of the text form.
type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokIdent            // graph, const, float32, rammer, …
	tokValue            // %name or %"any name"; text is the name
	tokString           // "…" with Go escapes; text is the unquoted string
	tokNumber           // a number as written, with its sign and suffix; also +inf and -inf (without a sign: tokIdent)
	tokPunct            // one character of (){}[]=:,?._
	tokBad              // text says what is wrong
)

// token is a word of the text form.
type token struct {
	kind tokenKind
	text string
	line int
}

func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "the end of the file"
	case tokValue:
		return "%" + t.text
	case tokString:
		return strconv.Quote(shorten(t.text))
	}
	return strconv.Quote(shorten(t.text))
}

// shorten keeps messages readable when the token is a large blob.
func shorten(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// lexer cuts the source into tokens on demand. It does not read ahead: the next token starts at pos or behind it. So
// the parser can hand the text of a shape to the dim parser, which has a grammar of its own, and go on behind it.
type lexer struct {
	src  string
	pos  int
	line int
}

func (l *lexer) skipSpace() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == '\n':
			l.line++
			l.pos++
		case c == ' ' || c == '\t' || c == '\r':
			l.pos++
		case strings.HasPrefix(l.src[l.pos:], "//"):
			end := strings.IndexByte(l.src[l.pos:], '\n')
			if end < 0 {
				end = len(l.src) - l.pos
			}
			l.pos += end
		default:
			return
		}
	}
}

// next returns the next token. At the end of the source it returns tokEOF, however often it is called.
func (l *lexer) next() token {
	l.skipSpace()
	if l.pos == len(l.src) {
		return token{kind: tokEOF, line: l.line}
	}
	switch c := l.src[l.pos]; {
	case c == '%':
		l.pos++
		return l.valueName()
	case c == '"':
		return l.quoted(tokString)
	case isIdentStart(c):
		return token{tokIdent, l.takeWhile(isIdentPart), l.line}
	case c >= '0' && c <= '9' || c == '-' || c == '+':
		return token{tokNumber, l.takeWhile(isNumberPart), l.line}
	case strings.IndexByte("(){}[]=:,?._/", c) >= 0:
		l.pos++
		return token{tokPunct, l.src[l.pos-1 : l.pos], l.line}
	default:
		r, size := utf8.DecodeRuneInString(l.src[l.pos:])
		l.pos += size
		return token{tokBad, fmt.Sprintf("unexpected character %q", r), l.line}
	}
}

func (l *lexer) valueName() token {
	if l.pos < len(l.src) && l.src[l.pos] == '"' {
		return l.quoted(tokValue)
	}
	name := l.takeWhile(isNamePart)
	if name == "" {
		return token{tokBad, "a value name is missing after %", l.line}
	}
	return token{tokValue, name, l.line}
}

// quoted reads a Go string literal; it may not contain a line break.
func (l *lexer) quoted(kind tokenKind) token {
	start := l.pos
	i := start + 1
	for i < len(l.src) && l.src[i] != '"' && l.src[i] != '\n' {
		if l.src[i] == '\\' {
			i++
		}
		i++
	}
	if i >= len(l.src) || l.src[i] != '"' {
		l.pos = min(i, len(l.src))
		return token{tokBad, "the string is not terminated", l.line}
	}
	l.pos = i + 1
	text, err := strconv.Unquote(l.src[start:l.pos])
	if err != nil {
		return token{tokBad, "bad escape in the string " + shorten(l.src[start:l.pos]), l.line}
	}
	return token{kind, text, l.line}
}

func (l *lexer) takeWhile(in func(byte) bool) string {
	start := l.pos
	for l.pos < len(l.src) && in(l.src[l.pos]) {
		l.pos++
	}
	return l.src[start:l.pos]
}

func isLetter(c byte) bool     { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool      { return c >= '0' && c <= '9' }
func isIdentStart(c byte) bool { return isLetter(c) }
func isIdentPart(c byte) bool  { return isLetter(c) || isDigit(c) || c == '_' }
func isNamePart(c byte) bool   { return isIdentPart(c) || c == '.' }
func isNumberPart(c byte) bool { return isLetter(c) || isDigit(c) || c == '.' || c == '-' || c == '+' }

// plain reports whether s can be written without quotes: it is not empty, all its bytes are in the class in, and the
// first one is in the class start, if that is not nil.
func plain(s string, start, in func(byte) bool) bool {
	if s == "" || start != nil && !start(s[0]) {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !in(s[i]) {
			return false
		}
	}
	return true
}
