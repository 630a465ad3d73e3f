package hostile

import (
	"fmt"
	"regexp"
	"strings"
)

var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// otherNumbers makes n versions of a text in which one number is another.
func otherNumbers(text []byte, n int, seed uint64) [][]byte {
	r := draws(seed)
	places := number.FindAllIndex(text, -1)
	values := []string{"0", "-1", "1", "3", "1e308", "1e-308", ".inf", ".nan", "2147483647", "2147483648", "4294967296",
		"9223372036854775807", "9223372036854775808", "1e400", "99999999999999999999999"}
	var out [][]byte
	for range n {
		at := places[r.IntN(len(places))]
		out = append(out, []byte(string(text[:at[0]])+values[r.IntN(len(values))]+string(text[at[1]:])))
	}
	return out
}

// bomb is a YAML document that is small and, with all references followed, enormous.
func bomb(key string) []byte {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	return []byte(b.String() + key + ": *a11\n")
}

// deviceFiles are described devices on which nothing makes sense.
func deviceFiles(s *Sources) []Case {
	texts := append(damaged(s.Device, 30, 7), otherNumbers(s.Device, 90, 8)...)
	texts = append(texts, bomb("name"), []byte(strings.Repeat("[", 10000)), []byte(strings.Repeat("a:\n ", 5000)))
	var out []Case
	for i, data := range texts {
		out = append(out, Case{"devices", numbered("device", i), []File{reluModel(), {Name: "d.yaml", Data: data}},
			[]string{"compile", "m.onnx", "-q", "--device", "d.yaml", "--offline", "--emit", "cu"}})
	}
	return append(out, Case{"devices", "sparse", []File{reluModel(), {Name: "d.yaml", Data: s.Device, Size: 1 << 40}},
		[]string{"compile", "m.onnx", "-q", "--device", "d.yaml", "--emit", "cu"}})
}

// graphText is a graph as --dump writes it.
const graphText = `graph "g" (%x: float32[2,3], %i: int64[2]) {
  %w = const float32[3,4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
  %axes = const int64[1] {1}
  %yes = const bool[] {true}
  %m: float32[2,4] = MatMul(%x, %w) origin("mul":"MatMul")
  %r: float32[2,4] = Softmax(%m) {axis = 1}
  %g: float32[2,4] = Gather(%r, %i) {axis = 0}
  %s: float32[2,1] = ReduceSum(%g, %axes) {keepdims = 1}
  %y: float32[2,1] = If(%yes) {else_branch = graph "else" () {
    %t: float32[2,1] = Neg(%s)
    return %t
  }, then_branch = graph "then" () {
    %u: float32[2,1] = Sqrt(%s)
    return %u
  }}
  return %y
}
`

// graphTexts are graphs as --dump writes them.
func graphTexts(*Sources) []Case {
	texts := append(damaged([]byte(graphText), 80, 9), otherNumbers([]byte(graphText), 80, 10)...)
	texts = append(texts, []byte(graphText))
	texts = append(texts, []byte(strings.Repeat("graph \"g\" (", 10000)), []byte("graph \"g\" (%x: float32["+
		strings.Repeat("(", 100000)))
	var out []Case
	for i, data := range texts {
		out = append(out, Case{"graphs as text", numbered("text", i), []File{{Name: "g.rir", Data: data}},
			[][]string{{"check", "g.rir", "--target", "emu"}, {"run", "g.rir", "-q", "--engine", "eval", "--random", "1"}}[i%2]})
	}
	return out
}

// planTexts are plans as --dump writes them.
func planTexts(s *Sources) []Case {
	texts := append(damaged(s.Plan, 60, 11), otherNumbers(s.Plan, 100, 12)...)
	var out []Case
	for i, data := range texts {
		out = append(out, Case{"plans as text", numbered("plan", i),
			[]File{{Name: "m.onnx", Data: s.Models[s.PlanOf]}, {Name: "p.rprog", Data: data}},
			[]string{"compile", "m.onnx", "-q", "--target", "emu", "--plan", "p.rprog", "--emit", "cu"}})
	}
	return out
}

// configurations lie in the folder in which a command is called.
func configurations(*Sources) []Case {
	var out []Case
	for i, data := range [][]byte{
		bomb("run"), []byte("run:\n  run-under: touch ran\n"), []byte("run: {max-memory: 1T}\n"), []byte("run: {out: /tmp}\n"),
		[]byte("run: {out: ../../x}\n"), []byte("run: [1, 2]\n"), []byte("run:\n\tengine: eval\n"), []byte("\xff\xfe\x00"),
		[]byte("run: {engine: {a: b}}\n"), []byte("run: {engine: !!binary AAAA}\n"), []byte("a: &a [*a]\n"),
		[]byte("run: {input: [" + strings.Repeat("x=x.npy, ", 10000) + "]}\n"), []byte(strings.Repeat("{", 100000)),
		[]byte("run: {random-max: 99999999999999999999}\n"), []byte("run: {engine: \"\\e[2J\"}\n"),
	} {
		out = append(out, Case{"configurations", numbered("yaml", i), []File{reluModel(), {Name: "rammerc.yaml", Data: data}},
			[]string{"run", "m.onnx", "-q", "--engine", "eval", "--random", "1"}})
	}
	return append(out, Case{"configurations", "sparse", []File{reluModel(), {Name: "rammerc.yaml", Size: 1 << 40}},
		[]string{"run", "m.onnx", "-q", "--engine", "eval"}})
}

// flags are values that no flag has.
func flags(*Sources) []Case {
	var out []Case
	for i, args := range [][]string{
		{"verify", "m.onnx", "--engine", "eval", "--samples", "1000000000000"},
		{"verify", "m.onnx", "--engine", "eval", "--samples", "-1"},
		{"run", "m.onnx", "--engine", "eval", "--random", "1", "--random-max", "-9223372036854775808"},
		{"inspect", "m.onnx", "--dim", "n=99999999999999999999"},
		{"inspect", "m.onnx", "--shape", "x=9223372036854775807x9223372036854775807"},
		{"inspect", "m.onnx", "--shape", "x=" + strings.Repeat("1x", 10000) + "1"},
		{"check", "m.onnx", "--shape", "x=2147483648"},
		{"compile", "m.onnx", "--target", "emu", "--emit", "cu", "--shape", "x=2147483648x2", "--check"},
		{"compile", "m.onnx", "--target", "emu", "--emit", "cu", "--shape", "x=1099511627776"},
		{"compile", "m.onnx", "--bind", "x=" + strings.Repeat("[", 100000)},
		{"compile", "m.onnx", "--bind", "x=" + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)},
		{"compile", "m.onnx", "--tries", "9223372036854775807", "--target", "emu", "--emit", "cu"},
		{"compile", "m.onnx", "--name", strings.Repeat("x", 100000), "--target", "emu", "--emit", "cu"},
		{"compile", "m.onnx", "--name", "../../x", "--target", "emu", "--emit", "cu"},
		{"compile", "m.onnx", "--error-budget", "NaN", "--target", "emu", "--emit", "cu"},
		{"compile", "m.onnx", "--max-memory", "1", "--target", "emu", "--emit", "cu"},
		{"run", "m.onnx", "--engine", "eval", "--random", "1", "-o", "/dev/full"},
	} {
		out = append(out, Case{"flags", numbered("flags", i), []File{reluModel()}, args})
	}
	return out
}

// names are of models whose names want to be something else where they are shown or emitted.
func names(*Sources) []Case {
	var out []Case
	for i, name := range []string{
		"", " ", ".", "..", "../../x", "/etc/passwd", "a/b", "a\\b", "\x00", "a\x00b", "\xff\xfe", "\x1b[2J", "\r", "\n", "\t",
		"\u202e", "\u2066x\u2069", "*/ #error", "// \\\n#error", "??/\n#error", "\"; system(\"x\"); //", "${x}", "$(x)", "`x`",
		"%s%s%n", "{{.}}", "<script>alert(1)</script>", "</script>", "@NAME@", "numpy", "os", "errno", "C", "string", "main",
		"int", "a_test", "x_windows", "__init__", "libx", "-rf", "--help", "con", "nul.txt", strings.Repeat("x", 100000),
		"𝕏", "ｘ", "é", "e\u0301",
	} {
		g := newGraph().input(name+"x", 2, 3).node("Relu", []string{name + "x"}, []string{name + "y"}).output(name + "y")
		g.Name, g.Node[0].Name, g.Node[0].DocString = &name, &name, &name
		for _, c := range onModel("names", numbered("name", i), g.model()) {
			if strings.HasSuffix(c.Name, "/compile") {
				c.Args = append(c.Args, "--name", "n"+strings.ReplaceAll(name, "\x00", ""))
			}
			out = append(out, c)
		}
	}
	return out
}
