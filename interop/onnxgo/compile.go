package onnxgo

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/owulveryck/onnx-go"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/engine"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/ir"
)

// compiled is a model for inputs of certain types and extents.
type compiled struct {
	engine engine.Engine
	inputs map[string]*ir.Tensor // what it was compiled for; only types and extents count
}

// fits reports whether in has the types and extents that c was compiled for.
func (c *compiled) fits(in engine.Tensors) bool {
	if len(in) != len(c.inputs) {
		return false
	}
	for name, t := range in {
		was := c.inputs[name]
		if was == nil || was.DType != t.DType || !slices.Equal(was.Dims, t.Dims) {
			return false
		}
	}
	return true
}

// compile compiles the model for the extents of in, and opens the engine.
func (b *Backend) compile(in engine.Tensors) (*compiled, error) {
	data, err := b.bytes()
	if err != nil {
		return nil, err
	}
	path, err := b.write(data)
	if err != nil {
		return nil, err
	}
	model := driver.ModelOptions{Path: path}
	if b.model != nil {
		for name, t := range in {
			model.Shapes = append(model.Shapes, name+"="+extents(t.Dims))
		}
		slices.Sort(model.Shapes)
	}
	if b.engine != "" && !slices.Contains(engine.Names(), b.engine) {
		return nil, fmt.Errorf("onnxgo: there is no engine %q, only %s", b.engine, strings.Join(engine.Names(), ", "))
	}
	c := &compiled{inputs: in}
	if c.engine, err = b.program(model, in); err != nil {
		return nil, err
	}
	if c.engine != nil {
		return c, nil
	}
	m, err := driver.Load(&driver.Job{}, model, false)
	if err != nil {
		return nil, notImplemented(err)
	}
	c.engine = &engine.Evaluator{Graph: m.Graph, File: path}
	return c, nil
}

// program compiles the model for the best engine at hand, or for the one that was asked for. It is nil where the evaluator
// is to run. An engine that fails for a reason of its own, such as a compiler that does not work or a GPU without a free
// place, leaves the model to the next one; a model that cannot be compiled at all goes to the evaluator, which computes
// more than programs can.
func (b *Backend) program(model driver.ModelOptions, in engine.Tensors) (engine.Engine, error) {
	b.reason = nil
	if b.engine != "" {
		if b.engine == Evaluator {
			return nil, nil
		}
		return b.library(model, b.engine)
	}
	for _, use := range enginesFrom(engine.Best()) {
		e, err := b.library(model, use)
		ofModel := len(diag.All(err)) > 0
		if err == nil && use == GPU {
			if _, err = e.Run(in); err != nil { // only a run shows that the device can be used
				e.Close()
			}
		}
		if err == nil {
			return e, nil
		}
		if b.reason == nil {
			b.reason = err
		}
		if ofModel {
			break
		}
	}
	return nil, nil
}

// enginesFrom are the engines that run programs, the best first, from the given one on.
func enginesFrom(best string) []string {
	all := []string{GPU, Emulator}
	if i := slices.Index(all, best); i >= 0 {
		return all[i:]
	}
	return nil
}

// write puts a model where the importer finds it.
func (b *Backend) write(data []byte) (path string, err error) {
	if path, err = b.path("model.onnx"); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, data, 0o600)
}

// findScalars reads which inputs of the file are scalars. Programs of onnx-go give those as tensors of one element and
// rank 1, since Gorgonia knows no other form for some of them.
func (b *Backend) findScalars() error {
	if b.model == nil || b.scalars != nil {
		return nil
	}
	path, err := b.write(b.model)
	if err != nil {
		return err
	}
	m, err := driver.Load(&driver.Job{}, driver.ModelOptions{Path: path}, false)
	if err != nil {
		return notImplemented(err)
	}
	b.scalars = map[string]bool{}
	for _, v := range m.Graph.Inputs {
		b.scalars[v.Name] = v.Shape != nil && len(v.Shape) == 0
	}
	return nil
}

// library compiles the model and opens the library that results.
func (b *Backend) library(model driver.ModelOptions, use string) (engine.Engine, error) {
	o := driver.CompileOptions{ModelOptions: model, Emit: driver.EmitLibrary}
	if use == Emulator {
		o.Target = driver.TargetEmu
	}
	var err error
	if o.Out, err = b.path("library"); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(o.Out); err != nil {
		return nil, err
	}
	built, err := driver.Compile(&driver.Job{}, o)
	if err != nil {
		return nil, notImplemented(err)
	}
	return engine.OpenLibrary(built.Library, runner.Options{})
}

// notImplemented is err as onnx-go's error, if all that it says is that operators are not supported.
func notImplemented(err error) error {
	all := diag.All(err)
	for _, d := range all {
		if d.ID != "unsupported-op" {
			return err
		}
	}
	if len(all) == 0 {
		return err
	}
	return &onnx.ErrNotImplemented{Operator: all[0].Op, Message: err.Error()}
}

// extents is a shape as the flag --shape spells it.
func extents(dims []int64) string {
	parts := make([]string, len(dims))
	for i, n := range dims {
		parts[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(parts, "x")
}
