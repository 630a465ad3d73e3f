package graphopt

import (
	"github.com/rammerc/rammerc/ir"
)

// pasteMasks computes all masks of an instance segmentation at once, which torchvision's exporter pastes into the image
// one by one, in a Loop that runs as often as boxes are found:
//
//	for each box   mask of m×n → Resize to the box's h×w → Slice to what is in the image → Concat with zeros around it
//
// A pixel between four elements of its mask is a sum of these, whose weights are products of a weight of the row and one
// of the column, so an image is a product of three matrices. The weights of rows behind the box are 0:
//
//	image = rows · mask · columnsᵀ     rows[y,i] = max(0, 1 - |clamp((y - top + ½)·m/h - ½, 0, m-1) - i|)
//
// Requires: constants folded, the loop's body as the exporter writes it. Leaves: other loops.
func pasteMasks(c *Context, g *ir.Graph) (bool, error) {
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		if !n.Is("Loop") || len(n.Inputs) != 3 {
			return
		}
		if p := pastingOf(n); p != nil {
			m := masksPaster{decomposer{s, n}, p}
			m.paste()
		}
	}), nil
}

// pasting is what such a loop takes: masks are float32[count,1,m,n], and boxes int64[count,4], left, top, right and
// bottom, of which the latter two are inside.
type pasting struct {
	masks, boxes  *ir.Value
	turn          *ir.Value // the number of the box in the body
	height, width int64     // of the image
}

// pastingOf is the pasting of a Loop, nil if it computes something else.
func pastingOf(n *ir.Node) *pasting {
	body := n.Attrs["body"].G
	if len(body.Inputs) != 3 || len(body.Outputs) != 2 || !isTrueConst(n.Inputs[1]) || !isTrueConst(body.Outputs[0]) {
		return nil
	}
	none, ok := n.Inputs[2].Shape.Consts()
	if !ok || len(none) != 3 || none[0] != 0 || n.Inputs[2].DType != ir.Float32 {
		return nil
	}
	p := &pasting{turn: body.Inputs[0], height: none[1], width: none[2]}
	joined := p.node("Concat", axis(0), is(body.Inputs[2]), one(p.image()))
	if !joined(body.Outputs[1]) {
		return nil
	}
	masks, boxes := p.masks.Shape, p.boxes.Shape
	if len(masks) != 4 || len(boxes) != 2 || !masks[0].Equal(boxes[0]) || !countIs(n.Inputs[0], masks[0]) ||
		p.masks.DType != ir.Float32 || p.boxes.DType != ir.Int64 {
		return nil
	}
	sides, ok := masks[1:].Consts()
	if four, known := boxes[1].Const(); !ok || sides[0] != 1 || sides[1] < 1 || sides[2] < 1 || !known || four != 4 {
		return nil
	}
	return p
}

// countIs reports whether an integer is known to be an extent.
func countIs(v *ir.Value, d ir.Dim) bool {
	return v != nil && len(v.Elems) == 1 && v.Elems[0].Equal(d)
}

func isTrueConst(v *ir.Value) bool {
	truth, ok := uniformBool(v)
	return ok && truth
}

// mold reports whether a value is computed in a certain way.
type mold func(v *ir.Value) bool

func is(want *ir.Value) mold { return func(v *ir.Value) bool { return v == want } }

// bound is any value, the same at each place.
func bound(to **ir.Value) mold {
	return func(v *ir.Value) bool {
		if *to == nil {
			*to = v
		}
		return v != nil && *to == v
	}
}

func num(want int64) mold {
	return func(v *ir.Value) bool { return v != nil && isScalar(v, float64(want)) && isExactly(v, float64(want)) }
}

// one is a value that is the same but for dims of one element.
func one(of mold) mold {
	return func(v *ir.Value) bool {
		for v != nil && v.Def != nil && (v.Def.Is("Unsqueeze") || v.Def.Is("Identity")) {
			v = v.Def.Inputs[0]
		}
		return of(v)
	}
}

// cast is a value that may have been converted to a type that it must have in the end.
func cast(to ir.DType, of mold) mold {
	return func(v *ir.Value) bool {
		if v == nil || v.DType != to {
			return false
		}
		if n := definedBy(v, "Cast"); n != nil {
			v = n.Inputs[0]
		}
		return of(v)
	}
}

// axis is a check of a node's attribute axis, 0 if it is absent.
func axis(want int64) func(n *ir.Node) bool {
	return func(n *ir.Node) bool { return n.Int("axis", 0) == want }
}

func anyAttrs(*ir.Node) bool { return true }

// node is the result of an operator whose attributes suit, with inputs that suit; nil stands for an absent one.
func (p *pasting) node(op string, attrs func(n *ir.Node) bool, in ...mold) mold {
	return func(v *ir.Value) bool {
		n := definedBy(v, op)
		if n == nil || len(n.Inputs) != len(in) || !attrs(n) {
			return false
		}
		for i, suits := range in {
			if suits == nil && n.Inputs[i] != nil || suits != nil && !suits(n.Inputs[i]) {
				return false
			}
		}
		return true
	}
}

// corner is an element of the box, of 1 element or none of the dims.
func (p *pasting) corner(k int64) mold {
	box := p.node("Gather", axis(0), bound(&p.boxes), is(p.turn))
	return one(p.node("Gather", axis(0), box, num(k)))
}

// size is how many pixels the box has along an axis, 1 at least: from corner k to corner k+2.
func (p *pasting) size(k int64) mold {
	distance := p.node("Add", anyAttrs, p.node("Sub", anyAttrs, p.corner(k+2), p.corner(k)), num(1))
	return p.extreme("ReduceMax", distance, num(1))
}

// first is the first pixel of the box in the image, and last the one behind its last.
func (p *pasting) first(k int64) mold { return p.extreme("ReduceMax", p.corner(k), num(0)) }

func (p *pasting) last(k, extent int64) mold {
	return p.extreme("ReduceMin", p.node("Add", anyAttrs, p.corner(k+2), num(1)), num(extent))
}

// extreme is the largest or smallest of two numbers.
func (p *pasting) extreme(op string, a, b mold) mold {
	whole := func(n *ir.Node) bool { return !n.HasAttr("axes") && n.Int("noop_with_empty_axes", 0) == 0 }
	return one(p.node(op, whole, p.node("Concat", axis(0), a, b)))
}

// resized is the mask with the size of the box.
func (p *pasting) resized() mold {
	mask := p.node("Gather", axis(0), p.node("Gather", axis(0), bound(&p.masks), is(p.turn)), num(0))
	whole := func(v *ir.Value) bool { // [m,n] as [1,1,m,n]
		dims, ok := v.Shape.Consts()
		return ok && len(dims) == 4 && dims[0] == 1 && dims[1] == 1 && definedBy(v, "Expand") != nil &&
			mask(v.Def.Inputs[0]) && len(v.Def.Inputs[0].Shape) == 2
	}
	size := cast(ir.Int64, p.node("Concat", axis(0), one(p.size(1)), one(p.size(0))))
	ones := func(v *ir.Value) bool { return v != nil && v.Const != nil && v.Const.Len() == 2 && isExactly(v, 1) }
	linear := func(n *ir.Node) bool {
		return n.Str("mode", "nearest") == "linear" && n.Int("antialias", 0) == 0 && n.Int("exclude_outside", 0) == 0 &&
			n.Str("coordinate_transformation_mode", "half_pixel") == "half_pixel" && !n.HasAttr("axes") &&
			n.Str("keep_aspect_ratio_policy", "stretch") == "stretch"
	}
	up := p.node("Resize", linear, whole, nil, nil, p.node("Concat", axis(0), ones, size))
	return p.node("Gather", axis(0), p.node("Gather", axis(0), up, num(0)), num(0))
}

// window is a part of a tensor along an axis.
func (p *pasting) window(of, from, to mold, along int64) mold {
	return p.node("Slice", anyAttrs, of, one(from), one(to), num(along), num(1))
}

// image is the mask in the image.
func (p *pasting) image() mold {
	sub := func(a, b mold) mold { return p.node("Sub", anyAttrs, a, b) }
	cut := p.window(p.resized(), sub(p.first(1), p.corner(1)), sub(p.last(1, p.height), p.corner(1)), 0)
	cut = p.window(cut, sub(p.first(0), p.corner(0)), sub(p.last(0, p.width), p.corner(0)), 1)
	zeros := func(rows, columns mold) mold {
		zero := func(n *ir.Node) bool {
			a, ok := n.Attrs["value"]
			return !ok || a.T != nil && a.T.DType == ir.Float32 && a.T.Len() == 1 && numbers(a.T)[0] == 0
		}
		return p.node("ConstantOfShape", zero, p.node("Concat", axis(0), one(rows), one(columns)))
	}
	extent := func(of mold, k int64) mold {
		return p.node("Gather", axis(0), p.node("Shape", plainShape, of), num(k))
	}
	all := func(v *ir.Value) bool { x, ok := scalar(v); return ok && x >= float64(max(p.height, p.width)) }
	columns := extent(cut, 1)
	rows := p.node("Concat", axis(0), zeros(p.first(1), columns), cast(ir.Float32, cut),
		zeros(sub(num(p.height), p.last(1, p.height)), columns))
	rows = p.window(p.window(rows, num(0), num(p.height), 0), num(0), all, 1)
	lines := extent(rows, 0)
	whole := p.node("Concat", axis(1), zeros(lines, p.first(0)), rows,
		zeros(lines, sub(num(p.width), p.last(0, p.width))))
	return p.window(p.window(whole, num(0), all, 0), num(0), num(p.width), 1)
}

// plainShape is a Shape of all dims.
func plainShape(n *ir.Node) bool { return !n.HasAttr("start") && !n.HasAttr("end") }

// masksPaster writes the products.
type masksPaster struct {
	decomposer
	*pasting
}

func (m *masksPaster) paste() {
	rows, _ := m.masks.Shape[2].Const()
	columns, _ := m.masks.Shape[3].Const()
	masks := m.op("Squeeze", nil, m.masks, m.ints(1))
	high := m.op("MatMul", nil, m.weights(1, m.height, rows), masks)
	m.replace("MatMul", nil, high, m.transpose(m.weights(0, m.width, columns), 0, 2, 1))
}

// weights are those of count elements of the masks for all pixels of the image along an axis, between corners k and k+2
// of the boxes, as float32[boxes,extent,count].
func (m *masksPaster) weights(k, extent, count int64) *ir.Value {
	corner := func(k int64) *ir.Value { return m.op("Gather", axisAttr(1), m.boxes, m.ints(k)) }
	float := func(x float64) *ir.Value { return m.numbers(ir.Float32, []float64{x}, 1) }
	toFloat := ir.Attrs{"to": ir.IntAttr(ir.Float32.ONNX())}
	low, behind := corner(k), m.op("Add", nil, corner(k+2), m.ints(1))
	pixels := m.progression(ir.Int64, extent)
	inside := m.op("And", nil, m.op("GreaterOrEqual", nil, pixels, low), m.op("Less", nil, pixels, behind))
	size := m.op("Cast", toFloat, m.op("Max", nil, m.op("Sub", nil, behind, low), m.ints(1)))
	middle := m.op("Add", nil, m.op("Cast", toFloat, m.op("Sub", nil, pixels, low)), float(0.5))
	at := m.op("Sub", nil, m.op("Div", nil, m.op("Mul", nil, middle, float(float64(count))), size), float(0.5))
	at = m.op("Min", nil, m.op("Max", nil, at, float(0)), float(float64(count-1)))
	far := m.op("Abs", nil, m.op("Sub", nil, m.op("Unsqueeze", nil, at, m.ints(2)), m.progression(ir.Float32, count)))
	weight := m.op("Relu", nil, m.op("Sub", nil, float(1), far))
	return m.op("Mul", nil, weight, m.op("Unsqueeze", nil, m.op("Cast", toFloat, inside), m.ints(2)))
}

// progression is the numbers from 0 to n-1.
func (m *masksPaster) progression(t ir.DType, n int64) *ir.Value {
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(i)
	}
	return m.numbers(t, list, n)
}
