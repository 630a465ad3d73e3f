package db

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gofrs/flock"
)

// DB is an open database. Its methods can be called by several goroutines; other processes may append to the same file
// meanwhile.
type DB struct {
	path string

	mu      sync.Mutex
	entries map[string]Entry // by Key.ID, the latest of equal keys
}

// FileName is the name of the user's database in the cache folder.
const FileName = "measured.jsonl"

// DefaultPath is the user's database: the file that RAMMER_CACHE names, or one in the user's cache folder.
func DefaultPath() (string, error) {
	if p := os.Getenv("RAMMER_CACHE"); p != "" {
		return p, nil
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(base, "rammerc", FileName), nil
}

// Open reads the file at path, which need not exist, and what ships with rammerc for the product gpu; the file's lines
// come before those. A line that is cut off, as the last one is after a crash, counts as not there.
func Open(path, gpu string) (*DB, error) {
	d := &DB{path: path, entries: map[string]Entry{}}
	if err := d.addShipped(gpu); err != nil {
		return nil, err
	}
	entries, _, err := ReadFile(path)
	for _, e := range entries {
		d.entries[e.ID()] = e
	}
	return d, err
}

// ReadFile reads the entries of a file in their order, and how many lines are none. A file that does not exist has
// none.
func ReadFile(path string) (entries []Entry, damaged int, err error) {
	damaged, err = ReadLines(path, collector(&entries))
	return entries, damaged, err
}

// collector takes lines that are entries, and appends those of this version.
func collector(entries *[]Entry) func(line []byte) bool {
	return func(line []byte) bool {
		var e Entry
		if json.Unmarshal(line, &e) != nil || e.V == 0 {
			return false
		}
		if e.V == Version {
			*entries = append(*entries, e)
		}
		return true
	}
}

// ReadLines gives the lines of a file to take, which says whether a line is one of its kind, and counts those that are
// not, or are cut off. A file that does not exist has no lines.
func ReadLines(path string, take func(line []byte) bool) (damaged int, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return readLines(f, take)
}

func readLines(r io.Reader, take func(line []byte) bool) (damaged int, err error) {
	in := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return damaged, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err != nil || !take(line) { // without an end it may be cut off, whatever it looks like
			damaged++
		}
	}
}

// Path is the file that entries are appended to.
func (d *DB) Path() string { return d.path }

// Find is the entry of that key.
func (d *DB) Find(k Key) (Entry, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e, ok := d.entries[k.ID()]
	return e, ok
}

// Entries lists all entries, in the order of their keys' IDs.
func (d *DB) Entries() []Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]Entry, 0, len(d.entries))
	for _, id := range slices.Sorted(maps.Keys(d.entries)) {
		out = append(out, d.entries[id])
	}
	return out
}

// Append adds entries to the file. When it returns they are on the disk.
func (d *DB) Append(entries ...Entry) error {
	if err := AppendFile(d.path, entries); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		d.entries[e.ID()] = e
	}
	return nil
}

// AppendFile adds entries to the file at path and syncs it. Where the last line has no end, because its process died
// while it wrote, it gets one, so that it spoils no line but itself.
func AppendFile(path string, entries []Entry) error {
	if len(entries) == 0 {
		return nil
	}
	var text []byte
	for i := range entries {
		line, err := entries[i].line()
		if err != nil {
			return err
		}
		text = append(text, line...)
	}
	return AppendLines(path, text)
}

// AppendLines adds lines, each with its end, to the file at path and syncs it.
func AppendLines(path string, text []byte) error {
	return locked(path, func() error { return appendText(path, text) })
}

func appendText(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	if cut, err := endsInside(f); err != nil {
		return err
	} else if cut {
		text = append([]byte{'\n'}, text...)
	}
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.Sync()
}

// endsInside reports whether the file ends inside of a line.
func endsInside(f *os.File) (bool, error) {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return false, err
	}
	var last [1]byte
	_, err = f.ReadAt(last[:], st.Size()-1)
	return last[0] != '\n', err
}

// locked runs change while no other process changes the file at path. A process that dies gives the lock back.
func locked(path string, change func() error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	lock := flock.New(path + ".lock")
	if err := lock.Lock(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = lock.Close() }()
	return change()
}
