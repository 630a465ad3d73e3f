package onnx

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

const (
	// maxDiags bounds the messages about one model.
	maxDiags = 1000
	// maxInlined bounds what inlining functions may add, calls of calls multiplying it: some 200,000
	// nodes. scope.withinBudget counts.
	maxInlined = 1 << 21
	// maxShown bounds each part of a message, maxPath the prefix of names in subgraphs and functions.
	maxShown = 2000
	maxPath  = 200
	// maxCallDepth bounds calls of functions inside functions.
	maxCallDepth = 64
)

// importer turns one model into one graph.
type importer struct {
	file    string
	pb      *onnxpb.ModelProto
	opts    Options
	ext     *external
	size    int64 // of the file
	diags   diag.List
	dropped int                // messages beyond maxDiags
	later   []*diag.Diagnostic // reported if there is no other error

	model      *Model
	functions  map[functionKey]*function
	calls      []*function // being inlined, outermost first
	inlined    int         // nodes of function bodies so far
	namer      *ir.Namer
	bind       map[string]int64 // Options.Dims and what Options.Shapes implies
	declared   map[*ir.Value]declared
	free       map[*onnxpb.GraphProto][]string // memo of freeNames
	sparse     int64                           // bytes that sparse tensors have been expanded to
	tensors    map[*onnxpb.TensorProto]*ir.Tensor
	complained map[string]bool   // problems that are reported once
	places     map[string]*place // of operators by node name, for what inference reports

	// poisoned values were to come from nodes or initializers that were refused. Their type may be
	// unknown, and what follows from that is not reported.
	poisoned map[*ir.Value]bool
}

// declared is the type a model gives to a value, nil and Invalid where it does not say.
type declared struct {
	dtype ir.DType
	shape ir.Shape
}

func newImporter(file string, pb *onnxpb.ModelProto, dir string, size int64, opts Options) *importer {
	return &importer{
		file: file, pb: pb, opts: opts, size: size, ext: newExternal(dir),
		functions:  map[functionKey]*function{},
		namer:      ir.NewNamer(&ir.Graph{}),
		bind:       map[string]int64{},
		declared:   map[*ir.Value]declared{},
		free:       map[*onnxpb.GraphProto][]string{},
		complained: map[string]bool{}, places: map[string]*place{}, tensors: map[*onnxpb.TensorProto]*ir.Tensor{},
		poisoned: map[*ir.Value]bool{},
	}
}

func (im *importer) run() (*Model, error) {
	im.model = newModel(im.pb)
	opsets := im.readOpsets(im.pb.OpsetImport, "")
	im.model.Opsets = opsets
	if !im.checkVersions(opsets) {
		return nil, im.result()
	}
	im.collectFunctions()
	im.model.Graph = im.mainGraph(opsets)
	im.finish()
	for _, f := range im.pb.Functions {
		im.model.Functions = append(im.model.Functions, im.describe(f))
	}
	if err := im.result(); err != nil {
		if im.opts.Partial {
			return im.model, err
		}
		return nil, err
	}
	im.model.Warnings = im.diags.Items
	return im.model, nil
}

func newModel(pb *onnxpb.ModelProto) *Model {
	m := &Model{
		IRVersion: pb.GetIrVersion(), Producer: pb.GetProducerName(), ProducerVersion: pb.GetProducerVersion(),
		Domain: pb.GetDomain(), Version: pb.GetModelVersion(), Doc: pb.GetDocString(),
		Metadata: map[string]string{},
	}
	for _, p := range pb.MetadataProps {
		m.Metadata[p.GetKey()] = p.GetValue()
	}
	return m
}

// result returns the errors so far, nil when there are only warnings.
func (im *importer) result() error {
	if im.dropped > 0 {
		im.diags.Add(&diag.Diagnostic{
			ID: "too-many-problems", File: im.file,
			Message: fmt.Sprintf("%d more problems are not shown", im.dropped),
		})
		im.dropped = 0
	}
	if im.diags.Errors() == 0 {
		return nil
	}
	return &im.diags
}

func (im *importer) add(d *diag.Diagnostic) {
	if len(im.diags.Items) >= maxDiags {
		im.dropped++
		return
	}
	if d.File == "" {
		d.File = im.file
	}
	d.Node, d.Op, d.Domain, d.Port = clip(d.Node, maxShown), clip(d.Op, maxShown), clip(d.Domain, maxShown), clip(d.Port, maxShown)
	d.Message, d.Help = clip(d.Message, maxShown), clip(d.Help, maxShown)
	im.diags.Add(d)
}

// clip shortens names that only a hostile file has, so that repeating them stays cheap.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// errorf reports a problem of the model as a whole.
func (im *importer) errorf(id, help, format string, args ...any) {
	im.add(&diag.Diagnostic{ID: id, Message: fmt.Sprintf(format, args...), Help: help})
}

// portf reports a problem of an input, an output or an initializer.
func (im *importer) portf(id, port, help, format string, args ...any) {
	im.add(&diag.Diagnostic{ID: id, Port: port, Message: fmt.Sprintf(format, args...), Help: help})
}

func (im *importer) warnf(id, help, format string, args ...any) {
	im.add(&diag.Diagnostic{
		Severity: diag.Warning, ID: id, Message: fmt.Sprintf(format, args...), Help: help,
	})
}

// once reports whether it is called with key for the first time.
func (im *importer) once(key string) bool {
	if im.complained[key] {
		return false
	}
	im.complained[key] = true
	return true
}

// poison marks a value whose definition was refused. It keeps the type that the model declares.
func (im *importer) poison(v *ir.Value) {
	if v == nil {
		return
	}
	im.poisoned[v] = true
	if t, ok := im.declared[v]; ok && v.DType == ir.Invalid {
		v.DType, v.Shape = t.dtype, t.shape
	}
}

// sortedKeys lists the keys of m in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
