package db

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
)

// Merge appends to the file at path what the others have and it has not. It returns the number of entries added.
func Merge(path string, others ...string) (added int, err error) {
	have := map[string]bool{}
	mine, _, err := ReadFile(path)
	if err != nil {
		return 0, err
	}
	for _, e := range mine {
		have[e.ID()] = true
	}
	var missing []Entry
	for _, other := range others {
		if _, err := os.Stat(other); err != nil {
			return 0, err
		}
		theirs, _, err := ReadFile(other)
		if err != nil {
			return 0, err
		}
		for _, e := range Latest(theirs) {
			if !have[e.ID()] {
				have[e.ID()] = true
				missing = append(missing, e)
			}
		}
	}
	return len(missing), AppendFile(path, missing)
}

// Latest keeps the last of the entries with equal keys. It keeps the order of those that stay.
func Latest(entries []Entry) []Entry {
	seen := map[string]bool{}
	var out []Entry
	for _, e := range slices.Backward(entries) {
		if !seen[e.ID()] {
			seen[e.ID()] = true
			out = append(out, e)
		}
	}
	slices.Reverse(out)
	return out
}

// Collect rewrites the file at path: of equal keys it keeps the latest entry, of all others those that keep accepts;
// damaged lines go. It returns how many lines there were and how many there are. The file is replaced in one step, so
// that a crash leaves the old one or the new one.
func Collect(path string, keep func(*Entry) bool) (before, after int, err error) {
	err = locked(path, func() error {
		entries, damaged, err := ReadFile(path)
		if err != nil {
			return err
		}
		before = len(entries) + damaged
		entries = slices.DeleteFunc(Latest(entries), func(e Entry) bool { return !keep(&e) })
		after = len(entries)
		text, err := Format(entries)
		if err != nil {
			return err
		}
		return replace(path, text)
	})
	return before, after, err
}

// Format is the entries as lines.
func Format(entries []Entry) ([]byte, error) {
	var text bytes.Buffer
	for i := range entries {
		line, err := entries[i].line()
		if err != nil {
			return nil, err
		}
		text.Write(line)
	}
	return text.Bytes(), nil
}

// replace writes a file beside path, syncs it and gives it path's name.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
