package conv

import "testing"

// TestTapGrid looks up what every position of the output meets under every tap: the place of the grid to which the
// table of conv_taps leads must be the pixel of the input that the definition of a convolution says, or a zero.
func TestTapGrid(t *testing.T) {
	for _, c := range []convolution{
		{kernel: [3]int64{1, 3, 3}, stride: [3]int64{1, 1, 1}, pad: [3]int64{0, 1, 1}, in: [3]int64{2, 5, 6}},
		{kernel: [3]int64{1, 3, 2}, stride: [3]int64{1, 1, 1}, pad: [3]int64{0, 2, 0}, in: [3]int64{3, 4, 3}},
		{kernel: [3]int64{1, 1, 7}, stride: [3]int64{1, 1, 1}, pad: [3]int64{0, 0, 3}, in: [3]int64{2, 4, 5}},
		{kernel: [3]int64{1, 3, 3}, stride: [3]int64{1, 2, 2}, pad: [3]int64{0, 1, 1}, in: [3]int64{2, 7, 8}},
		{kernel: [3]int64{1, 4, 3}, stride: [3]int64{1, 2, 2}, pad: [3]int64{0, 2, 0}, in: [3]int64{2, 9, 8}},
		{kernel: [3]int64{1, 2, 3}, stride: [3]int64{1, 1, 2}, pad: [3]int64{0, 0, 1}, in: [3]int64{2, 6, 7}},
	} {
		c.dilation = [3]int64{1, 1, 2}
		c.out[0] = c.in[0]
		for i := 1; i < 3; i++ { // one more row and column of padding behind than in front
			c.out[i] = (c.in[i]+2*c.pad[i]+1-(c.kernel[i]-1)*c.dilation[i]-1)/c.stride[i] + 1
		}
		g := c.tapGrid()
		const pixels = 1000
		table := g.table(pixels)
		for p := range c.positions() {
			n, h, w := p/c.out[2]/c.out[1], p/c.out[2]%c.out[1], p%c.out[2]
			place := (n*g.rows+h)*g.columns + w
			if g.positions(place) != p || g.positions(place+1) != p+1 || place >= g.places() {
				t.Fatalf("%+v: place %d of %d has %d positions before it, not %d", c, place, g.places(), g.positions(place), p)
			}
			for tap := range c.taps() {
				_, fh, fw := c.tap(tap)
				want := [3]int64{n, h*c.stride[1] - c.pad[1] + fh*c.dilation[1], w*c.stride[2] - c.pad[2] + fw*c.dilation[2]}
				phase, at := table[tap]/pixels, table[tap]%pixels-g.before+place
				got := [3]int64{floorDiv(at, g.rows*g.columns),
					(at/g.columns%g.rows)*c.stride[1] + phase/c.stride[2], at%g.columns*c.stride[2] + phase%c.stride[2]}
				if outside(c, want) {
					if at >= 0 && !outside(c, got) {
						t.Errorf("%+v: position %d meets pixel %v under tap %d, not a zero", c, p, got, tap)
					}
				} else if got != want {
					t.Errorf("%+v: position %d meets pixel %v under tap %d, not %v", c, p, got, tap, want)
				}
			}
		}
	}
}

// outside reports whether an image, row and column are none of the input's.
func outside(c convolution, at [3]int64) bool {
	for i, x := range at {
		if x < 0 || x >= c.in[i] {
			return true
		}
	}
	return false
}
