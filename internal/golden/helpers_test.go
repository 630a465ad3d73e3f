package golden

import (
	"fmt"
	"math"
	"strings"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func nan() float64 { return math.NaN() }
func inf() float64 { return math.Inf(1) }

// fused is a Fused node whose result is %y.
func fused(anchor, in, body, out, args string) string {
	return fmt.Sprintf("%%y = rammer.Fused(%s) {anchor = %q, body = graph \"body\" (%s) {\n%s\nreturn %s\n}}", args, anchor, in, body, out)
}

// lastDim is the last of comma-separated dims.
func lastDim(dims string) string { return dims[strings.LastIndex(dims, ",")+1:] }
