// Package outdir writes the compiler's results so that they appear whole or not at all.
//
// A library directory is filled in a transaction (Dir): Open checks that nothing of the user's would be
// overwritten, Begin makes a working folder, Commit moves its files over, and Discard, which may follow Commit,
// removes what is left.
//
//	Open ─▶ Begin ─▶ write into Work ─▶ Commit ─▶ Discard
//	                        └── a stage fails ──────▲
//
// Commit leaves a list of what it has moved over, with hashes (fileList). A later compilation removes or replaces the
// files of that list and no others. Compilations into one directory wait for each other while they move files.
//
// A user who interrupts the command leaves no working folder behind either (Folders), and those of a process that was
// killed are removed by the next one that works beside them.
package outdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/gofrs/flock"

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
// and is not this library's is refused, and so is one with a file of the library that somebody has changed.
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
	return o, o.locked(func() error { return o.mayReplace(nil) })
}

// locked calls do while no other compilation moves files in the library directory.
func (o *Dir) locked(do func() error) error {
	lock := flock.New(o.final, flock.SetFlag(os.O_RDONLY))
	if err := lock.Lock(); err != nil {
		return o.cannotWrite(err)
	}
	defer lock.Close()
	return do()
}

// mayReplace returns an error if the library directory holds what is not this library's, or if one of the files of new
// would replace a file that the compiler did not write. new may be nil.
func (o *Dir) mayReplace(new *fileList) error {
	entries, err := os.ReadDir(o.final)
	if err != nil {
		return o.cannotWrite(err)
	}
	root, err := os.OpenRoot(o.final)
	if err != nil {
		return o.cannotWrite(err)
	}
	defer root.Close()
	old, err := readList(root, o.list())
	if err != nil {
		return o.notOurs(o.list(), err)
	}
	if old == nil {
		for _, e := range entries {
			if !isWorking(e.Name()) {
				return &diag.Diagnostic{
					ID: "not-empty", File: o.final, Message: "holds files that are not this library's",
					Help: "choose an empty or new directory with --out",
				}
			}
		}
		old = newList()
	}
	if path, err := old.changed(root); path != "" {
		return o.notOurs(path, err)
	}
	if new != nil {
		if path, err := old.unlisted(root, new); path != "" {
			return o.notOurs(path, err)
		}
	}
	return nil
}

// notOurs is the error for a file that would have to be replaced although it may be the user's.
func (o *Dir) notOurs(path string, err error) error {
	message := "is not what the compiler has written here, and would be replaced"
	if err != nil {
		message = diag.Reason(err).Error()
	}
	return &diag.Diagnostic{
		ID: "not-ours", File: filepath.Join(o.final, filepath.FromSlash(path)), Message: message,
		Help: "move it elsewhere, or choose another directory with --out",
	}
}

// list is the name of the library's list of files.
func (o *Dir) list() string { return o.name + listEnd }

// Fresh is a directory of the library called name that does not exist yet, such as one in a working folder.
func Fresh(dir, name string) *Dir { return &Dir{name: name, final: dir} }

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
	parent := filepath.Dir(filepath.Clean(o.final))
	if o.exists {
		// A compilation that was killed before the directory existed has left its folder beside it.
		folders.Sweep(parent)
		parent = o.final
	} else if err := o.makeParents(parent); err != nil {
		return o.cannotWrite(err)
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
// the sorted paths of all files of the library.
func (o *Dir) Commit() ([]string, error) {
	files, err := listOf(o.Work)
	if err != nil {
		return nil, err
	}
	if !o.exists {
		moved, err := o.moveWhole(files)
		if err != nil || moved {
			return o.paths(files), err
		}
	}
	if err := o.locked(func() error { return o.update(files) }); err != nil {
		return nil, err
	}
	o.remove()
	return o.paths(files), nil
}

// moveWhole makes the working folder the library directory. It returns false if another compilation has made that
// meanwhile.
func (o *Dir) moveWhole(files *fileList) (bool, error) {
	if err := files.write(o.Work, o.list()); err != nil {
		return false, o.cannotWrite(err)
	}
	if err := os.Chmod(o.Work, 0o755); err != nil {
		return false, err
	}
	if err := os.Rename(o.Work, o.final); err != nil {
		if info, statErr := os.Stat(o.final); statErr == nil && info.IsDir() {
			return false, os.Remove(filepath.Join(o.Work, o.list()))
		}
		return false, o.cannotWrite(err)
	}
	o.parents = nil
	o.remove()
	return true, nil
}

// update replaces the files of the older library, while the directory is locked. The list names the files of both while
// this goes on.
func (o *Dir) update(files *fileList) error {
	if err := o.mayReplace(files); err != nil {
		return err
	}
	root, err := os.OpenRoot(o.final)
	if err != nil {
		return o.cannotWrite(err)
	}
	defer root.Close()
	old, err := readList(root, o.list())
	if err != nil {
		return o.cannotWrite(err)
	}
	if old == nil {
		old = newList()
	}
	if err := old.with(files).write(o.final, o.list()); err != nil {
		return o.cannotWrite(err)
	}
	if err := o.removeOld(root, old, files); err != nil {
		return o.cannotWrite(err)
	}
	for _, path := range files.paths() {
		to := filepath.Join(o.final, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return o.cannotWrite(err)
		}
		if err := os.Rename(filepath.Join(o.Work, filepath.FromSlash(path)), to); err != nil {
			return o.cannotWrite(err)
		}
	}
	if err := files.write(o.final, o.list()); err != nil {
		return o.cannotWrite(err)
	}
	return nil
}

// removeOld removes the files of the older library that the new one does not have, and folders that are empty then. A
// .so of another program beside new weights could only fail.
func (o *Dir) removeOld(root *os.Root, old, files *fileList) error {
	for _, path := range old.paths() {
		if files.Files[path] != nil {
			continue
		}
		err := root.Remove(filepath.FromSlash(path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for dir := filepath.Dir(filepath.FromSlash(path)); dir != "."; dir = filepath.Dir(dir) {
			if root.Remove(dir) != nil {
				break // it holds other files
			}
		}
	}
	return nil
}

// paths are the sorted paths of the library's files, the list among them.
func (o *Dir) paths(files *fileList) []string {
	out := []string{filepath.Join(o.final, o.list())}
	for path := range files.Files {
		out = append(out, filepath.Join(o.final, filepath.FromSlash(path)))
	}
	sort.Strings(out)
	return out
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
