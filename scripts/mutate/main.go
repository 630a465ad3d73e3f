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
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/rammerc/rammerc/internal/process"
)

// mutation is one row of the list.
type mutation struct {
	Name    string `yaml:"name"` // what is wrong then
	File    string `yaml:"file"`
	Old     string `yaml:"old"`
	New     string `yaml:"new"`
	Test    string `yaml:"test"`    // packages whose tests should fail; the file's own if empty
	Run     string `yaml:"run"`     // which of their tests; all if empty
	Endless bool   `yaml:"endless"` // the tests do not come to an end then, and that is how one notices
	Reason  string `yaml:"reason"`  // why it may survive
}

// limit bounds the tests of one mutation. Beyond it nothing is known: the machine may just be slow.
const limit = 5 * time.Minute

// Of rows that say `endless`, the tests may take this many times what they take without the error, and this long at least.
const (
	patience = 5
	atLeast  = 20 * time.Second
)

func main() {
	list := flag.String("list", "scripts/mutate/mutations.yaml", "list of mutations")
	only := flag.String("only", "", "those alone whose name or file contains this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *list, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, list, only string) error {
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
		if ctx.Err() != nil {
			return ctx.Err()
		}
		start := time.Now()
		result, err := m.try(ctx, dir)
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
	endless  = "no end" // as its row says
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
func (m *mutation) try(ctx context.Context, dir string) (string, error) {
	overlay, err := m.plant(dir)
	if err != nil {
		return unknown, err
	}
	bound := limit
	if m.Endless {
		start := time.Now()
		if result, text := m.test(ctx, limit); result != survived {
			return unknown, fmt.Errorf("without the error its tests do not pass: %s\n%s", result, text)
		}
		bound = max(atLeast, patience*time.Since(start))
	}
	result, text := m.test(ctx, bound, "-overlay", overlay)
	switch {
	case result == unknown:
		return unknown, fmt.Errorf("it does not build, or no tests were run:\n%s", text)
	case result == endless && !m.Endless:
		return unknown, fmt.Errorf("its tests took more than %v", bound)
	}
	return result, nil
}

// test runs the tests of the row, with these flags beside the usual ones, and tells what became of them, in the words for
// a mutation, and what they wrote.
func (m *mutation) test(ctx context.Context, bound time.Duration, flags ...string) (result, text string) {
	tests := strings.Fields(m.Test)
	if len(tests) == 0 {
		tests = []string{"./" + filepath.Dir(m.File)}
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	args := append([]string{"test", "-count=1", "-failfast", "-vet=off", "-run", m.Run}, flags...)
	cmd := process.Command(ctx, "go", append(args, tests...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := process.Run(cmd)
	switch text = out.String(); {
	case strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return unknown, text
	case ctx.Err() != nil:
		return endless, text
	case err != nil:
		return noticed, text
	case !strings.Contains(text, "ok  ") || strings.Contains(text, "[no tests to run]"):
		return unknown, text
	}
	return survived, text
}
