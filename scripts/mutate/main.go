// Command mutate plants errors in the compiler, one at a time, and runs the tests of the package that should notice.
// It fails if one survives without a reason beside it, or if a place that the list names is no longer there; the others
// are tried nevertheless.
//
//	go run ./scripts/mutate [-only TEXT] [-list FILE]
//
// mutations.yaml lists the errors. A file is not changed where it lies: the Go command is given an overlay, in which the
// text `old`, which must be in the file once, is `new`.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gopkg.in/yaml.v3"
)

// mutation is one row of the list.
type mutation struct {
	Name   string `yaml:"name"` // what is wrong then
	File   string `yaml:"file"`
	Old    string `yaml:"old"`
	New    string `yaml:"new"`
	Test   string `yaml:"test"`   // packages whose tests should fail; the file's own if empty
	Run    string `yaml:"run"`    // which of their tests; all if empty
	Reason string `yaml:"reason"` // why it may survive
}

// limit bounds the tests of one mutation. A mutant that does not come to an end is noticed, but the machine may also just
// be slow; so the report tells the two apart.
const limit = 5 * time.Minute

func main() {
	list := flag.String("list", "scripts/mutate/mutations.yaml", "list of mutations")
	only := flag.String("only", "", "those alone whose name or file contains this")
	flag.Parse()
	if err := run(*list, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(list, only string) error {
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	var all []mutation
	if err := yaml.Unmarshal(text, &all); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	killed, bad, untried := 0, 0, 0
	for i := range all {
		m := &all[i]
		if !strings.Contains(m.Name+"\n"+m.File, only) {
			continue
		}
		start := time.Now()
		result, err := m.try(dir)
		fmt.Printf("%-9s %s (%s), %.0f s\n", result, m.Name, m.File, time.Since(start).Seconds())
		switch {
		case err != nil:
			fmt.Println(err)
			untried++
		case result == noticed || result == endless:
			killed++
		case m.Reason == "":
			bad++
		}
	}
	fmt.Printf("%d noticed, %d not, %d could not be tried\n", killed, bad, untried)
	if bad+untried > 0 {
		return fmt.Errorf("%d errors were not noticed, %d could not be tried", bad, untried)
	}
	return nil
}

// What became of a mutation.
const (
	noticed  = "noticed"
	endless  = "no end" // its tests took longer than limit
	survived = "SURVIVED"
	unknown  = "UNTRIED" // with an error that says why
)

// plant writes the changed file and the overlay into dir, and returns the path of the latter.
func (m *mutation) plant(dir string) (string, error) {
	data, err := os.ReadFile(m.File)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(data, []byte(m.Old)); n != 1 {
		return "", fmt.Errorf("%s has the text %q %d times, want once", m.File, m.Old, n)
	}
	changed := filepath.Join(dir, filepath.Base(m.File))
	if err := os.WriteFile(changed, bytes.Replace(data, []byte(m.Old), []byte(m.New), 1), 0o666); err != nil {
		return "", err
	}
	path, err := filepath.Abs(m.File)
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o666)
}

// try plants the mutation and runs its tests.
func (m *mutation) try(dir string) (string, error) {
	overlay, err := m.plant(dir)
	if err != nil {
		return unknown, err
	}
	tests := strings.Fields(m.Test)
	if len(tests) == 0 {
		tests = []string{"./" + filepath.Dir(m.File)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := append([]string{"test", "-count=1", "-failfast", "-vet=off", "-overlay", overlay, "-run", m.Run}, tests...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // to end the tests, too, and what they have started
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return unknown, fmt.Errorf("it does not build:\n%s", text)
	case ctx.Err() != nil:
		return endless, nil
	case err != nil:
		return noticed, nil
	case !strings.Contains(text, "ok  ") || strings.Contains(text, "[no tests to run]"):
		return unknown, fmt.Errorf("no tests were run:\n%s", text)
	}
	return survived, nil
}
