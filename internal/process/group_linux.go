package process

import (
	"os/exec"
	"syscall"
)

// inGroup gives the process a group. The kernel ends it when this process dies in a way that lets it do nothing more.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
