package ir

import (
	"fmt"
	"math"
	"reflect"
	"slices"
)

// graphDiff describes the first difference between two graphs that the text form would show, "" if there is none.
func graphDiff(a, b *Graph) string {
	d := &differ{pair: map[*Value]*Value{}}
	d.graph("", a, b)
	return d.diff
}

type differ struct {
	pair map[*Value]*Value
	diff string
}

func (d *differ) check(where string, a, b any) {
	if d.diff == "" && !reflect.DeepEqual(a, b) {
		d.diff = fmt.Sprintf("%s: %v and %v", where, a, b)
	}
}

func (d *differ) graph(where string, a, b *Graph) {
	where += "/" + a.Name
	d.check(where+" name", a.Name, b.Name)
	d.define(where+" input", a.Inputs, b.Inputs)
	d.define(where+" const", a.Consts, b.Consts)
	d.check(where+" nodes", len(a.Nodes), len(b.Nodes))
	for i := 0; i < len(a.Nodes) && d.diff == ""; i++ {
		d.node(fmt.Sprintf("%s node %d", where, i), a.Nodes[i], b.Nodes[i])
	}
	d.use(where+" output", a.Outputs, b.Outputs)
}

func (d *differ) define(where string, a, b []*Value) {
	d.check(where+"s", len(a), len(b))
	for i := 0; i < len(a) && d.diff == ""; i++ {
		d.check(where, a[i] == nil, b[i] == nil)
		if a[i] == nil || d.diff != "" {
			continue
		}
		d.pair[a[i]] = b[i]
		d.check(where+" name", a[i].Name, b[i].Name)
		d.check(where+" type", typeText(a[i].DType, a[i].Shape), typeText(b[i].DType, b[i].Shape))
		d.check(where+" shape", true, a[i].Shape.Equal(b[i].Shape))
		d.tensor(where+" elements", a[i].Const, b[i].Const)
	}
}

func (d *differ) use(where string, a, b []*Value) {
	d.check(where+"s", len(a), len(b))
	for i := 0; i < len(a) && d.diff == ""; i++ {
		if d.pair[a[i]] != b[i] {
			d.diff = fmt.Sprintf("%s %d is another value", where, i)
		}
	}
}

func (d *differ) node(where string, a, b *Node) {
	d.use(where+" input", a.Inputs, b.Inputs)
	d.check(where+" op", a.Domain+"."+a.Op, b.Domain+"."+b.Op)
	d.check(where+" name", a.Name, b.Name)
	d.check(where+" origins", fmt.Sprint(a.Origins), fmt.Sprint(b.Origins))
	d.check(where+" attributes", a.Attrs.Names(), b.Attrs.Names())
	for _, name := range a.Attrs.Names() {
		if d.diff != "" {
			return
		}
		d.attr(where+" "+name, a.Attrs[name], b.Attrs[name])
	}
	d.define(where+" output", a.Outputs, b.Outputs)
}

func (d *differ) attr(where string, a, b Attr) {
	d.check(where+" kind", a.Kind, b.Kind)
	d.check(where, fmt.Sprint(a.I, bits(a.F), a.S, a.Ints, a.Strs), fmt.Sprint(b.I, bits(b.F), b.S, b.Ints, b.Strs))
	d.check(where, len(a.Floats), len(b.Floats))
	for i := 0; i < len(a.Floats) && d.diff == ""; i++ {
		d.check(where, bits(a.Floats[i]), bits(b.Floats[i]))
	}
	d.tensor(where, a.T, b.T)
	if a.G != nil && b.G != nil {
		d.graph(where, a.G, b.G)
	}
}

// bits is the representation of f, with a single one for all NaNs.
func bits(f float64) uint64 {
	if math.IsNaN(f) {
		return math.Float64bits(math.NaN())
	}
	return math.Float64bits(f)
}

func (d *differ) tensor(where string, a, b *Tensor) {
	d.check(where, a == nil, b == nil)
	if a == nil || d.diff != "" {
		return
	}
	d.check(where+" type", fmt.Sprint(a.DType, a.Dims), fmt.Sprint(b.DType, b.Dims))
	switch f := a.Data.(type) {
	case []float32:
		d.check(where, true, slices.EqualFunc(f, Slice[float32](b), func(x, y float32) bool {
			return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
		}))
	case []float64:
		d.check(where, true, slices.EqualFunc(f, Slice[float64](b),
			func(x, y float64) bool { return bits(x) == bits(y) }))
	default:
		d.check(where, a.Data, b.Data)
	}
}
