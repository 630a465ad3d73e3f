package convert

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/limits"
	"github.com/rammerc/rammerc/internal/process"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// The parser is tree-sitter with its grammar of CUDA, in a Python process: it takes sources whose headers are not at
// hand, and says where everything stands.
//
//go:embed parse.py
var parser string

// maxSource is how many bytes a source may have.
const maxSource = 16 << 20

// missingParser is the status with which parse.py says that a package is missing.
const missingParser = 3

// alignment is a word of CUDA that the grammar cannot place everywhere. It counts as blanks for the parser alone.
const alignment = "__align__"

// node is a node of a syntax tree. Its text is source[Start:End].
type node struct {
	kind, field string // as the grammar calls the node, and what it is to its parent
	start, end  int
	children    []*node
	parent      *node
}

// UnmarshalJSON reads [type, field, start, end, children].
func (n *node) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&n.kind, &n.field, &n.start, &n.end, &n.children})
}

// adopt tells all nodes below n their parents.
func (n *node) adopt() {
	for _, c := range n.children {
		c.parent = n
		c.adopt()
	}
}

// child is the child that is field to n, nil if there is none.
func (n *node) child(field string) *node {
	for _, c := range n.children {
		if c.field == field {
			return c
		}
	}
	return nil
}

// of is the first child of one of the kinds, nil if there is none.
func (n *node) of(kinds ...string) *node {
	for _, c := range n.children {
		for _, k := range kinds {
			if c.kind == k {
				return c
			}
		}
	}
	return nil
}

// walk calls visit for n and what is below it. Where visit returns false, nothing below is visited.
func (n *node) walk(visit func(*node) bool) {
	if !visit(n) {
		return
	}
	for _, c := range n.children {
		c.walk(visit)
	}
}

// inside is the nearest node above n of one of the kinds, nil if there is none.
func (n *node) inside(kinds ...string) *node {
	for p := n.parent; p != nil; p = p.parent {
		for _, k := range kinds {
			if p.kind == k {
				return p
			}
		}
	}
	return nil
}

// source is a file with its syntax tree.
type source struct {
	path  string // as the user named it
	text  string
	root  *node
	lines []int // where each line starts
}

// unreadable says why a file of the user cannot be read.
func unreadable(path string, err error) error {
	return &diag.Diagnostic{ID: "cannot-read", File: path, Message: diag.Reason(err).Error()}
}

// read parses a file. The names are those of macros that count as blanks.
func read(ctx context.Context, python, path string, blanks []string) (*source, error) {
	data, err := limits.Read(path, maxSource)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if python == "" {
		python = process.Python()
	}
	cmd := process.Command(ctx, python, append([]string{"-c", parser, path}, blanks...)...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := process.Run(cmd); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() != missingParser {
			return nil, fmt.Errorf("%s cannot parse %s: %s", python, path, problems.String())
		}
		missing := "a Python with tree-sitter"
		if exit != nil {
			missing = "the Python package " + strings.TrimSpace(problems.String())
		}
		return nil, &toolchain.Missing{Tool: missing,
			Help: "install tree-sitter and tree-sitter-cuda with pip; " + process.PythonVariable +
				" names a Python that has them"}
	}
	s := &source{path: path, text: string(data), root: &node{}}
	var blanked [][2]int
	if err := json.Unmarshal(out.Bytes(), &[]any{s.root, &blanked}); err != nil {
		return nil, fmt.Errorf("%s: the parser's answer cannot be read: %w", path, err)
	}
	s.root.adopt()
	for _, b := range blanked {
		if text := s.text[b[0]:b[1]]; !strings.HasPrefix(text, alignment) {
			s.text = s.text[:b[0]] + strings.Repeat(" ", len(text)) + s.text[b[1]:]
		}
	}
	s.lines = []int{0}
	for i := range s.text {
		if s.text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	return s, nil
}

// of is the text of a node.
func (s *source) of(n *node) string { return s.text[n.start:n.end] }

// line is the line on which a node starts, from 1.
func (s *source) line(n *node) int { return sort.SearchInts(s.lines, n.start+1) }

// pragma reports whether a node is in a line that begins with #pragma.
func (s *source) pragma(n *node) bool {
	return strings.HasPrefix(strings.TrimSpace(s.text[s.lines[s.line(n)-1]:]), "#pragma")
}

// at is a message about a node.
func (s *source) at(n *node, id, help, format string, args ...any) *diag.Diagnostic {
	return &diag.Diagnostic{ID: id, File: s.path, Line: s.line(n), Message: fmt.Sprintf(format, args...), Help: help}
}
