package rammercu

import (
	"fmt"

	"gorgonia.org/cu"
)

// Tensor describes an input or output.
type Tensor struct {
	Name  string
	DType int     // ONNX TensorProto.DataType
	Dims  []int64 // dense, row-major
	Bytes int64
}

// Model is a program in a context of cu: a *Program or a *Library. It runs one inference at a time.
type Model interface {
	// Context is where the model's memory is, and that of its inputs and outputs.
	Context() cu.Context
	Inputs() []Tensor
	Outputs() []Tensor
	// Launch puts one inference on the stream and returns. Inputs and outputs are device memory of the context, in the
	// order of Inputs and Outputs, which is read and written in place: aligned to 16 bytes, outputs apart from each other
	// and from inputs. It must not be called from a function that runs in Context().Do.
	Launch(stream cu.Stream, inputs, outputs []cu.DevicePtr) error
	// How says in which way the program is launched, and why.
	How() string
	// Close waits for what still runs and releases what the model has. The context stays.
	Close() error
}

// checkPointers says what is wrong with the memory of an inference.
func checkPointers(m Model, inputs, outputs []cu.DevicePtr) error {
	if len(inputs) != len(m.Inputs()) || len(outputs) != len(m.Outputs()) {
		return fmt.Errorf("want %d inputs and %d outputs, got %d and %d", len(m.Inputs()), len(m.Outputs()), len(inputs),
			len(outputs))
	}
	var spans []span
	for i, t := range m.Inputs() {
		spans = append(spans, span{"input " + t.Name, inputs[i], t.Bytes, false})
	}
	for i, t := range m.Outputs() {
		spans = append(spans, span{"output " + t.Name, outputs[i], t.Bytes, true})
	}
	for i, a := range spans {
		if a.at == 0 && a.bytes > 0 {
			return fmt.Errorf("%s is a null pointer", a.what)
		}
		if a.at%16 != 0 {
			return fmt.Errorf("%s is not aligned to 16 bytes", a.what)
		}
		for _, b := range spans[:i] {
			if (a.written || b.written) && a.overlaps(b) {
				return fmt.Errorf("%s overlaps %s", a.what, b.what)
			}
		}
	}
	return nil
}

// span is the memory of a tensor.
type span struct {
	what    string
	at      cu.DevicePtr
	bytes   int64
	written bool
}

func (a span) overlaps(b span) bool {
	return a.bytes > 0 && b.bytes > 0 && a.at < b.at+cu.DevicePtr(b.bytes) && b.at < a.at+cu.DevicePtr(a.bytes)
}
