package eval

import "github.com/rammerc/rammerc/ir"

// elems is a tensor's Data for operators that move elements without computing with them, whatever their type is.
type elems interface {
	len() int
	data() any
	// fresh makes n zero elements of the same type.
	fresh(n int) elems
	// strided returns the elements of a window (see ir.Strided), row-major.
	strided(dims, strides []int64, offset int64) elems
	// put writes src, whose elements are row-major over dims, into a window of the receiver.
	put(src elems, dims, strides []int64, offset int64)
	// take returns the elements at index. For an index of -1 it returns the first element of fill, or zero if fill is
	// nil.
	take(index []int, fill elems) elems
	// copyAt copies the n elements of src from srcOff on to the receiver's elements from at on.
	copyAt(at int, src elems, srcOff, n int)
}

// vec implements elems for one type.
type vec[T ir.Elem] []T

// elemsOf wraps t's Data. ok is false if Data does not have the Go type for t's element type.
func elemsOf(t *ir.Tensor) (elems, bool) {
	switch t.DType {
	case ir.Float32:
		return wrap[float32](t)
	case ir.Float64:
		return wrap[float64](t)
	case ir.Float16, ir.BFloat16, ir.Uint16:
		return wrap[uint16](t)
	case ir.Int8, ir.Int4, ir.Int2:
		return wrap[int8](t)
	case ir.Int16:
		return wrap[int16](t)
	case ir.Int32:
		return wrap[int32](t)
	case ir.Int64:
		return wrap[int64](t)
	case ir.Uint8, ir.Uint4, ir.Uint2:
		return wrap[uint8](t)
	case ir.Uint32:
		return wrap[uint32](t)
	case ir.Uint64:
		return wrap[uint64](t)
	case ir.Bool:
		return wrap[bool](t)
	case ir.String:
		return wrap[string](t)
	}
	if t.DType.IsNarrowFloat() {
		return wrap[uint8](t)
	}
	return nil, false
}

func wrap[T ir.Elem](t *ir.Tensor) (elems, bool) {
	d, ok := t.Data.([]T)
	return vec[T](d), ok
}

// mustElems is elemsOf for tensors that are known to be well formed; it fails for others.
func mustElems(t *ir.Tensor) elems {
	e, ok := elemsOf(t)
	if !ok {
		fail("element type %v does not fit Go type %T", t.DType, t.Data)
	}
	return e
}

// with makes a tensor with t's element type, the given dims and the elements e.
func with(t *ir.Tensor, e elems, dims []int64) *ir.Tensor {
	if int64(e.len()) != ir.Count(dims) {
		panic("BUG: element count does not fit dims")
	}
	return &ir.Tensor{DType: t.DType, Dims: append([]int64{}, dims...), Data: e.data()}
}

// reshaped is t with other dims, whose product must be the same. Both share their elements.
func reshaped(t *ir.Tensor, dims []int64) *ir.Tensor {
	return &ir.Tensor{DType: t.DType, Dims: append([]int64{}, dims...), Data: t.Data}
}

func (v vec[T]) len() int          { return len(v) }
func (v vec[T]) data() any         { return []T(v) }
func (v vec[T]) fresh(n int) elems { return make(vec[T], n) }

func (v vec[T]) strided(dims, strides []int64, offset int64) elems {
	out := make(vec[T], ir.Count(dims))
	at := 0
	eachRun(dims, strides, offset, func(off, step int64, n int) {
		if step == 1 {
			copy(out[at:at+n], v[off:])
		} else {
			for i := range n {
				out[at+i] = v[off+int64(i)*step]
			}
		}
		at += n
	})
	return out
}

func (v vec[T]) put(src elems, dims, strides []int64, offset int64) {
	s := src.(vec[T])
	at := 0
	eachRun(dims, strides, offset, func(off, step int64, n int) {
		if step == 1 {
			copy(v[off:], s[at:at+n])
		} else {
			for i := range n {
				v[off+int64(i)*step] = s[at+i]
			}
		}
		at += n
	})
}

func (v vec[T]) take(index []int, fill elems) elems {
	out := make(vec[T], len(index))
	var zero T
	if fill != nil {
		zero = fill.(vec[T])[0]
	}
	for i, at := range index {
		if at < 0 {
			out[i] = zero
		} else {
			out[i] = v[at]
		}
	}
	return out
}

func (v vec[T]) copyAt(at int, src elems, srcOff, n int) {
	copy(v[at:at+n], src.(vec[T])[srcOff:srcOff+n])
}

// eachRun walks through the elements of a window in row-major order, in runs along its last dim: f is called with runs
// of n elements at off, off+step, off+2·step and so on. Dims are merged first, so that runs are as long as possible.
func eachRun(dims, strides []int64, offset int64, f func(off, step int64, n int)) {
	if ir.Count(dims) == 0 {
		return
	}
	dims, cols := merge(dims, [][]int64{strides})
	last := len(dims) - 1
	o := newOdometer(dims[:last], [][]int64{cols[0][:last]}, []int64{offset})
	for ok := true; ok; ok = o.next() {
		f(o.off[0], cols[0][last], int(dims[last]))
	}
}

// merge simplifies one or more windows of the same dims, each given by its strides. It drops dims of extent 1, and
// joins adjacent dims that can be walked through as one dim in every window. At least one dim is left.
func merge(dims []int64, strides [][]int64) ([]int64, [][]int64) {
	var d []int64
	cols := make([][]int64, len(strides))
	for i, n := range dims {
		if n == 1 {
			continue
		}
		joins := len(d) > 0
		for j := range strides {
			joins = joins && cols[j][len(d)-1] == strides[j][i]*n
		}
		if joins {
			d[len(d)-1] *= n
			for j := range strides {
				cols[j][len(d)-1] = strides[j][i]
			}
			continue
		}
		d = append(d, n)
		for j := range strides {
			cols[j] = append(cols[j], strides[j][i])
		}
	}
	if len(d) == 0 {
		d = []int64{1}
		for j := range cols {
			cols[j] = []int64{1}
		}
	}
	return d, cols
}

// odometer counts through all indices of dims in row-major order. For each of several windows, given by their strides
// and first offsets, it keeps the offset of the present index.
type odometer struct {
	dims    []int64
	strides [][]int64 // by window
	index   []int64   // the present index
	off     []int64   // by window: the offset of the present index
}

func newOdometer(dims []int64, strides [][]int64, offsets []int64) *odometer {
	return &odometer{dims, strides, make([]int64, len(dims)), append([]int64{}, offsets...)}
}

// next moves to the next index. After the last one it returns false and starts again.
func (o *odometer) next() bool {
	for d := len(o.dims) - 1; d >= 0; d-- {
		o.index[d]++
		for j := range o.off {
			o.off[j] += o.strides[j][d]
		}
		if o.index[d] < o.dims[d] {
			return true
		}
		for j := range o.off {
			o.off[j] -= o.strides[j][d] * o.dims[d]
		}
		o.index[d] = 0
	}
	return false
}

// rowMajor returns the strides of a dense tensor.
func rowMajor(dims []int64) []int64 {
	s := make([]int64, len(dims))
	n := int64(1)
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = n
		n *= dims[i]
	}
	return s
}
