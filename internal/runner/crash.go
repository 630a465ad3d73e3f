package runner

import "fmt"

// Crash is the error of a child process that has ended when it should not.
type Crash struct {
	State  string // "signal: segmentation fault", "exit status 66"
	Stderr string // the end of what it printed
	Under  string // the command that the process ran under, "" for none
}

func (e *Crash) Error() string {
	s := "the library's process ended: " + e.State
	if e.Under != "" {
		s = fmt.Sprintf("the library's process ended under %q: %s", e.Under, e.State)
	}
	if e.Stderr != "" {
		s += "\n" + e.Stderr
	}
	return s
}
