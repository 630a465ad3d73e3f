package diag

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain name/ü 漢字 🙂":  "plain name/ü 漢字 🙂",
		"\x1b[2J":            "<U+001B>[2J",
		"a\rb\x00c\x7fd\n\t": "a<U+000D>b<U+0000>c<U+007F>d<U+000A><U+0009>",
		"\u202e/* \u2066x":   "<U+202E>/* <U+2066>x",
		"\u0085\u2028\ufeff": "<U+0085><U+2028><U+FEFF>",
		"\xff\x9b":           "<0xFF><0x9B>",
		"\U000e0041":         "<U+E0041>",
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	var b strings.Builder
	fmt.Fprintf(Writer(&b), "a\tb\n%s\n", "\x1b]0;x\x07")
	if got := b.String(); got != "a\tb\n<U+001B>]0;x<U+0007>\n" {
		t.Errorf("%q", got)
	}
}

func TestPrintableJSON(t *testing.T) {
	const name = "a\x7f\u202e\u0085\U000e0041\n\x1bü"
	text, err := json.MarshalIndent(map[string]string{"name": name}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = PrintableJSON(text)
	for _, r := range string(text) {
		if hidden(r) && r != '\n' {
			t.Errorf("there is a raw %U", r)
		}
	}
	var back map[string]string
	if err := json.Unmarshal(text, &back); err != nil || back["name"] != name {
		t.Errorf("%v, %q", err, back["name"])
	}
}

// Each part of a diagnostic stays on its line.
func TestDiagnosticIsPrintable(t *testing.T) {
	d := &Diagnostic{
		ID: "x", File: "a\nb", Node: "n\x1b", Op: "op\n", Domain: "do\nmain", Port: "input x\nerror: y", Message: "bad \x1b[2J",
	}
	got := d.Error()
	if strings.ContainsAny(got, "\n\x1b") {
		t.Errorf("%q", got)
	}
}
