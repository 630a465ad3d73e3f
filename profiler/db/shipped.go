package db

import (
	"compress/gzip"
	"embed"
	"fmt"
	"io/fs"
	"path"
)

// shipped has what was measured before the release: for each GPU a file SOMETHING.jsonl.gz of lines, compressed.
// `rammerc cache export` makes such files.
//
//go:embed shipped
var shipped embed.FS

// addShipped adds the shipped entries of the product gpu. Their keys decide, as for all entries, whether they are used.
func (d *DB) addShipped(gpu string) error {
	names, err := fs.Glob(shipped, "shipped/*.jsonl.gz")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	for _, name := range names {
		entries, err := readShipped(name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.GPU == gpu {
				d.entries[e.ID()] = e
			}
		}
	}
	return nil
}

func readShipped(name string) ([]Entry, error) {
	f, err := shipped.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path.Base(name), err)
	}
	var entries []Entry
	damaged, err := readLines(z, collector(&entries))
	if err == nil && damaged > 0 {
		err = fmt.Errorf("%s has %d damaged lines", path.Base(name), damaged)
	}
	return entries, err
}

// Shipped lists the entries that ship with rammerc.
func Shipped() ([]Entry, error) {
	names, err := fs.Glob(shipped, "shipped/*.jsonl.gz")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	var out []Entry
	for _, name := range names {
		entries, err := readShipped(name)
		if err != nil {
			return nil, err
		}
		out = append(out, entries...)
	}
	return out, nil
}
