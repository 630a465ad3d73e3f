package golden

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// TestMain removes what the tests' programs share once all tests have ended.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := programs.remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func contains(s, part string) bool { return strings.Contains(s, part) }

func nan() float64 { return math.NaN() }
func inf() float64 { return math.Inf(1) }

// fused is the statement of a Fused node with the given anchor, whose result is %y. in, body and out are the inputs,
// statements and result of its body; args are the node's own operands.
func fused(anchor, in, body, out, args string) string {
	return fmt.Sprintf("%%y = rammer.Fused(%s) {anchor = %q, body = graph \"body\" (%s) {\n%s\nreturn %s\n}}", args,
		anchor, in, body, out)
}

// lastDim is the last of comma-separated dims.
func lastDim(dims string) string { return dims[strings.LastIndex(dims, ",")+1:] }
