package graphopt

import (
	"math"
	"sync"

	"github.com/rammerc/rammerc/ir"
)

// WeightBits are the forms in which Options.Weights asks for weights to be stored, by name.
var WeightBits = map[string]int{"": 0, "int8": 8, "int4": 4}

const (
	// mostRows is how many rows the products have whose time is that of reading their weights. Others gain nothing from
	// smaller weights.
	mostRows = 8
	// leastWeights is the number of weights from which on their bytes matter, and leastDepth the least length of sums: in
	// short ones the error of each weight counts more.
	leastWeights, leastDepth = 1 << 14, 128
	// weightBlock is how many weights along k share a scale where weights have 4 bits.
	weightBlock = 64
)

// quantizeWeights stores the constant weights of products of few rows in 8 or 4 bits, as Options.Weights asks. Weights of
// 8 bits have a scale for each column, those of 4 bits one for each column and block of 64 of its weights.
//
// Requires: constants folded into weights. Leaves: rammer.QuantizedMatMul, followed by an Add for a Gemm with a bias.
// Without Options.Weights it changes nothing.
func quantizeWeights(c *Context, g *ir.Graph) (bool, error) {
	bits := WeightBits[c.Opts.Weights]
	if bits == 0 {
		return false, nil
	}
	done := map[*ir.Tensor]*quantized{} // products may share their weights
	return c.sweepOnce(g, func(s *sweep, n *ir.Node) {
		w := s.plainWeights(n)
		if w == nil {
			return
		}
		key := w.Const
		if done[key] == nil {
			t := w.Const
			if n.Int("transB", 0) != 0 {
				t = compute("Transpose", nil, t)
			}
			done[key] = quantize(t, bits)
		}
		s.multiplyQuantized(n, done[key])
	}), nil
}

// plainWeights are the weights of a product of few rows that is worth quantising, nil for other nodes.
func (s *sweep) plainWeights(n *ir.Node) *ir.Value {
	if !isPlainProduct(n) && !n.IsInternal("RMSMatMul") {
		return nil
	}
	x, w := n.Inputs[0], n.Inputs[1]
	dims, ok := x.Shape.Consts()
	if !ok || len(dims) == 0 || constOf(x) != nil || constOf(w) == nil || w.DType != ir.Float32 ||
		len(w.Const.Dims) != 2 {
		return nil
	}
	if w.Const.Len() < leastWeights || dims[len(dims)-1] < leastDepth || ir.Count(dims[:len(dims)-1]) > mostRows {
		return nil
	}
	for _, x := range ir.Slice[float32](w.Const) {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil
		}
	}
	return w
}

// isPlainProduct reports MatMul, and Gemm that is a MatMul with a bias, whose second factor may be transposed.
func isPlainProduct(n *ir.Node) bool {
	if n.Is("MatMul") {
		return true
	}
	return n.Is("Gemm") && n.Int("transA", 0) == 0 && n.Float("alpha", 1) == 1 && n.Float("beta", 1) == 1
}

// quantized are weights [K,N] as integers, each column with a scale and perhaps a zero point for each block of k.
type quantized struct {
	w, scale, zero *ir.Tensor
	block          int64
	values         [3]*ir.Value // constants of the graph, once there are any
}

// multiplyQuantized makes n, a plain product, multiply by q.
func (s *sweep) multiplyQuantized(n *ir.Node, q *quantized, absorbed ...*ir.Node) {
	if q.values[0] == nil {
		base := n.Inputs[1].Name
		q.values[0], q.values[1] = s.constant(base+".codes", q.w), s.constant(base+".scales", q.scale)
		if q.zero != nil {
			q.values[2] = s.constant(base+".zeros", q.zero)
		}
	}
	in := []*ir.Value{n.Inputs[0], q.values[0], q.values[1]}
	if q.zero != nil {
		in = append(in, q.values[2])
	}
	attrs := ir.Attrs{"block": ir.IntAttr(q.block)}
	if epsilon, ok := n.Attrs["rms_epsilon"]; ok {
		attrs["rms_epsilon"] = epsilon
	}
	bias := n.Input(2)
	if bias == nil {
		s.become("QuantizedMatMul", attrs, in, absorbed...)
		n.Domain = ir.InternalDomain
		return
	}
	out := n.Outputs[0]
	y := s.add("QuantizedMatMul", attrs, n.Origins, out.DType, out.Shape, out.Name+".product", in...)
	y.Def.Domain = ir.InternalDomain
	s.become("Add", nil, []*ir.Value{y, bias}, absorbed...)
}

// quantize rounds float32 weights [K,N] to 8 or 4 bits.
func quantize(w *ir.Tensor, bits int) *quantized {
	k, n := w.Dims[0], w.Dims[1]
	q := &quantized{block: k}
	d := ir.Int8
	if bits == 4 {
		d, q.block = ir.Int4, min(k, weightBlock)
	}
	groups := (k + q.block - 1) / q.block
	q.w, q.scale = ir.NewTensor(d, k, n), ir.NewTensor(ir.Float32, groups, n)
	codes, scales := ir.Slice[int8](q.w), ir.Slice[float32](q.scale)
	x := ir.Slice[float32](w)
	var done sync.WaitGroup
	for g := range groups {
		done.Go(func() {
			first, last := g*q.block*n, min((g+1)*q.block, k)*n
			quantizeRows(codes[first:last], scales[g*n:(g+1)*n], x[first:last], bits)
		})
	}
	done.Wait()
	return q
}

// quantizeRows rounds rows x of weights that have a scale for each column.
func quantizeRows(codes []int8, scales, x []float32, bits int) {
	least, most := float64(-(int(1) << (bits - 1))), float64(int(1)<<(bits-1)-1)
	n := len(scales)
	extreme := make([]float32, n)
	for first := 0; first < len(x); first += n {
		for j, v := range x[first : first+n] {
			if abs32(v) > abs32(extreme[j]) {
				extreme[j] = v
			}
		}
	}
	for j, e := range extreme {
		scales[j] = scaleFor(e, bits)
	}
	for first := 0; first < len(x); first += n {
		for j, v := range x[first : first+n] {
			if s := scales[j]; s != 0 {
				code := math.RoundToEven(float64(v) / float64(s))
				codes[first+j] = int8(min(max(code, least), most))
			}
		}
	}
}

func abs32(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// scaleFor is the scale of weights whose greatest magnitude is that of extreme. For 8 bits it is such that the codes are
// from -127 to 127. Of 4 bits all codes from -8 to 7 are needed: the extreme one is -8, so that the scale may be negative;
// it is rounded to float16, in which it takes half of the bytes.
func scaleFor(extreme float32, bits int) float32 {
	if bits == 8 {
		return abs32(extreme) / 127
	}
	s := extreme / -8
	if rounded := float32(ir.FromFloat16(ir.ToFloat16(s))); abs32(s) > 0x1p-14 && abs32(s) < 65504 {
		return rounded
	}
	return s
}
