package driver

import (
	"context"
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// Engines that can carry out a model.
const (
	EngineEval = "eval" // the evaluator, ir/eval
	EngineEmu  = "emu"  // the emitted source on the CPU emulator
	EngineGPU  = "gpu"  // the emitted source on a GPU
)

// engine runs inferences. in and out are keyed by the names of inputs and outputs.
type engine interface {
	run(in map[string]*ir.Tensor) (out map[string]*ir.Tensor, err error)
	describe() string
	close() error
}

// bestEngine is what this machine offers for a model: a GPU, else the emulator, else the evaluator.
func bestEngine() string {
	ctx := context.Background()
	if toolchain.LocalArch(ctx) != "" {
		if _, err := toolchain.FindNVCC(""); err == nil {
			return EngineGPU
		}
	}
	if _, err := toolchain.FindCxx(""); err == nil {
		return EngineEmu
	}
	return EngineEval
}

// evaluator is the engine eval.
type evaluator struct {
	g    *ir.Graph
	file string // the model's
	ui   *UI
}

func (e *evaluator) run(in map[string]*ir.Tensor) (map[string]*ir.Tensor, error) {
	out, err := eval.RunWith(e.g, in, eval.Options{Progress: e.ui.Progress("evaluating")})
	return out, evalError(err, e.file)
}

func (e *evaluator) describe() string { return EngineEval }
func (e *evaluator) close() error     { return nil }

// library is a built library in a child process: the engines emu and gpu.
type library struct {
	lib      *runner.Lib
	onDevice bool // inputs and outputs stay in the GPU's memory
}

func openLibrary(path string, opt runner.Options) (*library, error) {
	lib, err := runner.Open(context.Background(), path, opt)
	if err != nil {
		return nil, libraryError(path, err)
	}
	return &library{lib, opt.OnDevice}, nil
}

// libraryError turns what a library reports about the user's files into diagnostics.
func libraryError(path string, err error) error {
	if st, ok := err.(*runner.StatusError); ok {
		return &diag.Diagnostic{ID: "library-refused", File: path, Message: st.Error()}
	}
	return err
}

func ports(ts []runner.Tensor) ([]port, error) {
	out := make([]port, len(ts))
	for i, t := range ts {
		d, ok := ir.DTypeOfONNX(int64(t.DType))
		if !ok {
			return nil, fmt.Errorf("the library's %s has element type %d, which is not known", t.Name, t.DType)
		}
		out[i] = port{t.Name, d, t.Dims}
	}
	return out, nil
}

// raw are the bytes of the inputs, in the library's order.
func (l *library) raw(in map[string]*ir.Tensor) ([][]byte, error) {
	var raw [][]byte
	for _, p := range l.lib.Inputs {
		t := in[p.Name]
		if t == nil {
			return nil, fmt.Errorf("input %s has no value", p.Name)
		}
		raw = append(raw, t.LittleEndian())
	}
	return raw, nil
}

func (l *library) run(in map[string]*ir.Tensor) (map[string]*ir.Tensor, error) {
	raw, err := l.raw(in)
	if err != nil {
		return nil, err
	}
	res, err := l.lib.Run(raw)
	if err != nil {
		return nil, err
	}
	outs, err := ports(l.lib.Outputs)
	if err != nil {
		return nil, err
	}
	out := map[string]*ir.Tensor{}
	for i, p := range outs {
		if out[p.name], err = ir.TensorFromBytes(p.dtype, p.dims, res[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *library) describe() string {
	if strings.Contains(l.lib.Launch.Device, "emulator") {
		return EngineEmu
	}
	return EngineGPU
}

func (l *library) close() error { return l.lib.Close() }
