// Package golden tests rKernels and lowerings. It lowers small graphs, compiles the candidates of every rOperator for
// the emulator, runs them, and compares the outputs with what ir/eval computes. These are all candidates, but for those
// of one rKernel that differ in their tiles: of them it is two, and in the next cases of the test the others. It also
// runs single rTasks in a memory in which everything outside of their declared read boxes is poisoned, and looks for
// writes outside of their declared write boxes. Schedules order rTasks by these boxes, so a box that is too small is a
// race in a plan.
//
// To test an operator, add cases to the table of its family in cases_*_test.go, here or in a package below. The
// package is for tests only.
package golden

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// Case is a graph to be tested. It is written in ir's text form, but without the types of results, which are inferred.
type Case struct {
	Name string
	In   string // graph inputs: "%x: float32[2,3], %i: int64[4]"
	Body string // statements: "%y = Relu(%x)"
	Out  string // "%y"
	// Range bounds the random elements of an input. Without it floats are drawn from the normal distribution, and
	// integers from -5 to 5, or from 0 to 10 if the type has no sign.
	Range map[string][2]float64
	// Set gives the first elements of an input; the others stay random.
	Set map[string][]float64
	// Precision is how products of float32 are made; results may differ by as much as it allows.
	Precision precision.Precision
	// InPlace marks all inputs of all Concat nodes as written in place, as the pass concat-in-place does in models.
	InPlace bool
	// ChannelsLast stores all results of at least three dims, other than outputs, with dim 1 innermost.
	ChannelsLast bool
	// Of names the rKernel that the case is about: rOperators that have candidates of it check no others, which other
	// cases do. It is an error if none has.
	Of string
	// SMs is how many multiprocessors the device has that candidates are for; 0 stands for those of an h200. With few of
	// them rTasks become long.
	SMs int
	// L2Bytes is how much its L2 holds; 0 stands for that of an h200.
	L2Bytes int64
}

// untyped matches the results of a statement without types, such as "%y, _ = ".
var untyped = regexp.MustCompile(`%[\w.]+(, (%[\w.]+|_))* = `)

// Graph parses the case and infers types and shapes.
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
	g, err := ir.ParseText(c.Name, []byte(fmt.Sprintf("graph \"g\" (%s) {\n%s\nreturn %s\n}\n", c.In, body, c.Out)),
		ir.ParseOptions{})
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
	return g, nil
}

// place decides where values stand in memory as far as the case says so: which are written in place, and which with their
// channels last.
func (c *Case) place(g *ir.Graph) {
	for _, n := range g.Nodes {
		if c.InPlace && n.Is("Concat") {
			flags := make([]int64, len(n.Inputs))
			for i := range flags {
				flags[i] = 1
			}
			n.Attrs["in_place"] = ir.IntsAttr(flags...)
		}
	}
	if c.ChannelsLast {
		storeChannelsLast(g)
	}
}

func storeChannelsLast(g *ir.Graph) {
	for _, n := range g.Nodes {
		for _, v := range n.Outputs {
			if v == nil || len(v.Shape) < 3 || slices.Contains(g.Outputs, v) {
				continue
			}
			v.Order = []int{0}
			for d := 2; d < len(v.Shape); d++ {
				v.Order = append(v.Order, d)
			}
			v.Order = append(v.Order, 1)
		}
	}
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

// on is the case's device, like the given one.
func (c *Case) on(spec *device.Spec) *device.Spec {
	own := *spec
	if c.SMs > 0 {
		own.SMs = c.SMs
	}
	if c.L2Bytes > 0 {
		own.L2Bytes = c.L2Bytes
	}
	return &own
}
