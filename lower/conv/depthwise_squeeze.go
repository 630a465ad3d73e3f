package conv

import (
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/lower/tails"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// squeezed is the candidate that squeezes what it makes; nil if the filter is none for patches. As all candidates of an
// rOperator write the same parts, there is one: that which takes the least time, with what the rTasks that add up its
// parts take to read them.
func (c *convolution) squeezed(b *build.Builder, t *tails.Tail, w roperator.View,
	s *build.Squeeze) *roperator.Candidate {
	var best depthwisePatch
	least := math.Inf(1)
	for _, p := range c.depthwisePatches(b, s.W.Shape[1]) {
		if time := c.squeezeTime(b, t, w, p); time < least {
			best, least = p, time
		}
	}
	if math.IsInf(least, 1) {
		return nil
	}
	d := c.depthwisePatchCandidate(b, t, w, best)
	if d.Inst == nil {
		return nil // the target is too old
	}
	c.addSqueeze(b, d, best, s)
	return d
}

// squeezeTime is what the tiles of p take by the rates of the target, in nanoseconds, and then an rTask that reads all
// parts.
func (c *convolution) squeezeTime(b *build.Builder, t *tails.Tail, w roperator.View, p depthwisePatch) float64 {
	dev := b.Target()
	d := c.depthwisePatchCandidate(b, t, w, p)
	work := d.Work
	rTask := dev.Latency + work.Flops/dev.Rate(target.Scalar, ir.Float32) + work.SharedBytes/dev.SharedRate +
		(work.ConstBytes+p.matrixBytes()+work.ReadBytes+work.WriteBytes)/dev.L2Rate
	return rTask*float64(build.CeilDiv(int64(d.Tasks), int64(dev.VEUs))) + float64(4*p.units*p.tr*p.tq)/dev.L2Rate
}

// matrixBytes is how many bytes of the squeeze's weights a tile multiplies by.
func (p depthwisePatch) matrixBytes() float64 { return float64(4 * channelsAtOnce * p.quads * p.units) }

// addSqueeze makes d, the candidate of such tiles, squeeze what it makes.
func (c *convolution) addSqueeze(b *build.Builder, d *roperator.Candidate, p depthwisePatch, s *build.Squeeze) {
	s.Parts = int64(d.Tasks) / c.images
	s.Part = b.Temp("squeezed", ir.Float32, []int64{c.images, s.Parts, p.units})
	d.Args = []rkernels.Field{
		{Name: "conv", Value: rkernels.Struct(d.Args)}, arg.Ref("weights", s.W), arg.Ref("part", s.Part),
		arg.Div("quads", p.units/4), arg.Int("matrix", c.squeezeMatrix(p)),
		{Name: "share", Value: rkernels.Float(1 / float64(c.positions()))},
	}
	d.Writes = append(d.Writes, roperator.Access{View: s.Part, Box: func(task int, lo, hi []int64) {
		lo[0], lo[1], lo[2] = int64(task)/s.Parts, int64(task)%s.Parts, 0
		hi[0], hi[1], hi[2] = lo[0]+1, lo[1]+1, p.units
	}})
	d.Work.ConstBytes += p.matrixBytes()
	d.Work.WriteBytes += s.Part.Bytes(float64(p.units))
}

// squeezeMatrix is where in shared memory the weights of the squeeze begin: behind those of the tile and the patch, in
// whose place there are sums of all threads in the end.
func (c *convolution) squeezeMatrix(p depthwisePatch) int64 {
	row := c.patchPlaces(p) * p.quads * channelsAtOnce * int64(c.x.DType().Size())
	at := c.depthwiseWeights(p) + p.ring(c)*row
	if p.units > 0 {
		at = max(at, depthwiseThreads*channelsAtOnce*4)
	}
	return at
}

// squeezeBytes is the shared memory that squeezing takes behind that: the weights, and the sums of each warp.
func (p depthwisePatch) squeezeBytes() int64 {
	if p.units == 0 {
		return 0
	}
	return 4 * channelsAtOnce * p.quads * (p.units + depthwiseThreads/warpLanes)
}
