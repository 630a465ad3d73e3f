package ir

// Strided is a window on a flat sequence of elements: its element (i0, i1, …) is element Offset + Σ i_d·Strides[d] of
// the sequence. The internal operator View holds one in its attributes, and rOperators address buffers with it.
//
// Reshape, Transpose, Slice and Expand are windows. For example, on a row-major matrix of 2×3 elements:
//
//	the matrix itself     {0, [2,3], [3,1]}
//	its transpose         {0, [3,2], [1,3]}
//	its last column       {2, [2],   [3]}
//	each row 4 times      {0, [2,4,3], [3,0,1]}
//
// Several functions below speak of runs. A run is a sequence of adjacent dims that one stride walks through, as a
// dense block does: in {0, [2,3], [3,1]} both dims form one run of 6 elements with stride 1. Only the dims of a run can
// be merged or divided into other dims.
type Strided struct {
	Offset  int64   // element at which the window starts
	Shape   []int64 // extents
	Strides []int64 // elements from one index of a dim to the next; 0 repeats an element, negative goes backwards
}

// Dense is the row-major window of a whole tensor.
func Dense(dims []int64) Strided {
	s := Strided{Shape: append([]int64{}, dims...), Strides: make([]int64, len(dims))}
	n := int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		s.Strides[i] = n
		n *= max(dims[i], 1)
	}
	return s
}

// ViewOf reads the attributes of a View node.
func ViewOf(n *Node) Strided {
	return Strided{n.Int("offset", 0), n.Ints("shape"), n.Ints("strides")}
}

// IsDense reports whether the window's elements are adjacent and in row-major order; the offset may be any.
func (v Strided) IsDense() bool {
	n := int64(1)
	for i := len(v.Shape) - 1; i >= 0; i-- {
		if v.Shape[i] != 1 && v.Strides[i] != n {
			return false
		}
		n *= v.Shape[i]
	}
	return true
}

func (v Strided) clone() Strided {
	return Strided{v.Offset, append([]int64{}, v.Shape...), append([]int64{}, v.Strides...)}
}

// Slice narrows dim d to the n elements from, from+step, from+2·step and so on. The step may be negative.
func (v Strided) Slice(d int, from, n, step int64) Strided {
	w := v.clone()
	if n > 0 {
		w.Offset += from * v.Strides[d]
	}
	w.Shape[d] = n
	w.Strides[d] *= step
	return w
}

// Permute reorders the dims: dim i of the result is dim perm[i] of v.
func (v Strided) Permute(perm []int64) Strided {
	w := v.clone()
	for i, p := range perm {
		w.Shape[i], w.Strides[i] = v.Shape[p], v.Strides[p]
	}
	return w
}

// Broadcast stretches v to shape by ONNX's multidirectional rule; v must be broadcastable to it.
func (v Strided) Broadcast(shape []int64) Strided {
	w := Strided{v.Offset, append([]int64{}, shape...), make([]int64, len(shape))}
	lead := len(shape) - len(v.Shape)
	for i := range v.Shape {
		if v.Shape[i] != 1 {
			w.Strides[lead+i] = v.Strides[i]
		}
	}
	return w
}

// Reshape gives v another shape with the same number of elements. It fails where strides cannot express the result,
// which is then a copy: for example, a transposed matrix cannot become a vector.
func (v Strided) Reshape(dims []int64) (Strided, bool) {
	w := Strided{v.Offset, append([]int64{}, dims...), make([]int64, len(dims))}
	if Count(v.Shape) == 0 {
		w.Strides = Dense(dims).Strides
		return w, true
	}
	i, j := 0, 0
	for i < len(v.Shape) || j < len(dims) {
		i0, j0 := i, j
		i, j = v.nextRun(dims, i, j)
		stride, ok := v.runStride(i0, i)
		if !ok {
			return Strided{}, false
		}
		for k := j - 1; k >= j0; k-- {
			w.Strides[k] = stride
			stride *= dims[k]
		}
	}
	return w, true
}

// nextRun finds the next group of dims in v.Shape from i on, and in dims from j on, that have equally many elements,
// and returns the ends of both groups. The groups are the shortest that there are, plus dims of extent 1 that follow.
// For example [4,6] and [2,2,6] have the groups [4] and [2,2], then [6] and [6].
func (v Strided) nextRun(dims []int64, i, j int) (int, int) {
	a, b := int64(1), int64(1)
	for first := true; first || a != b; first = false {
		if a <= b && i < len(v.Shape) || j == len(dims) {
			a *= v.Shape[i]
			i++
		} else {
			b *= dims[j]
			j++
		}
	}
	for i < len(v.Shape) && v.Shape[i] == 1 {
		i++
	}
	for j < len(dims) && dims[j] == 1 {
		j++
	}
	return i, j
}

// runStride is the innermost stride of dims [i0, i1) if they form one run; dims of extent 1 do not count.
func (v Strided) runStride(i0, i1 int) (int64, bool) {
	inner, next := int64(1), int64(0)
	seen := false
	for k := i1 - 1; k >= i0; k-- {
		if v.Shape[k] == 1 {
			continue
		}
		if !seen {
			inner, next, seen = v.Strides[k], v.Strides[k]*v.Shape[k], true
			continue
		}
		if v.Strides[k] != next {
			return 0, false
		}
		next *= v.Shape[k]
	}
	return inner, true
}

// Collapse merges groups of adjacent dims into one dim each; cuts[k] is the first dim of group k+1. It fails when the
// dims of a group do not form a run. Collapse(1, 2) of a window [N,C,H,W] is [N,C,H·W].
func (v Strided) Collapse(cuts ...int) (Strided, bool) {
	w := Strided{Offset: v.Offset}
	from := 0
	for _, to := range append(append([]int{}, cuts...), len(v.Shape)) {
		stride, ok := v.runStride(from, to)
		if !ok {
			return Strided{}, false
		}
		w.Shape = append(w.Shape, Count(v.Shape[from:to]))
		w.Strides = append(w.Strides, stride)
		from = to
	}
	return w, true
}

// Compose joins two windows into one. v is a window on the elements of base in row-major order, and base is a window on
// some sequence; the result is v as a window on that sequence. For example, a slice (v) of a transposed matrix (base)
// becomes one window on the matrix. Compose fails when strides cannot express the result.
func (v Strided) Compose(base Strided) (Strided, bool) {
	w := Strided{base.Offset, append([]int64{}, v.Shape...), make([]int64, len(v.Shape))}
	if Count(v.Shape) == 0 {
		return w, true
	}
	runs := base.runs()
	if len(runs) == 0 { // base is one element
		w.Offset = base.Offset
		return w, true
	}
	at := make([]int64, len(runs)) // coordinates of v's first element; then the smallest that v reaches in each run
	rest := v.Offset
	for k, r := range runs {
		at[k] = rest / r.flat % r.n
		w.Offset += at[k] * r.stride
	}
	last := append([]int64{}, at...) // the largest coordinates that v reaches
	for d, n := range v.Shape {
		if n == 1 || v.Strides[d] == 0 {
			continue
		}
		k, ok := runOf(runs, v.Strides[d])
		if !ok {
			return Strided{}, false
		}
		steps := v.Strides[d] / runs[k].flat
		w.Strides[d] = steps * runs[k].stride
		if steps > 0 {
			last[k] += steps * (n - 1)
		} else {
			at[k] += steps * (n - 1)
		}
	}
	for k, r := range runs {
		if at[k] < 0 || last[k] >= r.n {
			return Strided{}, false // a dim of v would go beyond the end of a run, where the stride of base changes
		}
	}
	return w, true
}

// run is a maximal run of a window's dims (see Strided).
type run struct {
	n      int64 // elements
	stride int64 // from one element to the next, in the sequence under the window
	flat   int64 // the same in the row-major order of the window's own elements
}

// runs lists the maximal runs of the window's dims, outermost first. Dims of extent 1 belong to none.
func (v Strided) runs() []run {
	var out []run
	flat := int64(1)
	for d := len(v.Shape) - 1; d >= 0; d-- {
		n := v.Shape[d]
		if n == 1 {
			continue
		}
		if k := len(out) - 1; k >= 0 && v.Strides[d] == out[k].stride*out[k].n {
			out[k].n *= n
		} else {
			out = append(out, run{n, v.Strides[d], flat})
		}
		flat *= n
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// runOf returns the index of the run in which a step of stride elements, in row-major order, stays.
func runOf(runs []run, stride int64) (int, bool) {
	if stride < 0 {
		stride = -stride
	}
	for k, r := range runs {
		if stride%r.flat == 0 && stride < r.flat*r.n {
			return k, true
		}
	}
	return 0, false
}
