package driver

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/codegen/abi"
	"github.com/rammerc/rammerc/internal/diag"
)

// outDir collects files in a working folder, so that a failure leaves nothing behind and an older
// library stays whole until the new one is complete. The working folder lies inside the library
// directory where that exists, so that the files only have to be renamed, beside it otherwise.
type outDir struct {
	name        string // the library's, an identifier
	final, work string
	exists      bool     // final was there before
	parents     []string // made for final, outermost first
	remove      func()   // the working folder
}

// checkOut refuses a folder that holds something that is not this library: nothing of the user's is
// overwritten.
func checkOut(dir, name string) (*outDir, error) {
	o := &outDir{name: abi.Identifier(name), final: dir}
	if dir == "" {
		return nil, usage("bad-flag", "--out names no directory")
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return o, nil
	case err != nil:
		return nil, o.cannotWrite(err)
	case !info.IsDir():
		return nil, o.cannotWrite(errors.New("is a file, a directory is wanted"))
	}
	o.exists = true
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, o.cannotWrite(err)
	}
	if _, err := os.Stat(filepath.Join(dir, o.name+".plan.json")); err != nil && len(entries) > 0 {
		return nil, &diag.Diagnostic{
			ID: "not-empty", File: dir, Message: "holds files that are not this library's",
			Help: "choose an empty or new directory with --out",
		}
	}
	return o, nil
}

func (o *outDir) cannotWrite(err error) error {
	return &diag.Diagnostic{ID: "cannot-write", File: o.final, Message: bare(err).Error(), Help: "choose another directory with --out"}
}

// begin makes the working folder.
func (o *outDir) begin(ui *UI) error {
	parent := o.final
	if !o.exists {
		parent = filepath.Dir(filepath.Clean(o.final))
		if err := o.makeParents(parent); err != nil {
			return o.cannotWrite(err)
		}
	}
	var err error
	if o.work, o.remove, err = ui.tempDir(parent, ".rammerc-*"); err != nil {
		o.removeParents()
		return o.cannotWrite(err)
	}
	return nil
}

// makeParents is os.MkdirAll that remembers what it made.
func (o *outDir) makeParents(dir string) error {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append([]string{d}, missing...)
	}
	for _, d := range missing {
		if err := os.Mkdir(d, 0o777); err != nil {
			o.removeParents()
			return err
		}
		o.parents = append(o.parents, d)
	}
	return nil
}

// removeParents takes back what makeParents made, unless others have put something there.
func (o *outDir) removeParents() {
	for i := len(o.parents) - 1; i >= 0; i-- {
		os.Remove(o.parents[i])
	}
	o.parents = nil
}

// commit moves the files over, removes those of an older library that this one does not have, and
// lists what is there, sorted.
func (o *outDir) commit() ([]string, error) {
	if !o.exists {
		if err := os.Chmod(o.work, 0o755); err != nil {
			return nil, err
		}
		if err := os.Rename(o.work, o.final); err != nil {
			return nil, o.cannotWrite(err)
		}
		o.parents = nil
		return listFiles(o.final)
	}
	names, err := listFiles(o.work)
	if err != nil {
		return nil, err
	}
	if err := o.removeOld(); err != nil {
		return nil, o.cannotWrite(err)
	}
	for _, from := range names {
		rel, err := filepath.Rel(o.work, from)
		if err != nil {
			return nil, err
		}
		to := filepath.Join(o.final, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return nil, o.cannotWrite(err)
		}
		if err := os.Rename(from, to); err != nil {
			return nil, o.cannotWrite(err)
		}
	}
	o.remove()
	return listFiles(o.final)
}

// removeOld removes the older library: a .so of another program beside new weights would only fail.
func (o *outDir) removeOld() error {
	entries, err := os.ReadDir(o.final)
	if err != nil {
		return err
	}
	for _, e := range entries {
		n := e.Name()
		ours := strings.HasPrefix(n, o.name+".") || strings.HasPrefix(n, "lib"+o.name+".") || n == "cudaemu"
		if !ours {
			continue
		}
		if err := os.RemoveAll(filepath.Join(o.final, n)); err != nil {
			return err
		}
	}
	return nil
}

// discard removes the working folder and the parents made for it; after commit there is nothing left
// to do.
func (o *outDir) discard() {
	if o.remove != nil {
		o.remove()
	}
	o.removeParents()
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
