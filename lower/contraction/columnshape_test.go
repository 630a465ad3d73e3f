package contraction

import (
	"testing"

	"github.com/rammerc/rammerc/device"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/target"
	"github.com/rammerc/rammerc/precision"
)

// TestColumn says which tiles products have that keep their right operand: an rTask has as many tiles as leave no
// multiprocessor without work for a turn, and at least four.
func TestColumn(t *testing.T) {
	spec, err := device.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	on, half := target.Of(spec), Elements{ir.Float16, ir.Float16, ir.Float16, ir.Float32}
	for _, c := range []struct {
		p              precision.Precision
		e              Elements
		m, n, k        int64
		bn, tall, room int64 // 0: none
	}{
		{precision.FP16, half, 100352, 64, 256, 64, 6, 32 << 10},
		{precision.FP16, half, 100352, 256, 64, 128, 12, 16 << 10},
		{precision.FP16, half, 25088, 384, 96, 128, 5, 32 << 10},
		{precision.FP16, half, 100352, 64, 1024, 64, 6, 128 << 10},
		{precision.FP16, half, 100352, 64, 1088, 0, 0, 0}, // B finds no room
		{precision.FP16, half, 100352, 128, 512, 0, 0, 0}, // likewise
		{precision.FP16, half, 25088, 64, 256, 0, 0, 0},   // two tiles an rTask
		{precision.TF32, Float32s, 100352, 64, 256, 64, 6, 64 << 10},
		{precision.TF32, Float32s, 25088, 384, 96, 128, 5, 64 << 10},
		{precision.TF32, Float32s, 100352, 64, 544, 0, 0, 0}, // B finds no room
		{precision.FP32, Float32s, 100352, 64, 64, 0, 0, 0},  // there are none of three products
	} {
		s, ok := Column(&on, c.p, c.e, c.m, c.n, c.k)
		if !ok {
			s = ColumnShape{}
		}
		if s.BN != c.bn || s.Tall != c.tall || s.Room != c.room {
			t.Errorf("%dx%d by %d: tiles of %d columns, %d of them, B in %d bytes, want %d, %d, %d",
				c.m, c.k, c.n, s.BN, s.Tall, s.Room, c.bn, c.tall, c.room)
		}
	}
}
