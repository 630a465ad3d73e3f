package driver

import (
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

// readGraphText reads a graph in text form as a model of the reference opset. Of the options it takes dims only: a
// text says itself what its inputs are.
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
	declared := ir.Symbols(g)
	if err := bindSymbols(g, declared, opt); err != nil {
		return nil, diag.InFile(err, file)
	}
	if err := ir.Verify(g); err != nil {
		return nil, diag.InFile(err, file)
	}
	return &onnx.Model{Graph: g, Opsets: map[string]int64{"": ir.ReferenceOpset}, Dims: declared}, nil
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
