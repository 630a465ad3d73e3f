package attacks

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/internal/hostile"
	"github.com/rammerc/rammerc/internal/systemtest"
)

var (
	hostileTable = flag.String("hostile-table", "", "write the table of results by kind into this file")
	hostileOnly  = flag.String("hostile-only", "", "run the kinds alone whose names contain this")
)

// Limits of one run on a hostile file. The address space is limited, too, so that what is missing here cannot take the
// machine down.
const (
	hostileTime   = 10 * time.Second // of all processors together: other tests may run beside this one
	hostileWait   = time.Minute
	hostileMemory = 1 << 30 // resident bytes
	hostileSpace  = 4 << 30 // bytes of address space; Go's run time reserves much of it
	hostileFlag   = "--max-memory=300MiB"
)

// TestHostileFiles runs commands on the files of internal/hostile. Whatever they hold, a command ends soon, with the
// status 0 or 2, with a message unless it is 0, and without a dump of goroutines.
func TestHostileFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand runs")
	}
	t.Parallel()
	exe := systemtest.Rammerc(t)
	cases := hostile.All(hostileSources(t, exe))
	if len(cases) < 1000 {
		t.Errorf("there are %d cases only", len(cases))
	}
	cases = slices.DeleteFunc(cases, func(c hostile.Case) bool { return !strings.Contains(c.Kind, *hostileOnly) })
	results := make([]hostileResult, len(cases))
	work := make(chan int)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for i := range work {
				results[i] = runHostile(exe, &cases[i])
			}
		})
	}
	for i := range cases {
		work <- i
	}
	close(work)
	workers.Wait()
	for i, r := range results {
		if r.problem != "" {
			t.Errorf("%s, %s: rammerc %.200q: %s", cases[i].Kind, cases[i].Name, cases[i].Args, r.problem)
		}
	}
	table := hostileSummary(cases, results)
	t.Logf("\n%s", table)
	if *hostileTable != "" {
		if err := os.WriteFile(*hostileTable, []byte(table), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// hostileSources are the files of which damaged ones are made.
func hostileSources(t *testing.T, exe string) *hostile.Sources {
	s := &hostile.Sources{Models: map[string][]byte{}, PlanOf: "digits_branchy"}
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	const models = "../../../testdata/models/"
	for _, name := range []string{"digits_attention", "digits_branchy", "digits_lstm"} {
		s.Models[name] = read(models + name + ".onnx")
	}
	s.Device = read("../../../device/devices/emu4.yaml")
	if _, err := device.Parse("emu4.yaml", s.Device); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(exe, "compile", models+s.PlanOf+".onnx", "-q", "--target", "emu", "--emit", "cu", "--dump",
		filepath.Join(dir, "dump"), "-o", filepath.Join(dir, "out"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	last := func(pattern string) []byte {
		found, err := filepath.Glob(filepath.Join(dir, "dump", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("the dump has no %s", pattern)
		}
		return read(found[len(found)-1])
	}
	s.Plan = last("*.rprog")
	return s
}

type hostileResult struct {
	problem string
	status  int
	took    time.Duration
	memory  int64
}

// runHostile runs one case in a folder of its own.
func runHostile(exe string, c *hostile.Case) (r hostileResult) {
	dir, err := os.MkdirTemp("", "hostile-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = c.Write(dir)
	}
	if err != nil {
		return hostileResult{problem: err.Error()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), hostileWait)
	defer cancel()
	limited := fmt.Sprintf(`ulimit -v %d; exec "$@"`, hostileSpace>>10)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limited, "sh", exe, hostileFlag}, c.Args...)...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	err = cmd.Run()
	if cmd.ProcessState != nil {
		r.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil || r.took > hostileTime:
		r.problem = "does not end"
		return r
	case err != nil && !errors.As(err, &exit):
		r.problem = err.Error()
		return r
	}
	r.status = cmd.ProcessState.ExitCode()
	r.memory = cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	text := out.String()
	switch {
	case strings.Contains(text, "goroutine ") || strings.Contains(text, "fatal error"):
		r.problem = "a dump: " + text[:min(len(text), 600)]
	case r.status != 0 && r.status != 2:
		r.problem = fmt.Sprintf("status %d: %.600s", r.status, text)
	case r.status == 2 && !strings.Contains(text, "error: ") && !strings.Contains(text, "the way of compiling"):
		r.problem = "no message: " + text
	case r.memory > hostileMemory:
		r.problem = fmt.Sprintf("%d MB resident", r.memory>>20)
	case strings.ContainsAny(text, "\x00\x1b\r\x7f"):
		r.problem = fmt.Sprintf("unprintable: %q", text)
	}
	return r
}

// hostileSummary is the table of results by kind.
func hostileSummary(cases []hostile.Case, results []hostileResult) string {
	type sum struct {
		runs, accepted, refused, problems int
		took                              time.Duration
		memory                            int64
	}
	sums := map[string]*sum{}
	for i, r := range results {
		s := sums[cases[i].Kind]
		if s == nil {
			s = &sum{}
			sums[cases[i].Kind] = s
		}
		s.runs++
		switch {
		case r.problem != "":
			s.problems++
		case r.status == 0:
			s.accepted++
		default:
			s.refused++
		}
		s.took, s.memory = max(s.took, r.took), max(s.memory, r.memory)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 1, ' ', tabwriter.Debug)
	row := func(name string, s *sum) {
		fmt.Fprintf(w, "| %s\t %d\t %d\t %d\t %d\t %.1f s\t %d MB\t\n", name, s.runs, s.accepted, s.refused, s.problems,
			s.took.Seconds(), s.memory>>20)
	}
	fmt.Fprintf(w, "| kind\t runs\t status 0\t status 2\t anything else\t longest\t most memory\t\n")
	fmt.Fprintf(w, "|---\t---\t---\t---\t---\t---\t---\t\n")
	total := &sum{}
	for _, kind := range slices.Sorted(maps.Keys(sums)) {
		s := sums[kind]
		row(kind, s)
		total.runs, total.accepted, total.refused = total.runs+s.runs, total.accepted+s.accepted, total.refused+s.refused
		total.problems, total.took, total.memory = total.problems+s.problems, max(total.took, s.took), max(total.memory, s.memory)
	}
	row("all", total)
	w.Flush()
	return b.String()
}
