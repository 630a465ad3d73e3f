package ir

import "strings"

// The operator Reference stands in the body of a Fused node for an operator of the user's of which only a function in
// Python says what it computes. Shapes are dims that are separated by ";", and whose symbols are names of the inputs'
// dims; a name that ends in "..." stands for any number of dims, and elsewhere for their product.
var referenceOps = []Op{
	{
		Domain: InternalDomain, Name: "Reference", Since: 1, Kind: KindIndexed, Infer: inferReference,
		Inputs:  []Port{{Name: "inputs", Types: storedTypes, Optional: true, Variadic: true}},
		Outputs: []Port{variadic("outputs", "", storedTypes)},
		Attrs: []AttrSpec{
			required("file", AttrString), required("function", AttrString), required("inputs", AttrStrings),
			required("outputs", AttrStrings), required("types", AttrStrings), absent("value_names", AttrStrings),
			absent("values", AttrFloats),
		},
		Doc: "what the function of the Python file makes of the inputs and the values",
	},
}

func inferReference(c *InferContext) {
	inputs := c.attr("inputs").Strs
	if len(inputs) != len(c.Node.Inputs) {
		c.badAttr("inputs", "shapes of %d inputs, the node has %d", len(inputs), len(c.Node.Inputs))
		return
	}
	shapes := make([]Shape, len(inputs))
	for i := range inputs {
		if shapes[i] = c.shape(i); shapes[i] == nil {
			return
		}
	}
	for i, name := range c.attr("types").Strs {
		if d, ok := ParseDType(name); ok {
			c.setType(i, d)
		} else {
			c.badAttr("types", "%q is no element type", name)
		}
	}
	list, problem := referenceShapes(c.Node, shapes)
	if problem != "" {
		c.Report("bad-shape", "", "%s", problem)
		return
	}
	for i, s := range list {
		c.set(i, s)
	}
}

// ReferenceResults are the element types and shapes of the outputs of a node of the operator Reference in a run in which
// its inputs have the given dims, or it says why there are none.
func ReferenceResults(n *Node, inputs [][]int64) (types []DType, dims [][]int64, problem string) {
	shapes := make([]Shape, len(inputs))
	for i, list := range inputs {
		shapes[i] = Shape{}
		for _, x := range list {
			shapes[i] = append(shapes[i], D(x))
		}
	}
	outputs, problem := referenceShapes(n, shapes)
	names := n.Attrs["types"].Strs
	if problem == "" && len(names) != len(outputs) {
		problem = "there are types and shapes of different numbers of outputs"
	}
	if problem != "" {
		return nil, nil, problem
	}
	for i, s := range outputs {
		d, ok := ParseDType(names[i])
		extents, known := s.Consts()
		if !ok || !known {
			return nil, nil, "output " + s.String() + " of " + names[i] + " is not known"
		}
		types, dims = append(types, d), append(dims, extents)
	}
	return types, dims, ""
}

// referenceShapes are the shapes of the outputs of a node of the operator Reference, or says why there are none.
func referenceShapes(n *Node, inputs []Shape) (outputs []Shape, problem string) {
	env, rest := map[string]Dim{}, map[string]Shape{}
	patterns := n.Attrs["inputs"].Strs
	if len(patterns) != len(inputs) {
		return nil, "there are shapes of another number of inputs"
	}
	for i, s := range inputs {
		if !bindPattern(patterns[i], s, env, rest) {
			return nil, "input " + s.String() + " is not of the form [" + strings.ReplaceAll(patterns[i], ";", ", ") + "]"
		}
	}
	for _, text := range n.Attrs["outputs"].Strs {
		out := Shape{}
		for _, d := range patternDims(text) {
			if name, many := strings.CutSuffix(d, "..."); many {
				dims, known := rest[name]
				if !known {
					return nil, "no input has the dims " + d
				}
				out = append(out, dims...)
				continue
			}
			dim, err := ParseDim(d)
			if err != nil {
				return nil, err.Error()
			}
			if dim, known := dim.replace(env); known {
				out = append(out, dim)
				continue
			}
			return nil, "no input has all dims of " + d
		}
		outputs = append(outputs, out)
	}
	return outputs, ""
}

func patternDims(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ";")
}

// bindPattern finds what the names in a pattern stand for in a shape. It reports whether the shape has the pattern's form.
func bindPattern(text string, s Shape, env map[string]Dim, rest map[string]Shape) bool {
	dims, at := patternDims(text), 0
	for _, d := range dims {
		n := 1
		name, many := strings.CutSuffix(d, "...")
		if many {
			n = len(s) - len(dims) + 1
		}
		if n < 0 || at+n > len(s) {
			return false
		}
		extent := D(1)
		for _, x := range s[at : at+n] {
			extent = extent.Mul(x)
		}
		want, err := ParseDim(name)
		if err != nil {
			return false
		}
		if known, all := want.replace(env); all {
			x, constX := extent.Const()
			if y, constY := known.Const(); constX && constY && x != y {
				return false
			}
		} else if symbol, single := want.Symbol(); single {
			env[symbol] = extent
		} else {
			return false
		}
		if many {
			rest[name] = s[at : at+n]
		}
		at += n
	}
	return at == len(s)
}

// replace is d with dims in place of its symbols; known is false if env lacks one.
func (d Dim) replace(env map[string]Dim) (out Dim, known bool) {
	out, known = D(d.n), true
	for _, t := range d.t {
		p := D(t.coef)
		for _, a := range t.atoms {
			x, ok := a.replace(env)
			known = known && ok
			p = p.Mul(x)
		}
		out = out.Add(p)
	}
	return out, known
}

func (a *atom) replace(env map[string]Dim) (Dim, bool) {
	if a.op == "" {
		d, ok := env[a.name]
		return d, ok
	}
	x, okX := a.a.replace(env)
	y, okY := a.b.replace(env)
	if a.op == "div" {
		if n, known := y.Const(); known && n == 0 {
			return x, false
		}
		return x.FloorDiv(y), okX && okY
	}
	return dimFunctions[a.op](x, y), okX && okY
}
