package eval

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// body runs subgraph g of the node.
func (c *call) body(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
	if g == nil {
		fail("a subgraph is missing")
	}
	outs, err := c.run.subgraph(g, c.scope, in)
	if err != nil {
		panic(failure{err})
	}
	return outs
}

func ifOp(c *call) []*ir.Tensor {
	if scalar[int64](c.arg(0)) != 0 {
		return c.body(c.Attr("then_branch").G, nil)
	}
	return c.body(c.Attr("else_branch").G, nil)
}

// loop runs the body while the condition holds, but at most M times (input 0). The body's inputs are the iteration
// number, the condition and the carried values; its outputs are the condition, the carried values and the scan outputs.
func loop(c *call) []*ir.Tensor {
	g := c.Attr("body").G
	trips, bounded := int64(0), false
	if m := c.opt(0); m != nil {
		trips, bounded = scalarInt(m), true
	}
	keep := true
	if cond := c.opt(1); cond != nil {
		keep = scalar[int64](cond) != 0
	}
	var carried []*ir.Tensor
	if len(c.in) > 2 {
		carried = slices.Clone(c.in[2:])
	}
	if g == nil || len(g.Outputs) < 1+len(carried) {
		fail("the body has too few outputs for %d carried values", len(carried))
	}
	scans := newStack(g.Outputs[1+len(carried):])
	for i := int64(0); keep && (!bounded || i < trips); i++ {
		in := append([]*ir.Tensor{
			ir.FromSlice(ir.Int64, []int64{i}), ir.FromSlice(ir.Bool, []bool{keep}),
		}, carried...)
		outs := c.body(g, in)
		keep = scalar[int64](outs[0]) != 0
		carried = outs[1 : 1+len(carried)]
		scans.push(outs[1+len(carried):])
	}
	outs := slices.Clone(carried)
	for i := range scans.values {
		outs = append(outs, scans.join(c, i, 0, false))
	}
	return outs
}

// scan runs the body once for each slice of the scan inputs. The body's inputs are the states and one slice of each
// scan input; its outputs are the states and the scan outputs.
func scan(c *call) []*ir.Tensor {
	g, n := c.Attr("body").G, int(c.Attr("num_scan_inputs").I)
	if g == nil || n < 1 || n > len(c.in) || len(g.Outputs) < len(c.in)-n {
		fail("the body does not fit %d inputs of which %d are scanned", len(c.in), n)
	}
	m := len(c.in) - n
	states, seqs := slices.Clone(c.in[:m]), c.in[m:]
	axes, trips := make([]int, n), int64(-1)
	for i, t := range seqs {
		if t == nil {
			fail("input %d is missing", m+i)
		}
		axes[i] = axisOf(listItem(c, "scan_input_axes", i), len(t.Dims))
		if d := t.Dims[axes[i]]; trips >= 0 && d != trips {
			fail("the scan inputs have different numbers of slices, %d and %d", trips, d)
		}
		trips = t.Dims[axes[i]]
	}
	scans := newStack(g.Outputs[m:])
	for s := range trips {
		in := slices.Clone(states)
		for i, t := range seqs {
			at := s
			if listItem(c, "scan_input_directions", i) != 0 {
				at = trips - 1 - s
			}
			in = append(in, sliceAt(c, t, axes[i], at))
		}
		outs := c.body(g, in)
		states = outs[:m]
		scans.push(outs[m:])
	}
	outs := slices.Clone(states)
	for i := range scans.values {
		outs = append(outs, scans.join(c, i, listItem(c, "scan_output_axes", i),
			listItem(c, "scan_output_directions", i) != 0))
	}
	return outs
}

// listItem is element i of an attribute that is a list of integers, 0 when the list is shorter or absent.
func listItem(c *call, name string, i int) int64 {
	if v := c.Attr(name).Ints; i < len(v) {
		return v[i]
	}
	return 0
}

// sliceAt is the part of t at index at of axis, without that axis.
func sliceAt(c *call, t *ir.Tensor, axis int, at int64) *ir.Tensor {
	strides := rowMajor(t.Dims)
	off := at * strides[axis]
	return viewOf(c, t, off, slices.Delete(slices.Clone(t.Dims), axis, axis+1), slices.Delete(strides, axis, axis+1))
}

// stack collects the scan outputs of a body over all iterations.
type stack struct {
	values []*ir.Value    // the body's scan outputs
	items  [][]*ir.Tensor // by scan output and iteration
}

func newStack(values []*ir.Value) *stack {
	return &stack{values, make([][]*ir.Tensor, len(values))}
}

func (s *stack) push(ts []*ir.Tensor) {
	for i, t := range ts {
		s.items[i] = append(s.items[i], t)
	}
}

// join stacks the items of scan output i along a new axis. If there was no iteration, the new axis has the extent 0 and
// the others follow from the shape of the body's output, with 0 for what is not known.
func (s *stack) join(c *call, i int, axis int64, reverse bool) *ir.Tensor {
	items := s.items[i]
	if len(items) == 0 {
		v := s.values[i]
		dims := make([]int64, len(v.Shape))
		for d := range dims {
			dims[d], _ = v.Shape[d].Bind(c.scope.dims).Const()
		}
		return c.alloc(v.DType, slices.Insert(dims, axisOf(axis, len(dims)+1), 0))
	}
	at := axisOf(axis, len(items[0].Dims)+1)
	grown := make([]*ir.Tensor, len(items))
	for j, t := range items {
		grown[j] = reshaped(t, slices.Insert(slices.Clone(t.Dims), at, 1))
	}
	if reverse {
		slices.Reverse(grown)
	}
	return joined(c, grown, at)
}
