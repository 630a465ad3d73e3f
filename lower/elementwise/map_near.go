package elementwise

import (
	"github.com/rammerc/rammerc/ir"
	"github.com/rammerc/rammerc/lower/build"
	"github.com/rammerc/rammerc/roperator"
)

// Limits of a map for clusters: threads of an rTask beside the two warps that fetch, each with two elements;
// operands, which a thread takes all at once.
const (
	nearThreads  = 192
	nearOperands = 15
)

// nearCandidate is the map's candidate for vEUs in clusters, with one rTask for each row. It is nil if an element
// type is not float32, a stride is negative, a row or the number of rows is too large, or if there are several
// results.
func (l *mapLayout) nearCandidate(b *build.Builder, m Map) *roperator.Candidate {
	dims := l.outs[0].Shape
	last := len(dims) - 1
	tasks := ir.Count(dims[:last])
	if l.coordinates || len(l.outs) != 1 || len(l.ins) == 0 || len(l.ins) > nearOperands ||
		dims[last] > 2*nearThreads || tasks > stagedTasks(b) {
		return nil
	}
	for _, v := range append(append([]roperator.View{}, l.outs...), l.ins...) {
		if v.DType() != ir.Float32 || v.Strides[last] < 0 {
			return nil
		}
	}
	s := &stagedMap{mapLayout: l, dims: dims, chunk: dims[last], chunks: 1}
	threads := int64(nearThreads)
	for _, n := range []int64{128, 64, 32} {
		if 2*n >= s.chunk {
			threads = n
		}
	}
	return s.carriedOutBy(b, "map_near", threads+64, int(tasks), m)
}
