package process

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// family starts a shell that starts a child of its own, and returns the child's id.
func family(t *testing.T, ctx context.Context) (shell *exec.Cmd, grandchild int) {
	t.Helper()
	shell = Command(ctx, "sh", "-c", "sleep 1000 & echo $!; wait")
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := Start(shell); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if grandchild, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	return shell, grandchild
}

// ended waits until a process is gone, or a zombie that nobody has waited for.
func ended(t *testing.T, pid int) {
	t.Helper()
	for range 500 {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil && syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	t.Errorf("process %d goes on", pid)
}

func TestEndingACommandEndsWhatItStarted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	shell, grandchild := family(t, ctx)
	cancel()
	if Wait(shell) == nil {
		t.Error("the command says that it ended well")
	}
	ended(t, grandchild)

	shell, grandchild = family(t, context.Background())
	End(shell)
	if Wait(shell) == nil {
		t.Error("the command says that it ended well")
	}
	ended(t, grandchild)

	shell, grandchild = family(t, context.Background())
	EndAll()
	defer func() { running.ended = false }()
	_ = Wait(shell)
	ended(t, grandchild)
	if err := Run(Command(context.Background(), "true")); err == nil {
		t.Error("a command started after the end of all")
	}
}
