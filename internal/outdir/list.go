package outdir

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// fileList is NAME.files.json of a library directory, the list of the files that the compiler has written there. Only
// what it names may be removed or replaced later, and only while it still has the content of which the list tells.
type fileList struct {
	Schema string `json:"schema"`
	// Files has for each path, relative to the directory and with slashes, the SHA-256 of the file. While a library is
	// being replaced a path may have two, of the old file and of the new one, so that a list is right whenever the
	// process is killed.
	Files map[string][]string `json:"files"`
}

const (
	listSchema = "rammerc/files/v1"
	listEnd    = ".files.json"
	// maxList bounds the bytes of a list. That of a library has ten to a hundred lines.
	maxList = 1 << 20
)

func newList() *fileList { return &fileList{Schema: listSchema, Files: map[string][]string{}} }

// listOf is the list of all files below dir.
func listOf(dir string) (*fileList, error) {
	l := newList()
	paths, err := listFiles(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, p := range paths {
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return nil, err
		}
		sum, err := hashOf(root, rel)
		if err != nil {
			return nil, err
		}
		l.Files[filepath.ToSlash(rel)] = []string{sum}
	}
	return l, nil
}

// readList reads the list of a library directory; it is nil if there is none.
func readList(root *os.Root, name string) (*fileList, error) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxList) {
		err = errors.New("is no list of files")
	}
	if err != nil {
		return nil, err
	}
	text, err := root.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var l fileList
	if err := json.Unmarshal(text, &l); err != nil || l.Schema != listSchema {
		return nil, errors.New("is not a list of files that a compiler of this version has written")
	}
	for path := range l.Files {
		if !filepath.IsLocal(filepath.FromSlash(path)) {
			return nil, fmt.Errorf("names %q, which lies outside of the directory", path)
		}
	}
	return &l, nil
}

// write replaces the list in dir at once.
func (l *fileList) write(dir, name string) error {
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, name), append(text, '\n'))
}

// paths are the paths of the list in order.
func (l *fileList) paths() []string { return slices.Sorted(maps.Keys(l.Files)) }

// with is a list of the files of both l and m.
func (l *fileList) with(m *fileList) *fileList {
	both := &fileList{Schema: listSchema, Files: maps.Clone(l.Files)}
	for path, sums := range m.Files {
		both.Files[path] = slices.Compact(slices.Concat(both.Files[path], sums))
	}
	return both
}

// changed is the first file of the list that no longer is what the compiler wrote, "" if there is none. A file that is
// gone has not changed.
func (l *fileList) changed(root *os.Root) (string, error) {
	for _, path := range l.paths() {
		info, err := root.Lstat(filepath.FromSlash(path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !info.Mode().IsRegular() {
			return path, err
		}
		sum, err := hashOf(root, filepath.FromSlash(path))
		if err != nil || !slices.Contains(l.Files[path], sum) {
			return path, err
		}
	}
	return "", nil
}

// unlisted is the first file of m that exists and that l does not name, "" if there is none.
func (l *fileList) unlisted(root *os.Root, m *fileList) (string, error) {
	for _, path := range m.paths() {
		if l.Files[path] != nil {
			continue
		}
		if _, err := root.Lstat(filepath.FromSlash(path)); !errors.Is(err, fs.ErrNotExist) {
			return path, err
		}
	}
	return "", nil
}

func hashOf(root *os.Root, path string) (string, error) {
	f, err := root.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
