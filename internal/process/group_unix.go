//go:build unix

package process

import (
	"os/exec"
	"syscall"
)

// endGroup ends the process and all others of its group.
func endGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
