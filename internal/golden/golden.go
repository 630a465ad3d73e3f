// Package golden proves rKernels and lowerings right: it compiles every candidate of every rOperator of
// small graphs for the emulator, runs them, and compares the outputs with ir/eval. It also runs single
// rTasks with everything outside their declared read boxes poisoned, and looks for writes outside their
// declared write boxes. It is for tests only.
//
// To prove an operator, add cases to the table of its family in cases_*_test.go.
package golden

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// Case is a graph to be proven, as text without the boilerplate of ir's text form: results need no types.
type Case struct {
	Name string
	In   string // graph inputs: "%x: float32[2,3], %i: int64[4]"
	Body string // statements: "%y = Relu(%x)"
	Out  string // "%y"
	// Range bounds the random elements of an input; without it floats are normal, integers in [-5, 5].
	Range map[string][2]float64
	// Set gives elements of inputs in place of the first random ones.
	Set map[string][]float64
	// Precision is how products of float32 are made; results may differ by as much as it allows.
	Precision precision.Precision
	// InPlace marks all inputs of all Concat nodes for being written in place.
	InPlace bool
}

// untyped finds results without a type.
var untyped = regexp.MustCompile(`%[\w.]+(, (%[\w.]+|_))* = `)

// Graph parses and infers the case.
func (c *Case) Graph() (*ir.Graph, error) {
	body := untyped.ReplaceAllStringFunc(c.Body, func(s string) string {
		names := strings.Split(strings.TrimSuffix(s, " = "), ", ")
		for i, n := range names {
			if n != "_" {
				names[i] = n + ": invalid?"
			}
		}
		return strings.Join(names, ", ") + " = "
	})
	body = strings.ReplaceAll(body, ": invalid? = const", " = const")
	g, err := ir.ParseText(c.Name, []byte(fmt.Sprintf("graph \"g\" (%s) {\n%s\nreturn %s\n}\n", c.In, body, c.Out)), ir.ParseOptions{})
	if err != nil {
		return nil, err
	}
	for i, n := range g.Nodes {
		if n.Name == "" {
			n.Name = fmt.Sprintf("n%d", i)
		}
	}
	if err := ir.InferShapes(g).Err(); err != nil {
		return nil, err
	}
	for _, n := range g.Nodes {
		if c.InPlace && n.Is("Concat") {
			flags := make([]int64, len(n.Inputs))
			for i := range flags {
				flags[i] = 1
			}
			n.Attrs["in_place"] = ir.IntsAttr(flags...)
		}
	}
	return g, nil
}

// Inputs draws the case's inputs; the same seed gives the same ones.
func (c *Case) Inputs(g *ir.Graph, seed uint64) map[string]*ir.Tensor {
	rng := rand.New(rand.NewPCG(seed, 0))
	in := map[string]*ir.Tensor{}
	for _, v := range g.Inputs {
		t := ir.NewTensor(v.DType, v.Shape.MustConsts()...)
		r, bounded := c.Range[v.Name]
		for i := range int(t.Len()) {
			var x float64
			switch {
			case i < len(c.Set[v.Name]):
				x = c.Set[v.Name][i]
			case bounded && v.DType.IsFloat():
				x = r[0] + (r[1]-r[0])*rng.Float64()
			case bounded:
				x = r[0] + float64(rng.IntN(int(r[1]-r[0])+1))
			case v.DType.IsFloat():
				x = rng.NormFloat64()
			case v.DType == ir.Bool:
				x = float64(rng.IntN(2))
			case v.DType.IsSigned():
				x = float64(rng.IntN(11) - 5)
			default:
				x = float64(rng.IntN(11))
			}
			setElement(t, i, x)
		}
		in[v.Name] = t
	}
	return in
}

func setElement(t *ir.Tensor, i int, x float64) {
	switch d := t.Data.(type) {
	case []float32:
		d[i] = float32(x)
	case []float64:
		d[i] = x
	case []int8:
		d[i] = int8(x)
	case []int16:
		d[i] = int16(x)
	case []int32:
		d[i] = int32(x)
	case []int64:
		d[i] = int64(x)
	case []uint8:
		d[i] = uint8(x)
	case []uint16:
		d[i] = uint16(x)
		if t.DType.IsFloat() {
			d[i] = floatBits(t.DType, x)
		}
	case []uint32:
		d[i] = uint32(x)
	case []uint64:
		d[i] = uint64(x)
	case []bool:
		d[i] = x != 0
	default:
		panic("BUG: no elements of " + t.DType.String())
	}
}
