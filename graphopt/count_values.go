package graphopt

import (
	"strings"

	"github.com/rammerc/rammerc/ir"
)

// Extents of count-extents as numbers that the device computes with.

// expression is an int64[1] that the device computes from counts: the value of d, which is a sum of products of them.
func (k *extentCounter) expression(n *ir.Node, d ir.Dim) *ir.Value {
	if c, ok := d.Const(); ok {
		return k.ints(c)
	}
	if k.open != nil && k.isExtent(d) {
		return k.extentOf(n, d)
	}
	if name, ok := d.Symbol(); ok {
		return k.symbolValue(n, name)
	}
	terms, ok := d.Terms()
	if !ok {
		panic("BUG: an extent that is no sum of products of counts: " + d.String())
	}
	var sum *ir.Value
	for _, t := range terms {
		var product *ir.Value
		if t.Coef != 1 || len(t.Symbols) == 0 {
			product = k.ints(t.Coef)
		}
		for _, s := range t.Symbols {
			x := k.symbolValue(n, s)
			if product != nil {
				x = k.op(n, "Mul", nil, product, x)
			}
			product = x
		}
		if sum == nil {
			sum = product
		} else {
			sum = k.op(n, "Add", nil, sum, product)
		}
	}
	return sum
}

// symbolValue is an int64[1] with the extent of a symbol in a run.
func (k *extentCounter) symbolValue(n *ir.Node, symbol string) *ir.Value {
	if k.open != nil {
		return k.toldSymbol(n, symbol)
	}
	return k.count(symbol)
}

// shapeOf is an int64[1] with the extent of the symbol d, which passes may fold where extents are numbers: the shape of
// the list of so many numbers. It is no number that a run computes with.
func (k *extentCounter) shapeOf(n *ir.Node, d ir.Dim) *ir.Value {
	name, _ := d.Symbol()
	found := k.counters[name].Outputs[0]
	for axis, e := range found.Shape {
		if e.Equal(d) {
			return k.op(n, "Gather", nil, k.op(n, "Shape", nil, found), k.ints(int64(axis)))
		}
	}
	panic("BUG: the counted operator of " + name + " has no such axis")
}

// int64s is v as int64.
func (k *extentCounter) int64s(n *ir.Node, v *ir.Value) *ir.Value {
	if v.DType == ir.Int64 || v.DType == ir.Invalid {
		return v
	}
	return k.op(n, "Cast", ir.Attrs{"to": ir.IntAttr(ir.Int64.ONNX())}, v)
}

// depends reports whether the elements of v are known to follow from counts.
func (k *extentCounter) depends(v *ir.Value) bool {
	if v == nil || v.Const != nil || v.Elems == nil {
		return false
	}
	counted := false
	for _, e := range v.Elems {
		if !k.known(e) {
			return false
		}
		_, number := e.Const()
		counted = counted || !number
	}
	return counted
}

// device is v as the device computes it. Where its elements follow from counts, they are made of these; otherwise so are
// those of what it is computed from.
func (k *extentCounter) device(n *ir.Node, v *ir.Value) *ir.Value {
	if k.depends(v) {
		return k.elements(n, v)
	}
	if v.Def != nil && v.Const == nil && !k.visited[v.Def] {
		k.visited[v.Def] = true
		for i, x := range v.Def.Inputs {
			if x != nil && !shapePort(v.Def, i) {
				v.Def.Inputs[i] = k.device(n, x)
			}
		}
	}
	return v
}

// elements is a value of v's type and shape whose elements the device computes from counts.
func (k *extentCounter) elements(n *ir.Node, v *ir.Value) *ir.Value {
	texts := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		texts[i] = e.String()
	}
	key := v.DType.String() + v.Shape.String() + strings.Join(texts, ",")
	if x := k.values[key]; x != nil {
		return x
	}
	parts := make([]*ir.Value, len(v.Elems))
	for i, e := range v.Elems {
		parts[i] = k.expression(n, e)
	}
	x := parts[0]
	if len(parts) > 1 {
		x = k.op(n, "Concat", axisAttr(0), parts...)
	}
	if v.DType != ir.Int64 {
		x = k.op(n, "Cast", ir.Attrs{"to": ir.IntAttr(v.DType.ONNX())}, x)
	}
	x = k.op(n, "Reshape", nil, x, k.ints(v.Shape.MustConsts()...))
	k.values[key] = x
	return x
}

// shapePorts are the operands that say a result's shape. Where that shape is known, they are needed no further.
var shapePorts = map[string][]int{
	"Reshape": {1}, "Expand": {1}, "ConstantOfShape": {0}, "Range": {0, 1, 2}, "TopK": {1},
}

// saysShape reports whether input i of n is needed for no more than the shape of the result, which is known.
func (k *extentCounter) saysShape(n *ir.Node, i int) bool {
	port := shapePort(n, i) || k.open != nil && i > 0 && settled[n.Op] && n.Domain == ""
	return port && k.knownShape(n.Outputs[0].Shape)
}

// settled are operators whose operands behind the first one must be constants once the symbols of OpenExtents have
// numbers. Package axes sees what becomes of them.
var settled = map[string]bool{"Slice": true, "Split": true, "Tile": true, "Pad": true, "Resize": true}

func shapePort(n *ir.Node, i int) bool {
	if n.Domain != "" {
		return false
	}
	for _, p := range shapePorts[n.Op] {
		if p == i {
			return true
		}
	}
	return false
}

// countValues makes what depends on counts the business of the device, wherever a node computes with it whose own result
// is not known to be a sum of products of counts. Without this, passes would compute with the largest extents.
func (k *extentCounter) countValues() {
	k.nodes = nil
	for _, n := range k.g.Nodes {
		for i, v := range n.Inputs {
			if k.depends(v) && !k.saysShape(n, i) && !k.followed(n) {
				n.Inputs[i] = k.elements(n, v)
			}
		}
		k.nodes = append(k.nodes, n)
	}
	for i, v := range k.g.Outputs {
		if k.depends(v) {
			k.countOutput(i, v)
		}
	}
	k.g.Nodes = k.nodes
}

// countOutput makes output i of the model, which is v, a value that the device computes.
func (k *extentCounter) countOutput(i int, v *ir.Value) {
	n := v.Def
	known := &ir.Value{Name: k.c.Name(v.Name), Def: n, DType: v.DType, Shape: v.Shape, Elems: v.Elems}
	ir.ReplaceMany(k.g, map[*ir.Value]*ir.Value{v: known})
	for o, w := range n.Outputs {
		if w == v {
			n.Outputs[o] = known
		}
	}
	v.Elems = nil
	v.Def = &ir.Node{Op: "Identity", Name: n.Name, Inputs: []*ir.Value{k.elements(n, known)}, Outputs: []*ir.Value{v},
		Origins: n.Origins}
	k.nodes, k.g.Outputs[i] = append(k.nodes, v.Def), v
}

// followed reports whether the elements of all results of n are known to follow from counts, or to be numbers.
func (k *extentCounter) followed(n *ir.Node) bool {
	for _, v := range n.Outputs {
		if v == nil {
			continue
		}
		for _, e := range v.Elems {
			if !k.known(e) {
				return false
			}
		}
		if v.Elems == nil {
			return false
		}
	}
	return true
}
