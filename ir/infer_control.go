package ir

import (
	"slices"

	"github.com/rammerc/rammerc/internal/diag"
)

// body infers a graph that is an attribute of the node. It reports graphs that are nested too deeply.
func (c *InferContext) body(attr string, g *Graph) bool {
	if c.in.depth == maxNesting {
		return c.badAttr(attr, "the graphs are nested more than %d deep", maxNesting)
	}
	c.in.depth++
	c.in.graph(g)
	c.in.depth--
	return true
}

// setFrom gives output i the type, shape and elements of a body's output.
func (c *InferContext) setFrom(i int, v *Value) {
	c.setType(i, v.DType)
	c.set(i, v.Shape)
	c.setElems(i, knownElems(v))
}

// inferIf: extents in which the branches differ become fresh symbols, and a rank in which they differ becomes unknown.
//
// A branch may be wrong for the shapes at hand: exporters write branches for inputs of several ranks, of which one fits.
// That is no mistake of the model as long as the other branch can be taken. The errors of such a branch are dropped, and
// the other one alone gives the outputs their types. So it is, too, where the condition is known.
func inferIf(c *InferContext) {
	c.wantOne(0)
	then, other := c.branch("then_branch"), c.branch("else_branch")
	if then == nil || other == nil || !c.wantBranchOutputs(then, other) {
		return
	}
	possible := c.possibleBranches(then, other)
	for _, b := range possible {
		if b.graph.Untyped {
			c.in.diags.Items = append(c.in.diags.Items, b.problems.Items...)
		}
	}
	for i, v := range then.graph.Outputs {
		w := other.graph.Outputs[i]
		switch {
		case v.DType != w.DType && v.DType != Invalid && w.DType != Invalid:
			c.Report("bad-type", c.outputPlace(i), "the branches give %v and %v", v.DType, w.DType)
		case len(possible) == 1:
			c.setFrom(i, possible[0].graph.Outputs[i])
		default:
			c.setType(i, v.DType)
			c.set(i, c.in.unite(v.Shape, w.Shape))
		}
	}
}

// branch is a branch of an If with the problems that inference has found in it.
type branch struct {
	graph    *Graph
	problems *diag.List
}

// branch infers the graph of an attribute. It returns nil, and reports why, if the graph cannot be a branch.
func (c *InferContext) branch(attr string) *branch {
	b := &branch{c.attr(attr).G, &diag.List{}}
	kept := c.in.diags
	c.in.diags = b.problems
	inferred := c.body(attr, b.graph)
	c.in.diags = kept
	b.graph.Untyped = b.problems.Errors() > 0
	if !inferred {
		kept.Items = append(kept.Items, b.problems.Items...)
		return nil
	}
	if n := len(b.graph.Inputs); n != 0 {
		c.badAttr(attr, "the graph has %d inputs, wanted none", n)
		return nil
	}
	return b
}

// wantBranchOutputs wants both branches to give as many values as the node has outputs.
func (c *InferContext) wantBranchOutputs(then, other *branch) bool {
	n, m := len(then.graph.Outputs), len(other.graph.Outputs)
	ok := true
	if n < len(c.Node.Outputs) {
		ok = c.badAttr("then_branch", "the graph has %d outputs, the node %d", n, len(c.Node.Outputs))
	}
	if m < len(c.Node.Outputs) || m != n {
		ok = c.badAttr("else_branch", "the graph has %d outputs, the node %d", m, len(c.Node.Outputs))
	}
	return ok
}

// possibleBranches are the branches that can be taken: the one that the condition selects, if it is known, and otherwise
// those without errors. If both have errors, both are returned, so that the errors are reported.
func (c *InferContext) possibleBranches(then, other *branch) []*branch {
	if elems := c.elems(0); len(elems) == 1 {
		if cond, known := elems[0].Const(); known && cond != 0 {
			return []*branch{then}
		} else if known {
			return []*branch{other}
		}
	}
	switch {
	case then.graph.Untyped == other.graph.Untyped:
		return []*branch{then, other}
	case then.graph.Untyped:
		return []*branch{other}
	}
	return []*branch{then}
}

// unite is a shape for a value that may have either of two: an extent in which they differ becomes a fresh symbol, and
// if their ranks differ the result is nil.
func (in *inferrer) unite(a, b Shape) Shape {
	if a == nil || b == nil || len(a) != len(b) {
		return nil
	}
	out := slices.Clone(a)
	for i := range out {
		if !a[i].Equal(b[i]) {
			out[i] = in.fresh()
		}
	}
	return out
}

// loopBody is the body of a Loop or Scan. It carries values: an output of one iteration is an input of the next.
type loopBody struct {
	graph        *Graph
	first        int                // body input of the first carried value; the others follow
	firstOut     int                // body output of the first carried value
	initial      []*Value           // the carried values before the first iteration
	initialPlace func(i int) string // the port of initial value i, for messages
}

// carry infers the body so that the shapes of carried values hold for every iteration. An iteration may change them:
// a loop that appends to a list carries [0], then [1], and so on. So the body is inferred in rounds:
//
//	round 1    the carried values have their initial shapes
//	round 2    extents that the body has changed are fresh symbols
//	round 3    shapes that have changed even so are unknown
//
// The rounds end as soon as nothing changes, and only the errors of the last one are reported. In loops that are nested
// deeper than maxLoops all carried shapes are unknown from the start, because the rounds of nested loops multiply.
func (c *InferContext) carry(l loopBody) bool {
	shapes := make([]Shape, len(l.initial))
	for i, v := range l.initial {
		if c.in.loops < maxLoops {
			shapes[i] = v.Shape
		}
	}
	c.in.loops++
	defer func() { c.in.loops-- }()
	const rounds = 3
	for round := 1; ; round++ {
		for i, v := range l.initial {
			in := l.graph.Inputs[l.first+i]
			in.DType, in.Shape, in.Elems = v.DType, shapes[i], nil
		}
		diags := c.in.diags
		c.in.diags = &diag.List{}
		ok := c.body("body", l.graph)
		stable := true
		for i := range shapes {
			given := l.graph.Outputs[l.firstOut+i].Shape
			if shapes[i] == nil || shapes[i].Equal(given) {
				continue
			}
			next := c.in.widen(shapes[i], given)
			if next.Equal(shapes[i]) {
				continue
			}
			if round == rounds-1 {
				next = nil
			}
			shapes[i], stable = next, false
		}
		found := c.in.diags
		c.in.diags = diags
		if !ok || stable || round == rounds {
			for _, d := range found.Items {
				c.in.diags.Add(d)
			}
			return ok && c.wantCarried(l)
		}
	}
}

// widen is unite, except that an extent of a that is a fresh symbol already stays as it is: it stands for any extent.
func (in *inferrer) widen(a, b Shape) Shape {
	out := in.unite(a, b)
	for i := range out {
		if in.isFresh(a[i]) {
			out[i] = a[i]
		}
	}
	return out
}

// isFresh reports whether d is a single fresh symbol.
func (in *inferrer) isFresh(d Dim) bool {
	if d.n != 0 || len(d.t) != 1 || d.t[0].coef != 1 || len(d.t[0].atoms) != 1 || d.t[0].atoms[0].op != "" {
		return false
	}
	return !in.used[d.t[0].atoms[0].name]
}

// wantCarried wants the body to give every carried value the element type that it has initially.
func (c *InferContext) wantCarried(l loopBody) bool {
	ok := true
	for i, v := range l.initial {
		out := l.graph.Outputs[l.firstOut+i]
		if v.DType != Invalid && out.DType != Invalid && v.DType != out.DType {
			ok = c.Report("bad-type", l.initialPlace(i), "the element type is %v, the body gives %v", v.DType,
				out.DType)
		}
	}
	return ok
}

// inferLoop: the body's inputs are the iteration number, the condition and the carried values; its outputs are the
// condition, the carried values and the scan outputs. The node's outputs are the carried values after the last
// iteration, and the scan outputs of all iterations stacked along a new first axis.
func inferLoop(c *InferContext) {
	c.wantOne(0)
	c.wantOne(1)
	body := c.attr("body").G
	var initial []*Value
	if len(c.Node.Inputs) > 2 {
		initial = c.Node.Inputs[2:]
	}
	carried := len(initial)
	if len(body.Inputs) != 2+carried {
		c.badAttr("body", "the graph has %d inputs, wanted %d: iteration, condition and the carried values",
			len(body.Inputs), 2+carried)
		return
	}
	if len(body.Outputs) < 1+carried || len(body.Outputs)-1 < len(c.Node.Outputs) {
		c.badAttr("body", "the graph has %d outputs, wanted %d: condition, carried values and scans", len(body.Outputs),
			1+max(carried, len(c.Node.Outputs)))
		return
	}
	setScalar(body.Inputs[0], Int64)
	setScalar(body.Inputs[1], Bool)
	if !c.carry(loopBody{body, 2, 1, initial, func(i int) string { return c.inputPlace(2 + i) }}) {
		return
	}
	if d := body.Outputs[0].DType; d != Bool && d != Invalid {
		c.badAttr("body", "the condition is of type %v, wanted bool", d)
	}
	trips := c.trips(body)
	for i, v := range body.Outputs[1:] {
		c.setType(i, v.DType)
		switch {
		case i < carried:
			c.set(i, c.in.unite(body.Inputs[2+i].Shape, v.Shape))
		case v.Shape != nil:
			c.set(i, joinShapes(Shape{trips}, v.Shape))
		}
	}
}

// trips is the number of iterations: the input M if the condition is always true, otherwise a fresh symbol.
func (c *InferContext) trips(body *Graph) Dim {
	m := c.elems(0)
	always := !c.has(1) || isTrue(c.elems(1))
	kept := body.Outputs[0] == body.Inputs[1] || isTrue(knownElems(body.Outputs[0]))
	if len(m) != 1 || !always || !kept || c.in.hasUnknown(m[0]) {
		return c.in.fresh()
	}
	return atLeastZero(m[0])
}

func isTrue(elems []Dim) bool { return len(elems) == 1 && elems[0].Equal(D(1)) }

func setScalar(v *Value, d DType) { v.DType, v.Shape, v.Elems = d, Shape{}, nil }

// inferScan: the body's inputs are the states and one slice of each scan input; its outputs are the states and the scan
// outputs. The node's outputs are the states after the last iteration, and the scan outputs of all iterations stacked
// along scan_output_axes.
func inferScan(c *InferContext) {
	body := c.attr("body").G
	scans := c.int("num_scan_inputs")
	if scans < 1 || scans > int64(len(c.Node.Inputs)) {
		c.badAttr("num_scan_inputs", "the value is %d, the node has %d inputs", scans, len(c.Node.Inputs))
		return
	}
	states := len(c.Node.Inputs) - int(scans)
	if len(body.Inputs) != len(c.Node.Inputs) {
		c.badAttr("body", "the graph has %d inputs, the node %d", len(body.Inputs), len(c.Node.Inputs))
		return
	}
	if len(body.Outputs) < max(states, len(c.Node.Outputs)) {
		c.badAttr("body", "the graph has %d outputs, the node %d, of which %d are states", len(body.Outputs),
			len(c.Node.Outputs), states)
		return
	}
	okIn := c.wantScanLists("scan_input_axes", "scan_input_directions", int(scans))
	okOut := c.wantScanLists("scan_output_axes", "scan_output_directions", len(body.Outputs)-states)
	if !okIn || !okOut {
		return
	}
	trips, ok := c.scanInputs(body, states)
	if !ok {
		return
	}
	place := func(i int) string { return c.inputPlace(i) }
	if c.carry(loopBody{body, 0, 0, c.Node.Inputs[:states], place}) {
		c.scanOutputs(body, states, trips)
	}
}

// wantScanLists wants the attributes axes and directions to have count values or none, and directions to be 0 or 1.
func (c *InferContext) wantScanLists(axes, directions string, count int) bool {
	for _, name := range []string{axes, directions} {
		if n := len(c.ints(name)); n != 0 && n != count {
			return c.badAttr(name, "there are %d values, wanted %d", n, count)
		}
	}
	for _, d := range c.ints(directions) {
		if d != 0 && d != 1 {
			return c.badAttr(directions, "the value is %d, wanted 0 or 1", d)
		}
	}
	return true
}

// scanAxis is entry i of an attribute that lists axes, resolved for a tensor of the given rank. The default is axis 0.
func (c *InferContext) scanAxis(name string, i, rank int) (int, bool) {
	axis := int64(0)
	if list := c.ints(name); len(list) > 0 {
		axis = list[i]
	}
	return c.axis("attribute "+name, axis, rank)
}

// scanInputs sets the types of the body's inputs that get slices: those of the scan inputs without the scanned axis. It
// returns the number of iterations, which is the extent of that axis.
func (c *InferContext) scanInputs(body *Graph, states int) (Dim, bool) {
	trips := c.in.fresh()
	for i, v := range c.Node.Inputs[states:] {
		in := body.Inputs[states+i]
		in.DType, in.Shape, in.Elems = v.DType, nil, nil
		if v.Shape == nil {
			continue
		}
		axis, ok := c.scanAxis("scan_input_axes", i, len(v.Shape))
		if !ok {
			return Dim{}, false
		}
		if i == 0 || c.in.isFresh(trips) {
			trips = v.Shape[axis]
		}
		if trips, ok = mergeDim(trips, v.Shape[axis]); !ok {
			return Dim{}, c.badInput("bad-shape", states+i, "the scanned axis has extent %v, wanted %v as before",
				v.Shape[axis], trips)
		}
		in.Shape = slices.Delete(slices.Clone(v.Shape), axis, axis+1)
	}
	return trips, true
}

// scanOutputs sets the types of the node's outputs from those of the body.
func (c *InferContext) scanOutputs(body *Graph, states int, trips Dim) {
	for i, v := range body.Outputs {
		c.setType(i, v.DType)
		if i < states {
			c.set(i, c.in.unite(body.Inputs[i].Shape, v.Shape))
			continue
		}
		if v.Shape == nil {
			continue
		}
		if axis, ok := c.scanAxis("scan_output_axes", i-states, len(v.Shape)+1); ok {
			c.set(i, slices.Insert(slices.Clone(v.Shape), axis, trips))
		}
	}
}
