// Package engine carries out models: with the evaluator, or as a built library in a child process.
//
// It also has what surrounds an inference: the ports of a model or library, inputs from files or drawn at random,
// series of samples, and the comparison of an engine with expected outputs or with the evaluator.
package engine

import (
	"context"
	"errors"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// Engines that can carry out a model.
const (
	Eval = "eval" // the evaluator, ir/eval
	Emu  = "emu"  // the emitted source on the CPU emulator
	GPU  = "gpu"  // the emitted source on a GPU
)

// Names lists the engines.
func Names() []string { return []string{Eval, Emu, GPU} }

// Tensors are the values of inputs or of outputs, by name.
type Tensors = map[string]*ir.Tensor

// Engine runs inferences of one model.
type Engine interface {
	Run(in Tensors) (out Tensors, err error)
	Name() string // Eval, Emu or GPU
	Close() error
}

// Best is the engine that this machine offers for a model: a GPU with nvcc, else the emulator, else the evaluator.
func Best() string {
	ctx := context.Background()
	if toolchain.LocalArch(ctx) != "" {
		if _, err := toolchain.FindNVCC(""); err == nil {
			return GPU
		}
	}
	if _, err := toolchain.FindCxx(""); err == nil {
		return Emu
	}
	return Eval
}

// Evaluator is the engine Eval.
type Evaluator struct {
	Graph    *ir.Graph
	File     string                // of the model, for errors
	Progress func(done, total int) // nodes evaluated so far; may be nil
	Strings  *ir.Strings           // what numbers of strings stand for; may be nil
}

// Run evaluates the graph. What the evaluator says of its data is a diagnostic.
func (e *Evaluator) Run(in Tensors) (Tensors, error) {
	out, err := eval.Run(e.Graph, in, eval.Options{Progress: e.Progress, Strings: e.Strings})
	return out, EvalError(err, e.File)
}

// Name is Eval.
func (e *Evaluator) Name() string { return Eval }

// Close has nothing to release.
func (e *Evaluator) Close() error { return nil }

// EvalError turns what the evaluator says of the data it was given into a diagnostic: an index out of range, a
// tensor that would be too large. Other errors stay as they are, among them that a tool is missing.
func EvalError(err error, file string) error {
	var n *eval.NodeError
	if toolchain.IsMissing(err) || !errors.As(err, &n) {
		return err
	}
	d := &diag.Diagnostic{
		ID: "cannot-evaluate", File: file, Node: n.Node, Op: n.Op, Domain: n.Domain, Message: n.Err.Error(),
	}
	if d.Node == "" && len(n.Origin) > 0 {
		d.Node = n.Origin[0].Name
	}
	return d
}
