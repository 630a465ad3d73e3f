package driver

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/dump"
	"github.com/rammerc/rammerc/internal/progress"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx"
	"github.com/rammerc/rammerc/lower"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/rkernels"
)

// ModelOptions say which model, and how it is specialised.
type ModelOptions struct {
	Path   string
	Shapes []string // "input=1x3x224x224"
	Dims   []string // "batch=1", "seq=1..512", "batch=1,4,16"
	Binds  []string // "shape=[1,2]", "axes=@file.pb"

	ChannelBlock int64 // onnx.Options.ChannelBlock

	Kernels string // folder of converted kernels for operators of the user's; "" for none
}

// catalogue has the rKernels with which the model is compiled: rammerc's and those of the user's.
func (o *ModelOptions) catalogue() (*rkernels.Catalogue, error) {
	kernels, err := rkernels.BuiltIn()
	if err != nil || o.Kernels == "" {
		return kernels, err
	}
	return kernels.WithUsers(o.Kernels)
}

// userKernels lists the user's kernels by the operators that they carry out.
func (o *ModelOptions) userKernels() (map[string]onnx.Kernel, error) {
	kernels, err := o.catalogue()
	if err != nil {
		return nil, err
	}
	out := map[string]onnx.Kernel{}
	for _, k := range kernels.Users() {
		if op := k.Custom.Operator; op != nil {
			file, function := k.ReferenceFunction()
			out[op.Domain+"."+op.Name] = onnx.Kernel{Name: k.Name, Reference: k.Reference, File: file, Function: function}
		}
	}
	return out, nil
}

// onnxOptions parses the flags and reports all that is wrong with them at once. static makes a symbolic dim that is not
// bound an error. Dims with ranges are not bound.
func (o *ModelOptions) onnxOptions(static bool) (onnx.Options, error) {
	opt := onnx.Options{Shapes: map[string][]int64{}, Dims: map[string]int64{}, RequireStatic: static}
	var l diag.List
	var err error
	if opt.Kernels, err = o.userKernels(); err != nil {
		return opt, err
	}
	for _, s := range o.Shapes {
		name, text, ok := cutLast(s, "=")
		dims, err := parseShape(text)
		if !ok || err != nil {
			l.Add(diag.New("bad-flag", "--shape %q: want NAME=1x3x224x224", s))
			continue
		}
		if _, twice := opt.Shapes[name]; twice {
			l.Add(diag.New("bad-flag", "--shape %s is given twice", name))
		}
		opt.Shapes[name] = dims
	}
	seen := map[string]bool{}
	for _, s := range o.Dims {
		name, text, ok := cutLast(s, "=")
		r, err := parseDim(name, text)
		if !ok || err != nil {
			l.Add(diag.New("bad-flag", "--dim %q: %v", s, err))
			continue
		}
		if seen[name] {
			l.Add(diag.New("bad-flag", "--dim %s is given twice", name))
		}
		if seen[name] = true; r.Lo == r.Hi {
			opt.Dims[name] = r.Lo
		}
	}
	opt.Bind = o.bound(&l)
	if opt.ChannelBlock = o.ChannelBlock; opt.ChannelBlock != 0 && opt.ChannelBlock != 8 && opt.ChannelBlock != 16 {
		l.Add(diag.New("bad-flag", "--channel-block %d: want 8 or 16", opt.ChannelBlock))
	}
	return opt, l.Err()
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// parseShape reads extents separated by x or commas; "" is a scalar's shape.
func parseShape(s string) ([]int64, error) {
	if s == "" {
		return []int64{}, nil
	}
	var dims []int64
	for _, f := range strings.Split(strings.ReplaceAll(s, ",", "x"), "x") {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("bad extent %q", f)
		}
		dims = append(dims, n)
	}
	return dims, nil
}

// Load reads the model. static makes a symbolic dim that is not bound an error, and so one with a range.
func Load(job *Job, o ModelOptions, static bool) (*onnx.Model, error) {
	if err := o.noRanges("this command"); err != nil {
		return nil, err
	}
	opt, err := o.onnxOptions(static)
	if err != nil {
		return nil, err
	}
	return importModel(job, o.Path, opt)
}

// LoadPartly is Load for a model that is to be compiled. Along with an error it returns what could be read of the
// model.
func LoadPartly(job *Job, o ModelOptions) (*onnx.Model, error) {
	opt, err := o.onnxOptions(true)
	if err != nil {
		return nil, err
	}
	opt.Partial = true
	return importModel(job, o.Path, opt)
}

func importModel(job *Job, path string, opt onnx.Options) (*onnx.Model, error) {
	done := job.Stage("import")
	m, err := readModel(path, opt)
	if err != nil {
		return m, err
	}
	detail := fmt.Sprintf("%d nodes, %d constants (%s), opset %s", len(m.Graph.Nodes), len(m.Graph.Consts),
		progress.Bytes(ConstBytes(m.Graph)), opsets(m))
	job.imported(path, detail, m.Warnings, done)
	return m, nil
}

// readModel reads an ONNX model or a graph in text form.
func readModel(path string, opt onnx.Options) (*onnx.Model, error) {
	if IsGraphText(path) {
		return readGraphText(path, opt)
	}
	return onnx.Load(path, opt)
}

func opsets(m *onnx.Model) string {
	var parts []string
	for domain, v := range m.Opsets {
		if domain == "" {
			parts = append(parts, fmt.Sprint(v))
		} else {
			parts = append(parts, fmt.Sprintf("%s %d", domain, v))
		}
	}
	sort.Strings(parts)
	return strings.Join(parts, ", ")
}

func ConstBytes(g *ir.Graph) int64 {
	total := int64(0)
	for _, v := range g.Consts {
		total += v.Const.Bytes()
	}
	return total
}

// Optimise runs graphopt in place for a device and the precisions that opt asks for, dumping after each pass.
func Optimise(job *Job, g *ir.Graph, d *dump.Dir, spec *device.Spec, opt CompileOptions) error {
	choice := opt.PrecisionChoice()
	if err := unmatched(choice, g); err != nil {
		return err
	}
	done := job.Stage("optimise")
	before := len(g.Nodes)
	passes := opt.passesFor(spec, choice)
	passes.After = func(s graphopt.Step) error {
		return d.Write("graphopt", s.Pass.Name, "rir", graphText(d, s.Graph))
	}
	if err := graphopt.Run(g, passes); err != nil {
		return err
	}
	done("%d → %d nodes", before, len(g.Nodes))
	return nil
}

// passes are the options of graphopt for a choice of precisions.
func (o *CompileOptions) passes(choice precision.Choice) graphopt.Options {
	opt := graphopt.Options{
		Check: o.Check, Seed: o.Seed, Precision: choice, Weights: o.Weights, Extent: o.finding(),
		ConvolvesOnTensorCores: lower.ConvolvesOnTensorCores,
	}
	return opt
}

// passesFor are passes for a device.
func (o *CompileOptions) passesFor(spec *device.Spec, choice precision.Choice) graphopt.Options {
	opt := o.passes(choice)
	if !lower.NormalisesInProducts(spec) {
		opt.Disable = append(opt.Disable, graphopt.AbsorbNorms)
	}
	opt.NormalisesRows = func(p precision.Precision) bool { return lower.NormalisesRows(spec, p) }
	return opt
}

// unmatched reports the rules for precisions that name no node of the model.
func unmatched(choice precision.Choice, g *ir.Graph) error {
	var l diag.List
	for _, r := range choice.Unmatched(g) {
		l.Add(&diag.Diagnostic{
			ID: "unknown-node", File: r.File, Line: r.Line,
			Message: fmt.Sprintf("precision-of %s: the model has no such node", r), Help: nodeNames(g),
		})
	}
	return l.Err()
}

// nodeNames says which operators a model has, and what its nodes are called.
func nodeNames(g *ir.Graph) string {
	const examples = 3
	var names, ops []string
	for _, n := range g.Nodes {
		for _, o := range n.Origins {
			if !slices.Contains(ops, o.OpType) {
				ops = append(ops, o.OpType)
			}
			if len(names) < examples && !slices.Contains(names, o.Name) {
				names = append(names, o.Name)
			}
		}
	}
	slices.Sort(ops)
	return fmt.Sprintf("its operators are %s; its nodes have names like %s", strings.Join(ops, ", "),
		strings.Join(names, ", "))
}

// Reference makes of an imported graph what a program is to be compared with that was compiled with --weights: it
// computes with the same rounded weights.
func Reference(g *ir.Graph, weights string) error {
	if weights == "" {
		return nil
	}
	return graphopt.Run(g, graphopt.Options{Weights: weights, Disable: []string{graphopt.StoreChannelsLast}})
}

// DeclaredDims lists the symbolic dims of a model's inputs, for completion.
func DeclaredDims(path string) []string {
	m, err := readModel(path, onnx.Options{})
	if err != nil {
		return nil
	}
	return m.Dims
}

// DeclaredInputs lists the names of a model's inputs, for completion.
func DeclaredInputs(path string) []string {
	m, err := readModel(path, onnx.Options{})
	if err != nil {
		return nil
	}
	var out []string
	for _, v := range m.Graph.Inputs {
		out = append(out, v.Name)
	}
	return out
}

// LibraryDir is a library directory, by the list of files that compile leaves there.
type LibraryDir struct{ Dir, Name string }

// LibrariesIn lists the library directories in a folder, and the folder itself if it is one, for completion.
func LibrariesIn(folder string) []LibraryDir {
	var found []LibraryDir
	for _, pattern := range []string{"*.files.json", "*/*.files.json"} {
		files, _ := filepath.Glob(filepath.Join(folder, pattern))
		for _, f := range files {
			found = append(found, LibraryDir{filepath.Dir(f), strings.TrimSuffix(filepath.Base(f), ".files.json")})
		}
	}
	return found
}
