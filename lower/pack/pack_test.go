package pack

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/roperator"
)

// A 2×3 matrix goes column by column into a block of 4 elements a column, in the block's element type.
func TestPackTypes(t *testing.T) {
	values := []float32{1, -2, 0.5, 3, 65504, 1.0 / 3}
	le := binary.LittleEndian
	column := []int{0, 3, 1, 4, 2, 5}
	for _, c := range []struct {
		from, to ir.DType
		element  func(x float32) []byte // of the source, nil for float32
		want     func(x float32) []byte
	}{
		{ir.Float32, ir.Float32, nil, func(x float32) []byte { return le.AppendUint32(nil, math.Float32bits(x)) }},
		{ir.Float32, ir.BFloat16, nil, func(x float32) []byte {
			return le.AppendUint16(nil, map[float32]uint16{1: 0x3f80, -2: 0xc000, 0.5: 0x3f00, 3: 0x4040, 65504: 0x4780,
				1.0 / 3: 0x3eab}[x])
		}},
		{ir.Float32, ir.Float16, nil, func(x float32) []byte {
			return le.AppendUint16(nil, map[float32]uint16{1: 0x3c00, -2: 0xc000, 0.5: 0x3800, 3: 0x4200, 65504: 0x7bff,
				1.0 / 3: 0x3555}[x])
		}},
		{ir.Int8, ir.Float16, func(x float32) []byte { return []byte{byte(int8(x))} }, func(x float32) []byte {
			return le.AppendUint16(nil, ir.ToFloat16(float32(int8(x))))
		}},
		{ir.Int8, ir.Int8, func(x float32) []byte { return []byte{byte(int8(x))} },
			func(x float32) []byte { return []byte{byte(int8(x))} }},
		{ir.Int64, ir.Int64, func(x float32) []byte { return le.AppendUint64(nil, uint64(int64(x))) },
			func(x float32) []byte { return le.AppendUint64(nil, uint64(int64(x))) }},
	} {
		var src []byte
		for _, x := range values {
			if c.element == nil {
				src = le.AppendUint32(src, math.Float32bits(x))
			} else {
				src = append(src, c.element(x)...)
			}
		}
		buf := &roperator.Buffer{Kind: roperator.Const, DType: c.from, Elems: 6, Data: func() []byte { return src }}
		v := roperator.Contiguous(buf, []int64{2, 3})
		p := New(v, 12, c.to)
		rows := NewAxis(2, func(i int64) (int64, int64) { return i * v.Strides[0], i })
		cols := NewAxis(3, func(j int64) (int64, int64) { return j * v.Strides[1], 4 * j })
		p.Put(0, 0, rows, cols)
		var want []byte
		for j := range 3 {
			want = append(want, c.want(values[column[2*j]])...)
			want = append(want, c.want(values[column[2*j+1]])...)
			want = append(want, make([]byte, 2*c.to.Size())...)
		}
		if !bytes.Equal(p.Bytes(), want) {
			t.Errorf("%v as %v: %x, want %x", c.from, c.to, p.Bytes(), want)
		}
	}
}
