package precision

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// Choice is the precision of every node of a model: the program's, and another one for the nodes that rules name. The
// zero Choice is FP32 everywhere.
type Choice struct {
	Program Precision
	Rules   []Rule // of several that name a node, the last one holds
}

// Rule gives a precision to nodes of the model.
type Rule struct {
	// Pattern is the name of a node of the ONNX model, a type of operators, such as Conv, or a name with wildcards, in
	// which * stands for any characters and ? for one.
	Pattern   string
	Precision Precision
	// Exact says that Pattern is the name of a node and nothing else.
	Exact bool
	// File and Line are where the rule was written; they are empty for rules of the command line.
	File string
	Line int
}

// All is the choice of one precision for all nodes.
func All(p Precision) Choice { return Choice{Program: p} }

// ParseRule reads PATTERN=PRECISION.
func ParseRule(text string) (Rule, error) {
	at := strings.LastIndex(text, "=")
	if at < 1 {
		return Rule{}, fmt.Errorf("%q: want PATTERN=PRECISION", text)
	}
	p, ok := Parse(text[at+1:])
	if !ok {
		return Rule{}, fmt.Errorf("%q: there is no precision %q; there are %s", text, text[at+1:],
			strings.Join(names, ", "))
	}
	return Rule{Pattern: text[:at], Precision: p}, nil
}

// String is the rule as ParseRule reads it.
func (r Rule) String() string { return r.Pattern + "=" + r.Precision.String() }

// Matches reports whether the rule names the node of the ONNX model.
func (r Rule) Matches(o ir.Origin) bool {
	return r.Pattern == o.Name || !r.Exact && (r.Pattern == o.OpType || glob(r.Pattern, o.Name))
}

// glob reports whether the whole text matches a pattern with the wildcards * and ?. A * matches slashes, too: node
// names are paths, and "/layer1/*" is to name everything below.
func glob(pattern, text string) bool {
	for ; pattern != ""; pattern, text = pattern[1:], text[1:] {
		if pattern[0] == '*' {
			for i := 0; i <= len(text); i++ {
				if glob(pattern[1:], text[i:]) {
					return true
				}
			}
			return false
		}
		if text == "" || pattern[0] != '?' && pattern[0] != text[0] {
			return false
		}
	}
	return text == ""
}

// Of is the precision of a node of a graph, whatever passes have made of the model's nodes: that of the last rule that
// names one of the ONNX nodes it comes from. In a Fused node a rule that names the anchor wins over one that names
// operators of the prologue or epilogue, because these have no results of their own.
func (c Choice) Of(n *ir.Node) Precision {
	if len(c.Rules) == 0 {
		return c.Program
	}
	if n.IsInternal("Fused") {
		for _, m := range n.Attrs["body"].G.Nodes {
			if m.Op == n.Attrs["anchor"].S {
				if p, ok := c.named(m.Origins); ok {
					return p
				}
			}
		}
	}
	if p, ok := c.named(n.Origins); ok {
		return p
	}
	return c.Program
}

// Names reports whether a rule names one of the ONNX nodes that n comes from.
func (c Choice) Names(n *ir.Node) bool {
	_, ok := c.named(n.Origins)
	return ok
}

// named is the precision of the last rule that names one of the origins.
func (c Choice) named(origins []ir.Origin) (p Precision, ok bool) {
	for _, r := range slices.Backward(c.Rules) {
		if slices.ContainsFunc(origins, r.Matches) {
			return r.Precision, true
		}
	}
	return 0, false
}

// Unmatched lists the rules that name no node of the graph and the graphs inside it.
func (c Choice) Unmatched(g *ir.Graph) []Rule {
	if len(c.Rules) == 0 {
		return nil
	}
	var origins []ir.Origin
	ir.EachGraph(g, func(g *ir.Graph) {
		for _, n := range g.Nodes {
			origins = append(origins, n.Origins...)
		}
	})
	var out []Rule
	for _, r := range c.Rules {
		if !slices.ContainsFunc(origins, r.Matches) {
			out = append(out, r)
		}
	}
	return out
}

// Used lists the precisions that nodes may have, each once: the program's, then those of the rules.
func (c Choice) Used() []Precision {
	out := []Precision{c.Program}
	for _, r := range c.Rules {
		if !slices.Contains(out, r.Precision) {
			out = append(out, r.Precision)
		}
	}
	return out
}

// byError has the precisions from the most to the least accurate.
var byError = []Precision{Strict, FP32, TF32, FP16, BF16}

// MoreAccurate lists the precisions whose results are within what p allows, from the next one to the most accurate: those
// whose products are more accurate.
func (p Precision) MoreAccurate() []Precision {
	out := slices.Clone(byError[:slices.Index(byError, p)])
	out = slices.DeleteFunc(out, func(q Precision) bool { return q.Storage() != ir.Invalid }) // of another range
	slices.Reverse(out)
	return out
}

// Coarsest is the least accurate precision that nodes may have. How far results may be from those of the evaluator
// depends on it.
func (c Choice) Coarsest() Precision {
	return slices.MaxFunc(c.Used(), func(a, b Precision) int {
		return slices.Index(byError, a) - slices.Index(byError, b)
	})
}

// String is the program's precision and the rules, such as "fp16, conv1=strict".
func (c Choice) String() string {
	parts := []string{c.Program.String()}
	for _, r := range c.Rules {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, ", ")
}
