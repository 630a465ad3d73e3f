//go:build unix && !linux

package process

import (
	"os/exec"
	"syscall"
)

// inGroup gives the process a group.
func inGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
