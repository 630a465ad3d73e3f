package attention

import (
	"math"

	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/roperator"
	"github.com/rammerc/rammerc/schema"
)

// directShape is a shape of attention_direct: an rTask has 16·rg rows; kg warps share rows and take kt keys each.
type directShape struct{ rg, kg, kt int64 }

// directShapes are the shapes by the size of a head. The first is taken that has room for all keys, and more than half of
// whose rows and keys there are. Windows are one rTask each: with four of 16 rows, Swin took 5 % longer than by
// attention_mma.
var directShapes = map[int64][]directShape{32: {{4, 2, 32}}, 64: {{1, 8, 16}, {1, 8, 32}}}

// mostDirect is how many rTasks there may be, in parts of the vEUs. Each reads all of K and V: BERT with eight inputs took
// 10 % longer with 768 of them.
const mostDirect = 1.5

// rows is how many rows of queries a tile has.
func (s directShape) rows() int64 { return s.rg * warpRows }

// usefulDirect are the shapes of attention_direct that are worth considering. Three products take the time of the
// arithmetic, and so many registers that rTasks have a multiprocessor to themselves.
func (a *attention) usefulDirect(b *build.Builder) []directShape {
	if !tensorCores(b) || a.products(b) != 1 || !a.direct() {
		return nil
	}
	for _, s := range directShapes[a.size()] {
		r, keys := a.rows(s.rows()), s.kg*s.kt
		if most := r.mostKeys(); most <= keys && 2*most > keys && 2*r.largest() > s.rows() &&
			float64(r.tasks()) <= mostDirect*float64(b.Target().VEUs) {
			return []directShape{s}
		}
	}
	return nil
}

// direct reports whether attention_direct takes the operands: heads of whole fragments in whole loads, with strides of 32
// bits.
func (a *attention) direct() bool {
	if a.loadMode() != schema.LoadVec4 || a.depth != a.size() || a.cols != a.size() || a.live != nil {
		return false
	}
	for _, v := range []roperator.View{a.q, a.k, a.v, a.mask} {
		for _, s := range v.Strides {
			if build.Abs(s)*int64(v.DType().Size()) > math.MaxInt32 {
				return false
			}
		}
	}
	return true
}

// directCandidate binds attention_direct.
func (a *attention) directCandidate(b *build.Builder, s directShape, t *tails.Tail) *roperator.Candidate {
	r, of, mask := a.rows(s.rows()), *a, roperator.View{}
	if a.packsMask(r) {
		mask, of.mask = a.packedMask(b, s, r), roperator.View{}
	}
	c := of.split(r, 1, t)
	work := of.tensorWork(tensorShape{s.rows(), s.kg, s.kt, warpRows}, r, a.products(b), c.masked == 1, t)
	if mask.Buf != nil {
		c.masked = 2
		c.reads = roperator.AppendRead(c.reads, mask, r.packedMaskBox(mask.Shape[4]))
		for i := range c.args {
			if c.args[i].Name == "mask" {
				c.args[i].Value = arg.HeadMatrix(mask)
			}
		}
		work.AddRead(mask, mask.Bytes(float64(mask.Shape[4])))
	}
	return &roperator.Candidate{
		Inst:  b.Instance("attention_direct", a.elem, a.size(), s.rg, s.kg, s.kt, a.products(b), c.masked, t.Functor),
		Tasks: int(r.tasks()), Args: c.args, Reads: c.reads,
		Writes: []roperator.Access{{View: t.Out, Box: c.outBox}}, Work: work,
	}
}
