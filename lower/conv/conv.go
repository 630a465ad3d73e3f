// Package conv lowers convolutions and transposed convolutions of up to three spatial dims.
package conv

import (
	"fmt"
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/contraction"
	"github.com/rammerc/rammerc/lower/elementwise"
	"github.com/rammerc/rammerc/lower/gemm"
	"github.com/rammerc/rammerc/lower/pointwise"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/rkernels/functor"
	"github.com/rammerc/rammerc/roperator"
)

// convolution is a Conv or ConvTranspose, brought to three spatial dims (d, h, w) by dims of one element.
type convolution struct {
	kind       string
	transposed bool
	images     int64
	groups     int64
	outC, inC  int64 // channels of a group
	kernel     [3]int64
	stride     [3]int64
	dilation   [3]int64
	pad        [3]int64
	in, out    [3]int64
	x          roperator.View // [image][channel][d][h][w]
	w          roperator.View // [group][output channel][input channel][d][h][w]
	prologue   *functor.Expr
	multiplied ir.DType
	zero       int64                // the zero point of an input of integers
	pixels     bool                 // an element of x is all channels of a place, as packPixels makes them
	elements   contraction.Elements // with the weights on the left
	tail       tails.Spec
}

func Conv(b *build.Builder, g *build.Group) error {
	c, err := readConv(b, g)
	if err != nil {
		return err
	}
	if ir.Count(c.tail.Shape) == 0 {
		b.Out(g.Outputs[0])
		return nil
	}
	switch {
	case c.isDepthwiseRows(b, g):
		return addDepthwise(b, g, c)
	case functor.RealType(c.multiplied) != ir.Float32 || c.w.Buf.Kind != roperator.Const:
		return addDirect(b, g, c)
	case c.isThinRows(b):
		return addThinRows(b, g, c)
	case c.isThin():
		return addDirect(b, g, c)
	case c.isProduct():
		return gemm.LowerProduct(b, g, c.product())
	case c.isRows(b, g):
		return addRows(b, g, c)
	case c.isPointwise():
		pointwise.Add(b, g, c.pointwise())
	default:
		return addImplicitGemm(b, g, c)
	}
	return nil
}

func readConv(b *build.Builder, g *build.Group) (*convolution, error) {
	n := g.Anchor
	geo, err := ir.ConvGeometry(n)
	if err != nil {
		return nil, err
	}
	rank := len(geo.Kernel)
	if rank > 3 {
		return nil, fmt.Errorf("it has %d spatial dims; at most 3 have a compiled form", rank)
	}
	c := &convolution{kind: n.Op, transposed: n.Op == "ConvTranspose", groups: n.Int("group", 1)}
	c.tail = tails.Spec{DType: n.Outputs[0].DType, Shape: b.Extents(g.Outputs[0], build.ForTiles), Cuts: [2]int{1, 2}}
	for i := range 3 {
		c.kernel[i], c.stride[i], c.dilation[i], c.in[i], c.out[i] = 1, 1, 1, 1, 1
		if k := i - (3 - rank); k >= 0 {
			c.kernel[i], c.stride[i], c.dilation[i] = geo.Kernel[k], geo.Strides[k], geo.Dilations[k]
			c.pad[i], c.in[i], c.out[i] = geo.PadBegin[k], geo.In[k], geo.Out[k]
		}
	}
	if err := readConvInputs(b, g, c); err != nil {
		return nil, err
	}
	c.images = c.tail.Shape[0]
	c.outC, c.inC = c.tail.Shape[1]/c.groups, c.x.Shape[1]/c.groups
	return c, nil
}

func readConvInputs(b *build.Builder, g *build.Group, c *convolution) error {
	f, err := contraction.ReadFactors(b, g, true)
	if err != nil {
		return err
	}
	c.prologue, c.multiplied = f.Prologue, f.Multiplied
	c.x, c.w = threeSpatial(f.X), c.groupedFilter(threeSpatial(f.Y))
	c.elements = contraction.ElementsOf(c.w, c.x, c.multiplied)
	if len(g.Inputs) > 2 && g.Inputs[2] != nil {
		bias, err := elementwise.Mapped(b, g.Prologue[2], g.Inputs[2])
		if err != nil {
			return err
		}
		for range len(c.tail.Shape) - 2 {
			bias = roperator.InsertDim(bias, len(bias.Shape))
		}
		c.tail.Operands = []roperator.View{bias}
		c.tail.Own = functor.Apply("Add", functor.Leaf(c.tail.DType, 0), functor.Leaf(c.tail.DType, 1))
	}
	return nil
}

// threeSpatial shows [a][b][spatial…] as [a][b][d][h][w].
func threeSpatial(v roperator.View) roperator.View {
	for len(v.Shape) < 5 {
		v = roperator.InsertDim(v, 2)
	}
	return v
}

// groupedFilter shows W as [group][output][input][taps…]. For Conv it is [group·output][input][taps…], for
// ConvTranspose [group·input][output][taps…].
func (c *convolution) groupedFilter(w roperator.View) roperator.View {
	per := w.Shape[0] / c.groups
	v := roperator.View{Buf: w.Buf, Offset: w.Offset}
	v.Shape = append([]int64{c.groups, per}, w.Shape[1:]...)
	v.Strides = append([]int64{per * w.Strides[0]}, w.Strides...)
	if c.transposed {
		return v.Permute([]int64{0, 2, 1, 3, 4, 5})
	}
	return v
}

func (c *convolution) taps() int64 { return ir.Count(c.kernel[:]) }

func (c *convolution) positions() int64 { return ir.Count(c.out[:]) }

// isThin reports whether groups have too few channels to fill a tile.
func (c *convolution) isThin() bool { return c.groups > 1 && c.outC < 8 }

// isProduct reports whether there is one output position, whose filter covers the whole input. That is a matrix
// product.
func (c *convolution) isProduct() bool {
	if c.transposed || c.groups != 1 || c.positions() != 1 {
		return false
	}
	for i := range 3 {
		whole := c.kernel[i] == c.in[i] && (c.dilation[i] == 1 || c.kernel[i] == 1)
		if c.pad[i] != 0 || !whole && c.kernel[i] != 1 {
			return false
		}
	}
	_, okX := c.productInput()
	_, okW := c.productFilter()
	return okX && okW
}

// productInput is x as [image][k].
func (c *convolution) productInput() (roperator.View, bool) {
	x := c.x
	for i := range 3 {
		x = x.Slice(2+i, 0, c.kernel[i])
	}
	return x.Collapse(1)
}

// productFilter is W as [output channel][k].
func (c *convolution) productFilter() (roperator.View, bool) { return c.w.Collapse(2) }

func (c *convolution) product() contraction.Product {
	x, _ := c.productInput()
	w, _ := c.productFilter()
	p := contraction.Product{
		Kind: c.kind, M: c.images, K: x.Shape[1], N: c.outC, A: x, B: w.Permute([]int64{1, 0}),
		Prologue: c.prologue, Multiplied: c.multiplied, Tail: c.tail,
	}
	p.Tail.Cuts = [2]int{0, 1}
	return p
}

// isPointwise reports whether the filter has one tap and meets every position once, and positions are consecutive.
func (c *convolution) isPointwise() bool {
	for i := range 3 {
		if c.kernel[i] != 1 || c.stride[i] != 1 || c.pad[i] != 0 || c.in[i] != c.out[i] {
			return false
		}
	}
	_, ok := c.x.Collapse(1, 2)
	return ok && !c.transposed
}

// checkRange refuses inputs whose offsets do not fit the 32-bit tables of the kernels.
func (c *convolution) checkRange() error {
	span := int64(0)
	for d := 1; d < 5; d++ {
		span += build.Abs(c.x.Strides[d]) * c.x.Shape[d]
	}
	if span > math.MaxInt32 || c.kernel[0]*c.dilation[0] >= 1<<15 {
		return fmt.Errorf("the input is too large for the convolution kernels: its channels span %d elements", span)
	}
	return nil
}

// inputRange is the range of coordinates of the input, along dim i, that outputs [from, to) read.
func (c *convolution) inputRange(i int, from, to int64) (lo, hi int64) {
	reach := (c.kernel[i] - 1) * c.dilation[i]
	if c.transposed {
		lo = max(0, build.CeilDiv(from+c.pad[i]-reach, c.stride[i]))
		hi = floorDiv(to-1+c.pad[i], c.stride[i]) + 1
	} else {
		lo = max(0, from*c.stride[i]-c.pad[i])
		hi = (to-1)*c.stride[i] - c.pad[i] + reach + 1
	}
	hi = min(max(hi, 0), c.in[i])
	return min(lo, hi), hi
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// spatialBox is the part of the spatial dims of the input that output positions [p0, p1) read. If the positions
// differ in an outer dim, it has all of the dims inside of that.
func (c *convolution) spatialBox(p0, p1 int64, lo, hi []int64) {
	inner := [3]int64{c.out[1] * c.out[2], c.out[2], 1}
	single := true // the positions share all outer indices
	for i := range 3 {
		from, to := int64(0), c.out[i]
		if single {
			from, to = p0/inner[i]%c.out[i], (p1-1)/inner[i]%c.out[i]+1
			single = to-from == 1
		}
		lo[i], hi[i] = c.inputRange(i, from, to)
	}
}
