package difftest

import (
	"slices"
	"time"

	"github.com/rammerc/rammerc/ir"
)

// Shrink makes c smaller as long as fails is true of it. It drops outputs, replaces nodes by inputs that hold what they
// compute or by their own operands, makes inputs constant, and simplifies elements. It ends when nothing makes the case
// smaller, or at the deadline.
func Shrink(c *Case, fails func(*Case) bool, deadline time.Time) *Case {
	s := &shrinker{best: c, fails: fails, deadline: deadline}
	if _, err := c.Want(); err != nil {
		return c
	}
	for again := true; again; {
		again = s.outputs() || s.cut() || s.bypass() || s.earlier() || s.fix() || s.calm()
	}
	return s.best
}

type shrinker struct {
	best     *Case
	fails    func(*Case) bool
	deadline time.Time
}

// try makes the given graph and inputs the best case, if they are valid and still fail.
func (s *shrinker) try(g *ir.Graph, inputs map[string]*ir.Tensor) bool {
	if time.Now().After(s.deadline) {
		return false
	}
	if !tidy(g, inputs) {
		return false
	}
	c := &Case{Name: s.best.Name, Seed: s.best.Seed, Graph: g, Inputs: inputs, Wild: s.best.Wild,
		Precision: s.best.Precision}
	if _, err := c.Want(); err != nil || !s.fails(c) {
		return false
	}
	s.best = c
	return true
}

// tidy removes what g does not need and infers types and shapes again. It returns false if g is not valid.
func tidy(g *ir.Graph, inputs map[string]*ir.Tensor) bool {
	if len(g.Outputs) == 0 {
		return false
	}
	for changed := true; changed; {
		uses := ir.Uses(g)
		used := func(v *ir.Value) bool { return v != nil && len(uses[v]) > 0 }
		before := len(g.Nodes)
		g.Nodes = slices.DeleteFunc(g.Nodes, func(n *ir.Node) bool { return !slices.ContainsFunc(n.Outputs, used) })
		changed = len(g.Nodes) < before
	}
	uses := ir.Uses(g)
	unused := func(v *ir.Value) bool { return len(uses[v]) == 0 }
	g.Consts = slices.DeleteFunc(g.Consts, unused)
	g.Inputs = slices.DeleteFunc(g.Inputs, unused)
	for name := range inputs {
		if !slices.ContainsFunc(g.Inputs, func(v *ir.Value) bool { return v.Name == name }) {
			delete(inputs, name)
		}
	}
	return ir.InferShapes(g).Err() == nil && ir.Verify(g) == nil
}

// copied returns a copy of the best case's graph and inputs, which may be changed, and the copy of each value.
func (s *shrinker) copied() (*ir.Graph, map[string]*ir.Tensor, map[*ir.Value]*ir.Value) {
	g, copies := ir.CloneMap(s.best.Graph)
	inputs := map[string]*ir.Tensor{}
	for name, t := range s.best.Inputs {
		inputs[name] = t
	}
	return g, inputs, copies
}

// outputs tries to keep a single output, then to drop one.
func (s *shrinker) outputs() bool {
	changed := false
	for i := 0; i < len(s.best.Graph.Outputs) && len(s.best.Graph.Outputs) > 1; i++ {
		g, inputs, _ := s.copied()
		g.Outputs = []*ir.Value{g.Outputs[i]}
		if s.try(g, inputs) {
			return true
		}
	}
	for i := 0; i < len(s.best.Graph.Outputs) && len(s.best.Graph.Outputs) > 1; i++ {
		g, inputs, _ := s.copied()
		g.Outputs = slices.Delete(g.Outputs, i, i+1)
		if s.try(g, inputs) {
			changed = true
			i--
		}
	}
	return changed
}

// cut tries to replace values by inputs, first those that are computed last.
func (s *shrinker) cut() bool {
	changed := false
	for i := 0; i < len(s.best.Graph.Nodes); i++ {
		for _, v := range s.best.Graph.Nodes[i].Outputs {
			if v == nil || slices.Contains(s.best.Graph.Outputs, v) {
				continue
			}
			g, inputs, copies := s.copied()
			replaceByInput(g, copies[v], s.best.values[v], inputs)
			if s.try(g, inputs) {
				changed = true
				i = -1
				break
			}
		}
	}
	return changed
}

func replaceByInput(g *ir.Graph, v *ir.Value, t *ir.Tensor, inputs map[string]*ir.Tensor) {
	x := &ir.Value{Name: ir.NewNamer(g).Fresh(v.Name), DType: t.DType, Shape: ir.Dims(t.Dims...)}
	g.Inputs = append(g.Inputs, x)
	inputs[x.Name] = t
	ir.ReplaceAll(g, v, x)
}

// bypass tries to replace a value by an operand of its node that has the same type.
func (s *shrinker) bypass() bool {
	changed := false
	for i := len(s.best.Graph.Nodes) - 1; i >= 0; i-- {
		if i >= len(s.best.Graph.Nodes) {
			continue
		}
		n := s.best.Graph.Nodes[i]
		for _, v := range n.Outputs {
			for _, x := range n.Inputs {
				if v == nil || x == nil || v.DType != x.DType {
					continue
				}
				g, inputs, copies := s.copied()
				ir.ReplaceAll(g, copies[v], copies[x])
				if len(g.Outputs) == 1 && g.Outputs[0].Def == nil {
					continue
				}
				if s.try(g, inputs) {
					return true
				}
			}
		}
	}
	return changed
}

// earlier tries to make an operand of the last node the output, if there is only one output.
func (s *shrinker) earlier() bool {
	last := s.best.Graph.Outputs[0]
	if len(s.best.Graph.Outputs) > 1 || last.Def == nil {
		return false
	}
	for _, x := range last.Def.Inputs {
		if x == nil || x.Def == nil {
			continue
		}
		g, inputs, copies := s.copied()
		g.Outputs = []*ir.Value{copies[x]}
		if s.try(g, inputs) {
			return true
		}
	}
	return false
}

// fix tries to replace symbols by numbers and inputs by constants.
func (s *shrinker) fix() bool {
	changed := false
	if dims := bindings(s.best); len(dims) > 0 {
		g, inputs, _ := s.copied()
		if ir.BindDims(g, dims).Err() == nil {
			changed = s.try(g, inputs)
		}
	}
	return changed
}

// calm tries to replace the elements of inputs by small whole numbers.
func (s *shrinker) calm() bool {
	changed := false
	for _, v := range s.best.Graph.Inputs {
		t := s.best.Inputs[v.Name]
		for _, simple := range []*ir.Tensor{filled(t.DType, 1, t.Dims...), counting(t.DType, t.Dims)} {
			if t.DType == ir.Bool || string(simple.LittleEndian()) == string(t.LittleEndian()) || isCounting(t) {
				break
			}
			g, inputs, _ := s.copied()
			inputs[v.Name] = simple
			if s.try(g, inputs) {
				changed = true
				break
			}
		}
	}
	return changed
}

func counting(d ir.DType, dims []int64) *ir.Tensor {
	t := ir.NewTensor(ir.Int64, dims...)
	for i := range ir.Slice[int64](t) {
		ir.Slice[int64](t)[i] = int64(i%7) + 1
	}
	return convert(t, d)
}

func isCounting(t *ir.Tensor) bool {
	return string(counting(t.DType, t.Dims).LittleEndian()) == string(t.LittleEndian())
}
