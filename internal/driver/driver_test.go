package driver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
)

// crash is a command whose second stage has a bug.
func crash(job *Job, dump string, what any) (err error) {
	defer job.Guard(&err)
	job.Stage("import")("done")
	job.dump = dump
	job.Stage("lower")
	panic(what)
}

func TestPanicIsReportedWithItsStage(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		what any
		dump string
		want string
	}{
		{"BUG: no tile", "", "BUG: no tile (driver_test.go:"},
		{"BUG: no tile", "", "in stage lower; run again with --dump DIR"},
		{errors.New("index out of range"), dir, "BUG: index out of range (driver_test.go:"},
		{errors.New("index out of range"), dir, "report what " + dir + " holds"},
	} {
		err := crash(&Job{}, c.dump, c.what)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		if got := ExitCode(err); got != ExitInternal {
			t.Errorf("exit code %d", got)
		}
	}
	stack, err := os.ReadFile(filepath.Join(dir, "panic.txt"))
	if err != nil || !bytes.Contains(stack, []byte("driver.crash(")) {
		t.Errorf("the dump lacks the stack: %v\n%s", err, stack)
	}
}

func TestNilDereferenceIsReported(t *testing.T) {
	err := func() (err error) {
		job := &Job{}
		defer job.Guard(&err)
		var g *ir.Graph
		_ = g.Nodes
		return nil
	}()
	if err == nil || !strings.Contains(err.Error(), "nil pointer") || !strings.Contains(err.Error(), "driver_test.go") {
		t.Errorf("got %v", err)
	}
}

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, ExitOK},
		{errors.New("disk full"), ExitInternal},
		{diag.New("bad-flag", "no"), ExitInput},
		{fmt.Errorf("more: %w", &diag.List{Items: []*diag.Diagnostic{{Message: "x"}}}), ExitInput},
		{&CheckError{"differs"}, ExitCheck},
		{fmt.Errorf("more: %w", &toolchain.Missing{Tool: "nvcc"}), ExitTool},
		{&InternalError{Bug: "x"}, ExitInternal},
		{&runner.Crash{State: "signal: killed", Killed: true}, ExitTool},
		{&runner.Crash{State: "signal: segmentation fault"}, ExitInternal},
		{&runner.Crash{State: "exit status 66", Under: "sanitizer"}, ExitCheck},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}
