// Package conformance runs ONNX's backend tests with three engines: ir/eval on the imported graph, and compiled
// programs on the emulator and on a GPU. It is for tests only.
//
// A test is a folder with a model and data sets, as the ONNX project publishes them. Many compiled models share one
// program (codegen.EmitBundle), so that the whole suite builds in minutes. The result of each test is compared with a
// committed list, so every change of a result shows.
package conformance

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
)

// TestsVariable names the folder of ONNX's backend tests in the environment.
const TestsVariable = "RAMMER_ONNX_TESTS"

// Case is one backend test.
type Case struct {
	Name string // the name of its folder
	Dir  string
}

// Status is how a case ended.
type Status string

// The ways a case can end.
const (
	Pass Status = "pass"
	Fail Status = "fail"
	Skip Status = "skip"
)

// Result says how a case ended and why.
type Result struct {
	Name   string   `json:"name"`
	Status Status   `json:"status"`
	Reason string   `json:"reason,omitempty"` // why it was skipped: one of few texts, by which skips are counted
	Detail string   `json:"detail,omitempty"` // more about a failure or skip
	Bound  []string `json:"bound,omitempty"`  // inputs that were fixed at compile time
	// Usual says that the program is the one of the default precision, which is tested with that, and was not run again.
	Usual bool `json:"usual,omitempty"`
}

func failed(c Case, err error) Result {
	return Result{Name: c.Name, Status: Fail, Detail: err.Error()}
}

// suites are the folders below the root that contain tests.
var suites = []string{"node", "simple"}

// Discover lists the tests below root, sorted by name. Unless only is nil, it must match a test's name.
func Discover(root string, only *regexp.Regexp) ([]Case, error) {
	if _, err := os.Stat(filepath.Join(root, "data")); err == nil {
		root = filepath.Join(root, "data")
	}
	var cases []Case
	for _, suite := range suites {
		entries, err := os.ReadDir(filepath.Join(root, suite))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			dir := filepath.Join(root, suite, e.Name())
			if !e.IsDir() || only != nil && !only.MatchString(e.Name()) {
				continue
			}
			if _, err := os.Stat(filepath.Join(dir, "model.onnx")); err == nil {
				cases = append(cases, Case{e.Name(), dir})
			}
		}
	}
	if len(cases) == 0 && only == nil {
		return nil, &fs.PathError{Op: "tests below", Path: root, Err: fs.ErrNotExist}
	}
	sort.Slice(cases, func(i, j int) bool { return cases[i].Name < cases[j].Name })
	return cases, nil
}

// forEach calls f with each number below n, on so many goroutines.
func forEach(n, workers int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range max(1, min(workers, n)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				f(i)
			}
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// guarded turns a panic of f into a failure.
func guarded(c Case, f func() Result) (r Result) {
	defer func() {
		if p := recover(); p != nil {
			r = failed(c, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	return f()
}

// Counts is how many results have each status.
func Counts(results []Result) map[Status]int {
	n := map[Status]int{}
	for _, r := range results {
		n[r.Status]++
	}
	return n
}

// Summary is a text about results: failures with details, skips by reason, and as its last line
// "conformance ENGINE: N passed, N failed, N skipped".
func Summary(engine string, results []Result) string {
	var b strings.Builder
	bound, usual := 0, 0
	for _, r := range results {
		if r.Status == Fail {
			fmt.Fprintf(&b, "FAIL %s: %s\n", r.Name, r.Detail)
		}
		if r.Status == Pass && len(r.Bound) > 0 {
			bound++
		}
		if r.Usual {
			usual++
		}
	}
	for _, g := range byReason(results) {
		fmt.Fprintf(&b, "%5d skipped: %s\n", len(g.names), g.reason)
	}
	if bound > 0 {
		fmt.Fprintf(&b, "%5d of those that passed have inputs fixed at compile time\n", bound)
	}
	if usual > 0 {
		fmt.Fprintf(&b, "%5d of those that passed have the program of the default precision\n", usual)
	}
	n := Counts(results)
	fmt.Fprintf(&b, "conformance %s: %d passed, %d failed, %d skipped\n", engine, n[Pass], n[Fail], n[Skip])
	return b.String()
}

type reasonGroup struct {
	reason string
	names  []string
}

// byReason groups skips by their reason, the largest group first.
func byReason(results []Result) []reasonGroup {
	at := map[string]int{}
	var groups []reasonGroup
	for _, r := range results {
		if r.Status != Skip {
			continue
		}
		i, ok := at[r.Reason]
		if !ok {
			i = len(groups)
			at[r.Reason] = i
			groups = append(groups, reasonGroup{reason: r.Reason})
		}
		groups[i].names = append(groups[i].names, r.Name)
	}
	sort.Slice(groups, func(i, j int) bool {
		a, b := groups[i], groups[j]
		return len(a.names) > len(b.names) || len(a.names) == len(b.names) && a.reason < b.reason
	})
	return groups
}
