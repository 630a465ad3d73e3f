package roperator

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rammerc/rammerc/internal/diag"
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/rkernels"
)

// An operand is replaceable only if every read of it is pointwise and sees it as the result is seen.
func TestReplaceable(t *testing.T) {
	dense := func(elems int64, d ir.DType) View {
		return Contiguous(&Buffer{Elems: elems, DType: d}, []int64{elems / 4, 4})
	}
	out := dense(32, ir.Float32)
	same, other, half := dense(32, ir.Float32), dense(32, ir.Int32), dense(32, ir.Float16)
	turned := View{Buf: dense(32, ir.Float32).Buf, Shape: []int64{8, 4}, Strides: []int64{1, 8}}
	row := View{Buf: dense(4, ir.Float32).Buf, Shape: []int64{8, 4}, Strides: []int64{0, 1}}
	at := func(v View) Access { return Access{View: v, Pointwise: true} }
	for _, c := range []struct {
		name  string
		reads []Access
		want  []*Buffer
	}{
		{"nothing is read", nil, nil},
		{"a pointwise read", []Access{at(same)}, []*Buffer{same.Buf}},
		{"another type of the same size", []Access{at(other)}, []*Buffer{other.Buf}},
		{"two operands", []Access{at(same), at(other)}, []*Buffer{same.Buf, other.Buf}},
		{"the same operand twice", []Access{at(same), at(same)}, []*Buffer{same.Buf}},
		{"a read that is not pointwise", []Access{{View: same}}, nil},
		{"one that is and one that is not", []Access{at(same), {View: same}}, nil},
		{"elements of another size", []Access{at(half)}, nil},
		{"another order", []Access{at(turned)}, nil},
		{"a row for all rows", []Access{at(row)}, nil},
	} {
		cand := &Candidate{Reads: c.reads, Writes: []Access{{View: out}}}
		result, got := cand.Replaceable()
		if len(got) != len(c.want) || len(got) > 0 && result != out.Buf {
			t.Errorf("%s: %v", c.name, got)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: operand %d is another one", c.name, i)
			}
		}
		cand.Writes = append(cand.Writes, Access{View: dense(32, ir.Float32)})
		if _, got := cand.Replaceable(); got != nil {
			t.Errorf("%s: replaceable though two buffers are written", c.name)
		}
	}
}

const manifest = `
name: test_kernel
family: test
type: rk::TestKernel
doc: stands for any rKernel
serves: [Test]
threads: 32
shared: 0
registers: 32
`

// A pointwise read of another part than is written is a defect.
func TestVerifyPointwise(t *testing.T) {
	x := Contiguous(&Buffer{Name: "x", Elems: 8, DType: ir.Float32}, []int64{8})
	y := Contiguous(&Buffer{ID: 1, Name: "y", Elems: 8, DType: ir.Float32}, []int64{8})
	half := func(of int) func(task int, lo, hi []int64) {
		return func(task int, lo, hi []int64) { lo[0], hi[0] = int64(4*(task^of)), int64(4*(task^of)+4) }
	}
	kernels, err := rkernels.Load(fstest.MapFS{"test/k.yaml": {Data: []byte(manifest)}, "test/k.cuh": {}})
	if err != nil {
		t.Fatal(err)
	}
	check := func(of int) error {
		var l diag.List
		op := &ROperator{Name: "op"}
		verifyPointwise(&l, op, &Candidate{Tasks: 2, Inst: kernels[0].Bind(), Reads: []Access{{View: x, Box: half(of), Pointwise: true}},
			Writes: []Access{{View: y, Box: half(0)}}})
		return l.Err()
	}
	if err := check(0); err != nil {
		t.Error(err)
	}
	if err := check(1); err == nil || !strings.Contains(err.Error(), "pointwise operand x") {
		t.Errorf("rTasks read each other's part: %v", err)
	}
}
