package graphopt

import (
	"slices"

	"github.com/rammerc/rammerc/ir"
)

// mostColumns is how long the slices are at most that Unique compares: their order takes a sort for each column.
const mostColumns = 64

// unique makes Unique of a sort, and of what is found to begin a group of equal slices. For {5, 2, 5, 2, 9}:
//
//	sorted  2 2 5 5 9    order  1 3 0 2 4    the places from which they come, ascending among equals
//	begins  1 0 1 0 1    group  0 0 1 1 2    how many begin before, or there
//
// The places where a group begins, of which only a run knows how many there are, select the results. Slices are sorted
// column by column from the last one on, as each sort keeps the order of equals.
func (k *extentCounter) unique(n *ir.Node) bool {
	u := &uniquer{k: k, n: n, x: n.Inputs[0]}
	dims, ok := u.x.Shape.Consts()
	if !ok {
		return false
	}
	if !n.HasAttr("axis") {
		u.x, dims = u.op("Reshape", nil, u.x, k.ints(-1)), []int64{ir.Count(dims)}
	} else {
		u.axis = normalAxis(n.Int("axis", 0), len(dims))
	}
	u.rows = dims[u.axis]
	if u.rows < 1 || ir.Count(dims)/u.rows > mostColumns || ir.Count(dims) < 1 {
		return false
	}
	u.sort(dims)
	u.results(n.Int("sorted", 1) != 0)
	return true
}

// uniquer is the state of unique. Lists have a number for each row.
type uniquer struct {
	k            *extentCounter
	n            *ir.Node
	x            *ir.Value
	axis         int
	rows         int64
	columns      []*ir.Value // of the rows
	order        *ir.Value   // by place in the sorted rows: the row
	begins       *ir.Value   // by place in the sorted rows: whether a group begins
	group, place *ir.Value   // by place: the number of its group; by row: its place
}

func (u *uniquer) op(op string, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	return u.k.op(u.n, op, attrs, in...)
}

// numbers is a list with a number for each row.
func (u *uniquer) numbers(of func(i int64) int64) *ir.Value {
	list := make([]int64, u.rows)
	for i := range list {
		list[i] = of(int64(i))
	}
	return u.k.ints(list...)
}

// sort takes the columns apart and finds where groups begin.
func (u *uniquer) sort(dims []int64) {
	perm := []int64{int64(u.axis)}
	for d := range dims {
		if d != u.axis {
			perm = append(perm, int64(d))
		}
	}
	x, t := u.x, u.n.Inputs[0].DType
	if t == ir.Bool {
		x = u.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Int32.ONNX())}, x)
	}
	if len(dims) > 1 {
		x = u.op("Transpose", ir.Attrs{"perm": ir.IntsAttr(perm...)}, x)
	}
	width := ir.Count(dims) / u.rows
	x = u.op("Reshape", nil, x, u.k.ints(u.rows, width))
	for c := range width {
		at := u.op("Gather", axisAttr(1), x, u.k.ints(c))
		u.columns = append(u.columns, u.op("Reshape", nil, at, u.k.ints(u.rows)))
	}
	for _, c := range slices.Backward(u.columns) {
		if u.order != nil {
			c = u.op("Gather", axisAttr(0), c, u.order)
		}
		places := u.ascending(c)
		if u.order != nil {
			places = u.op("Gather", axisAttr(0), u.order, places)
		}
		u.order = places
	}
	before := u.numbers(func(i int64) int64 { return max(i-1, 0) })
	u.begins = u.op("Equal", nil, u.numbers(func(i int64) int64 { return i }), u.k.ints(0))
	for _, c := range u.columns {
		c = u.op("Gather", axisAttr(0), c, u.order)
		u.begins = u.op("Or", nil, u.begins, u.differ(c, u.op("Gather", axisAttr(0), c, before), t.IsFloat()))
	}
}

// ascending are the places from which the elements of a list come when it is sorted.
func (u *uniquer) ascending(list *ir.Value) *ir.Value {
	places := &ir.Value{Name: u.k.c.Name(u.n.Name + "/TopK")}
	sorted := u.k.op(u.n, "TopK", ir.Attrs{"axis": ir.IntAttr(0), "largest": ir.IntAttr(0)}, list, u.k.ints(u.rows))
	places.Def = sorted.Def
	sorted.Def.Outputs = append(sorted.Def.Outputs, places)
	return places
}

// differ says where two lists differ. NaNs are equal.
func (u *uniquer) differ(x, y *ir.Value, float bool) *ir.Value {
	d := u.op("Not", nil, u.op("Equal", nil, x, y))
	if !float {
		return d
	}
	return u.op("And", nil, d, u.op("Not", nil, u.op("And", nil, u.op("IsNaN", nil, x), u.op("IsNaN", nil, y))))
}

// counting is how many of a list of bools are true up to each place, less one.
func (u *uniquer) counting(list *ir.Value) *ir.Value {
	ones := u.op("Cast", ir.Attrs{"to": ir.IntAttr(ir.Int64.ONNX())}, list)
	axis := u.k.constant(ir.FromSlice(ir.Int64, []int64{0}))
	return u.op("Sub", nil, u.op("CumSum", nil, ones, axis), u.k.ints(1))
}

// byGroup combines a list that has a number for each place or row into one that has it for each group.
func (u *uniquer) byGroup(reduction string, first int64, groups, list *ir.Value) *ir.Value {
	return u.op("ScatterElements", ir.Attrs{"axis": ir.IntAttr(0), "reduction": ir.StringAttr(reduction)},
		u.numbers(func(int64) int64 { return first }), groups, list)
}

// results makes the outputs: groups in the order of their slices, or in that of their first ones.
func (u *uniquer) results(sorted bool) {
	take := func(list, at *ir.Value) *ir.Value { return u.op("Gather", axisAttr(0), list, at) }
	u.group, u.place = u.counting(u.begins), u.ascending(u.order)
	groups := take(u.group, u.place) // by row
	begins := u.begins
	if !sorted {
		begins = take(u.begins, u.place) // by row: no row before it is equal, as equal rows are in order
	}
	found := u.op("Reshape", nil, u.op("NonZero", nil, begins), u.k.ints(-1))
	first, numbers, inverse := found, take(groups, found), groups
	if sorted {
		first, numbers = take(u.order, found), take(u.group, found)
	} else {
		inverse = take(u.byGroup("min", u.rows, groups, u.counting(begins)), groups)
	}
	totals := u.byGroup("add", 0, groups, u.numbers(func(int64) int64 { return 1 }))
	for i, v := range []struct {
		axis     int
		list, at *ir.Value
	}{{u.axis, u.x, first}, {0, first, nil}, {0, inverse, nil}, {0, totals, numbers}} {
		out := u.n.Output(i)
		if out == nil {
			continue
		}
		node := &ir.Node{Op: "Identity", Name: u.n.Name, Inputs: []*ir.Value{v.list}, Outputs: []*ir.Value{out},
			Origins: u.n.Origins}
		if v.at != nil {
			node.Op, node.Attrs, node.Inputs = "Gather", axisAttr(v.axis), append(node.Inputs, v.at)
		}
		out.Def = node
		u.k.nodes = append(u.k.nodes, node)
	}
}
