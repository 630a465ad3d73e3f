package ir

import (
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/rammerc/rammerc/internal/diag"
)

// Bounds of shape inference. They keep its cost linear in the size of the model, whatever the model contains.
const (
	maxElements = 1 << 40 // elements of one tensor; no device holds more
	maxRank     = 64
	maxElems    = 1024    // elements of a value that Value.Elems follows
	maxDimText  = 512     // length of a symbolic extent; a longer one becomes a fresh symbol
	maxDimTerms = 64      // terms that a product of extents may have
	maxNesting  = 64      // graphs inside graphs
	maxLoops    = 3       // loops inside loops in which the shapes of carried values are followed
	freshPrefix = "unk__" // of the names of fresh symbols
)

// InferShapes recomputes the element type, the shape and the known elements of every value of g, and of the graphs
// inside it, from g's inputs and the constants. An extent that cannot be known becomes a fresh symbol unk__0, unk__1, …
// whose number depends on g only. The list has every problem that was found, with the place of its node. Values
// computed from the outputs of a wrong node keep what is still known of them, so that one mistake is reported once.
//
// As long as extents are symbols, inference assumes that slice bounds that involve them lie inside their axis. BindDims
// infers again with the exact values.
func InferShapes(g *Graph) *diag.List {
	in := &inferrer{lookup: LookupOp, diags: &diag.List{}, used: map[string]bool{}, elemSymbols: map[string]bool{}}
	for _, v := range g.Inputs {
		v.Elems = nil
		for _, d := range v.Shape {
			d.Symbols(in.used)
		}
		in.checkInput(v)
	}
	in.graph(g)
	return in.diags
}

// KnownElems returns v's elements if all are known numbers.
func KnownElems(v *Value) ([]int64, bool) {
	elems := knownElems(v)
	if elems == nil {
		return nil, false
	}
	return Shape(elems).Consts()
}

// BindDims replaces symbols in the shapes of g's inputs by constants and infers everything again. It ignores names that
// g does not use; Symbols lists those that it does.
func BindDims(g *Graph, bind map[string]int64) *diag.List {
	for _, v := range g.Inputs {
		v.Shape = slices.Clone(v.Shape)
		for i, d := range v.Shape {
			v.Shape[i] = d.Bind(bind)
		}
	}
	return InferShapes(g)
}

// Symbols returns the sorted names of the symbols in the shapes of g's inputs.
func Symbols(g *Graph) []string {
	set := map[string]bool{}
	for _, v := range g.Inputs {
		for _, d := range v.Shape {
			d.Symbols(set)
		}
	}
	names := make([]string, 0, len(set))
	for name := range set {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// inferrer is one run of InferShapes. Infer functions must find operators through the field lookup and not by
// LookupOp: the operator table refers to the Infer functions, so a reference back would be an initialisation cycle.
type inferrer struct {
	lookup      func(domain, name string) *Op
	diags       *diag.List
	used        map[string]bool // the symbols of g's inputs, from which fresh ones must differ
	elemSymbols map[string]bool // symbols that stand for unknown elements; unlike extents, these may be negative
	next        int             // number of the next fresh symbol
	depth       int             // how many graphs are around the present one
	loops       int             // how many loops are around the present graph
}

// fresh is a symbol for an extent that is not known.
func (in *inferrer) fresh() Dim {
	for {
		name := freshPrefix + strconv.Itoa(in.next)
		in.next++
		if !in.used[name] {
			return Sym(name)
		}
	}
}

// freshElem is a symbol for an element that is not known and may be negative.
func (in *inferrer) freshElem() Dim {
	d := in.fresh()
	d.Symbols(in.elemSymbols)
	return d
}

func (in *inferrer) freshShape(rank int) Shape {
	s := make(Shape, rank)
	for i := range s {
		s[i] = in.fresh()
	}
	return s
}

func (in *inferrer) checkInput(v *Value) {
	if id, msg := shapeProblem(v.Shape); msg != "" {
		in.diags.Add(&diag.Diagnostic{ID: id, Port: fmt.Sprintf("graph input %q", v.Name), Message: msg})
	}
}

// graph infers g's nodes in order.
func (in *inferrer) graph(g *Graph) {
	for i, n := range g.Nodes {
		c := &InferContext{Node: n, Graph: g, Op: in.lookup(n.Domain, n.Op), in: in, index: i}
		for _, v := range n.Outputs {
			if v != nil {
				v.DType, v.Shape, v.Elems = Invalid, nil, nil
			}
		}
		if c.Op == nil {
			c.Report("unsupported-op", "", "the operator is not supported")
			continue
		}
		c.infer()
	}
}

// infer checks the node against its row, runs the row's Infer, and checks what that found.
func (c *InferContext) infer() {
	arityOK := c.checkArity()
	attrsOK := c.checkAttrs()
	typesOK := c.checkTypes()
	c.setTypes()
	if arityOK && attrsOK && typesOK && c.Op.Infer != nil {
		c.Op.Infer(c)
	}
	c.checkOutputs()
}

// checkArity reports missing inputs, and inputs and outputs that the operator does not have.
func (c *InferContext) checkArity() bool {
	ok := true
	if n := c.Op.MinInputs(); len(c.Node.Inputs) < n {
		for i := len(c.Node.Inputs); i < n; i++ {
			if p := c.Op.InputPort(i); !p.Optional {
				c.Report("missing-input", c.inputPlace(i), "the node has %d inputs, the operator needs this one",
					len(c.Node.Inputs))
			}
		}
		ok = false
	}
	for i, v := range c.Node.Inputs {
		p := c.Op.InputPort(i)
		switch {
		case p == nil:
			c.Report("bad-arity", c.inputPlace(i), "the operator has only %d inputs", len(c.Op.Inputs))
			return false
		case v == nil && (!p.Optional || p.Variadic):
			c.Report("missing-input", c.inputPlace(i), "the input is absent, the operator needs it")
			ok = false
		}
	}
	for i := range c.Node.Outputs {
		if c.Op.OutputPort(i) == nil {
			c.Report("bad-arity", c.outputPlace(i), "the operator has only %d outputs", len(c.Op.Outputs))
			return false
		}
	}
	return ok
}

var attrKindNames = [...]string{
	"nothing", "an integer", "a number", "a string", "integers", "numbers", "strings", "a tensor", "a graph",
}

func (k AttrKind) String() string {
	if int(k) < len(attrKindNames) {
		return attrKindNames[k]
	}
	return fmt.Sprintf("attribute kind %d", uint8(k))
}

// checkAttrs reports attributes that the operator does not have or that have a wrong value, and required ones that are
// missing.
func (c *InferContext) checkAttrs() bool {
	ok := true
	for _, name := range sortedAttrs(c.Node) {
		ok = c.checkAttr(name, c.Node.Attrs[name]) && ok
	}
	for _, spec := range c.Op.Attrs {
		if spec.Required && !c.Node.HasAttr(spec.Name) {
			c.Report("bad-attribute", "attribute "+spec.Name, "the attribute is absent, the operator needs it")
			ok = false
		}
	}
	return ok
}

func (c *InferContext) checkAttr(name string, a Attr) bool {
	spec := c.Op.Attr(name)
	place := "attribute " + name
	switch {
	case spec == nil:
		c.Report("bad-attribute", place, "the operator has no attribute of this name")
	case a.Kind != spec.Kind:
		c.Report("bad-attribute", place, "the attribute holds %s, wanted %s", a.Kind, spec.Kind)
	case a.Kind == AttrTensor && !wellFormed(a.T):
		c.Report("bad-attribute", place, "the tensor's elements do not fit its element type and shape")
	case a.Kind == AttrGraph && (a.G == nil || slices.Contains(a.G.Inputs, nil) || slices.Contains(a.G.Outputs, nil)):
		c.Report("bad-attribute", place, "the graph or one of its inputs or outputs is absent")
	case spec.Values != nil && !slices.Contains(spec.Values, a.S):
		c.Report("bad-attribute", place, "the value %q is unknown, wanted one of %q", a.S, spec.Values)
	default:
		return true
	}
	return false
}

func sortedAttrs(n *Node) []string {
	names := make([]string, 0, len(n.Attrs))
	for name := range n.Attrs {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// checkTypes compares the inputs' element types with the ports' and binds the type variables.
func (c *InferContext) checkTypes() bool {
	c.typeVars = map[string]DType{}
	ok := true
	for i, v := range c.Node.Inputs {
		p := c.Op.InputPort(i)
		if v == nil || p == nil || v.DType == Invalid {
			continue
		}
		bound, has := c.typeVars[p.Var]
		switch {
		case !p.Allows(v.DType):
			c.reportType(i, v.DType, "the element type is not supported here, wanted "+typeList(p.Types))
			ok = false
		case p.Var != "" && has && bound != v.DType:
			c.reportType(i, v.DType, fmt.Sprintf("the element type differs from %v of an input before it", bound))
			ok = false
		case p.Var != "" && !has:
			c.typeVars[p.Var] = v.DType
		}
	}
	return ok
}

// Allows reports whether the port accepts elements of type d.
func (p *Port) Allows(d DType) bool {
	if p.Types == nil {
		return d != Invalid && d != String && !d.IsNarrow()
	}
	return slices.Contains(p.Types, d)
}

func typeList(types []DType) string {
	if types == nil {
		return "a number or bool"
	}
	text := ""
	for i, d := range types {
		if i > 0 {
			text += ", "
		}
		text += d.String()
	}
	return text
}

// setTypes sets the element types of those outputs whose port has a type variable, or allows a single type.
func (c *InferContext) setTypes() {
	for i, v := range c.Node.Outputs {
		p := c.Op.OutputPort(i)
		if v == nil || p == nil {
			continue
		}
		if p.Var != "" {
			v.DType = c.typeVars[p.Var]
		} else if len(p.Types) == 1 {
			v.DType = p.Types[0]
		}
	}
}

// checkOutputs reports impossible shapes, and replaces expressions that have become too long by fresh symbols.
func (c *InferContext) checkOutputs() {
	for i, v := range c.Node.Outputs {
		if v == nil {
			continue
		}
		if id, msg := shapeProblem(v.Shape); msg != "" {
			c.Report(id, c.outputPlace(i), "%s", msg)
			v.Elems = nil
			if id == "bad-rank" {
				v.Shape = nil
			} else {
				v.Shape = c.in.freshShape(len(v.Shape))
			}
		}
		v.Shape = c.in.shorten(v.Shape, c.in.fresh)
		v.Elems = c.in.shorten(v.Elems, c.in.freshElem)
	}
}

// shorten replaces dims whose text is longer than maxDimText by fresh ones; dims itself stays as it is.
func (in *inferrer) shorten(dims []Dim, fresh func() Dim) []Dim {
	copied := false
	for i, d := range dims {
		if d.textLen() > maxDimText {
			if !copied {
				dims, copied = slices.Clone(dims), true
			}
			dims[i] = fresh()
		}
	}
	return dims
}

// shapeProblem says why no tensor can have the shape, with the ID of the diagnostic; both are "" for a possible shape.
func shapeProblem(s Shape) (id, message string) {
	if len(s) > maxRank {
		return "bad-rank", fmt.Sprintf("the rank is %d, at most %d is supported", len(s), maxRank)
	}
	count := int64(1)
	for _, d := range s {
		n, ok := d.Const()
		switch {
		case !ok:
			continue
		case n < 0:
			return "bad-shape", fmt.Sprintf("the shape %v has the negative extent %d", s, n)
		case n > maxElements:
			return "bad-shape", fmt.Sprintf("the extent %d of shape %v is too large", n, s)
		}
		count = satMul(count, max(n, 1))
	}
	if count > maxElements {
		return "bad-shape", fmt.Sprintf("the shape %v has too many elements", s)
	}
	return "", ""
}
