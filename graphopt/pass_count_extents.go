package graphopt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
)

// countExtents makes counted operators (ir.Node.Counted) of operators whose results have as many elements as they find,
// so that their extents have names and bounds. Every other operator then has the extents of the largest results:
//
//	%i: [1,unk__0] = NonZero(%mask)       %i: [1,100] = rammer.NonZero(%mask) {symbol = "nonzero_0", extent = 100}
//	%y: [unk__0,4] = Gather(%x, %i…)      %y: [100,4] = Gather(%x, %i…)
//
// Where an extent is an operand, such as the length of a slice, count_operands.go makes the operator one that computes
// with the count; where it is a number among others, count_values.go makes the count that number. In all other places,
// such as the shape of a Reshape, the following passes see a constant. That is right only because it is a sum of
// products of extents: package ir/axes sees how it changes with them.
//
// Requires: constants folded; branches and loops with known conditions gone. Leaves: a symbol and an extent for each
// number that is found, as Options.Extent says; operators whose results it cannot bound stay as they are.
func countExtents(c *Context, g *ir.Graph) (bool, error) {
	if g != c.Root || c.Opts.Extent == nil || !unknownShapes(g) {
		return false, nil
	}
	k := newExtentCounter(c, g)
	if err := k.allBranches(); err != nil {
		return true, tooLarge(err)
	}
	if err := k.settle(); err != nil { // what looks at the same elements is to find one extent
		return true, tooLarge(err)
	}
	for k.round(split) || k.round(finders) {
		if err := k.settle(); err != nil {
			return true, tooLarge(err)
		}
	}
	k.countValues()
	if err := k.settle(); err != nil {
		return true, tooLarge(err)
	}
	for _, n := range g.Nodes {
		if n.Counted() {
			name := n.Attr("symbol").S
			n.Attrs["extent"] = ir.IntAttr(c.Opts.Extent(name, k.most[name]))
		}
	}
	return true, tooLarge(ir.InferShapes(g).Err())
}

// tooLarge says of errors of inference that they are of the largest extents: the model has shapes that suit only what a
// run finds, such as pieces whose lengths are found and add up to a known one. No program of the largest extents can
// compute them. A model without such extents has no such errors.
func tooLarge(err error) error {
	if err == nil {
		return nil
	}
	var l diag.List
	for _, d := range diag.All(err) {
		c := *d
		c.ID = "data-dependent-shape"
		c.Message = "the shapes depend on data, and with the most that a run may find " + d.Message
		c.Help = "rammerc compiles shapes that follow from sums and products of extents; the engine eval runs the model as " +
			"it is"
		l.Add(&c)
	}
	return l.Err()
}

func newExtentCounter(c *Context, g *ir.Graph) *extentCounter {
	return &extentCounter{c: c, g: g, most: map[string]int64{}, counters: map[string]*ir.Node{},
		lists: map[string]*ir.Value{}, values: map[string]*ir.Value{}, told: map[string]*ir.Value{},
		visited: map[*ir.Node]bool{}}
}

// settle completes a round: nodes are in order again, equal ones are one, and shapes are known. Of what has been made for
// several nodes, that which nobody uses yet is gone.
func (k *extentCounter) settle() error {
	if err := ir.TopoSortBy(k.g, func(i int) int { return i }); err != nil {
		panic("BUG: " + err.Error())
	}
	if err := ir.InferShapes(k.g).Err(); err != nil {
		return err
	}
	if _, err := commonSubexpressions(k.c, k.g); err != nil {
		return err
	}
	removeDead(k.g)
	there := map[*ir.Node]bool{}
	for _, n := range k.g.Nodes {
		there[n] = true
	}
	for _, made := range []map[string]*ir.Value{k.lists, k.values, k.told} {
		for key, v := range made {
			if !there[v.Def] {
				delete(made, key)
			}
		}
	}
	return ir.InferShapes(k.g).Err()
}

// unknownShapes reports whether the shape of a node's result is not known.
func unknownShapes(g *ir.Graph) bool {
	for _, n := range g.Nodes {
		for _, v := range n.Outputs {
			if v == nil {
				continue
			}
			if _, ok := v.Shape.Consts(); !ok {
				return true
			}
		}
	}
	return false
}

// extentCounter is the state of countExtents, and of OpenExtents.
type extentCounter struct {
	c        *Context
	g        *ir.Graph
	most     map[string]int64     // of each symbol
	counters map[string]*ir.Node  // the operator of each symbol
	lists    map[string]*ir.Value // the numbers from 0 on, by the extent that they are as many as
	values   map[string]*ir.Value // what has been made of expressions, by their text
	nodes    []*ir.Node           // the new list of nodes
	// visited are nodes whose inputs the device computes already.
	visited  map[*ir.Node]bool
	numbered int // numbers without names so far
	// open are the bounds of symbols that are extents of inputs, in OpenExtents; told are the numbers that a run is told
	// of them, by their text; made says that there is something new.
	open map[string]ir.Interval
	told map[string]*ir.Value
	made bool
}

// split makes NonZero of what is a part of operators. Where another NonZero looks at the same elements, they find the same.
var split = map[string]func(k *extentCounter, n *ir.Node) bool{"Compress": (*extentCounter).compress}

// finders make counted operators of operators that find elements.
var finders = map[string]func(k *extentCounter, n *ir.Node) bool{
	"NonZero":           (*extentCounter).nonZero,
	"NonMaxSuppression": (*extentCounter).nonMaxSuppression,
	"Slice":             (*extentCounter).slice,
	"TopK":              (*extentCounter).topK,
	"Range":             (*extentCounter).numbers,
	"Concat":            (*extentCounter).concat,
	"Pad":               (*extentCounter).pad,
	"Unique":            (*extentCounter).unique,
}

// takers are the finders of operators that find nothing themselves: they take from what others find.
var takers = map[string]bool{"Slice": true, "Concat": true, "Pad": true}

// round replaces the nodes whose inputs have known extents and whose results have not, those that the table has. It
// returns whether there were any.
func (k *extentCounter) round(table map[string]func(k *extentCounter, n *ir.Node) bool) bool {
	changed := false
	k.nodes = nil
	for _, n := range k.g.Nodes {
		if f := table[n.Op]; n.Domain == "" && f != nil && k.ready(n) && f(k, n) {
			changed = true
			continue
		}
		k.nodes = append(k.nodes, n)
	}
	k.g.Nodes = k.nodes
	return changed
}

// ready reports whether the extents of all inputs are known.
func (k *extentCounter) ready(n *ir.Node) bool {
	for _, v := range n.Inputs {
		if v != nil && !k.knownShape(v.Shape) {
			return false
		}
	}
	return true
}

// knownShape reports whether all extents are numbers or follow from counts.
func (k *extentCounter) knownShape(s ir.Shape) bool {
	for _, d := range s {
		if !k.known(d) {
			return false
		}
	}
	return s != nil
}

// known reports whether d is a sum of products of counts.
func (k *extentCounter) known(d ir.Dim) bool {
	terms, ok := d.Terms()
	for _, t := range terms {
		for _, s := range t.Symbols {
			if _, has := k.most[s]; !has {
				return false
			}
		}
	}
	return ok
}

// bound is an upper bound of d; ok is false if none follows.
func (k *extentCounter) bound(d ir.Dim) (most int64, ok bool) {
	const largest = 1 << 30 // places in tensors have 32 bits
	most, ok = d.Most(func(symbol string) (int64, bool) { n, ok := k.most[symbol]; return n, ok })
	return most, ok && most <= largest
}

// symbol makes a symbol for what n finds, which is at most most. A range of 0 and 1 would have axes that disappear where
// passes look at extents, so it has room for two.
func (k *extentCounter) symbol(n *ir.Node, most int64) string {
	name := fmt.Sprintf("%s_%d", strings.ToLower(n.Op), len(k.most))
	k.most[name] = max(most, 2)
	return name
}

// node adds a node before the visited one and returns its result. Types are inferred after the round.
func (k *extentCounter) node(from *ir.Node, domain, op string, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	k.made = true
	v := &ir.Value{Name: k.c.Name(from.Name + "/" + op)}
	v.Def = &ir.Node{Op: op, Domain: domain, Name: from.Name, Inputs: in, Outputs: []*ir.Value{v}, Attrs: attrs,
		Origins: from.Origins}
	k.nodes = append(k.nodes, v.Def)
	return v
}

func (k *extentCounter) op(from *ir.Node, op string, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	return k.node(from, "", op, attrs, in...)
}

// counted adds the counted operator op, whose count stands for a new symbol, and returns its first result.
func (k *extentCounter) counted(from *ir.Node, op string, most int64, attrs ir.Attrs, in ...*ir.Value) *ir.Value {
	all := ir.Attrs{}
	for name, a := range attrs {
		all[name] = a
	}
	name := k.symbol(from, most)
	all["symbol"] = ir.StringAttr(name)
	v := k.node(from, ir.InternalDomain, op, all, in...)
	k.counters[name] = v.Def
	return v
}

// replace makes n the operator op, with the same results.
func (k *extentCounter) replace(n *ir.Node, op string, attrs ir.Attrs, in ...*ir.Value) {
	n.Op, n.Domain, n.Attrs, n.Inputs, k.made = op, "", attrs, in, true
	k.nodes = append(k.nodes, n)
}

func (k *extentCounter) ints(list ...int64) *ir.Value {
	return k.constant(ir.FromSlice(ir.Int64, list, int64(len(list))))
}

func (k *extentCounter) constant(t *ir.Tensor) *ir.Value {
	v := &ir.Value{Name: k.c.Name("extents/const"), DType: t.DType, Shape: ir.Dims(t.Dims...), Const: t}
	k.g.Consts = append(k.g.Consts, v)
	return v
}

// become makes n itself the counted operator of its name.
func (k *extentCounter) become(n *ir.Node, most int64, attrs ir.Attrs) {
	name := k.symbol(n, most)
	attrs["symbol"] = ir.StringAttr(name)
	n.Domain, n.Attrs = ir.InternalDomain, attrs
	k.counters[name] = n
	k.nodes = append(k.nodes, n)
}

// count is the count of a symbol. Passes take away results that nobody uses, so it is given back to its operator here.
func (k *extentCounter) count(symbol string) *ir.Value {
	n := k.counters[symbol]
	if v := n.Output(1); v != nil {
		return v
	}
	v := &ir.Value{Name: k.c.Name(symbol), Def: n, DType: ir.Int64, Shape: ir.Dims(1)}
	n.Outputs = append(n.Outputs[:1:1], v)
	return v
}

// nonZero makes NonZero the counted one.
func (k *extentCounter) nonZero(n *ir.Node) bool {
	product := ir.D(1)
	for _, d := range n.Inputs[0].Shape {
		product = product.Mul(d)
	}
	most, ok := k.bound(product)
	if ok {
		k.become(n, most, ir.Attrs{})
	}
	return ok
}

// compress gathers the places where the condition holds.
func (k *extentCounter) compress(n *ir.Node) bool {
	x, axis := n.Inputs[0], 0
	if n.Inputs[1].Const != nil {
		return false // it is decomposed
	}
	if n.HasAttr("axis") {
		axis = normalAxis(n.Int("axis", 0), len(x.Shape))
	} else {
		x = k.op(n, "Reshape", nil, x, k.ints(-1))
	}
	places := k.op(n, "NonZero", nil, n.Inputs[1])
	k.replace(n, "Gather", axisAttr(axis), x, k.op(n, "Reshape", nil, places, k.ints(-1)))
	return true
}

// nonMaxSuppression makes NonMaxSuppression the counted one. There are at most as many boxes for each class as the limit
// says, or as there are boxes.
func (k *extentCounter) nonMaxSuppression(n *ir.Node) bool {
	boxes, scores := n.Inputs[0].Shape, n.Inputs[1].Shape
	each, ok := k.bound(boxes[1])
	if n.Input(2) == nil { // nothing is selected
		n.Inputs = slices.Grow(n.Inputs, 1)[:max(len(n.Inputs), 3)]
		n.Inputs[2] = k.ints(0)
	}
	if limit := n.Inputs[2]; limit.Const != nil {
		each = min(each, max(ir.Slice[int64](limit.Const)[0], 0))
	}
	lists, okLists := k.bound(scores[0].Mul(scores[1]))
	if !ok || !okLists {
		return false
	}
	k.become(n, each*lists, ir.Attrs{"center_point_box": ir.IntAttr(n.Int("center_point_box", 0))})
	return true
}
