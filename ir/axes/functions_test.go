package axes_test

import (
	"strings"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
)

// open parses a graph whose inputs have symbols, and infers its shapes. m is its result.
func open(t *testing.T, inputs, body string) *ir.Graph {
	t.Helper()
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		if !strings.Contains(line, "const") {
			lines[i] = strings.Replace(line, " = ", ": invalid? = ", 1)
		}
	}
	g, err := ir.ParseText("g", []byte("graph \"g\" ("+inputs+") {\n"+strings.Join(lines, "\n")+"\nreturn %m\n}\n"),
		ir.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.InferShapes(g).Err(); err != nil {
		t.Fatal(err)
	}
	return g
}

// What a model computes with extents must be what it is near the largest ones.
func TestCheckFunctions(t *testing.T) {
	const head = "%s = Shape(%x) {start = 1, end = 2}\n%c = const int64[1] {20}\n%one = const int64[1] {1}\n" +
		"%zero = const int64[1] {0}\n"
	for _, c := range []struct{ name, body, want string }{
		{"minimum", "%m = Min(%s, %c)", "element 0 of m is 20 with batch=4 seq=32, but 1 with batch=1 seq=1"},
		{"maximum", "%m = Max(%s, %c)", "element 0 of m is 32 with batch=4 seq=32, but 20 with batch=1 seq=1"},
		{"comparison", "%m = Greater(%s, %c)", "element 0 of m is 1 with batch=4 seq=32, but 0 with batch=1 seq=1"},
		{"slice", "%m = Slice(%x, %zero, %c, %one)", "extent 1 of m is 20 with batch=4 seq=32"},
		{"behind a comparison", "%b = Less(%s, %c)\n%d = Cast(%b) {to = 7}\n%m = Mul(%d, %c)", "element 0 of b is 0"},
		{"floats", "%f = Cast(%s) {to = 1}\n%k = const float32[1] {20}\n%m = Min(%f, %k)", "element 0 of m is 20"},
		{"the extent itself", "%m = Max(%s, %one)", ""},
		{"a multiple", "%m = Mul(%s, %c)", ""},
		{"the same everywhere", "%m = Equal(%s, %zero)", ""},
		{"what varies near the largest", "%m = Mod(%s, %c)", ""},
	} {
		err := axes.CheckFunctions(open(t, "%x: float32[batch,seq,8]", head+c.body), ranges[:2])
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Ranges that have too many extents together are tried one at a time, at both ends of the others.
func TestCheckFunctionsOfLargeRanges(t *testing.T) {
	g := open(t, "%x: float32[a,b]", "%s = Shape(%x) {start = 1, end = 2}\n%c = const int64[1] {70000}\n%m = Max(%s, %c)")
	large := []axes.Range{{Name: "a", Lo: 1, Hi: 1 << 20}, {Name: "b", Lo: 1, Hi: 1 << 20}}
	if err := axes.CheckFunctions(g, large); err == nil {
		t.Error("an extent that is 70000 at least passes")
	}
}
