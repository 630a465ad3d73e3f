package roperator

import (
	"encoding/binary"
	"math"

	"github.com/rammerc/rammerc/ir"
)

// tensorBytes is t's elements in little-endian order.
func tensorBytes(t *ir.Tensor) []byte {
	out := make([]byte, 0, t.Bytes())
	le := binary.LittleEndian
	switch d := t.Data.(type) {
	case []float32:
		return float32Bytes(d)
	case []float64:
		for _, x := range d {
			out = le.AppendUint64(out, math.Float64bits(x))
		}
	case []uint16:
		for _, x := range d {
			out = le.AppendUint16(out, x)
		}
	case []int8:
		for _, x := range d {
			out = append(out, byte(x))
		}
	case []int16:
		for _, x := range d {
			out = le.AppendUint16(out, uint16(x))
		}
	case []int32:
		for _, x := range d {
			out = le.AppendUint32(out, uint32(x))
		}
	case []int64:
		for _, x := range d {
			out = le.AppendUint64(out, uint64(x))
		}
	case []uint8:
		return append(out, d...)
	case []uint32:
		for _, x := range d {
			out = le.AppendUint32(out, x)
		}
	case []uint64:
		for _, x := range d {
			out = le.AppendUint64(out, x)
		}
	case []bool:
		for _, x := range d {
			if x {
				out = append(out, 1)
			} else {
				out = append(out, 0)
			}
		}
	default:
		panic("BUG: no bytes for " + t.DType.String())
	}
	return out
}

func float32Bytes(d []float32) []byte {
	out := make([]byte, 4*len(d))
	for i, x := range d {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(x))
	}
	return out
}
