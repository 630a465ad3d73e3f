package roperator

// Staged says that an rKernel wants an access in shared memory. The executor copies the box of an
// import there before the rTask and that of an export from there afterwards, from and to wherever the
// program keeps the buffer: plain memory, or words that carry tags. So the data of an edge can travel
// in whatever way the schedule chooses, and the rKernel does not know. Elements have 4 bytes.
type Staged struct {
	Access Access
	Index  int     // of the access in Reads or Writes, -1 for constants, which are no dependency
	At     int64   // element of the import or export area that the box's first element goes to
	Pitch  []int64 // per dim of the view: elements of the area from one index to the next
}

// Run is a piece of a staged box that is contiguous on both sides.
type Run struct {
	Elem  int64 // first element in the buffer
	At    int64 // first element in the area
	Count int64
}

// Areas are the sizes of the import and export area that c's rTasks use, in elements.
func (c *Candidate) Areas() (imports, exports int64) {
	var runs []Run
	extent := func(list []Staged) int64 {
		most := int64(0)
		for i := range list {
			for task := range c.Tasks {
				runs = list[i].AppendRuns(runs[:0], task)
				for _, r := range runs {
					most = max(most, r.At+r.Count)
				}
			}
		}
		return most
	}
	return extent(c.Imports), extent(c.Exports)
}

// AppendRuns cuts the box of rTask task into runs, as long as they can be.
func (s *Staged) AppendRuns(dst []Run, task int) []Run {
	a := &s.Access
	n := len(a.View.Shape)
	var loBuf, hiBuf [16]int64
	lo, hi := loBuf[:n], hiBuf[:n]
	if a.Box == nil {
		copy(hi, a.View.Shape)
	} else {
		a.Box(task, lo, hi)
	}
	elem, at := a.View.Offset, s.At
	for d := range n {
		if hi[d] <= lo[d] {
			return dst
		}
		elem += lo[d] * a.View.Strides[d]
	}
	// Inner dims that are contiguous on both sides make up one run.
	inner, count := n, int64(1)
	for inner > 0 {
		d := inner - 1
		if extent := hi[d] - lo[d]; extent > 1 {
			if a.View.Strides[d] != count || s.Pitch[d] != count {
				break
			}
			count *= extent
		}
		inner--
	}
	var idx [16]int64
	for {
		r := Run{Elem: elem, At: at, Count: count}
		for d := range inner {
			r.Elem += idx[d] * a.View.Strides[d]
			r.At += idx[d] * s.Pitch[d]
		}
		dst = append(dst, r)
		d := inner - 1
		for ; d >= 0; d-- {
			if idx[d]++; idx[d] < hi[d]-lo[d] {
				break
			}
			idx[d] = 0
		}
		if d < 0 {
			return dst
		}
	}
}

// Imported reports which of c's reads are imports, by index in Reads; Exported likewise for writes.
func (c *Candidate) Imported() []bool { return marked(c.Imports, len(c.Reads)) }

// Exported reports which of c's writes are exports, by index in Writes.
func (c *Candidate) Exported() []bool { return marked(c.Exports, len(c.Writes)) }

func marked(list []Staged, n int) []bool {
	if len(list) == 0 {
		return nil
	}
	out := make([]bool, n)
	for i := range list {
		if k := list[i].Index; k >= 0 {
			out[k] = true
		}
	}
	return out
}
