package ir

import (
	"math/rand"
	"testing"
)

// addresses lists v's addresses in row-major order of its shape.
func addresses(v Strided) []int64 {
	out := []int64{v.Offset}
	for d, n := range v.Shape {
		var next []int64
		for _, a := range out {
			for i := int64(0); i < n; i++ {
				next = append(next, a+i*v.Strides[d])
			}
		}
		out = next
	}
	return out
}

func equalInts(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// randomView makes a window on dense n elements by permuting and slicing.
func randomView(r *rand.Rand) Strided {
	dims := make([]int64, 1+r.Intn(4))
	for i := range dims {
		dims[i] = int64(1 + r.Intn(4))
	}
	v := Dense(dims)
	if r.Intn(2) == 0 {
		perm := make([]int64, len(dims))
		for i, p := range r.Perm(len(dims)) {
			perm[i] = int64(p)
		}
		v = v.Permute(perm)
	}
	if d := r.Intn(len(dims)); r.Intn(2) == 0 && v.Shape[d] > 1 {
		from := int64(r.Intn(int(v.Shape[d])))
		v = v.Slice(d, from, v.Shape[d]-from, 1)
	}
	return v
}

func TestStridedReshapeKeepsOrder(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	done := 0
	for i := 0; i < 3000; i++ {
		v := randomView(r)
		dims := factor(r, Count(v.Shape))
		w, ok := v.Reshape(dims)
		if !ok {
			continue
		}
		done++
		if got, want := addresses(w), addresses(v); !equalInts(got, want) {
			t.Fatalf("%+v reshaped to %v: got %v, want %v", v, dims, got, want)
		}
	}
	if done < 500 {
		t.Errorf("only %d reshapes were possible", done)
	}
}

func TestStridedCompose(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	done := 0
	for i := 0; i < 5000; i++ {
		base := randomView(r)
		flat := addresses(base)
		v := Dense(factor(r, int64(len(flat))))
		if d := r.Intn(len(v.Shape)); v.Shape[d] > 1 {
			v = v.Slice(d, 1, v.Shape[d]-1, 1)
		}
		if len(v.Shape) > 1 && r.Intn(2) == 0 {
			perm := make([]int64, len(v.Shape))
			for i, p := range r.Perm(len(perm)) {
				perm[i] = int64(p)
			}
			v = v.Permute(perm)
		}
		w, ok := v.Compose(base)
		if !ok {
			continue
		}
		done++
		var want []int64
		for _, a := range addresses(v) {
			want = append(want, flat[a])
		}
		if got := addresses(w); !equalInts(got, want) {
			t.Fatalf("%+v over %+v: got %v, want %v", v, base, got, want)
		}
	}
	if done < 500 {
		t.Errorf("only %d compositions were possible", done)
	}
}

// factor splits n into random factors.
func factor(r *rand.Rand, n int64) []int64 {
	var dims []int64
	for n > 1 {
		var ds []int64
		for d := int64(2); d <= n; d++ {
			if n%d == 0 {
				ds = append(ds, d)
			}
		}
		d := ds[r.Intn(len(ds))]
		dims = append(dims, d)
		n /= d
	}
	return append(dims, 1)
}
