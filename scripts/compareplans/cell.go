package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// The search space of NASBench-101 (Ying and others, "NAS-Bench-101: Towards Reproducible Neural Architecture Search"):
// a cell is a directed graph of at most seven vertices and nine edges. The first vertex is its input and the last one
// its output; those between are operations.
const (
	mostVertices = 7
	mostEdges    = 9
)

var operations = []string{"conv1x1", "conv3x3", "maxpool3x3"}

// stages are the three sizes that a network of NASBench has its cells in: channels, and rows and columns.
var stages = [][2]int64{{128, 32}, {256, 16}, {512, 8}}

// cell is a module. Vertex 0 is the input and the last one the output.
type cell struct {
	Ops   []string `json:"ops"`   // of the vertices between input and output
	Edges [][2]int `json:"edges"` // from, to; from is smaller
	Stage int      `json:"stage"`
}

// randomCell draws a cell as NASBench does: a random graph of seven vertices, without those that are on no way from the
// input to the output. It draws again if there is no way, or if there are too many edges.
func randomCell(r *rand.Rand) cell {
	for {
		c := cell{Stage: r.IntN(len(stages))}
		for range mostVertices - 2 {
			c.Ops = append(c.Ops, operations[r.IntN(len(operations))])
		}
		for to := 1; to < mostVertices; to++ {
			for from := range to {
				if r.IntN(2) == 0 {
					c.Edges = append(c.Edges, [2]int{from, to})
				}
			}
		}
		if c.prune(); len(c.Ops) > 0 && len(c.Edges) <= mostEdges {
			return c
		}
	}
}

// prune removes the vertices that are on no way from the input to the output.
func (c *cell) prune() {
	n := len(c.Ops) + 2
	reached, reaches := make([]bool, n), make([]bool, n)
	reached[0], reaches[n-1] = true, true
	for _, e := range c.Edges { // in the order of their ends
		reached[e[1]] = reached[e[1]] || reached[e[0]]
	}
	for to := n - 1; to > 0; to-- {
		for _, e := range c.Edges {
			if e[1] == to && reaches[to] {
				reaches[e[0]] = true
			}
		}
	}
	number, left := make([]int, n), 0
	var ops []string
	for v := range n {
		if number[v] = -1; reached[v] && reaches[v] {
			number[v] = left
			left++
			if v > 0 && v < n-1 {
				ops = append(ops, c.Ops[v-1])
			}
		}
	}
	var edges [][2]int
	for _, e := range c.Edges {
		if number[e[0]] >= 0 && number[e[1]] >= 0 {
			edges = append(edges, [2]int{number[e[0]], number[e[1]]})
		}
	}
	c.Ops, c.Edges = ops, edges
}

// irregular reports that operations of different kinds could run side by side: some wave of a breadth-first search has
// several kinds.
func (c *cell) irregular() bool {
	level := make([]int, len(c.Ops)+2)
	for _, e := range c.Edges {
		level[e[1]] = max(level[e[1]], level[e[0]]+1)
	}
	kind := map[int]string{}
	for i, op := range c.Ops {
		l := level[i+1]
		if kind[l] != "" && kind[l] != op {
			return true
		}
		kind[l] = op
	}
	return false
}

// channels is how many channels each vertex has. The output concatenates the vertices that lead to it, so these share
// its channels; any other vertex has as many as the largest one that it leads to.
func (c *cell) channels(out int64) []int64 {
	last := len(c.Ops) + 1
	ch := make([]int64, last+1)
	ch[0], ch[last] = out, out
	into := int64(0)
	for _, e := range c.Edges {
		if e[1] == last && e[0] > 0 {
			into++
		}
	}
	rest := int64(0)
	if into > 0 {
		rest = out % into
	}
	for v := 1; v < last; v++ { // the first ones take what the division leaves, so none is smaller than those it leads to
		if !slices.Contains(c.Edges, [2]int{v, last}) {
			continue
		}
		if ch[v] = out / into; rest > 0 {
			ch[v]++
			rest--
		}
	}
	for v := last - 1; v > 0; v-- {
		for _, e := range c.Edges {
			if e[0] == v && e[1] != last && !slices.Contains(c.Edges, [2]int{v, last}) {
				ch[v] = max(ch[v], ch[e[1]])
			}
		}
	}
	return ch
}

// graph is the cell as a network, on one image. Batch normalisations are folded into the convolutions, as compilers do
// anyway. Weights are small and periodic, so that files of many cells compress well; no two convolutions have the same.
func (c *cell) graph() *ir.Graph {
	size := stages[c.Stage]
	b := &builder{g: &ir.Graph{Name: "cell"}, rows: size[1]}
	last := len(c.Ops) + 1
	ch := c.channels(size[0])
	in := &ir.Value{Name: "x", DType: ir.Float32, Shape: ir.Shape{ir.D(1), ir.D(ch[0]), ir.D(size[1]), ir.D(size[1])}}
	b.g.Inputs = []*ir.Value{in}
	values := make([]*ir.Value, last+1)
	values[0] = in
	var joined []*ir.Value // what the output concatenates
	direct := false        // the input leads to the output
	for v := 1; v <= last; v++ {
		var inputs []*ir.Value
		for _, e := range c.Edges {
			switch {
			case e[1] != v:
			case v == last && e[0] == 0:
				direct = true
			case v == last:
				joined = append(joined, values[e[0]])
			case e[0] == 0:
				inputs = append(inputs, b.conv(in, ch[0], ch[v], 1))
			default:
				inputs = append(inputs, b.truncate(values[e[0]], ch[e[0]], ch[v]))
			}
		}
		if v < last {
			values[v] = b.operation(c.Ops[v-1], b.sum(inputs), ch[v])
		}
	}
	b.g.Outputs = []*ir.Value{b.output(joined, direct, in, ch[last])}
	if l := ir.InferShapes(b.g); l.Errors() > 0 {
		panic("BUG: " + l.Err().Error())
	}
	return b.g
}

// builder makes the nodes of a cell.
type builder struct {
	g     *ir.Graph
	rows  int64
	names int
}

func (b *builder) node(op string, attrs ir.Attrs, inputs ...*ir.Value) *ir.Value {
	b.names++
	name := fmt.Sprintf("%s%d", op, b.names)
	out := &ir.Value{Name: name + "_out", DType: ir.Float32}
	n := &ir.Node{Op: op, Name: name, Inputs: inputs, Outputs: []*ir.Value{out}, Attrs: attrs,
		Origins: []ir.Origin{{Name: name, OpType: op}}}
	out.Def = n
	b.g.Nodes = append(b.g.Nodes, n)
	return out
}

func (b *builder) constant(t *ir.Tensor) *ir.Value {
	b.names++
	v := &ir.Value{Name: fmt.Sprintf("const%d", b.names), DType: t.DType, Const: t}
	for _, d := range t.Dims {
		v.Shape = append(v.Shape, ir.D(d))
	}
	b.g.Consts = append(b.g.Consts, v)
	return v
}

// conv is a convolution with its batch normalisation and activation.
func (b *builder) conv(x *ir.Value, from, to, kernel int64) *ir.Value {
	w := ir.NewTensor(ir.Float32, to, from, kernel, kernel)
	data := ir.Slice[float32](w)
	for i := range data {
		data[i] = float32((i+b.names*5)%16-7) / float32(64*(b.names+1))
	}
	pad := kernel / 2
	y := b.node("Conv", ir.Attrs{"pads": ir.IntsAttr(pad, pad, pad, pad)}, x, b.constant(w),
		b.constant(ir.NewTensor(ir.Float32, to)))
	return b.node("Relu", nil, y)
}

func (b *builder) operation(op string, x *ir.Value, channels int64) *ir.Value {
	switch op {
	case "conv1x1":
		return b.conv(x, channels, channels, 1)
	case "conv3x3":
		return b.conv(x, channels, channels, 3)
	}
	return b.node("MaxPool", ir.Attrs{"kernel_shape": ir.IntsAttr(3, 3), "pads": ir.IntsAttr(1, 1, 1, 1)}, x)
}

// truncate leaves out the last channels.
func (b *builder) truncate(x *ir.Value, from, to int64) *ir.Value {
	if from == to {
		return x
	}
	index := func(i int64) *ir.Value { return b.constant(ir.FromSlice(ir.Int64, []int64{i}, 1)) }
	return b.node("Slice", nil, x, index(0), index(to), index(1))
}

func (b *builder) sum(inputs []*ir.Value) *ir.Value {
	x := inputs[0]
	for _, y := range inputs[1:] {
		x = b.node("Add", nil, x, y)
	}
	return x
}

// output concatenates the vertices that lead to the output, and adds a projection of the input if it leads there too.
func (b *builder) output(joined []*ir.Value, direct bool, in *ir.Value, channels int64) *ir.Value {
	var out *ir.Value
	switch len(joined) {
	case 0:
	case 1:
		out = joined[0]
	default:
		out = b.node("Concat", ir.Attrs{"axis": ir.IntAttr(1)}, joined...)
	}
	if direct {
		projected := b.conv(in, channels, channels, 1)
		if out == nil {
			return projected
		}
		out = b.node("Add", nil, out, projected)
	}
	return out
}
