package driver

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/internal/runner"
	"github.com/rammerc/rammerc/internal/toolchain"
	"github.com/rammerc/rammerc/ir"
)

// crash is a command whose second stage has a bug.
func crash(ui *UI, dump string, what any) (err error) {
	defer ui.guard(&err)
	ui.Stage("import")("done")
	ui.dump = dump
	ui.Stage("lower")
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
		err := crash(&UI{}, c.dump, c.what)
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
		ui := &UI{}
		defer ui.guard(&err)
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
		{usage("bad-flag", "no"), ExitInput},
		{fmt.Errorf("more: %w", &diag.List{Items: []*diag.Diagnostic{{Message: "x"}}}), ExitInput},
		{&CheckError{"differs"}, ExitCheck},
		{fmt.Errorf("more: %w", &toolchain.Missing{Tool: "nvcc"}), ExitTool},
		{&InternalError{Bug: "x"}, ExitInternal},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

// TestSanitizerFindings: a process that ended badly after answering everything is a failed check when
// it ran under ThreadSanitizer, else a crash.
func TestSanitizerFindings(t *testing.T) {
	crash := &runner.Crash{State: "exit status 66", Stderr: "WARNING: ThreadSanitizer: data race"}
	err := closingError(crash, true)
	if ExitCode(err) != ExitCheck || !strings.Contains(err.Error(), "data race") {
		t.Errorf("got %v", err)
	}
	if err := closingError(crash, false); ExitCode(err) != ExitInternal {
		t.Errorf("got %v", err)
	}
}

func TestOutDirLeavesNothing(t *testing.T) {
	root := t.TempDir()
	o, err := checkOut(filepath.Join(root, "a", "b", "out"), "net")
	if err != nil {
		t.Fatal(err)
	}
	ui := &UI{}
	if err := o.begin(ui); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.work, "net.cu"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	o.discard()
	assertTree(t, root, ".")

	// The same when the user interrupts, except that the parents stay.
	if err := o.begin(ui); err != nil {
		t.Fatal(err)
	}
	ui.Abandon()
	assertTree(t, root, ".", "a", "a/b")
}

// An interrupt may come while a folder is being made, and while something still writes into one.
func TestAbandonIsFinal(t *testing.T) {
	root := t.TempDir()
	ui := &UI{}
	first, _, err := ui.tempDir(root, "first-*")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Add(1)
	go func() { // writes as long as there is a folder to write into
		running.Done()
		for i := 0; os.WriteFile(filepath.Join(first, strconv.Itoa(i)), nil, 0o666) == nil; i++ {
		}
	}()
	made := make(chan int, 1000)
	running.Add(1)
	go func() { // makes folders until Abandon stops it for good
		running.Done()
		for i := range cap(made) {
			if _, _, err := ui.tempDir(root, "next-*"); err != nil {
				t.Error(err)
			}
			made <- i
		}
	}()
	running.Wait()
	for range 3 {
		<-made
	}
	ui.Abandon()
	assertTree(t, root, ".")
}

func TestOutDirReplacesItsOwnOnly(t *testing.T) {
	root := t.TempDir()
	final := filepath.Join(root, "out")
	for _, name := range []string{"net.plan.json", "net.cu", "libnet.so", "cudaemu/host.h", "notes.txt", "network.txt"} {
		path := filepath.Join(final, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	o, err := checkOut(final, "net")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.begin(&UI{}); err != nil {
		t.Fatal(err)
	}
	defer o.discard()
	if err := os.WriteFile(filepath.Join(o.work, "net.plan.json"), []byte("new"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := o.commit(); err != nil {
		t.Fatal(err)
	}
	assertTree(t, final, ".", "net.plan.json", "network.txt", "notes.txt")
	if data, _ := os.ReadFile(filepath.Join(final, "net.plan.json")); string(data) != "new" {
		t.Errorf("the old file is still there")
	}
}

func assertTree(t *testing.T, root string, want ...string) {
	t.Helper()
	var got []string
	err := fs.WalkDir(os.DirFS(root), ".", func(p string, _ fs.DirEntry, err error) error {
		got = append(got, p)
		return err
	})
	if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
}
