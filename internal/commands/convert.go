package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/rammerc/rammerc/internal/convert"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/driver"
	"github.com/rammerc/rammerc/internal/process"
	"github.com/rammerc/rammerc/internal/toolchain"
)

// ConvertOptions are the flags of `rammerc convert`.
type ConvertOptions struct {
	convert.Options
	Out   string // the folder of rKernels
	Check bool   // compare with the original
}

// ConvertResult is what `rammerc convert` prints.
type ConvertResult struct {
	Schema  string   `json:"schema"`
	Name    string   `json:"name"`
	Files   []string `json:"files"`
	Threads int      `json:"threads"`       // of an rTask, of which the kernel's blocks have as many or fewer
	Shared  int64    `json:"static_shared"` // bytes of static shared memory
	// Leaves says that threads may end before others meet, for which barriers count.
	Leaves  bool         `json:"leaves"`
	Checked *Convertible `json:"checked,omitempty"`
}

// Convertible is how a converted kernel compares with the original.
type Convertible struct {
	Engine string `json:"engine"` // "emu" or "gpu"
	Equal  bool   `json:"equal"`
	// What a launch takes on the GPU, in microseconds; 0 on the emulator.
	Original  float64 `json:"original_us,omitempty"`
	Converted float64 `json:"converted_us,omitempty"`
}

// Convert makes an rKernel of a kernel that is written in CUDA.
func Convert(job *driver.Job, o ConvertOptions) (out *ConvertResult, err error) {
	defer job.Guard(&err)
	if o.Out == "" || o.Spec == "" {
		return nil, diag.New("bad-flag", "convert needs --spec and -o")
	}
	r, err := convert.Convert(context.Background(), o.Options)
	if err != nil {
		return nil, err
	}
	out = &ConvertResult{Schema: "rammerc/convert/v1", Name: r.Spec.Name, Threads: r.Spec.Launch.Threads(),
		Shared: r.Static,
		Leaves: r.Leaves}
	if o.Check {
		if out.Checked, err = checkConverted(job, r); err != nil {
			return nil, err
		}
	}
	out.Files, err = r.Write(o.Out)
	return out, err
}

// checkConverted runs the original and the converted kernel side by side, on the GPU at hand or else on the emulator.
func checkConverted(job *driver.Job, r *convert.Result) (*Convertible, error) {
	dir, remove, err := job.Folders.Make("", "rammerc-convert-")
	if err != nil {
		return nil, err
	}
	defer remove()
	ctx, flags := context.Background(), []string{"-w", "-I", "include"}
	program := filepath.Join(dir, "compare")
	arch := toolchain.LocalArch(ctx)
	nvcc, missing := toolchain.FindNVCC("")
	onGPU := arch != "" && missing == nil
	if r.Spec.Example == nil {
		return nil, &diag.Diagnostic{ID: "no-example", File: r.Spec.Name, Message: "there is nothing to compare on",
			Help: "give an example in the specification: example: {dims: {…}}"}
	}
	if err := convert.WriteProgram(dir, "compare.cc", []*convert.Result{r}, onGPU); err != nil {
		return nil, diag.New("bad-kernel-spec", "%v", err)
	}
	out := &Convertible{Engine: "emu"}
	if onGPU {
		out.Engine = "gpu"
		err = nvcc.BuildProgramFor(ctx, dir, program, "compare.cc", arch, append(flags, "-O3")...)
	} else {
		var cxx *toolchain.Cxx
		if cxx, err = toolchain.FindCxx(""); err == nil {
			_, err = cxx.BuildProgram(ctx, dir, program, []string{"compare.cc"},
				append(flags, "-fno-strict-aliasing")...)
		}
	}
	if err != nil {
		return nil, err
	}
	var said strings.Builder
	cmd := process.Command(ctx, program)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := process.Run(cmd); err != nil {
		return nil, &driver.CheckError{Message: fmt.Sprintf("%s is not what the original is: %s (%v)", r.Spec.Name,
			strings.TrimSpace(said.String()), err)}
	}
	if err := json.Unmarshal([]byte(said.String()), out); err != nil {
		return nil, errors.Join(errors.New("the comparison's result cannot be read"), err)
	}
	return out, nil
}

// Text prints the result for people.
func (r *ConvertResult) Text(w io.Writer) {
	for _, f := range r.Files {
		fmt.Fprintln(w, f)
	}
	if c := r.Checked; c != nil && c.Original > 0 {
		fmt.Fprintf(w, "equal to the original; %.2f µs a launch, the original %.2f\n", c.Converted, c.Original)
	} else if c != nil {
		fmt.Fprintln(w, "equal to the original")
	}
}
