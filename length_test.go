package rammerc_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is longer than this needs a reason beside it, a comment that starts with "Long:". It stands before the package
// clause for a Go file, in the documentation of a Go function, and in the first lines of any other file.
const (
	mostFileLines     = 400
	mostFunctionLines = 60
)

// counted are the kinds of files whose lines are counted, and what starts a comment there.
var counted = map[string]string{
	".go": "//", ".cuh": "//", ".cu": "//", ".h": "//", ".hpp": "//", ".cc": "//", ".cpp": "//", ".c": "//",
	".py": "#", ".sh": "#",
}

// TestLengths looks at every file that git knows or would know.
func TestLengths(t *testing.T) {
	found := map[string]int{}
	for _, file := range tracked(t) {
		comment, ok := counted[filepath.Ext(file)]
		if !ok {
			continue
		}
		text, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // removed and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if comment == "//" && filepath.Ext(file) == ".go" {
			err = longInGo(found, file, text)
		} else {
			longFile(found, file, text, comment)
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("%s has %d lines; split it, or say why not in a comment that starts with \"Long:\"", name, found[name])
	}
}

// longFile adds a file that is too long and has no reason in its first lines.
func longFile(found map[string]int, file string, text []byte, comment string) {
	lines := bytes.Count(text, []byte("\n"))
	head := text[:min(len(text), 2000)]
	if lines > mostFileLines && !bytes.Contains(head, []byte(comment+" Long: ")) {
		found[file] = lines
	}
}

// longInGo adds a Go file and those of its functions that are too long and have no reason.
func longInGo(found map[string]int, file string, text []byte) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, text, parser.ParseComments)
	if err != nil {
		return err
	}
	if ast.IsGenerated(f) {
		return nil
	}
	reason := false
	for _, group := range f.Comments {
		reason = reason || group.End() < f.Name.Pos() && hasReason(group)
	}
	if lines := bytes.Count(text, []byte("\n")); lines > mostFileLines && !reason {
		found[file] = lines
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
		if lines > mostFunctionLines && !hasReason(fn.Doc) {
			found[fmt.Sprintf("%s: %s", file, fn.Name.Name)] = lines
		}
	}
	return nil
}

func hasReason(c *ast.CommentGroup) bool {
	return c != nil && strings.Contains("\n"+c.Text(), "\nLong: ")
}
