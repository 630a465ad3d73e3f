package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/ir"
)

// Library is a built library in a child process: the engine Emu or GPU.
type Library struct {
	*runner.Lib
	OnDevice bool // inputs and outputs stay in the GPU's memory
}

// OpenLibrary starts a child process with the library at path.
func OpenLibrary(path string, opt runner.Options) (*Library, error) {
	lib, err := runner.Open(context.Background(), path, opt)
	if st, ok := err.(*runner.StatusError); ok {
		return nil, &diag.Diagnostic{ID: "library-refused", File: path, Message: st.Error()}
	}
	if err != nil {
		return nil, err
	}
	return &Library{lib, opt.OnDevice}, nil
}

// Ports are the library's inputs and outputs.
func (l *Library) Ports() (inputs, outputs []Port, err error) {
	if inputs, err = ports(l.Inputs); err == nil {
		outputs, err = ports(l.Outputs)
	}
	if r := l.Ranges; r != nil && err == nil {
		WithSymbols(inputs, r.Symbols, func(i, d int) string { return r.Inputs[i].Dims[d] })
		WithSymbols(outputs, r.Symbols, func(i, d int) string { return r.Outputs[i].Dims[d] })
		for i := range outputs {
			for d, text := range r.Outputs[i].Dims {
				if text != strconv.FormatInt(outputs[i].Dims[d], 10) { // such as a product of symbols
					outputs[i].Dims[d] = AnyExtent
				}
			}
		}
	}
	return inputs, outputs, err
}

func ports(ts []runner.Tensor) ([]Port, error) {
	out := make([]Port, len(ts))
	for i, t := range ts {
		d, ok := ir.DTypeOfONNX(int64(t.DType))
		if !ok {
			return nil, fmt.Errorf("the library's %s has element type %d, which is not known", t.Name, t.DType)
		}
		out[i] = Port{Name: t.Name, DType: d, Dims: slices.Clone(t.Dims)}
	}
	return out, nil
}

// Raw are the bytes of the inputs, in the library's order. If its dims have ranges, what follows is for their extents.
func (l *Library) Raw(in Tensors) ([][]byte, error) {
	var raw [][]byte
	if err := l.setDims(in); err != nil {
		return nil, err
	}
	for _, p := range l.Inputs {
		t := in[p.Name]
		if t == nil {
			return nil, fmt.Errorf("input %s has no value", p.Name)
		}
		raw = append(raw, t.LittleEndian())
	}
	return raw, nil
}

// setDims sets the extents of the library to those of the inputs, if it takes others than it has now.
func (l *Library) setDims(in Tensors) error {
	if l.Ranges == nil {
		return nil
	}
	dims, same := make([][]int64, len(l.Inputs)), true
	for i, p := range l.Inputs {
		if in[p.Name] == nil {
			return nil // Raw reports it
		}
		dims[i] = in[p.Name].Dims
		same = same && slices.Equal(dims[i], p.Dims)
	}
	if same {
		return nil
	}
	return l.SetDims(dims)
}

// Run is one inference.
func (l *Library) Run(in Tensors) (Tensors, error) {
	raw, err := l.Raw(in)
	if err != nil {
		return nil, err
	}
	res, err := l.Lib.Run(raw)
	if err != nil {
		return nil, err
	}
	outs, err := ports(l.Outputs)
	if err != nil {
		return nil, err
	}
	out := Tensors{}
	for i, p := range outs {
		if n := ir.Count(p.Dims) * int64(p.DType.Size()); l.Ranges != nil && n <= int64(len(res[i])) {
			res[i] = res[i][:n] // what a run finds may take less than there is room for
		}
		if out[p.Name], err = ir.TensorFromBytes(p.DType, p.Dims, res[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Name is Emu or GPU.
func (l *Library) Name() string {
	if strings.Contains(l.Launch.Device, "emulator") {
		return Emu
	}
	return GPU
}

// Close ends the child process. Its error says how the process ended, if not as it should.
func (l *Library) Close() error { return l.Lib.Close() }
