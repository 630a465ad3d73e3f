package axes

// Found collects the ranges of what counted operators find, as the pass count-extents names them.
type Found struct {
	Ranges []Range
	At     map[string]int64 // the extents to optimise a graph for; the largest ones where it has none
}

// Extent is graphopt.Options.Extent.
func (f *Found) Extent(symbol string, most int64) int64 {
	f.Ranges = append(f.Ranges, Range{Name: symbol, Lo: 0, Hi: most, Counted: true})
	if n, ok := f.At[symbol]; ok {
		return n
	}
	return most
}

// Live are the extents of a tensor in a run, and the places of its elements among those of the largest extents, in
// row-major order. extents are those of the ranges.
func Live(list []Axis, extents []int64) (dims, places []int64) {
	places = []int64{0}
	stride := int64(1)
	for d := len(list) - 1; d >= 0; d-- {
		dims = append([]int64{list[d].At(extents)}, dims...)
		for i := len(list[d]) - 1; i >= 0; i-- {
			f := list[d][i]
			n := Axis{f}.At(extents)
			next := make([]int64, 0, n*int64(len(places)))
			for k := range n {
				for _, p := range places {
					next = append(next, k*stride+p)
				}
			}
			places = next
			stride *= f.N
		}
	}
	return dims, places
}
