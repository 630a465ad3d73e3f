package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/rammerc/rammerc/internal/process"
)

// child is a running machine.
type child struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	lines   chan string // its answers; closed when it ends
	stderr  strings.Builder
	limited time.Duration // how long it may take for an answer
}

// broken is the error of a machine that must be started anew: the candidate it worked on failed.
type broken struct{ text string }

func (b *broken) Error() string { return b.text }

// isBroken reports whether err says so.
func isBroken(err error) bool {
	var b *broken
	return errors.As(err, &b)
}

// start starts the machine of a part's program.
func start(ctx context.Context, program string, patience time.Duration) (*child, error) {
	c := &child{cmd: process.Command(ctx, program), lines: make(chan string, 1), limited: patience}
	c.cmd.Stderr = &c.stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(c.cmd); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			c.lines <- scan.Text()
		}
	}()
	return c, nil
}

// ask sends a command and returns the answer behind "ok". If the machine reports an error, ends, or is silent for too
// long, it is ended, and the error is *broken.
func (c *child) ask(format string, args ...any) (string, error) {
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		return "", c.end("its process ended")
	}
	timer := time.NewTimer(c.limited)
	defer timer.Stop()
	select {
	case line, open := <-c.lines:
		if !open {
			return "", c.end("its process ended")
		}
		if rest, ok := strings.CutPrefix(line, "ok"); ok {
			return strings.TrimSpace(rest), nil
		}
		return "", c.end(strings.TrimPrefix(line, "error "))
	case <-timer.C:
		return "", c.end("no end after " + c.limited.String())
	}
}

// end kills the machine and returns why.
func (c *child) end(why string) error {
	process.End(c.cmd)
	for range c.lines { // until the reader has seen the end
	}
	_ = process.Wait(c.cmd)
	if state := c.cmd.ProcessState; why == "its process ended" && state != nil {
		why += ": " + state.String()
	}
	return &broken{why}
}

// close lets the machine end by itself.
func (c *child) close() {
	_ = c.in.Close()
	for range c.lines {
	}
	_ = process.Wait(c.cmd)
}
