package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
)

// unrollLoops writes out the iterations of Loop and Scan one after another, if their number is known. For a Scan it is
// the extent of the scanned axis. For a Loop, M must be a constant or have a bound. The condition of an iteration may
// follow from constants of the iterations before. Where it is computed, an iteration behind the last one changes nothing:
//
//	alive[i+1] = alive[i] and condition[i]      x[i+1] = rammer.Select(alive[i], body(x[i]), x[i])
//
// Lowering sees that what the body computes is needed only if alive[i], so it ends at once in such an iteration.
//
// Requires: constants folded. Leaves: loops whose number of iterations has no bound, that would have more than
// maxUnrolled nodes, and those that end by a computed condition and have scan outputs or carried values whose shapes
// change. The results are Identity nodes with the names of the loop's.
func unrollLoops(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepAll(g, func(s *sweep, n *ir.Node) {
		if !n.Is("Loop") && !n.Is("Scan") {
			return
		}
		u := &unrolling{maker: newMaker(s.g, s.c.names, n), s: s, n: n, body: n.Attrs["body"].G}
		u.size = nodesOf(u.body)
		if unrolledNodes(n, c.unrollBudget) > c.unrollBudget {
			c.unrollBudget = 0 // what is nested in it need not be written out either: the loop stays
			return
		}
		if u.loop() || u.scan() {
			u.commit()
			c.unrollBudget -= u.copied
		}
	}), nil
}

// maxUnrolled is how many nodes unrolling may add to a model, those of nested graphs among them.
const maxUnrolled = 1 << 14

// unrolledNodes is how many nodes a loop becomes when it is written out, and the loops in its body as well. Above most it
// is any number above most. Loops whose number of iterations is not a constant count once.
func unrolledNodes(n *ir.Node, most int) int {
	size := 0
	for _, m := range n.Attrs["body"].G.Nodes {
		switch {
		case m.Is("Loop") || m.Is("Scan"):
			size += unrolledNodes(m, most)
		default:
			size++
			for _, g := range m.Subgraphs() {
				size += nodesOf(g)
			}
		}
		if size > most {
			return size
		}
	}
	trips := int64(1)
	if v := n.Input(0); n.Is("Loop") && v != nil && v.Const != nil && v.Const.Len() == 1 {
		trips = max(ir.Slice[int64](convert(v.Const, ir.Int64))[0], 0)
	}
	if size > 0 && trips > int64(most/size) {
		return most + 1
	}
	return size * int(trips)
}

// nodesOf counts the nodes of a graph and of those nested in it.
func nodesOf(g *ir.Graph) int {
	n := 0
	ir.EachGraph(g, func(g *ir.Graph) { n += len(g.Nodes) })
	return n
}

// unrolling collects the nodes of one loop. The graph changes only in commit, so unrolling can be given up before.
type unrolling struct {
	*maker
	s      *sweep
	n      *ir.Node
	body   *ir.Graph
	consts []*ir.Value
	size   int           // nodes of the body, with those of nested graphs
	copied int           // nodes that have been written out
	final  []*ir.Value   // the results: carried values after the last iteration, then scan outputs
	scans  [][]*ir.Value // by scan output and iteration
}

// scan writes out a Scan. It returns false if that is not possible.
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

// entry is element i of a list, 0 if the list is shorter.
func entry(list []int64, i int) int64 {
	if i < len(list) {
		return list[i]
	}
	return 0
}

// run writes out one iteration: a copy of the body with the values in for its inputs. It returns the results, and false
// if the budget is used up.
func (u *unrolling) run(in []*ir.Value) ([]*ir.Value, bool) {
	u.copied += u.size
	u.s.c.unrollWork -= u.size
	if u.copied > u.s.c.unrollBudget || u.s.c.unrollWork < 0 {
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

// rename gives new names to the values of g. The inputs of the outermost graph are replaced, so they need none.
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

// maxFoldedElements is the largest number of elements of constants that are computed while a loop is written out. They
// are meant to be counters and conditions.
const maxFoldedElements = 64

// fold computes m if its inputs are small constants, so that the condition of the next iteration becomes known.
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
	results, err := eval.NodeWith(&ir.Node{Op: m.Op, Name: m.Name, Inputs: m.Inputs, Outputs: untyped(m.Outputs),
		Attrs: m.Attrs}, in,
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

// untyped are values without element types and shapes. The types that inference has found for the body hold for all
// iterations together, and may be wrong for a single one.
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

// stackScans joins the values of each scan output over all iterations and appends the results to final. first is the
// index of the first scan output among the body's outputs. It returns false if a shape that it needs is not known.
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

// nothing is the result of a scan output without any iteration: its new axis has the extent 0, and extents that are not
// known are 0 too.
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

// op adds a node with one output, whose type inference computes after the pass.
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

// commit puts the collected nodes in the place of the loop.
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
