package difftest

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/rammerc/rammerc/internal/tolerance"
	"github.com/rammerc/rammerc/ir"
)

// inputMark begins the lines that hold the elements of inputs. To the text form of graphs these lines are comments.
const inputMark = "//input "

// Text is the case as text, which Parse reads back: the graph in its text form, and in front of it the elements of the
// inputs in comments.
func (c *Case) Text() string {
	var b strings.Builder
	for _, v := range c.Graph.Inputs {
		t := c.Inputs[v.Name]
		line := &ir.Graph{Consts: []*ir.Value{{Name: v.Name, DType: t.DType, Shape: ir.Dims(t.Dims...), Const: t}}}
		var text bytes.Buffer
		if err := ir.Print(&text, line, ir.PrintOptions{}); err != nil {
			panic("BUG: " + err.Error())
		}
		b.WriteString(inputMark + strings.TrimSpace(strings.Split(text.String(), "\n")[1]) + "\n")
	}
	if err := ir.Print(&b, c.Graph, ir.PrintOptions{}); err != nil {
		panic("BUG: " + err.Error())
	}
	return b.String()
}

// Parse reads what Text writes. There may be comments in front. A case is wild if its inputs have NaN or infinities.
func Parse(file string, src []byte) (*Case, error) {
	g, err := ir.ParseText(file, src, ir.ParseOptions{})
	if err != nil {
		return nil, err
	}
	if err := ir.InferShapes(g).Err(); err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(string(src)) { // a Scanner would refuse long lines
		if line, ok := strings.CutPrefix(line, inputMark); ok {
			lines = append(lines, line)
		}
	}
	in, err := ir.ParseText(file+" (inputs)", []byte("graph \"inputs\" () {\n"+strings.Join(lines, "\n")+
		"\nreturn\n}\n"), ir.ParseOptions{})
	if err != nil {
		return nil, err
	}
	c := &Case{Name: file, Graph: g, Inputs: map[string]*ir.Tensor{}}
	for _, v := range in.Consts {
		c.Inputs[v.Name] = v.Const
		c.Wild = c.Wild || special(v.Const)
	}
	if len(c.Inputs) != len(g.Inputs) {
		return nil, fmt.Errorf("%s: %d inputs have elements, the graph has %d", file, len(c.Inputs), len(g.Inputs))
	}
	return c, nil
}

// special reports whether a tensor has elements that are NaN or infinite.
func special(t *ir.Tensor) bool {
	if !t.DType.IsFloat() {
		return false
	}
	for i := range t.Len() {
		if x := tolerance.At(t, i); math.IsNaN(x) || math.IsInf(x, 0) {
			return true
		}
	}
	return false
}
