package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir/eval"
)

// Exit codes of the command (CLI manual).
const (
	ExitOK       = 0
	ExitInternal = 1 // a bug of rammerc, or a machine that fails: a full disk, a compiler that crashes
	ExitInput    = 2 // the user's model, data, flags or files
	ExitCheck    = 3 // what the user asked to be checked does not hold
	ExitTool     = 4 // nvcc, a C++ compiler or a GPU is missing
)

// CheckError says that a check the user asked for did not hold: results differ, a data race.
type CheckError struct{ Message string }

func (e *CheckError) Error() string { return e.Message }

// InternalError is a panic of a stage: rammerc's own fault, whatever the input.
type InternalError struct {
	Stage string // that was running, "" before the first
	Bug   string // what the panic said
	Place string // file and line that panicked
	Dump  string // directory of --dump, "" without
	Stack []byte
}

func (e *InternalError) Error() string {
	stage, help := "", "run again with --dump DIR and report what DIR holds"
	if e.Stage != "" {
		stage = " in stage " + e.Stage
	}
	if e.Dump != "" {
		help = "report what " + e.Dump + " holds"
	}
	return fmt.Sprintf("BUG: %s (%s)%s; %s", strings.TrimPrefix(e.Bug, "BUG: "), e.Place, stage, help)
}

// guard, deferred, turns a panic into an *InternalError. With --dump the stack is kept in panic.txt.
func (u *UI) guard(err *error) {
	p := recover()
	if p == nil {
		return
	}
	e := &InternalError{Stage: u.running(), Bug: fmt.Sprint(p), Place: panicPlace(), Dump: u.dump, Stack: debug.Stack()}
	if e.Dump != "" {
		text := fmt.Sprintf("%v\n\n%s", e, e.Stack)
		if os.WriteFile(filepath.Join(e.Dump, "panic.txt"), []byte(text), 0o666) != nil {
			e.Dump = ""
		}
	}
	*err = e
}

// panicPlace is the innermost frame of the running panic that is not the run time's.
func panicPlace() string {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(1, pc)])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			panicked = panicked || f.Function == "runtime.gopanic"
		case panicked:
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return "unknown place"
		}
	}
}

// ExitCode maps an error to the process's exit status.
func ExitCode(err error) int {
	var check *CheckError
	var internal *InternalError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &internal):
		return ExitInternal
	case errors.As(err, &check):
		return ExitCheck
	case toolchain.IsMissing(err):
		return ExitTool
	case len(diag.All(err)) > 0:
		return ExitInput
	}
	return ExitInternal
}

// usage is a user error that has no file: a flag, an environment variable.
func usage(id, format string, args ...any) *diag.Diagnostic {
	return &diag.Diagnostic{ID: id, Message: fmt.Sprintf(format, args...)}
}

// locate puts the model's file name into diagnostics that lack one.
func locate(err error, file string) error {
	for _, d := range diag.All(err) {
		if d.File == "" {
			d.File = file
		}
	}
	return err
}

// bare takes the path out of an error of package os, for messages that name the file already.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// evalError turns what the evaluator says of the data it was given into a diagnostic: an index out of
// range, a tensor that would be too large.
func evalError(err error, file string) error {
	var n *eval.NodeError
	if !errors.As(err, &n) {
		return err
	}
	d := &diag.Diagnostic{ID: "cannot-evaluate", File: file, Node: n.Node, Op: n.Op, Domain: n.Domain, Message: n.Err.Error()}
	if d.Node == "" && len(n.Origin) > 0 {
		d.Node = n.Origin[0].Name
	}
	return d
}
