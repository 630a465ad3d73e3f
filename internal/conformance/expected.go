package conformance

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// FormatExpected is the list of expected results as text: one line for each case, sorted by name.
func FormatExpected(results []Result) []byte {
	var b bytes.Buffer
	for _, r := range results {
		fmt.Fprintf(&b, "%s: %s\n", r.Name, r.outcome())
	}
	return b.Bytes()
}

// outcome is what such a line says behind the name.
func (r Result) outcome() string {
	switch {
	case r.Status == Skip:
		return "skip, " + r.Reason
	case len(r.Bound) > 0:
		return string(r.Status) + ", bound " + strings.Join(r.Bound, " ")
	}
	return string(r.Status)
}

// ParseExpected reads a list of expected results.
func ParseExpected(data []byte) ([]Result, error) {
	var out []Result
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		name, rest, ok := strings.Cut(line, ": ")
		status, more, _ := strings.Cut(rest, ", ")
		if !ok {
			return nil, fmt.Errorf("line %d: want NAME: OUTCOME, found %q", i+1, line)
		}
		r := Result{Name: name, Status: Status(status)}
		if bound, ok := strings.CutPrefix(more, "bound "); ok {
			r.Bound = strings.Fields(bound)
		} else {
			r.Reason = more
		}
		out = append(out, r)
	}
	return out, nil
}

// CompareExpected lists how results differ from the list in the file. Cases that were not run are left out.
func CompareExpected(file string, results []Result) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list, err := ParseExpected(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	want := map[string]string{}
	for _, r := range list {
		want[r.Name] = r.outcome()
	}
	var changes []string
	for _, r := range results {
		switch w, known := want[r.Name]; {
		case !known:
			changes = append(changes, fmt.Sprintf("%s: %s, not in the list", r.Name, r.outcome()))
		case w != r.outcome():
			changes = append(changes, fmt.Sprintf("%s: %s, expected: %s", r.Name, r.outcome(), w))
		}
	}
	return changes, nil
}
