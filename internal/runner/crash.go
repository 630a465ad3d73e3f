package runner

import (
	"fmt"
	"os"
	"slices"
	"syscall"
)

// Crash is the error of a child process that has ended when it should not.
type Crash struct {
	State  string // "signal: segmentation fault", "exit status 66"
	Stderr string // the end of what it printed
	Under  string // the command that the process ran under, "" for none
	Killed bool   // somebody else has ended it, by a signal that no crash has
}

// signalsOfOthers end a process from outside. The kernel sends the first one to a large process when memory is short.
var signalsOfOthers = []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// newCrash describes how a process has ended; state is nil if that is not known.
func newCrash(state *os.ProcessState, stderr, under string) *Crash {
	c := &Crash{State: "without a reply", Stderr: stderr, Under: under}
	if state == nil {
		return c
	}
	c.State = state.String()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		c.Killed = slices.Contains(signalsOfOthers, status.Signal())
	}
	return c
}

func (e *Crash) Error() string {
	s := "the library's process ended: " + e.State
	if e.Under != "" {
		s = fmt.Sprintf("the library's process ended under %q: %s", e.Under, e.State)
	}
	if e.Killed {
		s += "; another process has ended it, or the system, for lack of memory"
	}
	if e.Stderr != "" {
		s += "\n" + e.Stderr
	}
	return s
}
