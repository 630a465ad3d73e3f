// Package dump writes what each stage leaves into one directory, numbered in the order of the stages:
// 007_graphopt_fold-constants.rir, 031_schedule_wavefront.rprog. A pass that changed nothing leaves a
// file that says so. Together with the command line in repro.sh a dump is a bug report.
package dump

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Dir is a dump directory; a nil *Dir writes nothing.
type Dir struct {
	path string
	next int
}

// Open makes the directory. An empty path gives nil.
func Open(path string) (*Dir, error) {
	if path == "" {
		return nil, nil
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	return &Dir{path: path}, nil
}

// Write adds a file; ext has no dot.
func (d *Dir) Write(stage, name, ext string, data []byte) error {
	if d == nil {
		return nil
	}
	file := fmt.Sprintf("%03d_%s_%s.%s", d.next, clean(stage), clean(name), ext)
	d.next++
	return os.WriteFile(filepath.Join(d.path, file), data, 0o666)
}

// Unchanged adds a file that says that the stage changed nothing.
func (d *Dir) Unchanged(stage, name, ext string) error {
	return d.Write(stage, name, ext, []byte("(unchanged)\n"))
}

// Script adds repro.sh with a command line.
func (d *Dir) Script(args []string) error {
	if d == nil {
		return nil
	}
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	text := "#!/bin/sh\n" + strings.Join(quoted, " ") + "\n"
	return os.WriteFile(filepath.Join(d.path, "repro.sh"), []byte(text), 0o777)
}

// clean keeps names usable as file names.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r <= ' ' {
			return '-'
		}
		return r
	}, s)
}
