package eval

import (
	"github.com/rammerc/rammerc/ir"
)

// convolution is Conv and ConvTranspose as one matrix product per batch and group: weights (output
// channels by input channels and taps) times the input gathered for each output place. Blocks of the
// gathered input are made as the product asks for them.
type convolution struct {
	x, w, bias, out *ir.Tensor
	groups          int
	inC, outC       int // per group
	ws              []window
	place           func(w window, o, k int) int
	// weightAt is the place in w of the weight from input channel c and tap t (flat) to output channel 0
	// of group 0; output channels are outStep apart, groups groupStep.
	weightAt           func(c, t int) int
	outStep, groupStep int
}

// conv computes Y[n,m] = Σ_c W[m,c] ⋆ X[n,c] + B[m].
func conv(c *call) []*ir.Tensor {
	x, w := c.arg(0), c.arg(1)
	cv := convOf(c, x, w)
	_, channels, in := spatial(x)
	if int(w.Dims[1])*cv.groups != channels || int(w.Dims[0])%cv.groups != 0 {
		fail("weights of dims %v do not fit %d channels in %d groups", w.Dims, channels, cv.groups)
	}
	kernel := int(ir.Count(w.Dims[2:]))
	cv.outC = int(w.Dims[0]) / cv.groups
	cv.ws = geometryOf(c, len(in), w.Dims[2:]).windows(in, false)
	cv.place = window.place
	cv.weightAt = func(ch, t int) int { return ch*kernel + t }
	cv.outStep = cv.inC * kernel
	cv.groupStep = cv.outC * cv.outStep
	return one(cv.run(c))
}

// convTranspose computes the gradient of conv: each input element is spread over the taps' places. It
// is summed the other way round, from the output: every tap either hits an input place or none.
func convTranspose(c *call) []*ir.Tensor {
	x, w := c.arg(0), c.arg(1)
	cv := convOf(c, x, w)
	_, channels, in := spatial(x)
	if int(w.Dims[0]) != channels || channels%cv.groups != 0 {
		fail("weights of dims %v do not fit %d channels in %d groups", w.Dims, channels, cv.groups)
	}
	kernel := int(ir.Count(w.Dims[2:]))
	cv.outC = int(w.Dims[1])
	cv.ws = geometryOf(c, len(in), w.Dims[2:]).transposed(in)
	cv.place = window.sourceOf
	cv.weightAt = func(ch, t int) int { return ch*cv.outC*kernel + t }
	cv.outStep = kernel
	cv.groupStep = cv.inC * cv.outC * kernel
	return one(cv.run(c))
}

func convOf(c *call, x, w *ir.Tensor) *convolution {
	_, channels, in := spatial(x)
	if len(w.Dims) != len(in)+2 {
		fail("weights have dims %v, X has dims %v", w.Dims, x.Dims)
	}
	group := c.Attr("group").I
	if group < 1 || group > max(int64(channels), 1) || channels%int(group) != 0 {
		fail("%d channels in %d groups", channels, group)
	}
	return &convolution{x: x, w: w, bias: c.opt(2), groups: int(group), inC: channels / int(group)}
}

func (cv *convolution) run(c *call) *ir.Tensor {
	batch := cv.x.Dims[0]
	cv.out = c.alloc(cv.x.DType, outDims([]int64{batch, int64(cv.outC * cv.groups)}, cv.ws))
	n := 1
	for _, w := range cv.ws {
		n *= w.out
	}
	bias := make([]float64, cv.outC*cv.groups)
	if cv.bias != nil {
		bias = channelValues(cv.bias, len(bias))
	}
	taps := int(ir.Count(cv.w.Dims[2:]))
	p := product{
		batch: int(batch) * cv.groups, m: cv.outC, n: n, k: cv.inC * taps,
		packA: cv.weightPacker(taps), packB: cv.inputPacker(taps),
		done: func(b, i, j, rows, cols int, acc []float64) {
			for r := range rows {
				sums := acc[r*cols : (r+1)*cols]
				off := bias[b%cv.groups*cv.outC+i+r]
				for x := range sums {
					sums[x] += off
				}
				store(cv.out, (b*cv.outC+i+r)*n+j, sums)
			}
		},
	}
	p.run(c)
	return cv.out
}

// weightPacker packs output channels as lanes, input channels and taps as depth.
func (cv *convolution) weightPacker(taps int) func(dst []float64, batch, lane0, n, depth0, d int) {
	at := make([]int, cv.inC*taps)
	for i := range at {
		at[i] = cv.weightAt(i/taps, i%taps)
	}
	if v, ok := cv.w.Data.([]float32); ok {
		return packIndexed(cv, v, at)
	}
	return packIndexed(cv, floats(cv.w), at)
}

func packIndexed[T float32 | float64](cv *convolution, w []T, at []int) func(dst []float64, batch, lane0, n, depth0, d int) {
	return func(dst []float64, batch, lane0, n, depth0, d int) {
		group := w[batch%cv.groups*cv.groupStep:]
		for i := range n {
			to, from := i/panelRows*panelRows*d+i%panelRows, group[(lane0+i)*cv.outStep:]
			for _, x := range at[depth0 : depth0+d] {
				dst[to] = float64(from[x])
				to += panelRows
			}
		}
	}
}

// inputPacker packs output places as lanes, input channels and taps as depth.
func (cv *convolution) inputPacker(taps int) func(dst []float64, batch, lane0, n, depth0, d int) {
	if v, ok := cv.x.Data.([]float32); ok {
		return packGathered(cv, v, taps)
	}
	return packGathered(cv, floats(cv.x), taps)
}

func packGathered[T float32 | float64](cv *convolution, x []T, taps int) func(dst []float64, batch, lane0, n, depth0, d int) {
	last := len(cv.ws) - 1
	tables := make([][]int, len(cv.ws))
	plane := 1 // elements of an input channel
	for i, w := range cv.ws {
		tables[i] = w.table(cv.place)
		plane *= w.in
	}
	row := cv.ws[last]
	return func(dst []float64, batch, lane0, n, depth0, d int) {
		for j := 0; j < n; {
			// A run of output places of one row: only the last coordinate moves.
			o := (lane0 + j) % row.out
			run := min(row.out-o, n-j)
			for i := range d {
				ch, tap := (depth0+i)/taps, (depth0+i)%taps
				from := (batch*cv.inC + ch) * plane
				base, inside := cv.rowBase(tables, (lane0+j)/row.out, tap/row.kernel)
				along := tables[last][o*row.kernel+tap%row.kernel:]
				gatherRun(dst, x[from:from+plane], base, inside, along, row.kernel, j, run, i, d)
			}
			j += run
		}
	}
}

// gatherRun packs run elements of one input row: element r is at along[r·kernel], 0 in the padding.
func gatherRun[T float32 | float64](dst []float64, plane []T, base int, inside bool, along []int, kernel, j, run, i, d int) {
	for r := range run {
		v := 0.0
		if inside {
			if s := along[r*kernel]; s >= 0 {
				v = float64(plane[base+s])
			}
		}
		lane := j + r
		dst[(lane/panelCols*d+i)*panelCols+lane%panelCols] = v
	}
}

// rowBase finds the input row that output row o and tap see: flat indices over all axes but the last.
func (cv *convolution) rowBase(tables [][]int, o, tap int) (base int, inside bool) {
	step := cv.ws[len(cv.ws)-1].in
	for a := len(cv.ws) - 2; a >= 0; a-- {
		w := cv.ws[a]
		s := tables[a][o%w.out*w.kernel+tap%w.kernel]
		if s < 0 {
			return 0, false
		}
		base += s * step
		step *= w.in
		o /= w.out
		tap /= w.kernel
	}
	return base, true
}
