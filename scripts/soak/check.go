package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rammerc/rammerc/internal/npy"
)

// isOurs tells working folders and temporary files of rammerc by their names.
func isOurs(name string) bool {
	return strings.HasPrefix(name, ".rammerc-") || strings.HasPrefix(name, "rammerc-")
}

// locked calls do while no compilation moves files in the directory: rammerc takes the same lock.
func locked(dir string, do func() error) error {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return do()
}

// readList reads the list of files in a library directory: the hashes that each may have.
func readList(m *model) (map[string][]string, error) {
	text, err := os.ReadFile(filepath.Join(m.library, m.name+".files.json"))
	if err != nil {
		return nil, err
	}
	var list struct{ Files map[string][]string }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("the list of files is half written: %w", err)
	}
	return list.Files, nil
}

// replacing reports whether a compilation was killed, or is at work, between the old library and the new one.
func replacing(m *model) bool {
	list, err := readList(m)
	if err != nil {
		return true
	}
	for path, sums := range list {
		if len(sums) > 1 || !exists(filepath.Join(m.library, path)) {
			return true
		}
	}
	return false
}

// checkLibrary returns an error unless each file of the library directory is whole: its content is one that the list
// tells of.
func checkLibrary(m *model) error {
	return locked(m.library, func() error {
		list, err := readList(m)
		if err != nil {
			return err
		}
		return filepath.WalkDir(m.library, func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil // a working folder that has just been removed
			case err != nil:
				return err
			case isOurs(d.Name()) && d.IsDir():
				return fs.SkipDir
			case d.IsDir() || isOurs(d.Name()) || d.Name() == m.name+".files.json":
				return nil
			}
			rel, err := filepath.Rel(m.library, path)
			if err != nil {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(data)
			if !slices.Contains(list[filepath.ToSlash(rel)], hex.EncodeToString(sum[:])) {
				return fmt.Errorf("%s is half written: its %d bytes have none of the hashes %q", path, len(data), list[rel])
			}
			return nil
		})
	})
}

// checkResult returns an error if there is a file of results that is not whole, or none although there must be one.
func checkResult(file string, want bool) error {
	members, err := npy.ReadZip(file, nil)
	if errors.Is(err, fs.ErrNotExist) && !want {
		return nil
	}
	if err == nil && len(members) == 0 {
		err = errors.New("is empty")
	}
	if err != nil && (want || exists(file)) {
		return fmt.Errorf("the results in %s: %w", file, err)
	}
	return nil
}

// patience is how long processes may take to notice that the one that started them is dead.
const patience = 90 * time.Second

// settle checks that nothing is left when all is quiet: processes end, and the next commands remove what killed ones
// have left.
func (s *soak) settle() error {
	until := time.Now().Add(patience)
	for left := s.processes(); len(left) > 0; left = s.processes() {
		if time.Now().After(until) {
			return fmt.Errorf("processes are left: %v", left)
		}
		time.Sleep(100 * time.Millisecond)
	}
	before := len(s.left())
	s.age()
	for _, m := range s.models {
		for _, args := range [][]string{
			{"compile", m.file, "-q", "--offline", "--target", s.target, "--plan", "auto", "-o", m.library},
			{"run", m.file, "-q", "--offline", "--target", s.target, "--random", "1", "-o", filepath.Join(m.results, "model.npz")},
			{"run", m.library, "-q", "--random", "1", "-o", filepath.Join(m.results, "library.npz")},
		} {
			r := &run{soak: s, model: m, kind: args[0], args: args}
			if args[0] == "run" {
				r.result = args[len(args)-1]
			}
			if err := r.insist(); err != nil {
				return err
			}
		}
		if err := sameResults(m); err != nil {
			return err
		}
	}
	left := s.left()
	if len(left) > 0 {
		return fmt.Errorf("left behind: %s", strings.Join(left, ", "))
	}
	s.count(func(c *counts) { c.Swept += before })
	return nil
}

// sameResults compares what the library and the model compute for the same inputs: both are compiled in the same way.
func sameResults(m *model) error {
	a, err := os.ReadFile(filepath.Join(m.results, "model.npz"))
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(m.results, "library.npz"))
	if err != nil {
		return err
	}
	if string(a) != string(b) {
		return fmt.Errorf("%s: the library computes something else than the model", m.name)
	}
	return nil
}

// left lists all that should not be there when nothing runs: working folders and temporary files.
func (s *soak) left() []string {
	var out []string
	_ = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		temporary := filepath.Dir(path) == s.temporary()
		if !temporary && !isOurs(d.Name()) {
			return nil
		}
		out = append(out, path)
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return out
}

// age makes what is left older, as if somebody came back after a quarter of an hour. A process that was killed in the
// moment between making a folder and locking it leaves one that only its age tells from that of a living process.
func (s *soak) age() {
	then := time.Now().Add(-15 * time.Minute)
	for _, path := range s.left() {
		_ = os.Chtimes(path, then, then)
	}
}
