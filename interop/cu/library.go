package rammercu

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// The C interface of libraries, as NAME.h of each has it.
typedef struct {
  size_t size;
  const char *weights_path;
  int device, mode;
  uint64_t watchdog_ns, emu_seed;
  int emu_max_blocks;
  uint64_t delay_seed;
} rammer_options;
typedef struct {
  const char *name;
  int dtype, rank;
  const int64_t *dims;
  size_t bytes;
} rammer_tensor;
typedef struct {
  int input_count;
  const rammer_tensor *inputs;
  int output_count;
  const rammer_tensor *outputs;
} rammer_io;
typedef struct {
  int (*create)(const rammer_options *, void **);
  int (*run_async)(void *, void *, const void *const *, void *const *);
  void (*destroy)(void *);
  const char *(*last_error)(const void *);
  const rammer_io *(*io_info)(void);
  const char *(*run_info)(const void *);
} rammer_interface;

static int rammer_create(const rammer_interface *i, void **made) {
  rammer_options o = {sizeof o};
  return i->create(&o, made);
}
static int rammer_run(const rammer_interface *i, void *c, void *stream, uintptr_t *pointers, int inputs) {
  return i->run_async(c, stream, (const void *const *)pointers, (void *const *)(pointers + inputs));
}
static void rammer_destroy(const rammer_interface *i, void *c) { i->destroy(c); }
static const char *rammer_error(const rammer_interface *i, const void *c) { return i->last_error(c); }
static const rammer_io *rammer_io_info(const rammer_interface *i) { return i->io_info(); }
static const char *rammer_run_info(const rammer_interface *i, const void *c) { return i->run_info(c); }
*/
import "C"

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"gorgonia.org/cu"
)

// Library is a shared library of rammerc in a context. Its C++ run time works in the CUDA context that is current, which
// is cu's, and on cu's streams and memory. Libraries whose dims have ranges run here with the largest extents.
type Library struct {
	ctx             cu.Context
	calls           *C.rammer_interface
	context         unsafe.Pointer
	mutex           sync.Mutex
	inputs, outputs []Tensor
}

// OpenLibrary loads libNAME.so, beside which NAME.weights is, and makes a context of it in that of cu.
func OpenLibrary(ctx cu.Context, path string) (*Library, error) {
	base := filepath.Base(path)
	name, found := strings.CutPrefix(strings.TrimSuffix(base, ".so"), "lib")
	if !found || !strings.HasSuffix(base, ".so") {
		return nil, fmt.Errorf("%s: want libNAME.so", path)
	}
	l := &Library{ctx: ctx, calls: (*C.rammer_interface)(C.calloc(1, C.sizeof_rammer_interface))}
	if err := ctx.Do(func() error { return l.open(path, name) }); err != nil {
		C.free(unsafe.Pointer(l.calls))
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	io := C.rammer_io_info(l.calls)
	l.inputs = libraryTensors(io.inputs, io.input_count)
	l.outputs = libraryTensors(io.outputs, io.output_count)
	return l, nil
}

// open runs in the context's thread. The library stays in the process when it is closed, as libraries with a CUDA run time
// must.
func (l *Library) open(path, name string) error {
	file := C.CString(path)
	defer C.free(unsafe.Pointer(file))
	lib := C.dlopen(file, C.RTLD_NOW|C.RTLD_LOCAL)
	if lib == nil {
		return errors.New(C.GoString(C.dlerror()))
	}
	for _, f := range []struct {
		name string
		to   unsafe.Pointer
	}{
		{"create", unsafe.Pointer(&l.calls.create)}, {"run_async", unsafe.Pointer(&l.calls.run_async)},
		{"destroy", unsafe.Pointer(&l.calls.destroy)}, {"last_error", unsafe.Pointer(&l.calls.last_error)},
		{"io_info", unsafe.Pointer(&l.calls.io_info)}, {"run_info", unsafe.Pointer(&l.calls.run_info)},
	} {
		symbol := C.CString(name + "_" + f.name)
		at := C.dlsym(lib, symbol)
		C.free(unsafe.Pointer(symbol))
		if at == nil {
			return fmt.Errorf("it has no function %s_%s", name, f.name)
		}
		*(*unsafe.Pointer)(f.to) = at
	}
	if C.rammer_create(l.calls, &l.context) != 0 {
		return errors.New(C.GoString(C.rammer_error(l.calls, nil)))
	}
	return nil
}

func libraryTensors(p *C.rammer_tensor, n C.int) []Tensor {
	out := make([]Tensor, n)
	for i, t := range unsafe.Slice(p, n) {
		out[i] = Tensor{Name: C.GoString(t.name), DType: int(t.dtype), Bytes: int64(t.bytes)}
		for _, d := range unsafe.Slice(t.dims, t.rank) {
			out[i].Dims = append(out[i].Dims, int64(d))
		}
	}
	return out
}

// Context is the context that the library was opened in.
func (l *Library) Context() cu.Context { return l.ctx }

// Inputs describes the inputs.
func (l *Library) Inputs() []Tensor { return l.inputs }

// Outputs describes the outputs.
func (l *Library) Outputs() []Tensor { return l.outputs }

// How is NAME_run_info of the library, as JSON.
func (l *Library) How() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.context == nil {
		return "closed"
	}
	return C.GoString(C.rammer_run_info(l.calls, l.context))
}

// Launch is NAME_run_async of the library.
func (l *Library) Launch(stream cu.Stream, inputs, outputs []cu.DevicePtr) error {
	if err := checkPointers(l, inputs, outputs); err != nil {
		return err
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.context == nil {
		return errors.New("the library is closed")
	}
	pointers := make([]C.uintptr_t, 0, len(inputs)+len(outputs)+1)
	for _, p := range append(append([]cu.DevicePtr{}, inputs...), outputs...) {
		pointers = append(pointers, C.uintptr_t(p))
	}
	pointers = append(pointers, 0) // so that there is a first one
	return l.ctx.Do(func() error {
		if C.rammer_run(l.calls, l.context, unsafe.Pointer(stream.C()), &pointers[0], C.int(len(inputs))) != 0 {
			return errors.New(C.GoString(C.rammer_error(l.calls, l.context)))
		}
		return nil
	})
}

// Close waits for what still runs and releases the library's context.
func (l *Library) Close() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.context == nil {
		return nil
	}
	err := l.ctx.Do(func() error {
		C.rammer_destroy(l.calls, l.context)
		return nil
	})
	C.free(unsafe.Pointer(l.calls))
	l.context, l.calls = nil, nil
	return err
}
