// Package outdir writes the compiler's results so that they appear whole or not at all.
//
// A library directory is filled in a transaction (Dir): Open checks that nothing of the user's would be
// overwritten, Begin makes a working folder, Commit moves its files over, and Discard, which may follow Commit,
// removes what is left. A user who interrupts the command leaves no working folder behind either (Folders).
//
//	Open ─▶ Begin ─▶ write into Work ─▶ Commit ─▶ Discard
//	                        └── a stage fails ──────▲
package outdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/rammerc/rammerc/internal/diag"
)

// Dir is a library directory in the making. Its files are collected in a working folder, so that a failure leaves
// nothing behind and an older library stays whole until the new one is complete. The working folder lies inside the
// library directory where that exists, so that files only have to be renamed, and beside it otherwise.
type Dir struct {
	Work string // the working folder, after Begin

	name    string   // of the library, an identifier
	final   string   // the library directory
	exists  bool     // final was there before
	parents []string // directories that were made to hold final, outermost first
	remove  func()   // removes the working folder
}

// Open checks that the library called name, an identifier, may be written into dir. A directory that holds files
// and is not this library's is refused, so that nothing of the user's is overwritten.
func Open(dir, name string) (*Dir, error) {
	o := &Dir{name: name, final: dir}
	if dir == "" {
		return nil, diag.New("bad-flag", "--out names no directory")
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

// Fresh is a library directory that does not exist yet, such as one in a working folder.
func Fresh(dir string) *Dir { return &Dir{final: dir} }

// Path is the library directory.
func (o *Dir) Path() string { return o.final }

func (o *Dir) cannotWrite(err error) error {
	return &diag.Diagnostic{
		ID: "cannot-write", File: o.final, Message: diag.Reason(err).Error(),
		Help: "choose another directory with --out",
	}
}

// Begin makes the working folder, and the parents of a library directory that does not exist yet.
func (o *Dir) Begin(folders *Folders) error {
	parent := o.final
	if !o.exists {
		parent = filepath.Dir(filepath.Clean(o.final))
		if err := o.makeParents(parent); err != nil {
			return o.cannotWrite(err)
		}
	}
	var err error
	if o.Work, o.remove, err = folders.Make(parent, ".rammerc-*"); err != nil {
		o.removeParents()
		return o.cannotWrite(err)
	}
	return nil
}

// makeParents is os.MkdirAll, and notes which directories it made.
func (o *Dir) makeParents(dir string) error {
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

// removeParents removes the directories that makeParents made, except those into which others have put something.
func (o *Dir) removeParents() {
	for i := len(o.parents) - 1; i >= 0; i-- {
		os.Remove(o.parents[i])
	}
	o.parents = nil
}

// Commit moves the files over, removes those files of an older library that this one does not have, and returns
// the sorted paths of all files in the library directory.
func (o *Dir) Commit() ([]string, error) {
	if !o.exists {
		if err := os.Chmod(o.Work, 0o755); err != nil {
			return nil, err
		}
		if err := os.Rename(o.Work, o.final); err != nil {
			return nil, o.cannotWrite(err)
		}
		o.parents = nil
		return listFiles(o.final)
	}
	names, err := listFiles(o.Work)
	if err != nil {
		return nil, err
	}
	if err := o.removeOld(); err != nil {
		return nil, o.cannotWrite(err)
	}
	for _, from := range names {
		rel, err := filepath.Rel(o.Work, from)
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

// removeOld removes the files of the older library. A .so of another program beside new weights could only fail.
func (o *Dir) removeOld() error {
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

// Discard removes the working folder and the parents that were made for the library directory. After Commit it
// finds nothing to do.
func (o *Dir) Discard() {
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
