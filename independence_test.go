package rammerc_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// sharedWithEvaluator are the functions of package ir that both the evaluator and the compiler's stages may call: they
// make and look up data structures, and decide nothing about what an operator computes.
var sharedWithEvaluator = map[string]bool{
	"Count": true, "FromSlice": true, "LookupOp": true, "NewTensor": true, "Slice": true,
}

// TestEvaluatorIsIndependent keeps what operators compute apart: results are checked against the evaluator, so a rule
// that it shared with the stages that it checks would be wrong in both. Rules such as where the windows of a
// convolution lie, what an Einsum's labels are and how a Resize rounds are written twice.
func TestEvaluatorIsIndependent(t *testing.T) {
	functions := irFunctions(t)
	evaluator := irCalls(t, functions, "ir/eval")
	for _, stage := range []string{"lower", "graphopt", "roperator", "rkernels", "codegen"} {
		for name, file := range irCalls(t, functions, stage) {
			if other, both := evaluator[name]; both && !sharedWithEvaluator[name] {
				t.Errorf("ir.%s is called in %s and in %s: write it again in ir/eval, from the standard", name,
					file, other)
			}
		}
	}
	for name := range sharedWithEvaluator {
		if evaluator[name] == "" {
			t.Errorf("ir.%s is in the list of what is shared, but the evaluator does not call it", name)
		}
	}
}

// irFunctions are the exported functions of package ir.
func irFunctions(t *testing.T) map[string]bool {
	out := map[string]bool{}
	eachFile(t, "ir", false, func(_ string, f *ast.File) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.IsExported() {
				out[fn.Name.Name] = true
			}
		}
	})
	return out
}

// irCalls are those of the functions that the packages in dir mention, with a file that does.
func irCalls(t *testing.T, functions map[string]bool, dir string) map[string]string {
	out := map[string]string{}
	eachFile(t, dir, true, func(file string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "ir" && functions[s.Sel.Name] {
					out[s.Sel.Name] = file
				}
			}
			return true
		})
	})
	return out
}

// eachFile parses the Go files of dir that are no tests, and those below it if deep.
func eachFile(t *testing.T, dir string, deep bool, f func(file string, parsed *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && !deep:
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			f(path, parsed)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
