package driver

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// UI shows progress on standard error; results go to standard output elsewhere.
type UI struct {
	W     io.Writer // nil shows nothing
	TTY   bool      // progress bars instead of plain lines
	Quiet bool
	// Timings are the finished stages, for machine-readable reports.
	Timings []Timing
}

// Timing is a finished stage.
type Timing struct {
	Stage   string  `json:"stage"`
	Seconds float64 `json:"seconds"`
	Detail  string  `json:"detail,omitempty"`
}

// NewUI shows on f, with bars when f is a terminal.
func NewUI(f *os.File, quiet bool) *UI {
	return &UI{W: f, TTY: term.IsTerminal(int(f.Fd())), Quiet: quiet}
}

// Stage starts a stage; the result ends it with a line "  name  time  detail".
func (u *UI) Stage(name string) (done func(format string, args ...any)) {
	start := time.Now()
	return func(format string, args ...any) {
		d := time.Since(start)
		detail := fmt.Sprintf(format, args...)
		u.Timings = append(u.Timings, Timing{name, d.Seconds(), detail})
		u.Printf("  %-9s %8s  %s\n", name, shortDuration(d), detail)
	}
}

// Printf writes to standard error unless quiet.
func (u *UI) Printf(format string, args ...any) {
	if u.W != nil && !u.Quiet {
		fmt.Fprintf(u.W, format, args...)
	}
}

// Progress returns a function to call as work proceeds: a bar on a terminal; elsewhere a line every
// ten seconds, so that logs of long work show that it lives.
func (u *UI) Progress(what string) func(done, total int) {
	if u.W == nil || u.Quiet {
		return func(int, int) {}
	}
	if !u.TTY {
		last := time.Now()
		return func(done, total int) {
			if time.Since(last) > 10*time.Second {
				last = time.Now()
				u.Printf("  %s %d of %d\n", what, done, total)
			}
		}
	}
	var bar *progressbar.ProgressBar
	return func(done, total int) {
		if bar == nil {
			bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(u.W),
				progressbar.OptionSetDescription("  "+what), progressbar.OptionClearOnFinish(),
				progressbar.OptionSetWidth(30), progressbar.OptionShowCount(),
				progressbar.OptionThrottle(100*time.Millisecond))
		}
		_ = bar.Set(done)
	}
}

func shortDuration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "0 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// byteCount prints n with a unit: "512 B", "21.3 KB", "97.5 MB".
func byteCount(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GB", float64(n)/(1<<30))
}
