package roperator

import (
	"math/rand"
	"testing"

	"github.com/rammerc/rammerc/ir"
)

// addressSet lists the addresses of a box of a view, straight from the definition.
func addressSet(v View, lo, hi []int64) map[int64]bool {
	set := map[int64]bool{}
	var walk func(d int, at int64)
	walk = func(d int, at int64) {
		if d == len(v.Shape) {
			set[at] = true
			return
		}
		for i := lo[d]; i < hi[d]; i++ {
			walk(d+1, at+i*v.Strides[d])
		}
	}
	walk(0, v.Offset)
	return set
}

// boxSet lists the addresses that boxes hold, and whether two boxes share one.
func boxSet(b *Buffer, boxes []Box) (set map[int64]bool, shared bool) {
	set = map[int64]bool{}
	for _, x := range boxes {
		var walk func(d int8, at int64)
		walk = func(d int8, at int64) {
			if d == x.N {
				shared = shared || set[at]
				set[at] = true
				return
			}
			for i := x.Lo[d]; i < x.Hi[d]; i++ {
				walk(d+1, at+int64(i)*b.Canon[d])
			}
		}
		walk(0, 0)
	}
	return set, shared
}

// TestBoxesCoverAddresses draws buffers with several views and checks that the boxes of random parts
// hold the addressed elements: all of them, and only them where the conversion calls itself exact.
func TestBoxesCoverAddresses(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	exactCount := 0
	const rounds = 20000
	for range rounds {
		dims := make([]int64, 1+r.Intn(4))
		for i := range dims {
			dims[i] = int64(1 + r.Intn(6))
		}
		buf := &Buffer{Elems: ir.Count(dims), DType: ir.Float32}
		views := []View{Contiguous(buf, dims)}
		for range 3 {
			v := views[r.Intn(len(views))]
			switch r.Intn(3) {
			case 0:
				perm := make([]int64, len(v.Shape))
				for i, p := range r.Perm(len(perm)) {
					perm[i] = int64(p)
				}
				v = v.Permute(perm)
			case 1:
				d := r.Intn(len(v.Shape))
				from := int64(r.Intn(int(v.Shape[d])))
				v = v.Slice(d, from, 1+int64(r.Intn(int(v.Shape[d]-from))))
			case 2:
				if w, ok := v.Reshape([]int64{v.Count()}); ok {
					v = w
				}
			}
			views = append(views, v)
		}
		buf.canonise(views[:1], views[1:])
		v := views[r.Intn(len(views))]
		lo, hi := make([]int64, len(v.Shape)), make([]int64, len(v.Shape))
		for d, n := range v.Shape {
			lo[d] = int64(r.Intn(int(n)))
			hi[d] = lo[d] + 1 + int64(r.Intn(int(n-lo[d])))
		}
		boxes, exact := v.appendBoxes(nil, lo, hi)
		want := addressSet(v, lo, hi)
		got, shared := boxSet(buf, boxes)
		for a := range want {
			if !got[a] {
				t.Fatalf("view %+v [%v:%v], canon %v: address %d is in no box of %v", v, lo, hi, buf.Canon, a, boxes)
			}
		}
		if exact {
			exactCount++
			if len(got) != len(want) || shared {
				t.Fatalf("view %+v [%v:%v], canon %v: %v holds %d addresses (shared: %v), want %d", v, lo, hi,
					buf.Canon, boxes, len(got), shared, len(want))
			}
		}
	}
	if exactCount < rounds*3/4 {
		t.Errorf("only %d of %d conversions are exact", exactCount, rounds)
	}
}

// Where coordinates cannot say which elements a part has, the boxes hold all addresses between its first and its last.
func TestInexactAndReversedParts(t *testing.T) {
	buf := &Buffer{Elems: 24, DType: ir.Float32, Canon: []int64{4, 1}}
	for _, c := range []struct {
		what          string
		offset, count int64
		stride        int64
		exact         bool
	}{
		{"a stride that is no weight", 1, 4, 3, false},
		{"the same to the end of the buffer", 2, 8, 3, false},
		{"a stride of -1", 10, 7, -1, true},
		{"a stride of -4", 22, 5, -4, true},
		{"a stride of -3", 20, 5, -3, false},
	} {
		v := View{Buf: buf, Offset: c.offset, Shape: []int64{c.count}, Strides: []int64{c.stride}}
		lo, hi := []int64{0}, []int64{c.count}
		boxes, exact := v.appendBoxes(nil, lo, hi)
		if exact != c.exact {
			t.Errorf("%s: exact is %v", c.what, exact)
		}
		want := addressSet(v, lo, hi)
		got, _ := boxSet(buf, boxes)
		for a := range want {
			if !got[a] {
				t.Errorf("%s: %v lack address %d", c.what, boxes, a)
			}
		}
		if exact && len(got) != len(want) {
			t.Errorf("%s: %v hold %d addresses, want %d", c.what, boxes, len(got), len(want))
		}
	}
}
