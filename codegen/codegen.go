// Package codegen turns a vdevice.Plan into the sources of a library: one self-contained .cu file with
// the rKernels, the arguments of every rOperator and the executor; its C header; the weights file with
// the constants and the program tables; and what other build systems and languages need to use it.
//
// The emitted .cu is CUDA for nvcc and C++20 for any other compiler, where the emulator's headers in
// its folder cudaemu stand in for the GPU (see codegen/backend).
package codegen

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/precision"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/vdevice"
)

// Options say what to emit.
type Options struct {
	Name    string // prefix of all symbols and files; Emit makes it an identifier
	Version string // of rammerc
	Model   string // file name of the model, without folders
	// Precision is how products of float32 were asked to be made, for NAME.plan.json.
	Precision precision.Choice
	// Weights is the form in which weights were asked to be stored, "" for their own, for NAME.plan.json.
	Weights string
	// Cost is the time of one rTask that the plan was made with, in nanoseconds, and whether it was measured, for
	// NAME.plan.json; nil leaves it out.
	Cost func(*roperator.Candidate) (ns float64, measured bool)
	// ErrorBudget is what the precisions were chosen for; nil if they were given.
	ErrorBudget *ErrorBudget

	// Generate says how a library searches of which one run produces a whole answer; nil for others.
	Generate *Generation

	Tried []Try // the plans that were compared before this one was chosen, for NAME.plan.json

	// Specials are the plans of special programs: programs beside a general one for parts of its ranges, the smallest
	// first. Their graphs have its ranges in its order; a range may have a single extent there.
	Specials []*vdevice.Plan
	// Prompt is the plan of the program that takes the prompt of a library that generates; nil without one.
	Prompt *vdevice.Plan
	// Apart says that each program, also the one that is not special, takes one combination of extents alone: its largest.
	Apart bool

	// Kernels are the sources of rKernels, where they are others than rammerc's and those of users' kernels in the plans.
	Kernels fs.FS

	cubin bool // the source is for a cubin (EmitCubin): without host code, with what callers of the driver need
}

// Generation is how a library produces answers, as NAME_dims_info and NAME.plan.json tell it.
type Generation struct {
	Search string      `json:"search"`
	Ends   []int64     `json:"end_tokens,omitempty"` // that end an answer
	Tokens int64       `json:"max_tokens"`           // of prompt and answer
	Caches [][2]string `json:"caches"`               // of the decoder: inputs and the outputs that are longer
}

// ErrorBudget is how far outputs may be from those of ir/eval, as relative L2 error, and how far precisions were found to
// make them when these were chosen for the budget.
type ErrorBudget struct {
	Allowed   float64 `json:"allowed"`
	Predicted float64 `json:"predicted"`
	Checked   float64 `json:"checked"`
	Samples   int     `json:"samples"` // inferences that were checked
}

// Try is a plan that was compared with others.
type Try struct {
	Plan       string  `json:"plan"`                  // what kind of plan
	ModelledUS float64 `json:"modelled_us"`           // by the cost model
	MeasuredUS float64 `json:"measured_us,omitempty"` // median on the device; 0: it was not timed
	Problem    string  `json:"problem,omitempty"`     // why not
	Chosen     bool    `json:"chosen"`
}

// A Sink takes the emitted files. Names may contain folders, separated by slashes.
type Sink interface {
	Create(name string) (io.WriteCloser, error)
}

// Emit writes all files of the library. Findings about the model are diagnostics; other errors are the
// sink's.
func Emit(plan *vdevice.Plan, opt Options, sink Sink) error {
	opt.Name = abi.Identifier(opt.Name)
	l, err := newLayout(plan, opt, opt.sources(plan))
	if err != nil {
		return err
	}
	hash, err := writeFile(sink, opt.Name+".weights", l.writeWeights)
	if err != nil {
		return err
	}
	l.hash = hash
	return writeFiles(sink, files(l))
}

// sources are those of the rKernels in the plans.
func (o *Options) sources(plans ...*vdevice.Plan) fs.FS {
	if o.Kernels != nil {
		return o.Kernels
	}
	var out fs.FS = rkernels.Files
	for _, p := range plans {
		for _, op := range p.Graph.Ops {
			for _, c := range op.Candidates {
				out = c.Inst.Kernel.Sources(out)
			}
		}
	}
	return out
}

func writeFiles(sink Sink, list []file) error {
	for _, f := range list {
		if _, err := writeFile(sink, f.name, func(w io.Writer) (uint64, error) { return 0, f.write(w) }); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(sink Sink, name string, write func(io.Writer) (uint64, error)) (uint64, error) {
	w, err := sink.Create(name)
	if err != nil {
		return 0, err
	}
	hash, err := write(w)
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return hash, nil
}

// Dir is a Sink that writes below a folder. The folder must exist: when the user interrupts the command and
// it is removed, nothing makes it again.
type Dir string

// Create makes the file and the folders between Dir and it.
func (d Dir) Create(name string) (io.WriteCloser, error) {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	p := filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		return nil, err
	}
	return root.Create(p)
}

// Memory is a Sink that keeps the files.
type Memory map[string][]byte

// Create keeps what is written when it is closed.
func (m Memory) Create(name string) (io.WriteCloser, error) {
	return &memoryFile{name: name, in: m}, nil
}

type memoryFile struct {
	name string
	in   Memory
	data []byte
}

func (f *memoryFile) Write(p []byte) (int, error) {
	f.data = append(f.data, p...)
	return len(p), nil
}

func (f *memoryFile) Close() error {
	f.in[f.name] = f.data
	return nil
}

func problem(id, format string, args ...any) error {
	return &diag.Diagnostic{ID: id, Message: fmt.Sprintf(format, args...)}
}
