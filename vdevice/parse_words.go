package vdevice

import (
	"strconv"
	"strings"
)

// What follows reads the words, numbers and quoted names of one statement of a plan's text.

func (p *planParser) space() {
	p.rest = strings.TrimLeft(p.rest, " \t\r")
	if strings.HasPrefix(p.rest, "#") {
		p.rest = ""
	}
}

func (p *planParser) word() string {
	p.space()
	n := 0
	for n < len(p.rest) && p.rest[n] >= 'a' && p.rest[n] <= 'z' {
		n++
	}
	w := p.rest[:n]
	p.rest = p.rest[n:]
	return w
}

// hyphenated reads words that are joined by hyphens.
func (p *planParser) hyphenated() string {
	word := p.word()
	for p.rest != "" && p.rest[0] == '-' {
		p.rest = p.rest[1:]
		word += "-" + p.word()
	}
	return word
}

// optional skips the word if it comes next.
func (p *planParser) optional(want string) bool {
	rest := p.rest
	if !p.bad && p.word() == want {
		return true
	}
	p.rest = rest
	return false
}

func (p *planParser) keyword(want string) {
	if w := p.word(); w != want {
		p.fail("want %s, found %.20q", want, w+p.rest)
	}
}

func (p *planParser) char(c byte) {
	if p.bad || p.rest == "" || p.rest[0] != c {
		p.fail("want %q, found %.20q", c, p.rest)
		return
	}
	p.rest = p.rest[1:]
}

// number reads a decimal in [lo, hi]; after an error it returns lo without reading.
func (p *planParser) number(lo, hi int64) int64 {
	p.space()
	n := 0
	for n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9' {
		n++
	}
	if p.bad || n == 0 {
		p.fail("want a number, found %.20q", p.rest)
		return lo
	}
	x, err := strconv.ParseInt(p.rest[:n], 10, 64)
	if err != nil || x < lo || x > hi {
		p.fail("%.30s is out of range, want %d … %d", p.rest[:n], lo, hi)
		return lo
	}
	p.rest = p.rest[n:]
	return x
}

func (p *planParser) quoted() string {
	p.space()
	q, err := strconv.QuotedPrefix(p.rest)
	if err != nil || q[0] != '"' {
		p.fail("want a quoted name, found %.20q", p.rest)
		return ""
	}
	p.rest = p.rest[len(q):]
	s, err := strconv.Unquote(q)
	if err != nil {
		p.fail("bad quoting of %.20q", q)
	}
	return s
}

func (p *planParser) agree(what, got, want string) {
	if got != want {
		p.fail("%s %.60q here and %.60q in the graph", what, got, want)
	}
}

func (p *planParser) agreeNumber(what string, got, want int64) {
	if got != want {
		p.fail("%d %s here and %d in the graph", got, what, want)
	}
}
