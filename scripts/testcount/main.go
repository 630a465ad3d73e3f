// Command testcount reads the output of `go test -json` and prints what failed, why tests were skipped,
// and last the line "N passed, N failed, N skipped". It exits with 1 when something failed or nothing ran.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
)

type event struct {
	Action, Package, Test, Output string
	ImportPath                    string // of build events
}

type key struct{ pkg, test string }

func main() {
	passed, failed, skipped := count(os.Stdin, os.Stdout)
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}

// count reads events and writes the report except its last line.
func count(r io.Reader, w io.Writer) (passed, failed, skipped int) {
	output := map[key][]string{}
	reasons := map[string][]string{}
	in := bufio.NewScanner(r)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var e event
		if json.Unmarshal(in.Bytes(), &e) != nil {
			fmt.Fprintln(w, in.Text()) // what the go command says outside of tests
			continue
		}
		k := key{e.Package, e.Test}
		switch e.Action {
		case "output":
			output[k] = append(output[k], e.Output)
		case "build-output":
			fmt.Fprint(w, e.Output)
		case "pass":
			if e.Test == "" {
				fmt.Fprintf(w, "ok    %s\n", e.Package)
			} else {
				passed++
			}
			delete(output, k)
		case "fail":
			failed++
			fmt.Fprintf(w, "FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(output[k], ""))
		case "skip":
			if e.Test != "" {
				skipped++
				why := reason(output[k])
				reasons[why] = append(reasons[why], e.Test)
			}
		}
	}
	printSkips(w, reasons)
	return passed, failed, skipped
}

// reason is what t.Skip said: the last line that is not the test's own banner.
func reason(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		s := strings.TrimSpace(lines[i])
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

func printSkips(w io.Writer, reasons map[string][]string) {
	var why []string
	for r := range reasons {
		why = append(why, r)
	}
	sort.Strings(why)
	for _, r := range why {
		names := reasons[r]
		more := ""
		if len(names) > 5 {
			more = fmt.Sprintf(" and %d more", len(names)-5)
			names = names[:5]
		}
		fmt.Fprintf(w, "skip  %d: %s (%s%s)\n", len(reasons[r]), r, strings.Join(names, ", "), more)
	}
}
