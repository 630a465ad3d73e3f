package conv

import (
	"testing"

	"github.com/rammerc/rammerc/roperator"
)

// TestRangeOfOffsets: kernels have offsets of 32 bits inside an image, and the input that is too large for them is
// refused. Its first dim, the images, may be as long as it likes.
func TestRangeOfOffsets(t *testing.T) {
	for _, c := range []struct {
		images, channels, pixels int64
		fits                     bool
	}{
		{1, 64, 1 << 20, true}, {1 << 12, 64, 1 << 20, true}, {1, 1 << 11, 1 << 20, false}, {1, 3, 1 << 30, false},
	} {
		shape := []int64{c.images, c.channels, 1, 1, c.pixels}
		x := roperator.Contiguous(&roperator.Buffer{Elems: c.images * c.channels * c.pixels}, shape)
		conv := convolution{x: x, kernel: [3]int64{1, 1, 1}, dilation: [3]int64{1, 1, 1}}
		if err := conv.checkRange(); (err == nil) != c.fits {
			t.Errorf("%v: %v", shape, err)
		}
	}
}
