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
	// maxInlined bounds what the inlining of functions may add to the graph, in the units of nodeCost: about 200,000
	// nodes. Without it a small file whose functions call each other twice could describe a graph of any size.
	maxInlined = 1 << 21
	// maxShown is the most bytes of each part of a message, and maxPath of the path in names of values and nodes
	// inside subgraphs and functions.
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
	later   []*diag.Diagnostic // errors that may follow from others; reported only if there is no other error

	model      *Model
	functions  map[functionKey]*function
	calls      []*function // the calls that are being inlined, outermost first
	inlined    int         // what inlining has added so far, in the units of nodeCost
	namer      *ir.Namer
	bind       map[string]int64                // Options.Dims and what Options.Shapes implies
	untied     map[string]bool                 // symbols for which Options.Shapes gives several extents
	declared   map[*ir.Value]declared          // types that the model declares for values, used where inference fails
	free       map[*onnxpb.GraphProto][]string // results of freeNames
	sparse     int64                           // bytes that sparse tensors have been expanded to
	tensors    map[*onnxpb.TensorProto]*ir.Tensor
	complained map[string]bool   // problems that have been reported and are reported only once
	places     map[string]*place // by node name: where a node is, for what inference reports about it
	texts      *texts
	lists      map[*ir.Value]*list   // what stands for sequences, and for optional values that hold nothing
	forms      map[*ir.Graph][]*list // which outputs of the body of an If are sequences; nil for tensors
	lengths    map[string]bool       // inputs that are sequences
	listed     int                   // tensors of all lists
	copies     int                   // bodies that are being written out into the graph around them
	zipped     map[*ir.Value]bool    // outputs that the model declares as maps from labels to scores; they are the scores

	// poisoned holds the outputs of nodes, and the initializers, that were refused. Their types may be unknown. Errors
	// that follow from that are not reported, because the user can do nothing about them.
	poisoned map[*ir.Value]bool
}

// declared is the type that a model declares for a value. The element type is Invalid, and the shape nil, where the
// model leaves it out.
type declared struct {
	dtype ir.DType
	shape ir.Shape
	text  bool // strings, whose numbers are of type dtype
}

func newImporter(file string, pb *onnxpb.ModelProto, dir string, size int64, opts Options) *importer {
	return &importer{
		file: file, pb: pb, opts: opts, size: size, ext: newExternal(dir),
		functions:  map[functionKey]*function{},
		namer:      ir.NewNamer(&ir.Graph{}),
		bind:       map[string]int64{},
		untied:     map[string]bool{},
		declared:   map[*ir.Value]declared{},
		free:       map[*onnxpb.GraphProto][]string{},
		complained: map[string]bool{}, places: map[string]*place{}, tensors: map[*onnxpb.TensorProto]*ir.Tensor{},
		poisoned: map[*ir.Value]bool{}, texts: newTexts(), zipped: map[*ir.Value]bool{},
		lists: map[*ir.Value]*list{}, forms: map[*ir.Graph][]*list{}, lengths: map[string]bool{},
	}
}

// run imports the model. Later steps run in spite of errors in earlier ones, so that all problems are reported; only
// versions that are not supported end it at once.
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
	im.namePorts()
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

// add adds a diagnostic, shortened where a hostile file has made it long. After maxDiags of them it only counts.
func (im *importer) add(d *diag.Diagnostic) {
	if len(im.diags.Items) >= maxDiags {
		im.dropped++
		return
	}
	if d.File == "" {
		d.File = im.file
	}
	d.Node, d.Op, d.Domain, d.Port = clip(d.Node, maxShown), clip(d.Op, maxShown), clip(d.Domain, maxShown),
		clip(d.Port, maxShown)
	d.Message, d.Help = clip(d.Message, maxShown), clip(d.Help, maxShown)
	im.diags.Add(d)
}

// clip shortens a text to at most most bytes and "…". Hostile files have names of megabytes, which would be repeated in
// every message.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}

// errorf reports an error of the model as a whole.
func (im *importer) errorf(id, help, format string, args ...any) {
	im.add(&diag.Diagnostic{ID: id, Message: fmt.Sprintf(format, args...), Help: help})
}

// portf reports an error of an input, an output or an initializer.
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

// poison marks a value whose definition was refused. The value gets the type that the model declares for it, so that
// the nodes that use it can still be checked.
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
