package driver

import (
	"slices"
	"strings"

	"github.com/rammerc/rammerc/graphopt"
	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/axes"
	"github.com/rammerc/rammerc/lower"
)

// NamedStates is the value of --state that pairs inputs and outputs by their names.
const NamedStates = "auto"

// usualNames are beginnings of names of inputs and outputs that are states in models of many exporters.
var usualNames = [][2]string{{"past_key_values", "present_key_values"}, {"past_key_values", "present"},
	{"past", "present"}}

// statePairs are the names of inputs and outputs that are states.
func (o *CompileOptions) statePairs(g *ir.Graph) (pairs [][2]string, err error) {
	if slices.Equal(o.States, []string{NamedStates}) {
		if pairs = namedStates(g); len(pairs) == 0 {
			return nil, diag.New("bad-state", "--state auto: no inputs and outputs are called past… and present…")
		}
		return pairs, nil
	}
	var l diag.List
	for _, s := range o.States {
		in, out, ok := cutLast(s, "=")
		switch {
		case !ok:
			l.Add(diag.New("bad-flag", "--state %q: want INPUT=OUTPUT, or auto alone", s))
		case valueNamed(g.Inputs, in) == nil:
			l.Add(diag.New("bad-state", "--state %s: no input is called %s", s, in))
		case valueNamed(g.Outputs, out) == nil:
			l.Add(diag.New("bad-state", "--state %s: no output is called %s", s, out))
		case slices.ContainsFunc(pairs, func(p [2]string) bool { return p[0] == in || p[1] == out }):
			l.Add(diag.New("bad-state", "--state %s: one of the two is another state already", s))
		default:
			pairs = append(pairs, [2]string{in, out})
		}
	}
	return pairs, l.Err()
}

func namedStates(g *ir.Graph) (pairs [][2]string) {
	for _, in := range g.Inputs {
		for _, names := range usualNames {
			rest, ok := strings.CutPrefix(in.Name, names[0])
			if out := names[1] + rest; ok && valueNamed(g.Outputs, out) != nil {
				pairs = append(pairs, [2]string{in.Name, out})
				break
			}
		}
	}
	return pairs
}

func valueNamed(list []*ir.Value, name string) *ir.Value {
	for _, v := range list {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// stateful is a state of the model.
type stateful struct {
	input, output string
	lower.State
}

// findStates checks the states that are asked for. g is the model with symbols.
func (c *Compilation) findStates(g *ir.Graph, ranges []axes.Range) error {
	if len(c.opt.States) == 0 {
		return nil
	}
	if c.opt.ErrorBudget > 0 || c.opt.Verify {
		return diag.New("bad-flag", "--state does not go with --error-budget and --verify; verify LIBDIR --model MODEL does")
	}
	pairs, err := c.opt.statePairs(g)
	if err == nil && c.opt.generation != nil {
		c.opt.generation.States = pairs
		pairs = append(pairs, c.opt.generation.KeptValues()...)
		err = graphopt.Generate(g, *c.opt.generation, c.opt.passes(c.opt.PrecisionChoice()))
	}
	if err != nil {
		return err
	}
	var l diag.List
	c.states = nil
	for _, p := range pairs {
		s, d := stateOf(valueNamed(g.Inputs, p[0]), valueNamed(g.Outputs, p[1]), ranges)
		if d != nil {
			d.ID, d.Port = "bad-state", "input "+p[0]
			l.Add(d)
		}
		c.states = append(c.states, s)
	}
	return l.Err()
}

// stateOf compares the shapes of an input and an output, which differ in one dim at most: there the input has a range from
// 0 on, and the output is longer. Its capacity is a place more than it can ever need: then what a run has of it is a part
// of it, and not all, at the largest extents, too.
func stateOf(in, out *ir.Value, ranges []axes.Range) (stateful, *diag.Diagnostic) {
	s := stateful{in.Name, out.Name, lower.State{Axis: -1, Repeats: in.Name == graphopt.RepeatState}}
	if in.DType != out.DType || len(in.Shape) != len(out.Shape) {
		return s, diag.New("", "it is %v%v, and output %s is %v%v", in.DType, in.Shape, out.Name, out.DType, out.Shape)
	}
	bounds := func(name string) (ir.Interval, bool) {
		i := slices.IndexFunc(ranges, func(r axes.Range) bool { return r.Name == name })
		if i < 0 {
			return ir.Interval{}, false
		}
		return ir.Interval{Lo: ranges[i].Lo, Hi: ranges[i].Hi}, true
	}
	for d, n := range in.Shape {
		if n.Equal(out.Shape[d]) {
			continue
		}
		name, one := n.Symbol()
		range_, known := bounds(name)
		more := out.Shape[d].Sub(n).Bounds(bounds)
		switch {
		case s.Axis >= 0:
			return s, diag.New("", "its shape %v and %v, that of output %s, differ in more than one dim", in.Shape,
				out.Shape, out.Name)
		case !one || !known || range_.Lo != 0:
			return s, diag.New("", "its dim %d grows from %v to %v: it must be a symbol with a range from 0, as --dim past=0..1023",
				d, n, out.Shape[d])
		case more.Lo < 0 || out.Shape[d].Bounds(bounds).Hi > mostExtent:
			return s, diag.New("", "its dim %d becomes %v, which need not be longer", d, out.Shape[d])
		}
		s.Axis, s.Grows, s.Next = d, name, out.Shape[d]
		s.Capacity = out.Shape[d].Bounds(bounds).Hi + 1
	}
	return s, nil
}

// keepStates makes the states of the model's graph, whose dims have numbers, those of a program.
func (c *Compilation) keepStates() error {
	if len(c.states) == 0 {
		return nil
	}
	var states []graphopt.State
	for _, s := range c.states {
		states = append(states, graphopt.State{Input: s.input, Output: s.output, Axis: s.Axis, Of: s.Grows,
			Capacity: s.Capacity})
	}
	err := graphopt.KeepStates(c.model.Graph, states, c.opt.passes(c.opt.PrecisionChoice()))
	return diag.InFile(err, c.opt.Path)
}

// grows reports whether a state grows.
func (c *Compilation) grows() bool {
	return slices.ContainsFunc(c.states, func(s stateful) bool { return s.Grows != "" })
}

// lowerStates are the states as lowering wants them.
func (c *Compilation) lowerStates() []lower.State {
	var out []lower.State
	for _, s := range c.states {
		out = append(out, s.State)
	}
	return out
}

// inputShapes are the shapes of the inputs of g with symbols, as those of the model have them; states that grow have their
// capacity.
func (c *Compilation) inputShapes(g *ir.Graph, model []*ir.Value) []ir.Shape {
	var out []ir.Shape
	for _, v := range g.Inputs {
		shape := valueNamed(model, v.Name).Shape
		for _, s := range c.states {
			if s.input == v.Name && s.Grows != "" {
				shape = slices.Clone(shape)
				shape[s.Axis] = ir.D(s.Capacity)
			}
		}
		out = append(out, shape)
	}
	return out
}
