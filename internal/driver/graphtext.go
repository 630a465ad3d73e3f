package driver

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/dump"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
)

// elideAbove is how many elements a constant of a dump may have to be printed in the text. The elements of larger ones
// go into files of their own.
const elideAbove = 64

// graphText prints a graph for a dump, and keeps there the elements that the text leaves out.
func graphText(d *dump.Dir, g *ir.Graph) func() ([]byte, error) {
	return func() ([]byte, error) {
		var b strings.Builder
		err := ir.Print(&b, g, ir.PrintOptions{ElideAbove: elideAbove, Elided: func(hash string, t *ir.Tensor) error {
			return d.Constant(hash, t.LittleEndian)
		}})
		return []byte(b.String()), err
	}
}

// IsGraphText reports whether path names a graph's text form, as --dump writes it, and not an ONNX model.
func IsGraphText(path string) bool { return filepath.Ext(path) == ".rir" }

// readGraphText reads a graph in text form as a model of the reference opset. Of the options it takes dims and kernels
// only: a text says itself what its inputs are.
func readGraphText(path string, opt onnx.Options) (*onnx.Model, error) {
	if len(opt.Shapes)+len(opt.Bind) > 0 {
		return nil, &diag.Diagnostic{
			ID: "bad-flag", File: path, Message: "--shape and --bind are for ONNX models", Help: "edit the text",
		}
	}
	text, file, err := dump.Read(path)
	if err != nil {
		return nil, &diag.Diagnostic{ID: "cannot-read", File: path, Message: diag.Reason(err).Error()}
	}
	g, err := ir.ParseText(file, text, ir.ParseOptions{Elided: func(hash string) ([]byte, error) {
		return dump.Constant(file, hash)
	}})
	if err != nil {
		return nil, err
	}
	if err := allowReferences(g, opt.Kernels); err != nil {
		return nil, diag.InFile(err, file)
	}
	declared := ir.Symbols(g)
	if err := bindSymbols(g, declared, opt); err != nil {
		return nil, diag.InFile(err, file)
	}
	if err := ir.Verify(g); err != nil {
		return nil, diag.InFile(err, file)
	}
	return &onnx.Model{Graph: g, Opsets: map[string]int64{"": ir.ReferenceOpset}, Dims: declared}, nil
}

// allowReferences makes the graph's references those of the kernels, or refuses them. A text is not trusted: which
// programs run is for the command line to say, so a text may name a reference of a kernel that --kernels brings, but not
// where its file lies.
func allowReferences(g *ir.Graph, kernels map[string]onnx.Kernel) error {
	type function struct{ file, name string }
	known := map[function]string{}
	for _, k := range kernels {
		if k.File != "" {
			known[function{filepath.Base(k.File), k.Function}] = k.File
		}
	}
	var l diag.List
	ir.EachGraph(g, func(g *ir.Graph) {
		for _, n := range g.Nodes {
			if n.Domain != ir.InternalDomain || n.Op != "Reference" {
				continue
			}
			named := function{filepath.Base(n.Attrs["file"].S), n.Attrs["function"].S}
			file, ok := known[named]
			if !ok {
				l.Add(&diag.Diagnostic{
					ID: "unknown-reference", Node: n.Name, Op: n.Op, Domain: n.Domain,
					Message: fmt.Sprintf("no kernel has the reference %q of %q", named.name, named.file),
					Help:    "bring the operator's kernel with --kernels DIR",
				})
				continue
			}
			n.Attrs["file"] = ir.StringAttr(file)
		}
	})
	return l.Err()
}

// bindSymbols gives the symbols of a text's inputs the values of --dim, and infers all shapes from them.
func bindSymbols(g *ir.Graph, declared []string, opt onnx.Options) error {
	var l diag.List
	known := map[string]bool{}
	for _, s := range declared {
		known[s] = true
		if _, bound := opt.Dims[s]; opt.RequireStatic && !bound {
			d := diag.New("unbound-dim", "the symbolic dim %q is not bound", s)
			d.Help = "bind it, e.g. --dim " + s + "=1"
			l.Add(d)
		}
	}
	for _, s := range slices.Sorted(maps.Keys(opt.Dims)) {
		if !known[s] {
			l.Add(diag.New("unknown-dim", "there is no symbolic dim %q; there are: %s", s,
				strings.Join(declared, ", ")))
		}
	}
	if l.Errors() > 0 {
		return &l
	}
	return ir.BindDims(g, opt.Dims).Err()
}
