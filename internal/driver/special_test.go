package driver

import (
	"fmt"
	"strings"
	"testing"
)

// Special programs are made for what --typical names or, with auto, for smaller values of lists and fractions of the
// largest extent.
func TestSpecialExtents(t *testing.T) {
	for _, c := range []struct{ dims, typical, want string }{
		{"seq=1..512", "auto", "[[16] [32] [64] [128] [256]]"},
		{"seq=1..5", "auto", "[[2] [3]]"},
		{"seq=100..300", "auto", "[[150]]"},
		{"past=0..8", "auto", "[[2] [4]]"},
		{"past=0..8 seq=0..1", "auto", "[[2 1]]"},
		{"batch=1,4,16", "auto", "[[1] [4]]"},
		{"batch=1..8 seq=1..64", "auto", "[[1 4] [1 16] [8 4] [1 64] [8 16]]"},
		{"batch=1,4 seq=100..200", "auto", "[[1 100] [1 200] [4 100]]"},
		{"a=1..4 b=1..8 c=1..64", "auto", "[[4 8 4] [4 8 16]]"},
		{"seq=1..512", "", "[]"},
		{"seq=1..512", "seq=128,32,512", "[[32] [128]]"},
		{"batch=1,4,16 seq=1..8", "batch=1 seq=3", "[[1 3] [1 8] [16 3]]"},
		{"seq=1..512", "seq=7", "[[7]]"},
		{"seq=1..512", "batch=3", "no dim of that name has a range"},
		{"seq=1..512", "seq=513", "--typical seq=513: the dim has the range seq=1..512"},
		{"batch=1,4,16", "batch=3", "--typical batch=3: the dim has the range batch=1,4,16"},
		{"seq=1..512", "seq=3..9", "want NAME=32,128, or auto or none alone"},
		{"a=1..9 b=1..9", "a=1,2,3,4 b=1,2,3,4", "asks for 24 special programs, a library has at most 16"},
	} {
		o := &Compilation{}
		o.opt.Dims, o.opt.Typical = strings.Fields(c.dims), strings.Fields(c.typical)
		points, err := o.specialExtents()
		got := fmt.Sprint(points)
		if err != nil {
			got = err.Error()
		}
		if got != c.want && !(err != nil && strings.Contains(got, c.want)) {
			t.Errorf("%s, --typical %s: %s, want %s", c.dims, c.typical, got, c.want)
		}
	}
}
