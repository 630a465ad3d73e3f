package rammercu

import (
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
	"gorgonia.org/tensor"
)

// upload copies bytes of the host to the device. It runs in the context's thread.
func upload(to cu.DevicePtr, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	return cu.MemcpyHtoD(to, unsafe.Pointer(unsafe.SliceData(data)), int64(len(data)))
}

// download copies bytes of the device to the host. It runs in the context's thread.
func download(data []byte, from cu.DevicePtr) error {
	if len(data) == 0 {
		return nil
	}
	return cu.MemcpyDtoH(unsafe.Pointer(unsafe.SliceData(data)), from, int64(len(data)))
}

// Engine is Gorgonia's engine for tensors in the device memory of a context. It computes nothing: models do, and copies.
//
//	x := tensor.New(tensor.WithEngine(rammercu.Engine{ctx}), tensor.WithShape(1, 3), tensor.Of(tensor.Float32))
//	defer rammercu.Free(x)
type Engine struct{ Context cu.Context }

// Memory is device memory as Gorgonia knows it.
type Memory struct {
	At    cu.DevicePtr
	Bytes int64
}

// Uintptr is the address on the device.
func (m Memory) Uintptr() uintptr { return uintptr(m.At) }

// MemSize is the number of bytes.
func (m Memory) MemSize() uintptr { return uintptr(m.Bytes) }

// AllocAccessible says that Go cannot read the memory.
func (Engine) AllocAccessible() bool { return false }

// Alloc makes device memory of so many bytes.
func (e Engine) Alloc(size int64) (tensor.Memory, error) {
	m := Memory{Bytes: size}
	return m, e.Context.Do(func() (err error) {
		m.At, err = cu.MemAlloc(max(1, size))
		return err
	})
}

// Free releases memory of Alloc.
func (e Engine) Free(m tensor.Memory, _ int64) error {
	return e.Context.Do(func() error { return cu.MemFree(cu.DevicePtr(m.Uintptr())) })
}

// Memset sets all elements to val.
func (e Engine) Memset(m tensor.Memory, val interface{}) error {
	data, err := repeated(val, int(m.MemSize()))
	if err != nil {
		return err
	}
	return e.Context.Do(func() error { return upload(cu.DevicePtr(m.Uintptr()), data) })
}

// repeated is a number over and over, in so many bytes.
func repeated(val interface{}, size int) ([]byte, error) {
	data := hostBytes(tensor.New(tensor.FromScalar(val)))
	if len(data) == 0 || size%len(data) != 0 {
		return nil, fmt.Errorf("%d bytes are no whole number of %T", size, val)
	}
	out := make([]byte, 0, size)
	for len(out) < size {
		out = append(out, data...)
	}
	return out, nil
}

// Memclr sets all bytes to zero.
func (e Engine) Memclr(m tensor.Memory) {
	_ = e.Context.Do(func() error { return cu.MemsetD8(cu.DevicePtr(m.Uintptr()), 0, int64(m.MemSize())) })
}

// Memcpy copies from one memory of the device to another.
func (e Engine) Memcpy(dst, src tensor.Memory) error {
	n := int64(min(dst.MemSize(), src.MemSize()))
	return e.Context.Do(func() error {
		return cu.MemcpyDtoD(cu.DevicePtr(dst.Uintptr()), cu.DevicePtr(src.Uintptr()), n)
	})
}

// Accessible copies device memory to where Go can read it.
func (e Engine) Accessible(m tensor.Memory) (tensor.Memory, error) {
	data := make([]byte, m.MemSize())
	err := e.Context.Do(func() error { return download(data, cu.DevicePtr(m.Uintptr())) })
	return hostMemory(data), err
}

// hostMemory is memory of Go.
type hostMemory []byte

func (m hostMemory) Uintptr() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(m))) }
func (m hostMemory) MemSize() uintptr { return uintptr(len(m)) }

// WorksWith says that tensors are row-major.
func (Engine) WorksWith(order tensor.DataOrder) bool {
	return order.IsContiguous() && !order.IsColMajor()
}

// NonStdAlloc says that tensors get their memory from Alloc.
func (Engine) NonStdAlloc() {}

// types are ONNX's numbers of the element types that Gorgonia has.
var types = map[int]tensor.Dtype{
	1: tensor.Float32, 2: tensor.Uint8, 3: tensor.Int8, 4: tensor.Uint16, 5: tensor.Int16, 6: tensor.Int32,
	7: tensor.Int64, 9: tensor.Bool, 11: tensor.Float64, 12: tensor.Uint32, 13: tensor.Uint64,
}

// New makes a tensor in device memory for an input or output.
func (t Tensor) New(ctx cu.Context) (*tensor.Dense, error) {
	dtype, shape, err := t.gorgonia()
	if err != nil {
		return nil, err
	}
	m, err := Engine{ctx}.Alloc(max(t.Bytes, 1))
	if err != nil {
		return nil, err
	}
	return tensor.New(tensor.WithEngine(Engine{ctx}), tensor.Of(dtype), tensor.WithShape(shape...),
		tensor.FromMemory(m.Uintptr(), uintptr(t.Bytes))), nil
}

func (t Tensor) gorgonia() (tensor.Dtype, []int, error) {
	dtype, ok := types[t.DType]
	if !ok {
		return dtype, nil, fmt.Errorf("%s has an element type that Gorgonia has not (ONNX %d)", t.Name, t.DType)
	}
	shape := make([]int, len(t.Dims))
	for i, d := range t.Dims {
		shape[i] = int(d)
	}
	return dtype, shape, nil
}

// Free releases the device memory of a tensor that New or an Engine made.
func Free(t *tensor.Dense) error {
	e, ok := t.Engine().(Engine)
	if !ok {
		return errors.New("the tensor is not in device memory")
	}
	return e.Free(Memory{At: cu.DevicePtr(t.Uintptr())}, 0)
}

// Copy copies a tensor between host and device, in either direction, or on the device. Both have the same number of
// bytes.
func Copy(dst, src *tensor.Dense) error {
	if dst.MemSize() != src.MemSize() {
		return fmt.Errorf("the tensors have %d and %d bytes", dst.MemSize(), src.MemSize())
	}
	to, toDevice := dst.Engine().(Engine)
	from, fromDevice := src.Engine().(Engine)
	switch {
	case toDevice && fromDevice:
		return to.Memcpy(dst, src)
	case toDevice:
		return to.Context.Do(func() error { return upload(cu.DevicePtr(dst.Uintptr()), hostBytes(src)) })
	case fromDevice:
		return from.Context.Do(func() error { return download(hostBytes(dst), cu.DevicePtr(src.Uintptr())) })
	}
	copy(hostBytes(dst), hostBytes(src))
	return nil
}

// hostBytes are the bytes of a tensor that Go can read.
func hostBytes(t *tensor.Dense) []byte { return t.Header.Raw }

// Pointers are the places of tensors in device memory, for Model.Launch.
func Pointers(tensors ...*tensor.Dense) ([]cu.DevicePtr, error) {
	out := make([]cu.DevicePtr, len(tensors))
	for i, t := range tensors {
		if _, ok := t.Engine().(Engine); !ok {
			return nil, fmt.Errorf("tensor %d is not in device memory", i)
		}
		if !t.DataOrder().IsContiguous() || t.DataOrder().IsColMajor() {
			return nil, fmt.Errorf("tensor %d is not dense and row-major", i)
		}
		out[i] = cu.DevicePtr(t.Uintptr())
	}
	return out, nil
}

// Run runs one inference on tensors of the host, and waits for the results, which are in the host's memory, too.
func Run(m Model, inputs ...*tensor.Dense) (outputs []*tensor.Dense, err error) {
	if len(inputs) != len(m.Inputs()) {
		return nil, fmt.Errorf("want %d inputs, got %d", len(m.Inputs()), len(inputs))
	}
	var made []*tensor.Dense
	defer func() {
		for _, t := range made {
			err = errors.Join(err, Free(t))
		}
	}()
	place := func(list []Tensor) ([]cu.DevicePtr, error) {
		first := len(made)
		for _, t := range list {
			x, err := t.New(m.Context())
			if err != nil {
				return nil, err
			}
			made = append(made, x)
		}
		return Pointers(made[first:]...)
	}
	in, err := place(m.Inputs())
	if err != nil {
		return nil, err
	}
	out, err := place(m.Outputs())
	if err != nil {
		return nil, err
	}
	for i, x := range inputs {
		if x.Dtype() != made[i].Dtype() || !x.Shape().Eq(made[i].Shape()) {
			return nil, fmt.Errorf("input %s: want %v%v, got %v%v", m.Inputs()[i].Name, made[i].Dtype(), made[i].Shape(),
				x.Dtype(), x.Shape())
		}
		if err := Copy(made[i], x); err != nil {
			return nil, err
		}
	}
	if err := m.Launch(cu.NoStream, in, out); err != nil {
		return nil, err
	}
	if err := m.Context().Do(cu.Synchronize); err != nil {
		return nil, err
	}
	for _, x := range made[len(in):] {
		y := tensor.New(tensor.Of(x.Dtype()), tensor.WithShape(x.Shape()...))
		if err := Copy(y, x); err != nil {
			return nil, err
		}
		outputs = append(outputs, y)
	}
	return outputs, nil
}
