package vdevice

// clocks stores vector clocks. A row has an entry for each vEU: how many of its steps are complete. A large program
// has a hundred megabytes of rows, too much to copy whenever there are more, so they are kept in pages.
type clocks struct {
	veus  int
	rows  int32
	pages [][]int32
}

const rowsPerPage = 512

// newClocks makes a store with row 0, which says that nothing is known to be complete.
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
