package golden

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/precision"
)

// WithPrecisions adds to every third case its form with products rounded to tf32, to every third that with values stored
// in float16, and to every ninth that in bfloat16, which differs in the instructions for products alone. The cases
// themselves run through the same kernels, with three products for one.
func WithPrecisions(cases []Case) []Case {
	out := slices.Clone(cases)
	for i, c := range cases {
		if i%3 == 2 {
			c.Name += ", tf32"
			c.Precision = precision.TF32
			out = append(out, c)
		}
		if i%3 == 0 {
			out = append(out, cases[i].Stored(precision.FP16))
		}
		if i%9 == 1 {
			out = append(out, cases[i].Stored(precision.BF16))
		}
	}
	return out
}

// WithStorage adds to every case its form with values stored in float16, and to every third that in bfloat16.
func WithStorage(cases []Case) []Case {
	out := slices.Clone(cases)
	for i, c := range cases {
		out = append(out, c.Stored(precision.FP16))
		if i%3 == 0 {
			out = append(out, c.Stored(precision.BF16))
		}
	}
	return out
}

var (
	inputName  = regexp.MustCompile(`%(\w+): float32`)
	outputName = regexp.MustCompile(`%\w+`)
)

// Stored is the case in a precision that stores values in 16 bits. Inputs and outputs keep their types, so operators
// stand before and behind the case's own: what these take and give is stored.
func (c Case) Stored(p precision.Precision) Case {
	g, err := c.Graph()
	if err != nil {
		return c // Check reports the error
	}
	before := ""
	names := map[string]string{}
	for _, m := range inputName.FindAllStringSubmatch(c.In, -1) {
		names[m[1]] = m[1] + "_given"
		before += fmt.Sprintf("%%%s = Sum(%%%[1]s_given)\n", m[1])
	}
	c.In = inputName.ReplaceAllString(c.In, "%${1}_given: float32")
	c.Body = before + c.Body
	floats := map[string]bool{}
	for _, v := range g.Outputs {
		floats["%"+v.Name] = v.DType == ir.Float32
	}
	c.Out = outputName.ReplaceAllStringFunc(c.Out, func(name string) string {
		if !floats[name] {
			return name
		}
		c.Body += fmt.Sprintf("\n%s_stored = Sum(%[1]s)", name)
		return name + "_stored"
	})
	c.Name += ", " + p.String()
	c.Precision = p
	c.Range, c.Set = renamedAll(c.Range, names), renamedAll(c.Set, names)
	return c
}

func renamedAll[V any](m map[string]V, names map[string]string) map[string]V {
	out := map[string]V{}
	for k, v := range m {
		if name, ok := names[k]; ok {
			k = name
		}
		out[k] = v
	}
	return out
}

// narrow stores values of the graph as the precision says. No other pass runs.
func narrow(g *ir.Graph, p precision.Precision) error {
	if p.Storage() == ir.Invalid {
		return nil
	}
	opts := graphopt.Options{Precision: precision.All(p), Check: true}
	for _, pass := range graphopt.Passes {
		if pass.Name != "narrow-storage" {
			opts.Disable = append(opts.Disable, pass.Name)
		}
	}
	return graphopt.Run(g, opts)
}
