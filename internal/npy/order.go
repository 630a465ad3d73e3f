package npy

// rowMajor turns elements in Fortran order into C order.
func rowMajor(data any, shape []int64) any {
	switch s := data.(type) {
	case []bool:
		return reorder(s, shape)
	case []int8:
		return reorder(s, shape)
	case []int16:
		return reorder(s, shape)
	case []int32:
		return reorder(s, shape)
	case []int64:
		return reorder(s, shape)
	case []uint8:
		return reorder(s, shape)
	case []uint16:
		return reorder(s, shape)
	case []uint32:
		return reorder(s, shape)
	case []uint64:
		return reorder(s, shape)
	case []float32:
		return reorder(s, shape)
	case []float64:
		return reorder(s, shape)
	case []string:
		return reorder(s, shape)
	}
	panic("BUG: unknown element type")
}

func reorder[T any](in []T, shape []int64) []T {
	if len(shape) < 2 || len(in) == 0 {
		return in
	}
	stride := make([]int64, len(shape)) // of the axes in the input
	n := int64(1)
	for i, d := range shape {
		stride[i] = n
		n *= d
	}
	out := make([]T, len(in))
	at := make([]int64, len(shape))
	from := int64(0)
	for i := range out {
		out[i] = in[from]
		for k := len(shape) - 1; k >= 0; k-- {
			at[k]++
			from += stride[k]
			if at[k] < shape[k] {
				break
			}
			at[k] = 0
			from -= stride[k] * shape[k]
		}
	}
	return out
}
