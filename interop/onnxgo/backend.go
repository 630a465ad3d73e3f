package onnxgo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/owulveryck/onnx-go"
	"github.com/owulveryck/onnx-go/backend"
	"gonum.org/v1/gonum/graph"

	"github.com/rammerc/rammerc/internal/engine"
)

// Engines that Engine takes.
const (
	GPU       = engine.GPU  // a library that nvcc has built, on the GPU at hand
	Emulator  = engine.Emu  // the same program on the CPU
	Evaluator = engine.Eval // node by node, with no program
)

// Backend is a graph that onnx-go decodes a model into, and that runs it. It is for one goroutine.
type Backend struct {
	values
	operations []*operation
	opset      int
	model      []byte // the file, nil if it is not at hand
	engine     string
	folder     string // of what is compiled; made when it is needed
	compiled   *compiled
	reason     error           // why the best engine at hand does not run the model; nil if it does
	scalars    map[string]bool // inputs of rank 0 that model declares; nil before it is read
}

var _ backend.ComputationBackend = (*Backend)(nil)

// Option says something that onnx-go does not.
type Option func(*Backend)

// Opset is the version of the operator set ai.onnx that the model asks for.
func Opset(version int) Option { return func(b *Backend) { b.opset = version } }

// Model is the ONNX file that onnx-go decodes. The back end then imports it by itself.
func Model(data []byte) Option { return func(b *Backend) { b.model = data } }

// Engine chooses one of GPU, Emulator and Evaluator. Without it, the best at hand is taken.
func Engine(name string) Option { return func(b *Backend) { b.engine = name } }

// New makes a back end without a model. Close releases what it holds.
func New(options ...Option) *Backend {
	b := &Backend{values: values{from: map[int64][]*edge{}, to: map[int64][]*edge{}}}
	for _, o := range options {
		o(b)
	}
	return b
}

// NewNode makes a node with the next ID.
func (b *Backend) NewNode() graph.Node {
	return &value{id: int64(len(b.list)), owner: b}
}

// ApplyOperation says which operator computes the results ns. Their operands are at the ends of their edges.
func (b *Backend) ApplyOperation(o onnx.Operation, ns ...graph.Node) error {
	if len(ns) == 0 {
		return fmt.Errorf("onnxgo: a %s has no results", o.Name)
	}
	op := &operation{Operation: o}
	for _, n := range ns {
		v, ok := n.(*value)
		if !ok || b.Node(n.ID()) != n {
			return fmt.Errorf("onnxgo: a result of %s is no node of this graph", o.Name)
		}
		if v.name != "" {
			v.op = op
		}
		op.outputs = append(op.outputs, v)
	}
	// The results share their operands: each has edges to all of them.
	edges := slices.Clone(b.from[op.outputs[0].id])
	sort.SliceStable(edges, func(i, k int) bool { return edges[i].weight < edges[k].weight })
	for _, e := range edges {
		if at := int(e.weight); at == len(op.inputs) {
			op.inputs = append(op.inputs, e.to)
		}
	}
	b.operations = append(b.operations, op)
	b.close()
	return nil
}

// used are the tensors that operators take or compute, in the order of onnx-go's graph. A tensor without a name stands
// for one that is absent.
func (b *Backend) used() []*value {
	wanted := map[*value]bool{}
	for _, op := range b.operations {
		for _, v := range op.inputs {
			wanted[v] = !op.withoutOperands()
		}
		for _, v := range op.outputs {
			wanted[v] = true
		}
	}
	var out []*value
	for _, v := range b.list {
		if v != nil && wanted[v] && v.name != "" {
			out = append(out, v)
		}
	}
	return out
}

// outputs are the tensors that Run gives a value: those that no operator takes, and those that the model declares. Which
// of them are the model's outputs onnx-go does not say.
func (b *Backend) outputs() []*value {
	var out []*value
	for _, v := range b.used() {
		if v.op != nil && (v.declared || len(b.to[v.id]) == 0) {
			out = append(out, v)
		}
	}
	return out
}

// Run computes the outputs from the inputs that were set. The first run, and one whose inputs have other types or
// extents than those of the run before, compiles the model.
func (b *Backend) Run() error {
	if len(b.operations) == 0 {
		return errors.New("onnxgo: there is no model to run: decode one first")
	}
	if err := b.findScalars(); err != nil {
		return err
	}
	in, err := b.inputs()
	if err != nil {
		return err
	}
	if b.compiled == nil || !b.compiled.fits(in) {
		b.close()
		if b.compiled, err = b.compile(in); err != nil {
			return err
		}
	}
	out, err := b.compiled.engine.Run(in)
	if err != nil {
		return err
	}
	for _, v := range b.list {
		if t := out[v.name]; t != nil && v.op != nil {
			if v.data, err = toTensor(t); err != nil {
				return fmt.Errorf("onnxgo: output %q: %w", v.name, err)
			}
		}
	}
	return nil
}

// inputs are the tensors that were given.
func (b *Backend) inputs() (engine.Tensors, error) {
	in := engine.Tensors{}
	for _, v := range b.list {
		if v == nil || v.op != nil || !v.given || v.name == "" {
			continue
		}
		t, err := fromTensor(v.data)
		if err != nil {
			return nil, fmt.Errorf("onnxgo: input %q: %w", v.name, err)
		}
		if b.scalars[v.name] && t.Len() == 1 {
			t.Dims = []int64{}
		}
		in[v.name] = t
	}
	return in, nil
}

// bytes is the model to compile.
func (b *Backend) bytes() ([]byte, error) {
	if b.model != nil {
		return b.model, nil
	}
	if b.opset == 0 {
		return nil, errors.New("onnxgo: onnx-go does not say which version of the operator set the model asks for, and " +
			"operators changed their meaning: give the back end the file by Model, or the version by Opset")
	}
	return b.file()
}

// Runs says which engine the last Run used, "" before the first, and why it was not the best one at hand: that one failed,
// or the model could not be compiled.
func (b *Backend) Runs() (engine string, reason error) {
	if b.compiled == nil {
		return "", nil
	}
	return b.compiled.engine.Name(), b.reason
}

// Close ends the engine and removes what was compiled.
func (b *Backend) Close() error {
	err := b.close()
	if b.folder != "" {
		err = errors.Join(err, os.RemoveAll(b.folder))
		b.folder = ""
	}
	return err
}

func (b *Backend) close() error {
	if b.compiled == nil {
		return nil
	}
	err := b.compiled.engine.Close()
	b.compiled = nil
	return err
}

// path is a file in the folder of what is compiled.
func (b *Backend) path(name string) (string, error) {
	if b.folder == "" {
		folder, err := os.MkdirTemp("", "rammerc-onnxgo-")
		if err != nil {
			return "", err
		}
		b.folder = folder
	}
	return filepath.Join(b.folder, name), nil
}
