// Package progress shows a command's progress on standard error and keeps the times and warnings that its report
// repeats.
//
//	import       12 ms  118 nodes, 21 constants (97.5 KB), opset 17     Stage, when it ends
//	timing plans  [===>                ] 12 of 80, about 56 s left       Progress, on a terminal
//	timing plans 12 of 80, about 56 s left                              Progress, elsewhere every ten seconds
//	building plans: 20 s so far, 2 of 5, about 30 s left                Building, likewise
//	nvcc: 10 s so far                                                   Waiting, likewise
package progress

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"github.com/rammerc/rammerc/internal/diag"
)

// UI shows the progress of one command. A command's result is not its concern: that goes to standard output. The
// zero value shows nothing and still keeps times and warnings. A UI may be used from one goroutine at a time.
type UI struct {
	W     io.Writer // nil shows nothing
	TTY   bool      // progress bars instead of plain lines
	Quiet bool      // warnings only
	// Timings has the finished stages and Warnings what Warn showed. Machine-readable reports repeat both.
	Timings  []Timing
	Warnings []*diag.Diagnostic

	stage string // the stage that has begun and not ended; "" between stages
}

// Timing is how long a finished stage took, and the detail that it printed.
type Timing struct {
	Stage   string  `json:"stage"`
	Seconds float64 `json:"seconds"`
	Detail  string  `json:"detail,omitempty"`
}

// New shows progress on f, with bars when f is a terminal.
func New(f *os.File) UI {
	return UI{W: f, TTY: term.IsTerminal(int(f.Fd()))}
}

// Stage starts a stage of the command. The function that it returns ends the stage and prints a line with the name,
// the time taken and a detail, which is formatted as by fmt.Sprintf.
func (u *UI) Stage(name string) (done func(format string, args ...any)) {
	start := time.Now()
	u.stage = name
	return func(format string, args ...any) {
		d := time.Since(start)
		detail := fmt.Sprintf(format, args...)
		u.stage = ""
		u.Timings = append(u.Timings, Timing{name, d.Seconds(), detail})
		u.Printf("  %-9s %8s  %s\n", name, Duration(d), detail)
	}
}

// Running names the stage that has begun and not ended. Between two stages it is "after" the last that ended, and
// before the first it is "".
func (u *UI) Running() string {
	if u.stage == "" && len(u.Timings) > 0 {
		return "after " + u.Timings[len(u.Timings)-1].Stage
	}
	return u.stage
}

// Printf writes to standard error unless the user asked for quiet.
func (u *UI) Printf(format string, args ...any) {
	if u.W != nil && !u.Quiet {
		fmt.Fprintf(diag.Writer(u.W), format, args...)
	}
}

// Warn shows warnings, in quiet commands too, and keeps them for the report.
func (u *UI) Warn(ws []*diag.Diagnostic) {
	u.Warnings = append(u.Warnings, ws...)
	for _, w := range ws {
		if u.W != nil {
			fmt.Fprintf(u.W, "%v: %v\n", w.Severity, w)
		}
	}
}

// progressEvery is how often long work prints a line where standard error is no terminal, so that the reader of a
// log sees that it is still running.
const progressEvery = 10 * time.Second

// Progress returns a function to call as work proceeds. It draws a bar on a terminal, and prints a line every
// progressEvery elsewhere.
func (u *UI) Progress(what string) func(done, total int) {
	if u.W == nil || u.Quiet {
		return func(int, int) {}
	}
	if !u.TTY {
		start := time.Now()
		last := start
		return func(done, total int) {
			if time.Since(last) > progressEvery {
				last = time.Now()
				u.Printf("  %s %d of %d%s\n", what, done, total, Left(last.Sub(start), done, total))
			}
		}
	}
	start, b := time.Now(), bar{w: u.W}
	return func(done, total int) {
		b.draw(func() string {
			return fmt.Sprintf("  %s  %s %d of %d%s", what, filled(done, total), done, total, Left(time.Since(start), done, total))
		})
		if done >= total {
			b.clear()
		}
	}
}

// Waiting shows that work of unknown length goes on, such as that of another program, until end is called.
func (u *UI) Waiting(what string) (end func()) {
	_, end = u.Building(what, 1)
	return end
}

// Building is Waiting for work of several parts, such as programs that compilers build side by side: whoever calls
// built when a part has ended lets it show how many have, and what time is left. built may be called from any
// goroutine.
func (u *UI) Building(what string, parts int) (built, end func()) {
	if u.W == nil || u.Quiet {
		return func() {}, func() {}
	}
	var finished atomic.Int64
	text := func(d time.Duration) string {
		if parts < 2 {
			return ""
		}
		n := int(finished.Load())
		return fmt.Sprintf(", %d of %d%s", n, parts, Left(d, n, parts))
	}
	every, clear := progressEvery, func() {}
	tick := func(d time.Duration) { fmt.Fprintf(u.W, "  %s: %.0f s so far%s\n", what, d.Seconds(), text(d)) }
	if u.TTY {
		b := bar{w: u.W}
		every, clear = drawEvery, b.clear
		tick = func(d time.Duration) {
			b.draw(func() string { return fmt.Sprintf("  %s  %c %.0f s so far%s", what, b.spin(), d.Seconds(), text(d)) })
		}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(stopped)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-stop:
				clear()
				return
			case <-t.C:
				tick(time.Since(start))
			}
		}
	}()
	return func() { finished.Add(1) }, func() { close(stop); <-stopped }
}
