package driver

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/internal/diag"
)

// outDir collects files in a folder beside the final one, so that a failure leaves nothing behind and
// an older library stays whole until the new one is complete.
type outDir struct {
	final, work string
	made        bool // final did not exist before
	done        bool
}

// checkOut refuses a folder that holds something that is not this library: nothing of the user's is
// overwritten.
func checkOut(dir, name string) (*outDir, error) {
	problem := func(format string, args ...any) error {
		return &diag.Diagnostic{ID: "cannot-write", File: dir, Message: fmt.Sprintf(format, args...)}
	}
	if dir == "" {
		return nil, usage("bad-flag", "-o names no directory")
	}
	info, err := os.Stat(dir)
	o := &outDir{final: dir, made: err != nil}
	if err == nil {
		if !info.IsDir() {
			return nil, problem("is a file, a directory is wanted")
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, problem("%v", err)
		}
		marker := abi.Identifier(name) + ".plan.json"
		if _, err := os.Stat(filepath.Join(dir, marker)); err != nil && len(entries) > 0 {
			return nil, &diag.Diagnostic{
				ID: "not-empty", File: dir, Message: "holds files that are not this library's",
				Help: "choose an empty or new directory with -o",
			}
		}
	}
	return o, nil
}

// begin makes the working folder.
func (o *outDir) begin() error {
	parent := filepath.Dir(filepath.Clean(o.final))
	err := os.MkdirAll(parent, 0o777)
	if err == nil {
		o.work, err = os.MkdirTemp(parent, ".rammerc-*")
	}
	if err != nil {
		return &diag.Diagnostic{ID: "cannot-write", File: o.final, Message: err.Error()}
	}
	return nil
}

// commit moves the files over and lists them, sorted.
func (o *outDir) commit() ([]string, error) {
	if o.made {
		if err := os.Chmod(o.work, 0o755); err != nil {
			return nil, err
		}
		if err := os.Rename(o.work, o.final); err != nil {
			return nil, err
		}
		o.done = true
		return listFiles(o.final)
	}
	names, err := listFiles(o.work)
	if err != nil {
		return nil, err
	}
	for _, from := range names {
		rel, err := filepath.Rel(o.work, from)
		if err != nil {
			return nil, err
		}
		to := filepath.Join(o.final, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return nil, err
		}
		if err := os.Rename(from, to); err != nil {
			return nil, err
		}
	}
	return listFiles(o.final)
}

// discard removes the working folder; after commit it has nothing left to do.
func (o *outDir) discard() {
	if !o.done && o.work != "" {
		os.RemoveAll(o.work)
	}
}

func listFiles(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, p)
		}
		return err
	})
	sort.Strings(out)
	return out, err
}
