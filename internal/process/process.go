// Package process runs child processes that do not outlive this one. Each has a process group of its own, so that what it
// starts in turn, as nvcc starts cudafe++, ends with it.
package process

import (
	"context"
	"os/exec"
	"sync"
	"time"
)

// patience is how long a process that is ended may keep its pipes open.
const patience = 5 * time.Second

var running struct {
	sync.Mutex
	ended bool // EndAll was called: nothing may start any more
	all   map[*exec.Cmd]bool
}

// Command is exec.CommandContext for a child with a process group of its own. Cancelling ctx ends the whole group. The
// command must be started and waited for with this package.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = patience
	inGroup(cmd)
	cmd.Cancel = func() error { return endGroup(cmd) }
	return cmd
}

// Start starts a Command.
func Start(cmd *exec.Cmd) error {
	running.Lock()
	defer running.Unlock()
	if running.ended {
		return context.Canceled
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if running.all == nil {
		running.all = map[*exec.Cmd]bool{}
	}
	running.all[cmd] = true
	return nil
}

// Wait waits for a Command that was started.
func Wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	running.Lock()
	delete(running.all, cmd)
	running.Unlock()
	return err
}

// Run starts a Command and waits for it.
func Run(cmd *exec.Cmd) error {
	if err := Start(cmd); err != nil {
		return err
	}
	return Wait(cmd)
}

// End ends a Command that was started, with all that it started.
func End(cmd *exec.Cmd) { _ = endGroup(cmd) }

// EndAll ends all commands that are running, and keeps others from being started: this process is about to end.
func EndAll() {
	running.Lock()
	defer running.Unlock()
	running.ended = true
	for cmd := range running.all {
		_ = endGroup(cmd)
	}
}
