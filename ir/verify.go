package ir

import (
	"fmt"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
)

// Verify checks the invariants of a graph. Its error is a *diag.List with all violations. The invariants are:
//
//   - every value is defined once, under a name that is unique in its graph and the graphs inside;
//   - every use comes after its definition, in the same graph or in a graph around it; the body of a Fused node uses
//     only its own values;
//   - constants hold as many elements as their dims say, of their element type;
//   - nodes have the inputs, outputs and attributes of their operator's row, and the element types and
//     shapes of their outputs are those that InferShapes computes;
//   - a loop (ops_repeat.go) begins and ends once, and only its end gives values of its body to what follows;
//   - the order in which a value is stored, if it has one, names each of its dims once, and a node makes the value.
//
// An extent that shape inference cannot know (unk__0, …) is compatible with any extent.
func Verify(g *Graph) error {
	v := &verifier{diags: &diag.List{}, names: map[string]*Value{}}
	v.graph(g, nil)
	if v.diags.Errors() == 0 { // inference requires a correct structure
		v.types(g)
	}
	return v.diags.Err()
}

// verifier collects the violations of one graph.
type verifier struct {
	diags *diag.List
	names map[string]*Value // the values of the present graph and of those around it, by name
}

// visible holds the values that have been defined so far in a graph, with a link to the graph around it.
type visible struct {
	values map[*Value]bool
	outer  *visible
}

func (s *visible) has(v *Value) bool {
	for ; s != nil; s = s.outer {
		if s.values[v] {
			return true
		}
	}
	return false
}

func (v *verifier) report(id string, n *Node, port, format string, args ...any) {
	d := &diag.Diagnostic{ID: id, Port: port, Message: fmt.Sprintf(format, args...)}
	if n != nil {
		d.Node, d.Op, d.Domain = n.label(), n.Op, n.Domain
	}
	v.diags.Add(d)
}

// label names a node in messages: by its name or, if it has none, by its first output.
func (n *Node) label() string {
	if n.Name != "" {
		return n.Name
	}
	for _, v := range n.Outputs {
		if v != nil {
			return "%" + v.Name
		}
	}
	return ""
}

// graph checks the structure of g; outer is nil where g must not use values of the graphs around it.
func (v *verifier) graph(g *Graph, outer *visible) {
	if g == nil {
		v.report("bad-graph", nil, "", "the graph is nil")
		return
	}
	s := &visible{values: map[*Value]bool{}, outer: outer}
	var names []string
	define := func(x *Value, n *Node, place string) {
		if v.define(x, n, place, s) {
			names = append(names, x.Name)
		}
	}
	for i, x := range g.Inputs {
		define(x, nil, fmt.Sprintf("graph input %d", i))
	}
	for i, x := range g.Consts {
		define(x, nil, fmt.Sprintf("constant %d", i))
		v.constant(x)
	}
	for i, x := range g.Inputs {
		if x != nil && x.Const != nil {
			v.report("bad-graph", nil, fmt.Sprintf("graph input %d", i),
				"%%%s is an input and has constant elements", x.Name)
		}
	}
	for i, n := range g.Nodes {
		if n == nil {
			v.report("bad-graph", nil, "", "node %d of graph %q is nil", i, g.Name)
			continue
		}
		v.node(n, s)
		for j, x := range n.Outputs {
			if x != nil {
				define(x, n, fmt.Sprintf("output %d", j))
			}
		}
	}
	for i, x := range g.Outputs {
		v.use(x, nil, fmt.Sprintf("output %d of graph %q", i, g.Name), s)
	}
	if v.diags.Errors() == 0 {
		v.repeats(g)
	}
	// Names must differ only along the chain of graphs around a value. The two branches of an If may use the same ones.
	for _, name := range names {
		delete(v.names, name)
	}
}

// define checks a definition and makes x visible. It returns whether it has entered x's name into v.names.
func (v *verifier) define(x *Value, n *Node, place string, s *visible) bool {
	switch {
	case x == nil:
		v.report("bad-graph", n, place, "the value is nil")
		return false
	case s.has(x):
		v.report("duplicate-value", n, place, "the value %%%s is defined twice", x.Name)
		return false
	case x.Def != n:
		v.report("bad-graph", n, place, "the value %%%s says that %s defines it", x.Name, definer(x.Def))
	case n != nil && x.Const != nil:
		v.report("bad-graph", n, place, "the value %%%s is a result and has constant elements", x.Name)
	}
	if x.Order != nil && (n == nil || !x.ordersDims()) {
		v.report("bad-graph", n, place, "the value %%%s of type %s cannot be stored in the order %v", x.Name,
			typeText(x.DType, x.Shape), x.Order)
	}
	s.values[x] = true
	if x.Name == "" {
		v.report("bad-graph", n, place, "a value has no name")
		return false
	}
	if v.names[x.Name] != nil {
		v.report("duplicate-value", n, place, "two values are called %%%s", x.Name)
		return false
	}
	v.names[x.Name] = x
	return true
}

// ordersDims reports whether x.Order names each dim of x once.
func (x *Value) ordersDims() bool {
	seen := make([]bool, len(x.Shape))
	for _, d := range x.Order {
		if d < 0 || d >= len(seen) || seen[d] {
			return false
		}
		seen[d] = true
	}
	return len(x.Order) == len(seen)
}

func definer(n *Node) string {
	if n == nil {
		return "no node"
	}
	return fmt.Sprintf("node %q (%s)", n.label(), n.Op)
}

func (v *verifier) constant(x *Value) {
	if x == nil {
		return
	}
	if err := x.Const.check(); err != nil {
		v.report("bad-constant", nil, "constant %"+x.Name, "%v", err)
		return
	}
	if t := x.Const; x.DType != t.DType || !x.Shape.Equal(Dims(t.Dims...)) {
		v.report("bad-constant", nil, "constant %"+x.Name, "the value has type %s, its elements %s",
			typeText(x.DType, x.Shape), typeText(t.DType, Dims(t.Dims...)))
	}
}

// use checks that x is defined where it is read.
func (v *verifier) use(x *Value, n *Node, place string, s *visible) {
	switch {
	case x == nil:
		v.report("bad-graph", n, place, "the value is nil")
	case !s.has(x):
		v.report("undefined-value", n, place, "the value %%%s is not defined before this use", x.Name)
	}
}

func (v *verifier) node(n *Node, s *visible) {
	for i, x := range n.Inputs {
		if x != nil {
			v.use(x, n, fmt.Sprintf("input %d", i), s)
		}
	}
	for _, name := range n.Attrs.Names() {
		a := n.Attrs[name]
		if a.Kind == AttrTensor {
			if err := a.T.check(); err != nil {
				v.report("bad-constant", n, "attribute "+name, "%v", err)
			}
		}
		if a.Kind != AttrGraph {
			continue
		}
		if op := LookupOp(n.Domain, n.Op); op != nil && op.Kind == KindFused {
			v.graph(a.G, nil)
			continue
		}
		v.graph(a.G, s)
	}
}

// types compares the element types and shapes in g with those that shape inference computes for a copy of g.
func (v *verifier) types(g *Graph) {
	inferred, copies := CloneMap(g)
	v.diags.Items = append(v.diags.Items, InferShapes(inferred).Items...)
	if v.diags.Errors() > 0 {
		return
	}
	EachGraph(g, func(g *Graph) {
		for _, n := range g.Nodes {
			for i, x := range n.Outputs {
				if x != nil {
					v.sameType(n, i, x, copies[x])
				}
			}
		}
	})
}

func (v *verifier) sameType(n *Node, i int, x, inferred *Value) {
	if x.DType != inferred.DType || !compatible(x.Shape, inferred.Shape) {
		v.report("bad-type", n, fmt.Sprintf("output %d (%%%s)", i, x.Name), "the type is %s, inference computes %s",
			typeText(x.DType, x.Shape), typeText(inferred.DType, inferred.Shape))
	}
}

// compatible reports whether two shapes are equal, apart from extents that inference does not know.
func compatible(a, b Shape) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) && !unknownExtent(a[i]) && !unknownExtent(b[i]) {
			return false
		}
	}
	return true
}

// unknownExtent reports whether d contains a fresh symbol of shape inference.
func unknownExtent(d Dim) bool {
	set := map[string]bool{}
	d.Symbols(set)
	for name := range set {
		if strings.HasPrefix(name, freshPrefix) {
			return true
		}
	}
	return false
}
