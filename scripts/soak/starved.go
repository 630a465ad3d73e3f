package main

import (
	"fmt"
	"strings"
	"time"
)

// starvation is what messages say when memory, processes or a device were missing: as CUDA, the C library, the
// operating system and compilers word it. On a machine that others use at the same time that is no defect.
var starvation = []string{
	"out of memory", "annot allocate memory", "bad_alloc", "std::system_error", "esource temporarily unavailable",
	"No space left on device", "Too many open files", "devices are busy or unavailable",
	"signal: killed", "died due to signal 9", "Killed signal terminated program",
}

// starved returns what a command that nobody disturbed was missing, "" if its messages tell of nothing of the kind.
func starved(status int, messages string) string {
	if status == 0 || status == 1 || strings.Contains(messages, "goroutine ") {
		return "" // a dump is a defect, whatever was missing
	}
	for _, text := range starvation {
		if strings.Contains(messages, text) {
			return text
		}
	}
	return ""
}

// A command of the end of a round is tried again so often, after such a pause, when something was missing.
const (
	tries = 6
	pause = 10 * time.Second
)

// insist runs a command that must succeed, again where it was starved.
func (r *run) insist() error {
	for n := 1; ; n++ {
		err := r.do()
		if err != nil || r.missing == "" {
			return err
		}
		if n == tries {
			return &starvedError{r}
		}
		time.Sleep(pause)
		r.output.Reset()
	}
}

// starvedError says that a round could not be judged, since the machine had no room for it.
type starvedError struct{ run *run }

func (e *starvedError) Error() string {
	return fmt.Sprintf("the machine lacks something for rammerc %s, at %d tries (%s):\n%s",
		strings.Join(e.run.args, " "), tries, e.run.missing, e.run.output.String())
}
