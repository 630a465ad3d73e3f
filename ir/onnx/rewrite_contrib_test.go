package onnx_test

import (
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/ir/eval"
	"github.com/rammerc/rammerc/ir/onnx/onnxpb"
)

// TestMatMulNBits compares weights of 4 and 8 bits, whose last block is padded, with the definition: each weight less the
// zero point of its block, times its scale.
func TestMatMulNBits(t *testing.T) {
	const k, n, block = 40, 3, 16
	for _, bits := range []int{4, 8} {
		for _, points := range []bool{false, true} {
			blocks, mask := (k+block-1)/block, 1<<bits-1
			code := func(i int) int { return i * 7919 % 251 & mask }
			packed := func(count, perRow int) []byte {
				rowBytes := (perRow*bits + 7) / 8
				out := make([]byte, count/perRow*rowBytes)
				for i := range count {
					bit := i % perRow * bits
					out[i/perRow*rowBytes+bit/8] |= byte(code(i) << (bit % 8))
				}
				return out
			}
			scales := make([]float32, n*blocks)
			for i := range scales {
				scales[i] = float32(i+1) / 8
			}
			b := packed(n*blocks*block, blocks*block)
			b4 := ir.FromSlice(ir.Uint8, b, n, int64(blocks), int64(block*bits/8))
			inits := []*onnxpb.TensorProto{constant("b", b4),
				constant("s", ir.FromSlice(ir.Float32, scales, int64(len(scales))))}
			in := "x,b,s"
			if points {
				z := packed(n*blocks, blocks)
				inits, in = append(inits, constant("z", ir.FromSlice(ir.Uint8, z, int64(len(z))))), in+",z"
			}
			m := newModel(17).in("x float32[2,40]").out("y float32[2,3]").init(inits...).node(
				"y = com.microsoft::MatMulNBits("+in+")", attr("K", k), attr("N", n), attr("bits", bits),
				attr("block_size", block))
			m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{
				Domain: proto.String("com.microsoft"), Version: proto.Int64(1),
			})
			g := m.mustParse(t).Graph
			x := wave(2, k)
			got, err := eval.Run(g, map[string]*ir.Tensor{"x": x}, eval.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i, y := range ir.Slice[float32](got["y"]) {
				want := 0.0
				for j := range k {
					at := i%n*blocks + j/block
					zero := 1 << (bits - 1)
					if points {
						zero = code(at)
					}
					w := float64(code(i%n*blocks*block+j)-zero) * float64(scales[at])
					want += float64(ir.Slice[float32](x)[i/n*k+j]) * w
				}
				if math.Abs(float64(y)-want) > 1e-4*math.Abs(want) {
					t.Errorf("%d bits, zero points %t: y[%d] is %g, want %g", bits, points, i, y, want)
				}
			}
		}
	}
}

// wave is a matrix of small integers.
func wave(rows, columns int64) *ir.Tensor {
	x := ir.NewTensor(ir.Float32, rows, columns)
	for i := range ir.Slice[float32](x) {
		ir.Slice[float32](x)[i] = float32(i%11) - 5
	}
	return x
}

// constant is an initializer.
func constant(name string, x *ir.Tensor) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{
		Name: proto.String(name), Dims: x.Dims, DataType: proto.Int32(int32(x.DType.ONNX())), RawData: x.LittleEndian(),
	}
}
