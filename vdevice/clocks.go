package vdevice

// clocks stores vector clocks: rows of one entry per vEU, how many of its steps are complete. Rows are
// kept in pages, since a large program has a hundred megabytes of them, too much to move as it grows.
type clocks struct {
	veus  int
	rows  int32
	pages [][]int32
}

const rowsPerPage = 512

// newClocks has one row, 0: nothing is known.
func newClocks(veus int) *clocks {
	c := &clocks{veus: veus}
	c.add()
	return c
}

func (c *clocks) row(i int32) []int32 {
	at := int(i%rowsPerPage) * c.veus
	return c.pages[i/rowsPerPage][at : at+c.veus : at+c.veus]
}

// add appends a row of zeros.
func (c *clocks) add() int32 {
	i := c.rows
	c.rows++
	if i%rowsPerPage == 0 {
		c.pages = append(c.pages, make([]int32, rowsPerPage*c.veus))
	}
	return i
}

// copyOf appends a copy of a row.
func (c *clocks) copyOf(row int32) int32 {
	i := c.add()
	copy(c.row(i), c.row(row))
	return i
}
