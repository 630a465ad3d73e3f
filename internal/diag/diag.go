// Package diag holds the messages rammerc shows its users.
//
// A mistake of the user is a Diagnostic: a value that says where it is (the file, the ONNX node, the port), what was found,
// what is wanted, and what to do. A stage collects all problems that it finds in a List before it stops. A state that
// must be impossible is no diagnostic; it panics with a message that starts with "BUG:".
package diag

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Severity says whether a diagnostic stops the compilation.
type Severity uint8

const (
	Error   Severity = iota // nothing is written, exit status 2
	Warning                 // compilation goes on
)

func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Diagnostic is one message. Empty fields are left out when it is printed.
type Diagnostic struct {
	Severity Severity `json:"-"`
	ID       string   `json:"id"`               // stable, kebab-case: "unsupported-op", "bad-shape", …
	File     string   `json:"file,omitempty"`   // model or text file, as the user named it
	Line     int      `json:"line,omitempty"`   // for text forms, from 1
	Node     string   `json:"node,omitempty"`   // ONNX node name, or "#12" for an unnamed node
	Op       string   `json:"op,omitempty"`     // operator type
	Domain   string   `json:"domain,omitempty"` // "" is ai.onnx
	Opset    int      `json:"opset,omitempty"`
	Port     string   `json:"port,omitempty"`  // "input 1 (W)", "attribute axis", "output 0"
	DType    string   `json:"dtype,omitempty"` // the element type at fault
	Message  string   `json:"message"`         // what was found, what is wanted
	Help     string   `json:"help,omitempty"`  // what to do
}

// Error prints the diagnostic on one line: file:line: node "n" (Op, opset 17): port: message; help.
func (d *Diagnostic) Error() string {
	var b strings.Builder
	if d.File != "" {
		b.WriteString(Printable(d.File))
		if d.Line > 0 {
			fmt.Fprintf(&b, ":%d", d.Line)
		}
		b.WriteString(": ")
	}
	if d.Node != "" || d.Op != "" {
		b.WriteString("node")
		if d.Node != "" {
			fmt.Fprintf(&b, " %q", d.Node)
		}
		if d.Op != "" {
			op := Printable(d.Op)
			if d.Domain != "" {
				op = Printable(d.Domain) + "." + op
			}
			if d.Opset > 0 {
				op = fmt.Sprintf("%s, opset %d", op, d.Opset)
			}
			if d.DType != "" {
				op += ", " + d.DType
			}
			fmt.Fprintf(&b, " (%s)", op)
		}
		b.WriteString(": ")
	}
	if d.Port != "" {
		b.WriteString(Printable(d.Port) + ": ")
	}
	b.WriteString(Printable(d.Message))
	if d.Help != "" {
		b.WriteString("; " + Printable(d.Help))
	}
	if d.ID != "" {
		fmt.Fprintf(&b, " [%s]", d.ID)
	}
	return b.String()
}

// List collects diagnostics. The zero value is ready; a nil *List must not be used.
type List struct {
	Items []*Diagnostic
}

// Add appends d.
func (l *List) Add(d *Diagnostic) { l.Items = append(l.Items, d) }

// Errors returns how many of the items are errors.
func (l *List) Errors() int {
	n := 0
	for _, d := range l.Items {
		if d.Severity == Error {
			n++
		}
	}
	return n
}

// Err returns nil when the list has no error, otherwise the list itself.
func (l *List) Err() error {
	if l.Errors() == 0 {
		return nil
	}
	return l
}

// Error prints the diagnostics, one on each line: the errors first, and otherwise in the order in which they were found.
func (l *List) Error() string {
	items := append([]*Diagnostic(nil), l.Items...)
	sort.SliceStable(items, func(i, j int) bool { return items[i].Severity < items[j].Severity })
	lines := make([]string, len(items))
	for i, d := range items {
		lines[i] = d.Severity.String() + ": " + d.Error()
	}
	return strings.Join(lines, "\n")
}

// All returns the diagnostics in err: the items of a *List, or a *Diagnostic, or none.
func All(err error) []*Diagnostic {
	var l *List
	if errors.As(err, &l) {
		return l.Items
	}
	var d *Diagnostic
	if errors.As(err, &d) {
		return []*Diagnostic{d}
	}
	return nil
}
