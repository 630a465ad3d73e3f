package ir

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sampleText = `graph "sample \"1\"" (%x: float32[batch,3,8,8], %"in/2:0": int64["a b",(seq+3)/(4),max(0,seq-1)], %len: int32[], %any: float32?) {
  %w = const float32[2,2] {1, -0, inf, nan}
  %tiny = const float32[3] {1e-45, 0.1, 3.4028235e+38}
  %d = const float64[2] {0.1, -inf}
  %h = const float16[2] {0x3c00, 0x7e01}
  %b = const bool[2] {true, false}
  %i8 = const int8[2] {-128, 127}
  %u64 = const uint64[1] {18446744073709551615}
  %s = const string[2] {"a", "b\n\x80"}
  %zero = const float32[64,64] splat(0)
  %none = const float32[0,5] {}
  %axes = const int64[] {-1}
  %y: float32[batch,3,8,8] = Conv(%x, %w, _) {auto_pad = "SAME_UPPER", strides = [1, 1]} name "/layer1/conv" origin("/layer1/conv":"Conv", "#3":"Pad")
  %k: float32[2], _, %1.5: int64[2] = rammer.Three() {alpha = 0.1f, beta = 1.0, e = floats[], f = [0.5, -inf], g = ints[], h = strings[], "odd name" = ["x", "y"], pi = 3.141592653589793, t = float32[1] {2}}
  = "no-ident".Sink(%k)
  %l: float32[2,3,4] order [0, 2, 1], %m: float32[2] = Pair(%k)
  %c: bool[] = IsZero(%len)
  %r: float32[batch,3,8,8] = If(%c) {else_branch = graph "else" () {
    return %x
  }, then_branch = graph "then" () {
    %t: float32[batch,3,8,8] = Relu(%y)
    return %t
  }}
  return %r, %k, %w
}
`

func mustParse(t testing.TB, text string) *Graph {
	t.Helper()
	g, err := ParseText("test.rir", []byte(text), ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func printed(t testing.TB, g *Graph) string {
	t.Helper()
	var b strings.Builder
	if err := Print(&b, g, PrintOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextRoundTrip(t *testing.T) {
	g := mustParse(t, sampleText)
	if got := printed(t, g); got != sampleText {
		t.Errorf("print(parse(s)) differs from s:\n%s", got)
	}
	if diff := graphDiff(g, mustParse(t, printed(t, g))); diff != "" {
		t.Errorf("parse(print(g)) differs from g: %s", diff)
	}
}

func TestTextBitExactConstants(t *testing.T) {
	floats := []float32{0, float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, math.MaxFloat32, 1.0 / 3,
		float32(math.Inf(-1)), float32(math.NaN()), 16777217, 1e-40}
	big := make([]float32, 3000)
	for i := range big {
		big[i] = float32(i) * 1.1
	}
	halves := make([]uint16, 1500)
	for i := range halves {
		halves[i] = uint16(i * 43)
	}
	for _, c := range []*Tensor{
		FromSlice(Float32, floats, 9),
		FromSlice(Float32, big, 30, 100),
		FromSlice(BFloat16, halves, 1500),
		FromSlice(Bool, append(make([]bool, 1999), true), 2000),
		FromSlice(Int64, []int64{math.MinInt64, math.MaxInt64}, 2, 1),
		NewTensor(Float64, 100000),
		NewTensor(String, 3),
		NewTensor(Uint8),
	} {
		g := &Graph{Name: "g", Consts: []*Value{{Name: "c", DType: c.DType, Shape: Dims(c.Dims...), Const: c}}}
		g.Outputs = g.Consts
		back := mustParse(t, printed(t, g))
		if diff := graphDiff(g, back); diff != "" {
			t.Errorf("%v%v: %s", c.DType, c.Dims, diff)
		}
	}
}

func TestSplatBudgetIsKeptByPrinter(t *testing.T) {
	g := &Graph{Name: "g"}
	for _, name := range []string{"a", "b"} {
		c := NewTensor(Uint8, splatBudget*2/3)
		g.Consts = append(g.Consts, &Value{Name: name, DType: Uint8, Shape: Dims(c.Dims...), Const: c})
	}
	text := printed(t, g)
	if n := strings.Count(text, "splat("); n != 1 {
		t.Errorf("%d splats printed, want 1 within the budget", n)
	}
	mustParse(t, text)
}

func TestElidedConstants(t *testing.T) {
	c := FromSlice(Float32, []float32{1, 2, 3, 4}, 4)
	g := &Graph{Name: "g", Consts: []*Value{{Name: "c", DType: Float32, Shape: Dims(4), Const: c}}}
	var b strings.Builder
	if err := Print(&b, g, PrintOptions{ElideAbove: 3}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `elided("sha256:`) {
		t.Errorf("not elided:\n%s", b.String())
	}
	_, err := ParseText("x.rir", []byte(b.String()), ParseOptions{})
	if err == nil || !strings.Contains(err.Error(), "left out") || !strings.Contains(err.Error(), "x.rir:2") {
		t.Errorf("parsing an elided constant: %v", err)
	}
}

// A constant that was printed without its elements gets them back from the caller, but not if they have changed since.
func TestElidedConstantsAreFound(t *testing.T) {
	kept := map[string][]byte{}
	g := &Graph{Name: "g"}
	for i, c := range []*Tensor{FromSlice(Float32, []float32{1, 2, 3, 4}, 4),
		FromSlice(Int64, []int64{7, 8, 9, 10}, 2, 2)} {
		g.Consts = append(g.Consts, &Value{Name: string(rune('a' + i)), DType: c.DType, Shape: Dims(c.Dims...),
			Const: c})
	}
	var b strings.Builder
	err := Print(&b, g, PrintOptions{ElideAbove: 3, Elided: func(hash string, t *Tensor) error {
		kept[hash] = t.LittleEndian()
		return nil
	}})
	if err != nil || len(kept) != 2 {
		t.Fatal(err, kept)
	}
	find := func(hash string) ([]byte, error) {
		if kept[hash] == nil {
			return nil, errors.New("nobody has them")
		}
		return kept[hash], nil
	}
	back, err := ParseText("x.rir", []byte(b.String()), ParseOptions{Elided: find})
	if err != nil {
		t.Fatal(err)
	}
	if diff := graphDiff(g, back); diff != "" {
		t.Error(diff)
	}
	first := g.Consts[0].Const.Hash()
	raw := kept[first]
	for want, damage := range map[string][]byte{"nobody has them": nil, "do not fit": raw[:15],
		"have been changed": append([]byte{1}, raw[1:]...)} {
		kept[first] = damage
		_, err := ParseText("x.rir", []byte(b.String()), ParseOptions{Elided: find})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.rir:2") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	wrap := func(body string) string { return "graph \"g\" (%x: float32[2]) {\n" + body + "\nreturn %x\n}" }
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", `f.rir:1: "graph" expected, found the end of the file`},
		{"garbage", "\x00\xff", "unexpected character"},
		{"after the graph", wrap("") + "x", "f.rir:4: the end of the file expected"},
		{"undefined", wrap("%y: float32[2] = Relu(%q)"), "f.rir:2: the value %q is not defined"},
		{"twice", wrap("%x: float32[2] = Relu(%x)"), "%x is defined twice"},
		{"no type", wrap("%y = Relu(%x)"), "%y needs a type, or const"},
		{"bad type", wrap("%y: float33[2] = Relu(%x)"), `unknown element type "float33"`},
		{"bad dim", wrap("%y: float32[a**b] = Relu(%x)"), "bad dimension"},
		{"div by zero", wrap("%y: float32[(a)/(0)] = Relu(%x)"), "division by zero"},
		{"deep dim", wrap("%y: float32[" + strings.Repeat("max(", 200) + "] = Relu(%x)"), "nested deeper than 100"},
		{"deep graph", strings.Repeat("graph \"g\" () {\n = A() {g = ", 200), "nested deeper than 100"},
		{"short const", wrap("%c = const float32[3] {1, 2}"), "2 elements for [3]"},
		{"long const", wrap("%c = const float32[1] {1, 2}"), "more than the 1 elements"},
		{"huge const", wrap("%c = const float32[1000000000] {1}"), "more than the rest of the text can hold"},
		{"huge splat", wrap("%c = const float32[1000000000] splat(1)"), "the splats of a text"},
		{"overflowing const", wrap("%c = const float32[4611686018427387904,4] {}"), "too large"},
		{"negative const", wrap("%c = const float32[-1] {}"), "negative"},
		{"symbolic const", wrap("%c = const float32[n] {1}"), "integer dims"},
		{"hex length", wrap(`%c = const float32[2] hex"00"`), "1 bytes do not make"},
		{"hex digits", wrap(`%c = const float32[1] hex"0x000000"`), "bad hex digits"},
		{"range", wrap("%c = const int8[1] {128}"), "integer of 8 bits"},
		{"attribute twice", wrap("%y: float32[2] = Relu(%x) {a = 1, a = 2}"), `"a" is given twice`},
		{"mixed list", wrap("%y: float32[2] = Relu(%x) {a = [1, 0.5]}"), "integer of 64 bits expected"},
		{"untyped list", wrap("%y: float32[2] = Relu(%x) {a = []}"), "ints[], floats[] or strings[]"},
		{"string", wrap("%y: float32[2] = Relu(%x) {a = \"b}"), "not terminated"},
		{"no return", "graph \"g\" () {\n", `"return" expected`},
		{"empty name", "graph \"g\" (%\"\": float32[]) {return}", "empty name"},
	} {
		_, err := ParseText("f.rir", []byte(c.text), ParseOptions{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

func TestParseReportsSeveralErrors(t *testing.T) {
	_, err := ParseText("f.rir", []byte(`graph "g" (%x: float32[2]) {
  %a: float32[2] = Relu(%x) {axis = }
  %b: float32[2] = If(%a) {then_branch = graph "t" () {
    %c: floaty[2] = Relu(%a)
    return %c
  }}
  %d: float32[2] = Relu(%b, %nowhere)
  return %d
}`), ParseOptions{})
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d errors, want 3:\n%v", len(lines), err)
	}
	for i, want := range []string{"f.rir:2: ", "f.rir:4: ", "f.rir:7: "} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("error %d is %q, want it at %q", i, lines[i], want)
		}
	}
}

func TestParseDim(t *testing.T) {
	a, b := Sym("a"), Sym("odd name")
	for _, d := range []Dim{
		D(0), D(-7), D(math.MinInt64), D(math.MaxInt64), a, b, a.Neg(), a.Mul(b).Mul(D(3)).Sub(D(2)), Sym("max"),
		Sym(".x"), Sym(""),
		a.Sub(D(3)).FloorDiv(D(2)).Mul(b).Add(a), a.Max(b.Add(D(1))).Min(a.FloorDiv(b)), a.Mul(D(math.MinInt64)),
		Sym("\"\n\xff"), a.Mul(a).Mul(a),
	} {
		got, err := ParseDim(d.String())
		if err != nil || !got.Equal(d) {
			t.Errorf("ParseDim(%q) = %v, %v", d.String(), got, err)
		}
	}
	for _, bad := range []string{"", "a b", "1+", "3a", "(a)", "(a)/b", "max(a)", "f(a,b)", "99999999999999999999",
		"\"a", "a]"} {
		if d, err := ParseDim(bad); err == nil {
			t.Errorf("ParseDim(%q) = %v, want an error", bad, d)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sampleText)
	f.Add("graph \"g\" (%x: float32[2]) {\n return %x\n}")
	f.Add("graph \"g\" () {\n%c = const float32[3] splat(1)\n = A(%c) {g = graph \"h\" () { return %c }}\n return %c\n}")
	seeds, err := filepath.Glob("../graphopt/testdata/*/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range seeds {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range strings.Split(string(text), ".rir --\n") {
			f.Add(part)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ParseText("fuzz.rir", []byte(text), ParseOptions{})
		if (g == nil) != (err != nil) {
			t.Fatalf("graph %v with error %v", g, err)
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add(sampleText)
	f.Add("graph \"\" (%x: float32[(a+b*-1)/(2),min(x,3)]) { %y: bool? = A.B() {f = 1e3, g = 0.10000000149011612}\n return %x, %y }")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ParseText("fuzz.rir", []byte(text), ParseOptions{})
		if err != nil {
			return // refused text has nothing to print
		}
		once := printed(t, g)
		back, err := ParseText("printed.rir", []byte(once), ParseOptions{})
		if err != nil {
			t.Fatalf("%v\nin:\n%s", err, once)
		}
		if diff := graphDiff(g, back); diff != "" {
			t.Fatalf("parse(print(g)) differs from g: %s\n%s", diff, once)
		}
		if twice := printed(t, back); twice != once {
			t.Fatalf("print(parse(s)) differs from s:\n%s\n%s", once, twice)
		}
	})
}
