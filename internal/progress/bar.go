package progress

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// drawEvery is how often a line on a terminal is drawn again.
const drawEvery = 100 * time.Millisecond

// bar is a line on a terminal that is drawn again and again, and removed in the end. It stands in for a library: those
// that there are bring an HTTP client with them, a third of what a first build compiles.
type bar struct {
	w     io.Writer
	last  time.Time
	drawn int
}

// draw shows what line returns in the place of what was there, but not more often than every drawEvery.
func (b *bar) draw(line func() string) {
	if b.drawn > 0 && time.Since(b.last) < drawEvery {
		return
	}
	b.last = time.Now()
	b.drawn++
	fmt.Fprintf(b.w, "\r%s\x1b[K", line()) // [K removes the rest of a longer line
}

// clear removes the line.
func (b *bar) clear() {
	if b.drawn > 0 {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

// spin is a character that turns from one drawing to the next.
func (b *bar) spin() byte { return `|/-\`[b.drawn%4] }

// filled draws how much of something is done: "[=====>        ]".
func filled(done, total int) string {
	const width = 20
	n := width
	if total > 0 {
		n = width * min(max(done, 0), total) / total
	}
	if n == width {
		return "[" + strings.Repeat("=", width) + "]"
	}
	return "[" + strings.Repeat("=", n) + ">" + strings.Repeat(" ", width-n-1) + "]"
}
