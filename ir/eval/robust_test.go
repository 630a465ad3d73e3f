package eval

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

var someTypes = []ir.DType{
	ir.Float32, ir.Float32, ir.Float64, ir.Float16, ir.Int64, ir.Int64, ir.Int32, ir.Uint8, ir.Uint64, ir.Bool,
}

// TestNoPanic evaluates every operator on random tensors with random attributes. The result must be outputs or an error
// of the node, whatever the inputs are.
func TestNoPanic(t *testing.T) {
	const tries = 1500
	r := random(1)
	for i := range ir.Ops {
		op := &ir.Ops[i]
		worked := 0
		for range tries {
			if tryRandom(t, r, op) {
				worked++
			}
		}
		if worked == 0 && op.Kind != ir.KindControl && op.Kind != ir.KindFused && op.Kind != ir.KindRecurrent &&
			op.Name != "Attention" {
			t.Logf("no random node of %s.%s was valid", op.Domain, op.Name)
		}
	}
}

func tryRandom(t *testing.T, r *rand.Rand, op *ir.Op) bool {
	rank, d := r.IntN(5), someTypes[r.IntN(len(someTypes))]
	extents := [][]int64{{2}, {1, 2}, {1, 2, 2, 2, 3, 4, 0}}[r.IntN(3)]
	var in []*ir.Tensor
	for i := range max(len(op.Inputs), 1) {
		p := op.InputPort(i)
		if p == nil || p.Optional && r.IntN(2) == 0 {
			in = append(in, nil)
			continue
		}
		in = append(in, randomTensor(r, rank, extents, d, p))
	}
	n := nodeOf(op.Domain, op.Name, randomAttrs(r, op), max(1, len(op.Outputs)), in)
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s.%s: panic: %v\nattributes %+v", op.Domain, op.Name, p, n.Attrs)
			for i, x := range in {
				if x != nil {
					t.Errorf("input %d: %v %v %v", i, x.DType, x.Dims, x.Data)
				}
			}
			panic(p)
		}
	}()
	_, err := NodeWith(n, in, Options{MaxBytes: 1 << 20})
	var ne *NodeError
	if err != nil && !errors.As(err, &ne) {
		t.Errorf("%s: error %v names no node", op.Name, err)
	}
	return err == nil
}

// randomTensor makes a random tensor. The tensors of one node often have the same rank and element type.
func randomTensor(r *rand.Rand, rank int, extents []int64, d ir.DType, p *ir.Port) *ir.Tensor {
	if r.IntN(3) == 0 {
		rank = r.IntN(5)
	}
	if p.Types != nil && r.IntN(8) != 0 {
		ok := false
		for _, x := range p.Types {
			ok = ok || x == d
		}
		if !ok {
			d = p.Types[r.IntN(len(p.Types))]
		}
	}
	dims := make([]int64, rank)
	for i := range dims {
		dims[i] = extents[r.IntN(len(extents))]
	}
	t := ir.NewTensor(d, dims...)
	v := make([]int64, t.Len())
	for i := range v {
		v[i] = r.Int64N(6) - 2
		if r.IntN(50) == 0 {
			v[i] = extremes[r.IntN(len(extremes))]
		}
	}
	store(t, 0, v)
	return t
}

var extremes = []int64{-1 << 63, 1<<63 - 1, 1 << 40, -1 << 40, 1 << 31, 100}

func randomAttrs(r *rand.Rand, op *ir.Op) ir.Attrs {
	attrs := ir.Attrs{}
	for _, spec := range op.Attrs {
		if !spec.Required && r.IntN(2) == 0 {
			continue
		}
		attrs[spec.Name] = randomAttr(r, spec)
	}
	return attrs
}

func randomAttr(r *rand.Rand, spec ir.AttrSpec) ir.Attr {
	number := func() int64 {
		if r.IntN(40) == 0 {
			return extremes[r.IntN(len(extremes))]
		}
		return r.Int64N(5) - 1
	}
	list := make([]int64, r.IntN(5))
	for i := range list {
		list[i] = number()
	}
	switch spec.Kind {
	case ir.AttrInt:
		return ir.IntAttr(number())
	case ir.AttrInts:
		return ir.IntsAttr(list...)
	case ir.AttrFloat:
		return ir.FloatAttr(r.NormFloat64())
	case ir.AttrFloats:
		return ir.FloatsAttr(r.NormFloat64(), r.NormFloat64())
	case ir.AttrTensor:
		return ir.TensorAttr(f32([]float32{1}, 1))
	case ir.AttrString:
		if spec.Name == "equation" {
			return ir.StringAttr([]string{"ij,jk", "...i->...", "ii->i", "ij->ji", "i->", "a...,a...->...", "i.j",
				"->"}[r.IntN(8)])
		}
		if len(spec.Values) > 0 && r.IntN(8) != 0 {
			return ir.StringAttr(spec.Values[r.IntN(len(spec.Values))])
		}
		return ir.StringAttr("nonsense")
	}
	return ir.Attr{Kind: spec.Kind}
}
