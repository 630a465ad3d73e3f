package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// markVariable is in the environment of all processes that a soak starts, so that those that are left can be found.
const markVariable = "RAMMERC_SOAK"

// signals are those that a user, a shell, a scheduler or the kernel ends a process with.
var signals = []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}

// plans are kinds of plans to compile; a library is replaced by one of another kind.
var plans = []string{"auto", "rprogram", "waves", "mixed", "graph"}

// step runs one command, and kills it, or something that it has started, in four of five cases.
func (s *soak) step(rng *rand.Rand, worker int) error {
	m := s.models[rng.IntN(len(s.models))]
	r := &run{soak: s, model: m}
	library := exists(filepath.Join(m.library, "lib"+m.name+".so"))
	switch choice := rng.IntN(10); {
	case choice < 5 || !library:
		emit := []string{"all", "all", "cu"}[rng.IntN(3)]
		r.args = []string{"compile", m.file, "-q", "--offline", "--target", s.target, "--emit", emit, "--plan",
			plans[rng.IntN(len(plans))], "-o", m.library}
		r.kind = "compile"
	case choice < 8:
		r.kind = "run"
		r.result = filepath.Join(m.results, strconv.Itoa(worker)+".npz")
		r.args = []string{"run", m.library, "-q", "--random", "1", "-o", r.result}
	default:
		r.kind = "verify"
		r.args = []string{"verify", m.library, "-q", "--model", m.file, "--samples", "1"}
	}
	if rng.IntN(5) > 0 {
		r.signal = signals[rng.IntN(len(signals))]
		r.child = rng.IntN(3) == 0
		r.after = s.delay(rng, r.kind)
	}
	return r.do()
}

// delay draws the time until something is killed: often a few milliseconds, sometimes as long as a command takes.
func (s *soak) delay(rng *rand.Rand, kind string) time.Duration {
	most := []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 8 * time.Second}[rng.IntN(3)]
	if kind == "compile" && s.target != "emu" && most > time.Second {
		most = 25 * time.Second
	}
	return time.Duration(rng.Int64N(int64(most)))
}

// run is one command.
type run struct {
	soak   *soak
	model  *model
	kind   string
	args   []string
	result string         // the file that it writes, "" if none
	signal syscall.Signal // what it is killed with; 0: it is not killed
	child  bool           // one of its children is killed instead
	after  time.Duration  // until then it runs

	killed  string // who was killed in fact, "" if nobody
	missing string // what the machine lacked, "" if nothing; see starved
	output  bytes.Buffer
}

// do starts the command, kills it, waits for it, and checks what it leaves.
func (r *run) do() error {
	begun, alone := r.model.begin(r.kind == "compile")
	status, err := r.finish()
	if err != nil {
		return err
	}
	settled := r.model.end(r.kind == "compile", begun) && alone
	if r.missing = ""; r.killed == "" {
		r.missing = starved(status, r.output.String())
	}
	r.record(status)
	if err := r.judge(status, settled); err != nil {
		return fmt.Errorf("rammerc %s: %w\nkilled: %q; status %d; its messages:\n%s", strings.Join(r.args, " "), err,
			r.killed, status, r.output.String())
	}
	if err := checkLibrary(r.model); err != nil {
		return fmt.Errorf("after rammerc %s (killed: %q): %w", strings.Join(r.args, " "), r.killed, err)
	}
	if r.result != "" {
		if err := checkResult(r.result, status == 0); err != nil {
			return fmt.Errorf("after rammerc %s (killed: %q): %w", strings.Join(r.args, " "), r.killed, err)
		}
	}
	r.soak.count(func(c *counts) { c.Checked++ })
	return nil
}

// begin notes that a command starts, and returns how many compilations have begun so far, and whether none is going on.
func (m *model) begin(compiles bool) (begun int, alone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	alone = m.compiling == 0
	if compiles {
		m.compiling++
		m.compiled++
	}
	return m.compiled, alone
}

// end notes that a command has ended, and reports whether no compilation has begun since.
func (m *model) end(compiles bool, begun int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if compiles {
		m.compiling--
	}
	return m.compiled == begun
}

// finish runs the command to its end and returns its exit status, or 128 and the number of the signal that ended it.
func (r *run) finish() (int, error) {
	cmd := exec.Command(r.soak.rammerc, r.args...)
	cmd.Stdout, cmd.Stderr = &r.output, &r.output
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), markVariable+"="+r.soak.mark, "TMPDIR="+r.soak.temporary(),
		"XDG_CACHE_HOME="+r.soak.cache())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	if r.signal != 0 {
		select {
		case err = <-ended:
			return status(err)
		case <-time.After(r.after):
			r.kill(cmd.Process.Pid)
		}
	}
	select {
	case err = <-ended:
	case <-time.After(5 * time.Minute):
		return 0, fmt.Errorf("rammerc %s does not end (killed: %q)", strings.Join(r.args, " "), r.killed)
	}
	return status(err)
}

// kill ends the command or one of the processes that it has started.
func (r *run) kill(pid int) {
	who := "rammerc"
	if r.child {
		below := descendants(pid)
		if len(below) == 0 {
			return // it has started nothing yet, or nothing any more
		}
		victim := below[len(below)/2]
		pid, who = victim.pid, victim.name
	}
	if syscall.Kill(pid, r.signal) == nil {
		r.killed = who + " by " + r.signal.String()
	}
}

func status(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 0, err
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return exit.ExitCode(), nil
}

func (r *run) record(status int) {
	r.soak.count(func(c *counts) {
		what := r.kind + ", left alone"
		if r.killed != "" {
			what = r.kind + ", killed"
			c.Killed[r.killed]++
			c.Statuses[strconv.Itoa(status)]++
		}
		if r.missing != "" {
			what = r.kind + ", starved"
			c.Missing[r.missing]++
		}
		c.Runs[what]++
	})
}

// judge checks how the command ended. settled says that no compilation of the same model ran at the same time.
func (r *run) judge(status int, settled bool) error {
	text := r.output.String()
	switch {
	case status == 1 || strings.Contains(text, "BUG") || strings.Contains(text, "goroutine "):
		return errors.New("an internal error")
	case r.missing != "":
		return nil // what it leaves is checked nevertheless
	case r.killed == "" && r.kind == "compile" && status != 0:
		return errors.New("a compilation failed that nobody disturbed")
	case r.killed == "" && status != 0 && settled && !replacing(r.model):
		return errors.New("a command failed that nobody disturbed")
	case r.child && r.killed != "" && !slices.Contains([]int{0, 2, 3, 4}, status):
		return errors.New("a child was killed; want a status that says so")
	case r.child && status != 0 && !strings.Contains(text, "error"):
		return errors.New("a child was killed, and there is no message")
	case !r.child && r.killed != "" && status != 0 && status != 128+int(r.signal) && settled && !replacing(r.model):
		return errors.New("it ended neither by the signal nor as if there were none")
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
