package golden

import (
	"testing"
)

// Rows behind others, along each axis, and a number that a run is told.
func TestExtents(t *testing.T) {
	Check(t, WithLayouts([]Case{
		{Name: "append rows", In: "%x: float32[2,37,8], %r: float32[2,3,8]", Out: "%y",
			Body: `%y = rammer.Append(%x, %r) {axis = 1}`},
		{Name: "append columns", In: "%x: int64[5,7], %r: int64[5,40]", Out: "%y",
			Body: `%y = rammer.Append(%x, %r) {axis = 1}`},
		{Name: "extent", In: "%x: int64[9]", Out: "%y", Body: `%n = rammer.Extent() {of = "n", extent = 77}
%y = Add(%x, %n)`},
	}))
}
