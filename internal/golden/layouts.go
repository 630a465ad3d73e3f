package golden

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// WithLayouts adds variants of cases in which a value is not dense in memory, as rKernels must be able to take it:
//
//   - for each case whose input %x has at least two dims, one that reads %x through a Transpose;
//   - for each case whose first output is a float with at least one dim, one in which the output is half of a Concat
//     that is written in place.
func WithLayouts(cases []Case) []Case {
	out := slices.Clone(cases)
	for i := range cases {
		g, err := cases[i].Graph()
		if err != nil {
			continue // Check reports the error
		}
		if c, ok := cases[i].transposed(g); ok {
			out = append(out, c)
		}
		if c, ok := cases[i].concatenated(g); ok {
			out = append(out, c)
		}
	}
	return out
}

func (c Case) transposed(g *ir.Graph) (Case, bool) {
	for _, v := range g.Inputs {
		dims := v.Shape.MustConsts()
		if v.Name != "x" || len(dims) < 2 || ir.Count(dims) > 1<<16 {
			continue
		}
		was := fmt.Sprintf("%%x: %v%v", v.DType, v.Shape)
		slices.Reverse(dims)
		now := fmt.Sprintf("%%xt: %v%v", v.DType, ir.Dims(dims...))
		if !strings.Contains(c.In, was) {
			continue
		}
		c.Name += ", input transposed"
		c.In = strings.Replace(c.In, was, now, 1)
		c.Body = "%x = Transpose(%xt)\n" + c.Body
		c.Range, c.Set = renamed(c.Range), renamed(c.Set)
		return c, true
	}
	return c, false
}

// renamed is m with the entry of x under the name xt.
func renamed[V any](m map[string]V) map[string]V {
	out := map[string]V{}
	for k, v := range m {
		if k == "x" {
			k = "xt"
		}
		out[k] = v
	}
	return out
}

func (c Case) concatenated(g *ir.Graph) (Case, bool) {
	y := g.Outputs[0]
	if !y.DType.IsFloat() || len(y.Shape) == 0 || ir.Count(y.Shape.MustConsts()) > 1<<16 || y.Def == nil {
		return c, false
	}
	c.Name += ", output concatenated"
	c.Body += fmt.Sprintf("\n%%neg = Neg(%%%s)\n%%cat = Concat(%%%[1]s, %%neg) {axis = -1}", y.Name)
	c.Out = strings.Replace(c.Out, "%"+y.Name, "%cat", 1)
	c.InPlace = true
	return c, true
}

// OnlyChannelsLast makes, of each case whose input %x and first output are floats of at least three dims, a variant in
// which both are stored with dim 1 innermost.
func OnlyChannelsLast(cases []Case) []Case {
	var out []Case
	for _, c := range cases {
		g, err := c.Graph()
		if err != nil {
			continue // Check reports the error
		}
		y := g.Outputs[0]
		at := slices.IndexFunc(g.Inputs, func(v *ir.Value) bool { return v.Name == "x" })
		if at < 0 || len(g.Inputs[at].Shape) < 3 || !g.Inputs[at].DType.IsFloat() || len(y.Shape) < 3 ||
			!y.DType.IsFloat() || y.Def == nil {
			continue
		}
		c.Name += ", channels last"
		c.In = strings.Replace(c.In, "%x:", "%xt:", 1)
		c.Body = fmt.Sprintf("%%x = Neg(%%xt)\n%s\n%%last = Neg(%%%s)", c.Body, y.Name)
		c.Out = strings.Replace(c.Out, "%"+y.Name, "%last", 1)
		c.Range, c.Set = renamed(c.Range), renamed(c.Set)
		c.ChannelsLast = true
		out = append(out, c)
	}
	return out
}
