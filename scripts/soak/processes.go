package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is a row of Linux's table of processes.
type process struct {
	pid, parent int
	name        string
	zombie      bool
}

// table reads the processes of this machine from /proc.
func table() []process {
	var out []process
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has just ended
		}
		// 123 (a name) S 1 …: the name may have spaces and parentheses.
		open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
		if open < 0 || end < open {
			continue
		}
		rest := strings.Fields(string(text[end+1:]))
		pid, err1 := strconv.Atoi(strings.TrimSpace(string(text[:open])))
		parent, err2 := strconv.Atoi(rest[1])
		if err1 == nil && err2 == nil {
			out = append(out, process{pid: pid, parent: parent, name: string(text[open+1 : end]), zombie: rest[0] == "Z"})
		}
	}
	return out
}

// descendants are the processes that pid has started, and those that they have started in turn.
func descendants(pid int) []process {
	all := table()
	var out []process
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		for _, p := range all {
			if p.parent == next[0] && !p.zombie {
				out = append(out, p)
				next = append(next, p.pid)
			}
		}
	}
	return out
}

// processes are those that this soak, or something that it has started, has started and that still live.
func (s *soak) processes() []string {
	var out []string
	for _, p := range table() {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		if err == nil && !p.zombie && bytes.Contains(environment, []byte(markVariable+"="+s.mark+"\x00")) {
			out = append(out, fmt.Sprintf("%d %s", p.pid, p.name))
		}
	}
	return out
}
