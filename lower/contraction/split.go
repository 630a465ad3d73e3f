package contraction

import (
	"encoding/binary"
	"math"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/arg"
	"github.com/rammerc/rammerc/rkernels"
	"github.com/rammerc/rammerc/roperator"
)

// Constants of three products are packed as parts of float16, hi and lo, of which each number takes the four bytes of
// its float32 (rkernels/common/split.cuh). Their scale, and padding, stand behind all blocks.
const (
	scaleBytes  = 16
	scaledPower = 14 // the largest number of a constant is brought to at least 2 to this power
	leastPower  = -112
	splitDepth  = 16 // values of k of a fragment of float16
)

// splitOrder is where in a fragment each value of k stands: a thread of a tile pairs those that are four apart.
var splitOrder = [splitDepth]int64{0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15}

// ForConstant are the shapes for a constant on the right, which those of three products take in parts of float16.
func ForConstant(shapes []TileShape) []TileShape {
	for i := range shapes {
		shapes[i].split = shapes[i].products == 3
	}
	return shapes
}

// PackedElements is how many elements a packed constant has whose blocks have so many.
func (s TileShape) PackedElements(blocks int64) int64 {
	if s.split {
		return blocks + scaleBytes/int64(ir.Float32.Size())
	}
	return blocks
}

// ScaleRef says where the scale of a packed constant stands. Other kernels than those of three products do not read it.
func (s TileShape) ScaleRef(packed roperator.View) rkernels.Field {
	if s.split {
		packed.Offset += packed.Shape[0] - s.PackedElements(0)
	}
	return arg.Ref("scale", packed)
}

// splitPacked makes the parts of float32 numbers that stand in blocks of [line][k], and puts the inverse of their scale
// behind them.
func (s TileShape) splitPacked(b []byte, lines int64) []byte {
	le := binary.LittleEndian
	power := largestPower(b)
	scale := float32(math.Ldexp(1, scaledPower-power))
	size := int64(ir.Float32.Size())
	block := make([]byte, size*lines*s.BK)
	for from := int64(0); from < int64(len(b)); from += int64(len(block)) {
		for i := range lines * s.BK {
			x := math.Float32frombits(le.Uint32(b[from+size*i:])) * scale
			hi := ir.ToFloat16(x)
			lo := uint16(0) // of infinities and NaNs too
			if rest := x - float32(ir.FromFloat16(hi)); rest == rest {
				lo = ir.ToFloat16(rest)
			}
			at, behind := s.splitPlace(lines, i/s.BK, i%s.BK)
			le.PutUint16(block[at:], hi)
			le.PutUint16(block[at+behind:], lo)
		}
		copy(b[from:], block)
	}
	tail := make([]byte, scaleBytes)
	le.PutUint32(tail, math.Float32bits(float32(math.Ldexp(1, power-scaledPower))))
	return append(b, tail...)
}

// largestPower is the exponent of the largest finite float32 number in b, but no less than leastPower, below which the
// scale would be infinite.
func largestPower(b []byte) int {
	const exponent, infinite, bias = 23, 0x7f800000, 127
	largest := uint32(0)
	for i := 0; i < len(b); i += ir.Float32.Size() {
		if x := binary.LittleEndian.Uint32(b[i:]) &^ (1 << 31); x < infinite {
			largest = max(largest, x)
		}
	}
	return max(int(largest>>exponent)-bias, leastPower)
}

// splitPlace is the byte of a block at which the hi part of a line's value of k stands, and how far behind it the lo
// part does. Blocks are [line][part][k], those of warp groups [part][16 bytes of k][line].
func (s TileShape) splitPlace(lines, line, k int64) (at, behind int64) {
	half := int64(ir.Float16.Size())
	place := k/splitDepth*splitDepth + splitOrder[k%splitDepth]
	if s.groups {
		run := PerLoad(ir.Float16)
		return half * (place/run*run*lines + line*run + place%run), half * lines * s.BK
	}
	return half * (2*line*s.BK + place), half * s.BK
}
