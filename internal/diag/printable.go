package diag

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable is text as a terminal or an editor may be shown it. Names in models are anybody's: one with an escape
// sequence could rewrite what a terminal shows, and one with a bidirectional control lets source code read otherwise
// than it compiles. Characters that are not printed are spelled "<U+001B>", and bytes that are no UTF-8 "<0xFF>".
func Printable(text string) string { return printable(text, "") }

// printable leaves the characters of keep as they are.
func printable(text, keep string) string {
	at := strings.IndexFunc(text, func(r rune) bool { return hidden(r) && !strings.ContainsRune(keep, r) })
	if at < 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text[:at])
	for rest := text[at:]; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "<0x%02X>", rest[0])
		case hidden(r) && !strings.ContainsRune(keep, r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteString(rest[:n])
		}
		rest = rest[n:]
	}
	return b.String()
}

// hidden reports whether a character is no glyph and no space: a control, a format character such as the bidirectional
// ones, a separator of lines, or the replacement that stands for what is no UTF-8.
func hidden(r rune) bool {
	if r < 0x7f { // nearly all there is
		return r < ' '
	}
	return r == utf8.RuneError || unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) ||
		unicode.Is(unicode.Zp, r)
}

// Writer writes to w what is printable of a text with lines and tabs.
func Writer(w io.Writer) io.Writer { return printableWriter{w} }

type printableWriter struct{ w io.Writer }

// Write treats each p as whole characters: texts are written in whole lines or words.
func (p printableWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(p.w, printable(string(text), "\n\t")); err != nil {
		return 0, err
	}
	return len(text), nil
}

// PrintableJSON is JSON with the same characters as escapes, which readers of JSON turn back.
func PrintableJSON(text []byte) []byte {
	if strings.IndexFunc(string(text), func(r rune) bool { return r != '\n' && hidden(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range string(text) {
		switch {
		case r == '\n' || !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}
