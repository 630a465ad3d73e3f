package onnx

import (
	"fmt"
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// Control flow around sequences: bodies are written out into the graph around them, as often as they run.

// onLists reports whether a node of If, Loop or SequenceMap has sequences as inputs or outputs.
func (s *scope) onLists(pb *onnxpb.NodeProto) bool {
	if canonicalDomain(pb.GetDomain()) != "" || pb.GetOpType() != "If" && pb.GetOpType() != "Loop" {
		return canonicalDomain(pb.GetDomain()) == "" && pb.GetOpType() == "SequenceMap"
	}
	for _, name := range pb.Input {
		if v, _ := s.lookup(name); v != nil && s.im.lists[v] != nil {
			return true
		}
	}
	for _, a := range pb.Attribute {
		for _, o := range a.GetG().GetOutput() {
			if _, seq := elementType(o.Type); seq || heldType(o.Type) != o.Type {
				return true
			}
		}
	}
	return false
}

// controlLists imports If, Loop and SequenceMap whose inputs or outputs are sequences.
func (s *scope) controlLists(p *place, pb *onnxpb.NodeProto) {
	s.im.places[p.name] = p
	inputs := s.inputs(p, pb)
	bound, ok := s.bindAttributes(p, pb)
	outputs := s.defineOutputs(p, pb)
	poisoned := slices.ContainsFunc(inputs, func(v *ir.Value) bool { return v != nil && s.im.poisoned[v] })
	if !ok || poisoned {
		s.refuse(outputs)
		return
	}
	c := &listControl{s: s, p: p, bound: bound, inputs: inputs}
	switch p.op {
	case "SequenceMap":
		c.sequenceMap()
	case "Loop":
		c.loop()
	default:
		c.branch(len(outputs))
	}
	if c.failed || len(c.results) < len(outputs) {
		if !c.failed {
			p.report("bad-arity", "", "", fmt.Sprintf("the body gives %d outputs, the node has %d", len(c.results), len(outputs)))
		}
		s.refuse(outputs)
		return
	}
	for i, out := range outputs {
		if c.results[i] == nil {
			s.refuse(outputs[i : i+1])
			continue
		}
		s.alias(p, c.results[i], out)
	}
}

// listControl is a node that controlLists imports.
type listControl struct {
	s       *scope
	p       *place
	bound   []boundAttr
	inputs  []*ir.Value
	results []*ir.Value
	failed  bool // an error has been reported
}

func (c *listControl) fail(id, port, message string) {
	c.failed = true
	c.p.report(id, port, "", message)
}

func (c *listControl) input(i int) *ir.Value {
	if i < len(c.inputs) {
		return c.inputs[i]
	}
	return nil
}

// body is the graph of an attribute, and the scope in which it is.
func (c *listControl) body(name string) (*onnxpb.GraphProto, *scope) {
	for _, b := range c.bound {
		if b.name == name && b.pb.G != nil {
			return b.pb.G, b.s
		}
	}
	c.fail("bad-attribute", "attribute "+name, "the attribute is absent, the operator needs it")
	return nil, nil
}

// turnCost is what a turn of a loop costs beside its nodes, in the units of nodeCost: an empty one must end, too.
const turnCost = 64

// inline adds the nodes of a body, whose inputs are args, to the graph around it, and returns what the body gives.
func (c *listControl) inline(name string, args []*ir.Value, turn int) []*ir.Value {
	pb, outer := c.body(name)
	if c.failed {
		return nil
	}
	if len(args) != len(pb.Input) {
		c.fail("bad-arity", "attribute "+name, fmt.Sprintf("the body has %d inputs, it gets %d", len(pb.Input), len(args)))
		return nil
	}
	im := c.s.im
	im.copies++
	defer func() { im.copies-- }()
	if !c.s.withinBudget(c.p, turnCost+len(pb.Input)+len(pb.Initializer)+len(pb.ValueInfo)+len(pb.Output)) {
		c.failed = true
		return nil
	}
	inner := &scope{
		im: im, b: c.s.b, outer: outer, names: map[string]*ir.Value{}, opsets: outer.opsets, attrs: outer.attrs,
		path: fmt.Sprintf("%s/%d/", clip(c.p.name, maxPath), turn),
	}
	inner.readHints(pb.ValueInfo, pb.Output)
	inner.initializers(pb)
	for i, in := range pb.Input {
		inner.names[in.GetName()] = args[i]
	}
	inner.nodes(pb.Node)
	out := make([]*ir.Value, len(pb.Output))
	for i, o := range pb.Output {
		if out[i], _ = inner.lookup(o.GetName()); out[i] == nil {
			c.fail("unresolved-name", fmt.Sprintf("output %q of the body", o.GetName()), "no node defines it")
			return nil
		}
		c.failed = c.failed || im.poisoned[out[i]]
	}
	return out
}

// sequenceMap runs the body for each tensor of the first sequence, with those at its place in the others.
func (c *listControl) sequenceMap() {
	l := c.s.im.lists[c.input(0)]
	if l == nil || l.empty {
		c.fail("bad-type", "input 0", "it is no sequence")
		return
	}
	body, _ := c.body("body")
	gathered := make([][]*ir.Value, len(body.GetOutput()))
	for i := range l.items {
		args := slices.Clone(c.inputs)
		for k, v := range args {
			of := c.s.im.lists[v]
			if of == nil {
				continue
			}
			if len(of.items) != len(l.items) {
				c.fail("bad-value", fmt.Sprintf("input %d", k),
					fmt.Sprintf("the sequence has %d tensors, the first one %d", len(of.items), len(l.items)))
				return
			}
			args[k] = of.items[i]
		}
		for k, v := range c.inline("body", args, i) {
			gathered[k] = append(gathered[k], v)
		}
		if c.failed {
			return
		}
	}
	for _, items := range gathered {
		c.results = append(c.results, c.s.newList(items))
	}
}

// newList is a value that stands for a sequence.
func (s *scope) newList(items []*ir.Value) *ir.Value {
	v := &ir.Value{Name: s.im.namer.Fresh("sequence")}
	s.im.lists[v] = &list{items: items}
	return v
}

// loop writes the turns of a Loop out, of which it must be known how many there are.
func (c *listControl) loop() {
	most, limited := int64(0), c.input(0) != nil
	if limited && !c.flag(0, c.input(0), &most) {
		return
	}
	state := slices.Clone(c.inputs[min(2, len(c.inputs)):])
	body, _ := c.body("body")
	if c.failed {
		return
	}
	scanned := make([][]*ir.Value, max(0, len(body.Output)-1-len(state)))
	condition := c.input(1)
	for turn := int64(0); !limited || turn < most; turn++ {
		on := int64(1)
		if condition != nil && !c.flag(1, condition, &on) {
			return
		}
		if on == 0 {
			break
		}
		r := &rewriting{s: c.s, p: c.p}
		given := condition
		if given == nil {
			given = r.constant("condition", ir.FromSlice(ir.Bool, []bool{true}))
		}
		out := c.inline("body", slices.Concat([]*ir.Value{r.int64("turn", turn), given}, state), int(turn))
		if c.failed || len(out) < 1+len(state) {
			c.failed = true
			return
		}
		condition, state = out[0], out[1:1+len(state)]
		for k, v := range out[1+len(state):] {
			scanned[k] = append(scanned[k], v)
		}
	}
	c.results = state
	for _, items := range scanned {
		if len(items) == 0 {
			c.fail("bad-value", "", "the loop has no turns, and what it gathers no shape")
			return
		}
		r := &rewriting{s: c.s, p: c.p}
		c.results = append(c.results, r.joined(items, 0, true))
	}
}

// flag reads a single number that must be known: of turns, or whether there is another one.
func (c *listControl) flag(i int, v *ir.Value, to *int64) bool {
	x, ok := c.s.known(v)
	if !ok || len(x) != 1 {
		c.fail("not-constant", fmt.Sprintf("input %d", i),
			"it must be known which branch is taken, or how many turns there are, where sequences change")
		return false
	}
	*to = x[0]
	return true
}

// branch takes the branch of an If whose condition is known. Otherwise both must give sequences of as many tensors.
func (c *listControl) branch(outputs int) {
	if on, ok := c.s.known(c.input(0)); ok && len(on) == 1 {
		name := "else_branch"
		if on[0] != 0 {
			name = "then_branch"
		}
		c.results = c.inline(name, nil, 0)
		return
	}
	attrs := ir.Attrs{}
	var forms [2][]*list
	for i, name := range []string{"then_branch", "else_branch"} {
		pb, outer := c.body(name)
		if c.failed {
			return
		}
		g := outer.subgraph(c.p, pb)
		if g == nil {
			c.failed = true
			return
		}
		attrs[name], forms[i] = ir.GraphAttr(g), c.s.im.forms[g]
	}
	n := &ir.Node{Op: "If", Name: c.p.name, Inputs: c.inputs, Attrs: attrs, Origins: c.p.origin()}
	for i := range outputs {
		fresh := func() *ir.Value {
			v := &ir.Value{Name: c.s.im.namer.Fresh(c.p.name)}
			n.Outputs = append(n.Outputs, v)
			return v
		}
		a, b := forms[0][min(i, len(forms[0])-1)], forms[1][min(i, len(forms[1])-1)]
		switch {
		case a == nil && b == nil:
			c.results = append(c.results, fresh())
		case a == nil || b == nil || a.empty || b.empty || len(a.items) != len(b.items):
			c.fail("not-constant", "input 0", "the branches give sequences of different lengths, so it must be known which is taken")
			return
		default:
			items := make([]*ir.Value, len(a.items))
			for k := range items {
				items[k] = fresh()
			}
			c.results = append(c.results, c.s.newList(items))
		}
	}
	c.s.emit(n)
}
