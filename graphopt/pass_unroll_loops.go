package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// unrollLoops writes the runs of Loop and Scan bodies out one after the other, where their number is
// known: the scan inputs' extents, or a constant M and conditions that are constants once the runs
// before are written out.
//
// Requires: constants folded. Leaves: loops of an unknown number of runs, or of more than maxUnrolled
// nodes. Results keep their names as Identity nodes.
func unrollLoops(c *Context, g *ir.Graph) (bool, error) {
	budget := maxUnrolled
	return c.sweepAll(g, func(s *sweep, n *ir.Node) {
		if !n.Is("Loop") && !n.Is("Scan") {
			return
		}
		u := &unrolling{maker: newMaker(s.g, s.c.names, n), s: s, n: n, body: n.Attrs["body"].G, budget: budget}
		if u.loop() || u.scan() {
			u.commit()
			budget = u.budget
		}
	}), nil
}

// maxUnrolled bounds the nodes that one pass writes out in a graph.
const maxUnrolled = 1 << 14

// unrolling collects the nodes of one loop; nothing of the graph changes before commit.
type unrolling struct {
	*maker
	s      *sweep
	n      *ir.Node
	body   *ir.Graph
	consts []*ir.Value
	budget int
	final  []*ir.Value   // last carried values
	scans  [][]*ir.Value // by scan output, then by run
}

// loop writes out a Loop. It reports false when that is not possible.
func (u *unrolling) loop() bool {
	if !u.n.Is("Loop") {
		return false
	}
	trips, ok := u.tripLimit()
	if !ok {
		return false
	}
	keep := true
	if cond := u.n.Input(1); cond != nil {
		if keep, ok = uniformBool(cond); !ok {
			return false
		}
	}
	carried := slices.Clone(u.n.Inputs[min(2, len(u.n.Inputs)):])
	if slices.Contains(carried, nil) {
		return false
	}
	u.scans = make([][]*ir.Value, len(u.body.Outputs)-1-len(carried))
	for i := int64(0); keep && (trips < 0 || i < trips); i++ {
		in := []*ir.Value{u.scalar(ir.FromSlice(ir.Int64, []int64{i})), u.scalar(ir.FromSlice(ir.Bool, []bool{true}))}
		outs, ok := u.run(append(in, carried...))
		if !ok {
			return false
		}
		if keep, ok = uniformBool(outs[0]); !ok {
			return false
		}
		carried = outs[1 : 1+len(carried)]
		u.pushScans(outs[1+len(carried):])
	}
	u.final = carried
	return u.stackScans(1+len(carried), nil, nil)
}

// tripLimit is a constant M, -1 when there is none.
func (u *unrolling) tripLimit() (int64, bool) {
	m := u.n.Input(0)
	switch {
	case m == nil:
		return -1, true
	case m.Const == nil || m.Const.Len() != 1:
		return 0, false
	}
	return max(ir.Slice[int64](convert(m.Const, ir.Int64))[0], 0), true
}

// scan writes out a Scan.
func (u *unrolling) scan() bool {
	if !u.n.Is("Scan") {
		return false
	}
	states := len(u.n.Inputs) - int(u.n.Int("num_scan_inputs", 0))
	sequences := u.n.Inputs[states:]
	axes := make([]int, len(sequences))
	trips := int64(0)
	for i, v := range sequences {
		if v.Shape == nil {
			return false
		}
		axes[i] = normalAxis(entry(u.n.Ints("scan_input_axes"), i), len(v.Shape))
		n, ok := v.Shape[axes[i]].Const()
		if !ok {
			return false
		}
		trips = n
	}
	carried := slices.Clone(u.n.Inputs[:states])
	u.scans = make([][]*ir.Value, len(u.body.Outputs)-states)
	for step := range trips {
		in := slices.Clone(carried)
		for i, v := range sequences {
			at := step
			if entry(u.n.Ints("scan_input_directions"), i) != 0 {
				at = trips - 1 - step
			}
			in = append(in, u.op("Gather", axisAttr(axes[i]), v, u.scalar(ir.FromSlice(ir.Int64, []int64{at}))))
		}
		outs, ok := u.run(in)
		if !ok {
			return false
		}
		carried = outs[:states]
		u.pushScans(outs[states:])
	}
	u.final = carried
	return u.stackScans(states, u.n.Ints("scan_output_axes"), u.n.Ints("scan_output_directions"))
}

// entry is element i of a list attribute, 0 where it has none.
func entry(list []int64, i int) int64 {
	if i < len(list) {
		return list[i]
	}
	return 0
}

// run writes the body out once, with values in place of its inputs, and returns its results.
func (u *unrolling) run(in []*ir.Value) ([]*ir.Value, bool) {
	if u.budget -= len(u.body.Nodes); u.budget < 0 {
		return nil, false
	}
	body := ir.Clone(u.body)
	ir.EachGraph(body, func(g *ir.Graph) { u.rename(g, g == body) })
	by := map[*ir.Value]*ir.Value{}
	for i, v := range body.Inputs {
		by[v] = in[i]
	}
	ir.ReplaceMany(body, by)
	u.consts = append(u.consts, body.Consts...)
	for _, m := range body.Nodes {
		u.s.resolve(m.Inputs)
		m.Origins = mergeOrigins(m, u.n)
		if !u.fold(m) {
			u.nodes = append(u.nodes, m)
		}
	}
	u.s.resolve(body.Outputs)
	return body.Outputs, true
}

// rename gives the values of g names of their own; the outermost graph's inputs go away.
func (u *unrolling) rename(g *ir.Graph, outermost bool) {
	if !outermost {
		for _, v := range g.Inputs {
			v.Name = u.names.Fresh(v.Name)
		}
	}
	for _, v := range g.Consts {
		v.Name = u.names.Fresh(v.Name)
	}
	for _, m := range g.Nodes {
		for _, v := range m.Outputs {
			if v != nil {
				v.Name = u.names.Fresh(v.Name)
			}
		}
	}
}

// maxFoldedElements is how large constants may be that are computed while a loop is written out:
// counters and conditions.
const maxFoldedElements = 64

// fold computes small constants, so that conditions become known.
func (u *unrolling) fold(m *ir.Node) bool {
	op := ir.LookupOp(m.Domain, m.Op)
	if op == nil || m.Domain != "" || op.Kind == ir.KindControl || len(m.Inputs) == 0 {
		return false
	}
	in := make([]*ir.Tensor, len(m.Inputs))
	for i, v := range m.Inputs {
		if v == nil {
			continue
		}
		if in[i] = v.Const; in[i] == nil || in[i].Len() > maxFoldedElements {
			return false
		}
	}
	results, err := eval.NodeWith(&ir.Node{Op: m.Op, Name: m.Name, Inputs: m.Inputs, Outputs: untyped(m.Outputs), Attrs: m.Attrs}, in,
		eval.Options{MaxBytes: maxFoldedElements * 8})
	if err != nil {
		return false
	}
	for i, v := range m.Outputs {
		if v == nil {
			continue
		}
		t := results[i]
		v.Def, v.Const, v.Elems, v.DType, v.Shape = nil, t, nil, t.DType, ir.Dims(t.Dims...)
		u.consts = append(u.consts, v)
	}
	return true
}

// untyped are values that promise nothing: the body's types were those of all runs together.
func untyped(list []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(list))
	for i, v := range list {
		if v != nil {
			out[i] = &ir.Value{Name: v.Name}
		}
	}
	return out
}

func (u *unrolling) pushScans(list []*ir.Value) {
	for i, v := range list {
		u.scans[i] = append(u.scans[i], v)
	}
}

// stackScans joins what each run gave, and leaves one value for each scan output in final. first is the
// body output of the first of them.
func (u *unrolling) stackScans(first int, axes, directions []int64) bool {
	for i, list := range u.scans {
		if u.n.Output(len(u.final)) == nil {
			u.final = append(u.final, nil)
			continue
		}
		shape := u.body.Outputs[first+i].Shape
		axis := int(entry(axes, i))
		if axis < 0 && shape == nil {
			return false
		}
		axis = normalAxis(int64(axis), len(shape)+1)
		if len(list) == 0 {
			v, ok := u.nothing(u.body.Outputs[first+i], axis)
			if !ok {
				return false
			}
			u.final = append(u.final, v)
			continue
		}
		parts := make([]*ir.Value, len(list))
		at := u.list(int64(axis))
		for k, v := range list {
			parts[k] = u.op("Unsqueeze", nil, v, at)
		}
		if entry(directions, i) != 0 {
			slices.Reverse(parts)
		}
		u.final = append(u.final, u.op("Concat", axisAttr(axis), parts...))
	}
	return true
}

// nothing is what a scan output of no runs holds: extents that are not known are 0.
func (u *unrolling) nothing(v *ir.Value, axis int) (*ir.Value, bool) {
	if v.Shape == nil || v.DType == ir.Invalid {
		return nil, false
	}
	dims := make([]int64, len(v.Shape))
	for i, d := range v.Shape {
		dims[i], _ = d.Const()
	}
	return u.scalar(ir.NewTensor(v.DType, slices.Insert(dims, axis, 0)...)), true
}

// op adds a node of one output, whose type inference finds afterwards.
func (u *unrolling) op(op string, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	out := u.value(op, ir.Invalid, nil)
	u.node(op, "", op, attrs, in, []*ir.Value{out})
	return out
}

func (u *unrolling) scalar(t *ir.Tensor) *ir.Value {
	v := u.value("const", t.DType, ir.Dims(t.Dims...))
	v.Const = t
	u.consts = append(u.consts, v)
	return v
}

func (u *unrolling) list(x ...int64) *ir.Value {
	return u.scalar(ir.FromSlice(ir.Int64, x, int64(len(x))))
}

// commit puts the nodes in the loop's place.
func (u *unrolling) commit() {
	for i, old := range u.n.Outputs {
		if old != nil {
			u.node("result", "", "Identity", nil, []*ir.Value{u.final[i]}, []*ir.Value{old})
		}
	}
	u.s.g.Consts = append(u.s.g.Consts, u.consts...)
	u.s.nodes = append(u.s.nodes, u.nodes...)
	u.s.drop, u.s.changed = true, true
}
