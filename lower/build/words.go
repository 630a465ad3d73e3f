package build

import "github.com/rammerc/rammerc/roperator"

// InWords reports whether some rTasks can store the buffer as tagged words.
func (b *Builder) InWords(buf *roperator.Buffer) bool { return b.inWords[buf] }

// AlwaysRuns reports whether each rTask of the current group runs once in every run, so that others may poll what it
// stores: it is in no loop, and no extents are smaller in some runs.
func (b *Builder) AlwaysRuns() bool { return b.loops.now == 0 && b.axes == nil }

// noteWords notes which buffers the candidate stores so.
func (b *Builder) noteWords(c *roperator.Candidate) {
	for _, i := range c.Gives {
		b.inWords[c.Writes[i].View.Buf] = true
	}
}
