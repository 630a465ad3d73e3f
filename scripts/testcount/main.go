// Command testcount reads the output of `go test -json` on standard input and writes a report of it:
//
//   - each package that passed, each test that failed with its output;
//   - the reasons for which tests were skipped, and how many tests each reason concerns;
//   - the ten packages that took longest;
//   - each package that took longer than the limit, with its slowest tests. That is no failure: times are the machine's too.
//
// The last line is "N passed, N failed, N skipped". The exit status is 1 when something failed, or when no test passed at
// all.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	limit := flag.Duration("limit", 500*time.Second,
		"the time above which a package is reported. Go ends a test program after ten minutes (its -timeout), on a slower\n"+
			"or busier machine too, so a package that needs five sixths of that should be made faster or split")
	flag.Parse()
	r := read(os.Stdin, os.Stdout)
	r.writeSkips(os.Stdout)
	r.writeTimes(os.Stdout)
	r.writeSlow(os.Stdout, *limit)
	fmt.Printf("%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	if r.failed > 0 || r.passed == 0 {
		os.Exit(1)
	}
}

// event is a line of `go test -json`, as documented by `go doc test2json`.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds, of a test or package that ended
}

// unit is a test or, where test is empty, a whole package.
type unit struct{ pkg, test string }

// report is what the events said.
type report struct {
	passed, failed, skipped int
	reasons                 map[string][]string // the names of skipped tests, by reason
	packages                []timed
	tests                   map[string][]timed // by package
}

// timed is a package or test, and how long it took.
type timed struct {
	name    string
	seconds float64
}

// read collects the events of in. It writes what concerns a single package or test to w as soon as it is known.
func read(in io.Reader, w io.Writer) *report {
	r := &report{reasons: map[string][]string{}, tests: map[string][]timed{}}
	output := map[unit][]string{} // of units that have not ended
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(w, lines.Text()) // what the go command says outside of tests
			continue
		}
		u := unit{e.Package, e.Test}
		switch e.Action {
		case "output":
			output[u] = append(output[u], e.Output)
		case "build-output":
			fmt.Fprint(w, e.Output)
		case "pass", "fail", "skip":
			r.ended(w, e, output[u])
			delete(output, u)
		}
	}
	return r
}

// ended counts a package or test that has ended; output is what it printed.
func (r *report) ended(w io.Writer, e event, output []string) {
	switch {
	case e.Action == "fail":
		r.failed++
		fmt.Fprintf(w, "FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(output, ""))
	case e.Test == "" && e.Action == "pass":
		fmt.Fprintf(w, "ok    %s\n", e.Package)
	case e.Action == "pass":
		r.passed++
	case e.Test != "": // a package without tests counts as skipped too, but says nothing
		r.skipped++
		why := reason(output)
		r.reasons[why] = append(r.reasons[why], e.Test)
	}
	if e.Test == "" {
		r.packages = append(r.packages, timed{e.Package, e.Elapsed})
	} else {
		r.tests[e.Package] = append(r.tests[e.Package], timed{e.Test, e.Elapsed})
	}
}

// reason is what the test said when it called t.Skip: the last line of its output that is not a line of the testing
// package ("=== RUN", "--- SKIP"), without the file and line in front.
func reason(output []string) string {
	for i := len(output) - 1; i >= 0; i-- {
		s := strings.TrimSpace(output[i])
		if s == "" || strings.HasPrefix(s, "---") || strings.HasPrefix(s, "===") {
			continue
		}
		if _, text, ok := strings.Cut(s, ".go:"); ok {
			if _, text, ok = strings.Cut(text, ": "); ok {
				return text
			}
		}
		return s
	}
	return "no reason given"
}
