package golden

import (
	"testing"
)

func TestMap(t *testing.T) {
	Check(t, []Case{
		{Name: "relu", In: "%x: float32[2,3,5]", Body: "%y = Relu(%x)", Out: "%y"},
		{Name: "add packs", In: "%x: float32[4,64], %b: float32[64]", Body: "%y = Add(%x, %b)", Out: "%y"},
		{Name: "add column", In: "%x: float32[40,64], %b: float32[40,1]", Body: "%y = Add(%x, %b)", Out: "%y"},
		{Name: "scalar", In: "%x: float32[]", Body: "%y = Exp(%x)", Out: "%y"},
		{Name: "transposed", In: "%x: float32[130,140], %z: float32[140,130]",
			Body: "%p = Transpose(%x)\n%y = Sub(%p, %z)", Out: "%y"},
		{Name: "copy transposed", In: "%x: float32[3,70,80]", Body: "%y = Transpose(%x) {perm = [0, 2, 1]}", Out: "%y"},
		{Name: "several tasks", In: "%x: float32[5000]", Body: "%y = Sigmoid(%x)", Out: "%y"},
	})
}
