package driver

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/outdir"
	"github.com/rammerc/rammerc/internal/progress"
)

// Job is one invocation of a command: where its progress is shown, the folders it works in, and where it keeps a
// dump. The zero value shows nothing. Only Folders.Abandon may be called from another goroutine.
type Job struct {
	progress.UI
	Folders outdir.Folders
	dump    string // directory of --dump once it is open

	imports map[[2]string]bool // files that were imported, and what was said of them
}

// NewJob is a job that shows its progress on f.
func NewJob(f *os.File) *Job { return &Job{UI: progress.New(f)} }

// imported ends the stage that imported a file, and shows its warnings. A command that needs a model twice, to compile
// it and as what the result is compared with, says so once.
func (j *Job) imported(path, detail string, warnings []*diag.Diagnostic, done func(string, ...any)) {
	quiet, key := j.Quiet, [2]string{path, detail}
	again := j.imports[key]
	if j.imports == nil {
		j.imports = map[[2]string]bool{}
	}
	j.imports[key] = true
	if !again {
		j.Warn(warnings)
	}
	j.Quiet = quiet || again
	done("%s", detail)
	j.Quiet = quiet
}

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

// Guard, which every command defers, turns a panic into an *InternalError. With --dump the stack goes into the
// dump's panic.txt.
func (j *Job) Guard(err *error) {
	p := recover()
	if p == nil {
		return
	}
	e := &InternalError{Stage: j.Running(), Bug: fmt.Sprint(p), Place: panicPlace(), Dump: j.dump, Stack: debug.Stack()}
	if e.Dump != "" {
		text := fmt.Sprintf("%v\n\n%s", e, e.Stack)
		if os.WriteFile(filepath.Join(e.Dump, "panic.txt"), []byte(text), 0o666) != nil {
			e.Dump = ""
		}
	}
	*err = e
}

// panicPlace is the innermost frame of the running panic that is not one of Go's run time.
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
