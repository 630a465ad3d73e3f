package driver

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/rammerc/rammerc/internal/diag"
)

// UI shows progress on standard error; results go to standard output elsewhere. The zero value shows
// nothing. Only Abandon may be called from another goroutine.
type UI struct {
	W     io.Writer // nil shows nothing
	TTY   bool      // progress bars instead of plain lines
	Quiet bool      // warnings only
	// Timings are the finished stages, Warnings what was warned of: for machine-readable reports.
	Timings  []Timing
	Warnings []*diag.Diagnostic

	stage string // that runs
	dump  string // directory of --dump once it is open
	mu    sync.Mutex
	temps map[string]bool // folders to remove when the user interrupts
}

// Timing is a finished stage.
type Timing struct {
	Stage   string  `json:"stage"`
	Seconds float64 `json:"seconds"`
	Detail  string  `json:"detail,omitempty"`
}

// NewUI shows on f, with bars when f is a terminal.
func NewUI(f *os.File) *UI {
	return &UI{W: f, TTY: term.IsTerminal(int(f.Fd()))}
}

// Stage starts a stage; the result ends it with a line "  name  time  detail".
func (u *UI) Stage(name string) (done func(format string, args ...any)) {
	start := time.Now()
	u.stage = name
	return func(format string, args ...any) {
		d := time.Since(start)
		detail := fmt.Sprintf(format, args...)
		u.stage = ""
		u.Timings = append(u.Timings, Timing{name, d.Seconds(), detail})
		u.Printf("  %-9s %8s  %s\n", name, shortDuration(d), detail)
	}
}

// running names the stage that has begun and not ended, else the last that ended.
func (u *UI) running() string {
	if u.stage == "" && len(u.Timings) > 0 {
		return "after " + u.Timings[len(u.Timings)-1].Stage
	}
	return u.stage
}

// Printf writes to standard error unless quiet.
func (u *UI) Printf(format string, args ...any) {
	if u.W != nil && !u.Quiet {
		fmt.Fprintf(u.W, format, args...)
	}
}

// Warn shows warnings, quiet or not, and keeps them for the report.
func (u *UI) Warn(ws []*diag.Diagnostic) {
	u.Warnings = append(u.Warnings, ws...)
	for _, w := range ws {
		if u.W != nil {
			fmt.Fprintf(u.W, "%v: %v\n", w.Severity, w)
		}
	}
}

// progressEvery is how often long work shows that it lives where there is no terminal.
const progressEvery = 10 * time.Second

// Progress returns a function to call as work proceeds: a bar on a terminal; elsewhere a line every
// ten seconds, so that logs of long work show that it lives.
func (u *UI) Progress(what string) func(done, total int) {
	if u.W == nil || u.Quiet {
		return func(int, int) {}
	}
	if !u.TTY {
		last := time.Now()
		return func(done, total int) {
			if time.Since(last) > progressEvery {
				last = time.Now()
				u.Printf("  %s %d of %d\n", what, done, total)
			}
		}
	}
	var bar *progressbar.ProgressBar
	return func(done, total int) {
		if bar == nil {
			bar = progressbar.NewOptions(total, append(barOptions(u.W, what),
				progressbar.OptionSetWidth(30), progressbar.OptionShowCount())...)
		}
		_ = bar.Set(done)
	}
}

// Waiting shows that work of unknown length goes on, such as another program's; end stops it.
func (u *UI) Waiting(what string) (end func()) {
	if u.W == nil || u.Quiet {
		return func() {}
	}
	every, tick := progressEvery, func(d time.Duration) { fmt.Fprintf(u.W, "  %s: %.0f s so far\n", what, d.Seconds()) }
	clear := func() {}
	if u.TTY {
		bar := progressbar.NewOptions(-1, append(barOptions(u.W, what),
			progressbar.OptionSpinnerType(14), progressbar.OptionSetElapsedTime(true))...)
		every, tick, clear = 100*time.Millisecond, func(time.Duration) { _ = bar.Add(1) }, func() { _ = bar.Finish() }
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
	return func() { close(stop); <-stopped }
}

func barOptions(w io.Writer, what string) []progressbar.Option {
	return []progressbar.Option{
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription("  " + what),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100 * time.Millisecond),
	}
}

// tempDir makes a folder that is removed when the user interrupts the command, or by remove.
func (u *UI) tempDir(parent, pattern string) (dir string, remove func(), err error) {
	u.mu.Lock() // before the folder exists: Abandon is to know of it, or to come before it
	defer u.mu.Unlock()
	if dir, err = os.MkdirTemp(parent, pattern); err != nil {
		return "", func() {}, err
	}
	if u.temps == nil {
		u.temps = map[string]bool{}
	}
	u.temps[dir] = true
	return dir, func() { u.removeTemp(dir) }, nil
}

func (u *UI) removeTemp(dir string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.temps, dir)
	os.RemoveAll(dir)
}

// Abandon removes unfinished work; the process is to end next. Stages that still run cannot make more
// folders afterwards.
func (u *UI) Abandon() {
	u.mu.Lock() // and never unlocked
	for dir := range u.temps {
		// A stage or a compiler that still writes into the folder may put a file there between the removal
		// of the others and that of the folder itself.
		for range abandonTries {
			if os.RemoveAll(dir) == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// abandonTries bounds how often Abandon tries to remove a folder: a second in all.
const abandonTries = 100

// NoText is the text of results that have none.
func NoText(io.Writer) {}

func shortDuration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "0 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// count prints "1 segment", "2 segments", "2 launches".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "ch") {
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
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
