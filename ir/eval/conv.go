package eval

import (
	"github.com/rammerc/rammerc/ir"
)

// convolution computes Conv and ConvTranspose as one matrix product for each batch and group:
//
//	[output channels] × [input channels · taps]   the weights
//	[input channels · taps] × [output places]     the input elements that each output place reads
//
// A tap is an element of the kernel, counted flat over all spatial axes. The second matrix is never made as a whole:
// the product asks for blocks of it.
type convolution struct {
	x, w, bias, out *ir.Tensor
	groups          int
	inC, outC       int      // channels of one group
	ws              []window // by spatial axis
	// place is the input place that output place o reads with tap k on an axis, -1 if there is none.
	place func(w window, o, k int) int
	// weightAt is the index in w of the weight for input channel c and tap t of output channel 0 of group 0. The next
	// output channel is outStep elements further, the next group groupStep.
	weightAt           func(c, t int) int
	outStep, groupStep int
}

// conv computes Y[n,m] = Σ_c W[m,c] ⋆ X[n,c] + B[m], where ⋆ is the cross-correlation over the spatial axes.
func conv(c *call) []*ir.Tensor { return one(convolve(c, c.arg(0), c.arg(1))) }

// convolve is the convolution of x and w, with c's attributes and its bias, in x's type.
func convolve(c *call, x, w *ir.Tensor) *ir.Tensor {
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
	return cv.run(c)
}

// convTranspose is the gradient of conv with respect to its input: each input element, times the weights, is added to
// the output places of its taps. It is computed from the output's side, where each tap of an output place belongs to
// one input place or to none (window.sourceOf). So it is a matrix product as conv is.
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

// convOf reads what Conv and ConvTranspose have in common.
func convOf(c *call, x, w *ir.Tensor) *convolution {
	_, channels, in := spatial(x)
	if len(w.Dims) != len(in)+2 {
		fail("weights of dims %v do not fit X of dims %v", w.Dims, x.Dims)
	}
	group := c.Attr("group").I
	if group < 1 || group > max(int64(channels), 1) || channels%int(group) != 0 {
		fail("%d channels do not divide into %d groups", channels, group)
	}
	return &convolution{x: x, w: w, bias: c.opt(2), groups: int(group), inC: channels / int(group)}
}

// run computes the product, adds the bias to its sums in float64, and stores them rounded.
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

// weightPacker packs the weights for product: lanes are output channels, depths are input channels and taps.
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

// packIndexed packs weights: at[i] is the index of depth i relative to the weights of an output channel.
func packIndexed[T float32 | float64](cv *convolution, w []T, at []int) func(dst []float64, batch, lane0, n, depth0,
	d int) {
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

// inputPacker packs the input for product: lanes are output places, depths are input channels and taps.
func (cv *convolution) inputPacker(taps int) func(dst []float64, batch, lane0, n, depth0, d int) {
	if v, ok := cv.x.Data.([]float32); ok {
		return packGathered(cv, v, taps)
	}
	return packGathered(cv, floats(cv.x), taps)
}

// packGathered packs inputs. Tables of input places are computed once for each axis, since all batches, channels and
// rows use the same.
func packGathered[T float32 | float64](cv *convolution, x []T, taps int) func(dst []float64, batch, lane0, n, depth0,
	d int) {
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

// gatherRun packs run elements of one row of an input plane. Element r is at base + along[r·kernel]; it is 0 where that
// lies in the padding, and everywhere if the row does (inside is false).
func gatherRun[T float32 | float64](dst []float64, plane []T, base int, inside bool, along []int, kernel, j, run, i,
	d int) {
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

// rowBase is the index in an input plane of the row that output row o reads with a tap. Rows run along the last axis; o
// and tap are flat indices over the other axes. inside is false if the row lies in the padding.
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
