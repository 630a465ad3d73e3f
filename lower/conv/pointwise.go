package conv

import (
	"github.com/rammerc/rammerc/lower/pointwise"
	"github.com/rammerc/rammerc/roperator"
)

// pointwise is the convolution in the terms of package pointwise.
func (c *convolution) pointwise() *pointwise.Product {
	x, _ := c.x.Collapse(1, 2)
	w := roperator.View{Buf: c.w.Buf, Offset: c.w.Offset, Shape: c.w.Shape[:3], Strides: c.w.Strides[:3]}
	return &pointwise.Product{
		Kind: c.kind, Images: c.images, Groups: c.groups, OutC: c.outC, InC: c.inC, Positions: c.positions(),
		X: x, W: w, Prologue: c.prologue, Tail: c.tail, Elements: c.elements,
	}
}
